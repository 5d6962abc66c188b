//! What others ask about descriptors.
use super::fds;
use rustix::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use rustix::io;
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

/// A second descriptor for the same file or socket, which its other owner cannot close.
pub fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    fds::duplicate(fd)
}

/// The soft limit on open descriptors.
pub fn descriptor_limit() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current.map_or(usize::MAX, |limit| limit as usize)
}

/// The size of a regular file that is stored somewhere; `None` for anything else. The files of proc(5) and sysfs(5) are made when
/// they are read, and the size that they tell is none: they take no blocks.
pub fn stored_size(fd: RawFd) -> Option<u64> {
    let stat = rustix::fs::fstat(fds::duplicate(fd).ok()?).ok()?;
    let is_stored = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file() && stat.st_blocks > 0;
    is_stored.then_some(stat.st_size as u64)
}

/// A file to be sent.
#[derive(Debug)]
pub enum Opened {
    /// A stored one, and its size.
    Stored(OwnedFd, u64),
    /// What one that is made as it is read (procfs, sysfs) had to say: its size tells nothing.
    Made(Vec<u8>),
}

/// Most bytes of a file that is made as it is read.
const MADE: u64 = 1 << 20;
/// Bytes of a file that a thread with other things to do copies, if the page cache has them.
const SMALL: u64 = 64 << 10;

/// The same as [`open_file`] for a thread with other things to do. `None`: only a disk knows, or the system cannot tell, or there is no such
/// file. `RESOLVE_CACHED` (openat2(2)) is the kernel's own test for io_uring before it hands an open to a thread.
pub fn open_cached(path: &Path) -> Option<Opened> {
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::CLOEXEC;
    let resolve = rustix::fs::ResolveFlags::CACHED;
    let fd = rustix::fs::openat2(rustix::fs::CWD, path, flags, rustix::fs::Mode::empty(), resolve).ok()?;
    let stat = rustix::fs::fstat(&fd).ok()?;
    // One without blocks is made as it is read.
    let is_stored = rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file() && stat.st_blocks > 0;
    is_stored.then_some(Opened::Stored(fd, stat.st_size as u64))
}

/// Opens a regular file that is to be sent. Anything else is refused, and a FIFO's writer is not waited for.
pub fn open_file(path: &Path) -> std::io::Result<Opened> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        let text = format!("{} is not a regular file", path.display());
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, text));
    }
    if metadata.blocks() == 0 {
        let mut bytes = Vec::new();
        (&file).take(MADE + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 <= MADE {
            return Ok(Opened::Made(bytes));
        }
    }
    Ok(Opened::Stored(file.into(), metadata.len()))
}

/// The bytes of a small part of a file, if they can be had without waiting for the disk.
pub fn cached_part(file: &OwnedFd, offset: u64, count: u64) -> Option<Vec<u8>> {
    if count > SMALL {
        return None;
    }
    let mut bytes = vec![0; count as usize];
    let read = io::preadv2(file, &mut [io::IoSliceMut::new(&mut bytes)], offset, io::ReadWriteFlags::NOWAIT).ok()?;
    (read == bytes.len()).then_some(bytes)
}

/// The same number everywhere, as of all system calls since Linux 5.1. MIPS counts from another base: there it is a call that does not exist.
const SYS_CACHESTAT: libc::c_long = 451;

/// `struct cachestat_range`
#[repr(C)]
struct CacheRange {
    offset: u64,
    length: u64,
}

/// `struct cachestat`, in pages.
#[repr(C)]
#[derive(Default)]
struct CacheCounts {
    cached: u64,
    dirty: u64,
    writeback: u64,
    evicted: u64,
    recently_evicted: u64,
}

/// Whether the page cache has all of this part of a file (cachestat(2), since Linux 6.5). False also where the system does not tell: from
/// Linux 6.18 on only of files that the caller owns or may write to.
pub fn is_cached(file: impl AsFd, offset: u64, length: u64) -> bool {
    let Some(end) = offset.checked_add(length).filter(|_| length > 0) else { return false };
    let page = rustix::param::page_size() as u64;
    let range = CacheRange { offset, length };
    let mut counts = CacheCounts::default();
    let file = file.as_fd().as_raw_fd();
    // SAFETY: both structures live until the call returns, and are those that it reads and writes. The descriptor is open.
    let result = unsafe { libc::syscall(SYS_CACHESTAT, file, &raw const range, &raw mut counts, 0) };
    result == 0 && counts.cached >= end.div_ceil(page) - offset / page
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_made_as_it_is_read_is_read() {
        let Ok(Opened::Made(bytes)) = open_file(Path::new("/proc/self/status")) else { panic!("a stored file") };
        assert!(bytes.starts_with(b"Name:"));
    }

    #[test]
    fn a_file_whose_path_was_walked_is_opened_without_a_disk() {
        let path = std::env::temp_dir().join(format!("tricorn-cached-{}", std::process::id()));
        std::fs::write(&path, b"0123456789").expect("a file");
        let opened = open_cached(&path);
        // Where the system has no openat2(2), or knows no RESOLVE_CACHED, nothing is.
        assert!(matches!(opened, None | Some(Opened::Stored(_, 10))), "{opened:?}");
        std::fs::remove_file(&path).expect("a file");
        assert!(open_cached(&path).is_none() && open_cached(Path::new("/")).is_none());
        assert!(open_cached(Path::new("/proc/self/status")).is_none(), "to read it is to make it");
    }

    #[test]
    #[cfg_attr(miri, ignore = "cachestat(2)")]
    fn what_was_just_written_is_cached_and_what_is_not_there_is_not() {
        let file = File::from(rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).expect("a file"));
        let page = rustix::param::page_size() as u64;
        std::io::Write::write_all(&mut &file, &vec![7; 3 * page as usize + 1]).expect("room");
        // Where the system knows no cachestat(2), nothing is.
        let knows = is_cached(&file, 0, 1);
        for (offset, length) in [(0, 3 * page + 1), (page - 1, 2), (3 * page, 1)] {
            assert_eq!(is_cached(&file, offset, length), knows, "{offset} {length}");
        }
        for (offset, length) in [(0, 4 * page + 1), (4 * page, 1), (0, 0), (u64::MAX, 2)] {
            assert!(!is_cached(&file, offset, length), "{offset} {length}");
        }
    }

    #[test]
    fn a_small_part_of_a_cached_file_is_copied() {
        let file = File::from(rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).expect("a file"));
        std::io::Write::write_all(&mut &file, b"0123456789").expect("room");
        let file = OwnedFd::from(file);
        // Where the file system knows no NOWAIT, nothing is.
        let part = cached_part(&file, 2, 3);
        assert!(part.is_none() || part.as_deref() == Some(b"234"), "{part:?}");
        assert_eq!(cached_part(&file, 8, 3), None, "it is shorter by now");
        assert_eq!(cached_part(&file, 0, SMALL + 1), None);
    }
}
