//! The alternate signal stack of a thread (sigaltstack(2)), made large enough for every signal at once.
//!
//! CPython installs its handlers with SA_ONSTACK, and faulthandler gives the main thread an alternate stack for one frame.
//! Signals that were blocked, or came while the process was stopped, are delivered together: each interrupts the handler
//! of the one before it. With AVX-512 a frame takes 3.4 KiB (AT_MINSIGSTKSZ), so that five of them run over the end of that
//! stack and into the heap.
use rustix::io;

/// Signals that can be delivered at once: all there are.
const SIGNALS: usize = 64;
/// What the handlers themselves need.
const HANDLERS: usize = 64 * 1024;

/// Replaces the calling thread's alternate stack if it has one and that is too small. Whether it was.
///
/// The new one is never given back: it belongs to the main thread, which lasts as long as the process.
#[cfg(target_os = "linux")]
pub fn enlarge_signal_stack() -> io::Result<bool> {
    let mut now = std::mem::MaybeUninit::<libc::stack_t>::zeroed();
    // SAFETY: a null first argument only asks; the second points to memory for one `stack_t`.
    if unsafe { libc::sigaltstack(std::ptr::null(), now.as_mut_ptr()) } != 0 {
        return Err(last_error());
    }
    // SAFETY: the call has filled it.
    let now = unsafe { now.assume_init() };
    let wanted = size();
    if now.ss_flags & libc::SS_DISABLE != 0 || now.ss_size >= wanted {
        return Ok(false);
    }
    let stack = libc::stack_t { ss_sp: map_with_guard(wanted)?, ss_flags: 0, ss_size: wanted };
    // SAFETY: `wanted` bytes from `ss_sp` are mapped, readable and writable, and stay so; null: the old one is not asked for.
    if unsafe { libc::sigaltstack(&raw const stack, std::ptr::null_mut()) } != 0 {
        return Err(last_error()); // EPERM: called from a handler, which is a mistake; the mapping is left
    }
    Ok(true)
}

/// There is no faulthandler that needs it.
#[cfg(not(target_os = "linux"))]
pub fn enlarge_signal_stack() -> io::Result<bool> {
    Ok(false)
}

#[cfg(target_os = "linux")]
fn size() -> usize {
    // SAFETY: plain numbers; 0 if the kernel is older than the question (Linux 5.14).
    let frame = unsafe { libc::getauxval(libc::AT_MINSIGSTKSZ) } as usize;
    (SIGNALS * frame.max(libc::MINSIGSTKSZ) + HANDLERS).next_multiple_of(rustix::param::page_size())
}

/// Memory below which lies a page that cannot be touched: a stack grows downwards (mmap(2)).
#[cfg(target_os = "linux")]
fn map_with_guard(size: usize) -> io::Result<*mut std::ffi::c_void> {
    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect};
    let guard = rustix::param::page_size();
    let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::STACK;
    // SAFETY: a new mapping at an address of the kernel's choice.
    let low = unsafe { mmap_anonymous(std::ptr::null_mut(), guard + size, ProtFlags::READ | ProtFlags::WRITE, flags)? };
    // SAFETY: the first page of the mapping just made, which nothing points into.
    unsafe { mprotect(low, guard, MprotectFlags::empty())? };
    // SAFETY: within the mapping, which is longer than the guard.
    Ok(unsafe { low.byte_add(guard) })
}

#[cfg(target_os = "linux")]
fn last_error() -> io::Errno {
    io::Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(io::Errno::INVAL)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// On a thread of its own: std has given it a small one, for its own guard against overflows.
    #[test]
    fn a_small_stack_is_replaced_once() {
        std::thread::spawn(|| {
            let first = enlarge_signal_stack().expect("memory");
            let mut now = std::mem::MaybeUninit::<libc::stack_t>::zeroed();
            // SAFETY: as in `enlarge_signal_stack`.
            let now = unsafe {
                assert_eq!(libc::sigaltstack(std::ptr::null(), now.as_mut_ptr()), 0);
                now.assume_init()
            };
            assert!(first, "std's own is small");
            assert!(now.ss_size >= size() && now.ss_size >= 64 * 1024 + 64 * 2048);
            assert!(!enlarge_signal_stack().expect("memory"), "once");
        })
        .join()
        .expect("a thread");
    }
}
