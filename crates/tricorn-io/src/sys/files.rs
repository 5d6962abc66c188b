//! What others ask about descriptors.
use super::fds;
use rustix::fd::{OwnedFd, RawFd};
use rustix::io;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
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

/// A regular file to be sent, and its size. Anything else is refused; opening it does not wait for anybody (a FIFO's writer).
pub fn open_file(path: &Path) -> std::io::Result<(OwnedFd, u64)> {
    let flags = rustix::fs::OFlags::NONBLOCK.bits() as i32;
    let file: File = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        let text = format!("{} is not a regular file", path.display());
        return Err(std::io::Error::new(std::io::ErrorKind::InvalidInput, text));
    }
    Ok((file.into(), metadata.len()))
}
