//! What others ask about descriptors.
use crate::sys::fds;
use rustix::fd::{OwnedFd, RawFd};
use rustix::io;

/// A second descriptor for the same file or socket, which its other owner cannot close.
pub fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    fds::duplicate(fd)
}

/// The soft limit on open descriptors.
pub fn descriptor_limit() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile);
    limit.current.map_or(usize::MAX, |limit| limit as usize)
}

/// The size of a regular file; `None` for anything else.
pub fn file_size(fd: RawFd) -> Option<u64> {
    let stat = rustix::fs::fstat(fds::duplicate(fd).ok()?).ok()?;
    rustix::fs::FileType::from_raw_mode(stat.st_mode).is_file().then_some(stat.st_size as u64)
}
