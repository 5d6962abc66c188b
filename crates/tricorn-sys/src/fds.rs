//! Descriptors that come as numbers, shared memory that comes as an address, and socket queries rustix lacks.
use rustix::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};
use rustix::io;
use std::mem::MaybeUninit;
use std::sync::atomic::AtomicU64;

/// Duplicates a descriptor that another object owns by number (a listener inherited from the arbiter).
pub fn duplicate(fd: RawFd) -> io::Result<OwnedFd> {
    if fd < 0 {
        return Err(io::Errno::BADF);
    }
    // SAFETY: the borrow lasts for this call only; `fcntl(F_DUPFD_CLOEXEC)` on a number that is not open fails with
    // EBADF and touches nothing.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    io::fcntl_dupfd_cloexec(borrowed, 3)
}

/// Does something with a descriptor that another library owns, by its number.
pub fn with_borrowed<T>(fd: RawFd, work: impl FnOnce(BorrowedFd<'_>) -> T) -> T {
    // SAFETY: the borrow lasts for this call only, and the number is one that was open. A system call on a number that is open
    // no longer fails with EBADF and touches nothing.
    work(unsafe { BorrowedFd::borrow_raw(fd) })
}

/// Bytes the peer has not acknowledged yet (`SIOCOUTQ`; tcp(7) and unix(7)).
pub fn unacknowledged(socket: BorrowedFd<'_>) -> Option<u64> {
    let mut count: libc::c_int = 0;
    // SAFETY: SIOCOUTQ (the number of TIOCOUTQ) stores one int at the address given, which is valid and writable.
    let result = unsafe { libc::ioctl(socket.as_raw_fd(), libc::TIOCOUTQ, &mut count) };
    (result == 0).then_some(count.max(0) as u64)
}

/// For how many milliseconds nothing has come from the peer, to the clock tick; `None` where the system does not tell,
/// as for unix sockets (tcp(7), TCP_INFO).
pub fn silence(socket: BorrowedFd<'_>) -> Option<u64> {
    tcp_info(socket).map(|info| u64::from(info.tcpi_last_ack_recv))
}

/// Connections that wait at a listening socket to be accepted, and how many may: Linux says so in these fields (tcp_get_info).
pub fn backlog(listener: BorrowedFd<'_>) -> Option<(u32, u32)> {
    tcp_info(listener).map(|info| (info.tcpi_unacked, info.tcpi_sacked))
}

fn tcp_info(socket: BorrowedFd<'_>) -> Option<libc::tcp_info> {
    // SAFETY: a tcp_info is numbers, for which all bytes zero are valid.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of::<libc::tcp_info>() as libc::socklen_t;
    let (address, wanted) = ((&raw mut info).cast(), std::mem::offset_of!(libc::tcp_info, tcpi_pmtu));
    // SAFETY: the kernel writes at most `length` bytes to the address, where there are as many.
    let result =
        unsafe { libc::getsockopt(socket.as_raw_fd(), libc::IPPROTO_TCP, libc::TCP_INFO, address, &mut length) };
    (result == 0 && length as usize >= wanted).then_some(info)
}

/// The words of a scoreboard page in shared memory.
///
/// # Safety
/// `address` is aligned to 8 bytes and `words * 8` bytes from it stay mapped and writable as long as the slice is used,
/// accessed by everybody as atomic words.
pub unsafe fn shared_words(address: *mut u8, words: usize) -> &'static [AtomicU64] {
    // SAFETY: promised by the caller; AtomicU64 has the layout of u64 and permits shared mutation.
    unsafe { std::slice::from_raw_parts(address.cast::<AtomicU64>(), words) }
}

/// Reads up to `room` bytes to the end of a vector that has that much capacity to spare.
pub fn recv_into(socket: BorrowedFd<'_>, bytes: &mut Vec<u8>, room: usize) -> io::Result<usize> {
    let spare = bytes.spare_capacity_mut();
    let room = room.min(spare.len());
    let count = receive(socket, &mut spare[..room])?;
    let length = bytes.len() + count;
    // SAFETY: `receive` initialised the first `count` bytes of the spare capacity.
    unsafe { bytes.set_len(length) };
    Ok(count)
}

/// Reads into memory that holds nothing yet; as many bytes of it as are returned are initialised.
pub fn receive(socket: BorrowedFd<'_>, room: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
    let ((filled, _), _) = rustix::net::recv(socket, room, rustix::net::RecvFlags::empty())?;
    Ok(filled.len())
}

/// Sends without waiting. EPIPE is an error, and no signal.
#[inline]
pub fn send(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    rustix::net::send(socket, bytes, rustix::net::SendFlags::NOSIGNAL | rustix::net::SendFlags::DONTWAIT)
}

/// The same of bytes that have more behind them, which is sent next (MSG_MORE).
pub fn send_before_more(socket: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<usize> {
    use rustix::net::SendFlags;
    rustix::net::send(socket, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT | SendFlags::MORE)
}

/// Does a system call again that was interrupted.
#[inline]
pub fn retry(mut call: impl FnMut() -> io::Result<usize>) -> io::Result<usize> {
    loop {
        match call() {
            Err(io::Errno::INTR) => {}
            result => return result,
        }
    }
}
