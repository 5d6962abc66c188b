//! fork(2): handlers around it, and descriptors that a child must not have.
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use rustix::io::{self, Errno};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};
use std::sync::atomic::{AtomicBool, Ordering};

static CHILD: AtomicBool = AtomicBool::new(false);

/// Whether this process was forked by the application of a worker.
#[inline]
pub fn is_child() -> bool {
    CHILD.load(Ordering::Relaxed)
}

/// From now on [`is_child`] says so; for the handler that runs in the child.
pub fn become_child() {
    CHILD.store(true, Ordering::Relaxed);
}

/// Has these called in every `fork` of this process from now on: before it, and after it in the parent and in the child.
pub fn handle(prepare: extern "C" fn(), parent: extern "C" fn(), child: extern "C" fn()) -> io::Result<()> {
    // The C library's signature has "unsafe" functions in it.
    let [prepare, parent, child] = [prepare, parent, child].map(|handler| Some(handler as unsafe extern "C" fn()));
    // SAFETY: the handlers take nothing and are there for as long as this library is, which is never unloaded.
    match unsafe { libc::pthread_atfork(prepare, parent, child) } {
        0 => Ok(()),
        error => Err(Errno::from_raw_os_error(error)),
    }
}

/// Makes orphans among the descendants of this process its children (prctl(2), PR_SET_CHILD_SUBREAPER).
#[cfg(target_os = "linux")]
pub fn adopt_orphans() -> io::Result<()> {
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))
}

/// Only Linux has subreapers.
#[cfg(not(target_os = "linux"))]
pub fn adopt_orphans() -> io::Result<()> {
    Err(Errno::NOSYS)
}

/// Ends the process; nothing is run, dropped or flushed.
pub fn exit_at_once(status: i32) -> ! {
    // SAFETY: a plain number; it does not return.
    unsafe { libc::_exit(status) }
}

/// A descriptor that is never readable, and to which nothing can be written.
///
/// An unconnected datagram socket: `send` and `write` fail with ENOTCONN, poll(2) reports no POLLIN and no POLLHUP.
pub fn dead() -> io::Result<OwnedFd> {
    socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC | SocketFlags::NONBLOCK, None)
}

/// Puts `dead` in the place of a descriptor. The number stays in use: its owner may close it later.
pub fn replace(fd: RawFd, dead: BorrowedFd<'_>) {
    // SAFETY: plain numbers; dup3 is async-signal-safe (signal-safety(7)), and needs no free descriptor. The caller owns `fd`.
    unsafe { libc::dup3(dead.as_raw_fd(), fd, libc::O_CLOEXEC) };
}
