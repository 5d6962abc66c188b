//! How much memory this process has.
use rustix::fs::{Mode, OFlags, open};
use rustix::io::read;
use rustix::param::page_size;

/// The resident set in bytes, what it shares with others included (proc_pid_statm(5)); `None` without `/proc`.
pub fn resident() -> Option<u64> {
    let file = open("/proc/self/statm", OFlags::RDONLY | OFlags::CLOEXEC, Mode::empty()).ok()?;
    let mut text = [0; 128];
    let count = read(&file, &mut text).ok()?;
    let mut fields = std::str::from_utf8(&text[..count]).ok()?.split_ascii_whitespace();
    let pages: u64 = fields.nth(1)?.parse().ok()?;
    Some(pages * page_size() as u64)
}

/// Returns to the kernel what malloc(3) keeps of memory that was freed (malloc_trim(3)); glibc's only.
pub fn trim_heap() {
    // SAFETY: it takes the allocator's own locks, and touches nothing that is allocated.
    #[cfg(target_env = "gnu")]
    unsafe {
        libc::malloc_trim(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "/proc")]
    fn memory_that_is_used_is_resident() {
        let before = resident().expect("/proc");
        let used = vec![1u8; 64 << 20];
        let after = resident().expect("/proc");
        assert!(after >= before + (48 << 20), "{before} {after} {}", used.len());
    }

    #[test]
    #[cfg(target_env = "gnu")]
    #[cfg_attr(miri, ignore = "malloc_trim(3)")]
    fn what_was_freed_is_given_back() {
        let held: Vec<Vec<u8>> = (0..1 << 15).map(|_| vec![1; 1 << 10]).collect();
        let last = vec![1u8; 1 << 10]; // on top of them, so that free(3) cannot give the end of the heap back by itself
        drop(held);
        let before = resident().expect("/proc");
        trim_heap();
        let after = resident().expect("/proc");
        assert!(after + (16 << 20) < before, "{before} {after} {}", last.len());
    }
}
