//! Describes file descriptors of a process: files, pipes, sockets and their peers.
//!
//! A socket of another process is asked through a duplicate of it (pidfd_getfd(2), permitted with the right to read the
//! memory), since the kernel builds /proc/PID/net/tcp from all sockets of the host: 8 to 212 ms were measured.
use rustix::process::{Pid, PidfdFlags, PidfdGetfdFlags, pidfd_getfd, pidfd_open};
use std::cell::Cell;
use std::fs;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd};

pub struct Descriptors {
    pid: u32,
    /// None: the process is our own, or it may not be asked.
    handle: Option<OwnedFd>,
    refused: Cell<bool>,
}

impl Descriptors {
    pub fn new(pid: u32) -> Self {
        let other = (pid != std::process::id()).then(|| Pid::from_raw(i32::try_from(pid).ok()?)).flatten();
        let handle = other.and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Self { pid, handle, refused: Cell::new(false) }
    }

    /// Whether a socket could not be inspected for lack of permission.
    pub fn were_refused(&self) -> bool {
        self.refused.get()
    }

    pub fn describe(&mut self, fd: i32) -> String {
        let Ok(link) = fs::read_link(format!("/proc/{}/fd/{fd}", self.pid)) else { return String::new() };
        let link = link.to_string_lossy().into_owned();
        if link == "anon_inode:[eventpoll]" {
            return self.watched(fd).unwrap_or(link);
        }
        if !link.starts_with("socket:") {
            return link;
        }
        self.socket(fd).unwrap_or(link)
    }

    /// What an epoll watches, if that is little: of a loop's it would be every connection.
    fn watched(&self, fd: i32) -> Option<String> {
        let text = fs::read_to_string(format!("/proc/{}/fdinfo/{fd}", self.pid)).ok()?;
        let targets: Vec<i32> = targets(&text).take(MOST_WATCHED + 1).collect();
        if targets.is_empty() || targets.len() > MOST_WATCHED {
            return None;
        }
        let described = targets.into_iter().map(|target| match self.socket(target) {
            Some(socket) => Some(socket),
            None => Some(fs::read_link(format!("/proc/{}/fd/{target}", self.pid)).ok()?.to_string_lossy().into_owned()),
        });
        Some(format!("an epoll of {}", described.collect::<Option<Vec<_>>>()?.join(" and ")))
    }

    fn socket(&self, fd: i32) -> Option<String> {
        let Some(handle) = &self.handle else {
            if self.pid != std::process::id() {
                return None;
            }
            // SAFETY: the number is asked for its name only. Should it be another descriptor by then, that one is described.
            return describe_socket(unsafe { BorrowedFd::borrow_raw(fd) });
        };
        let copy = pidfd_getfd(handle, fd, PidfdGetfdFlags::empty())
            .inspect_err(|error| self.refused.set(self.refused.get() || *error == rustix::io::Errno::PERM))
            .ok()?;
        // SAFETY: the copy is open until the end of this function.
        describe_socket(unsafe { BorrowedFd::borrow_raw(copy.as_raw_fd()) })
    }
}

/// `tfd:       8 events: 19 data: …` for each that is watched (proc_pid_fdinfo(5)).
fn targets(text: &str) -> impl Iterator<Item = i32> {
    text.lines().filter_map(|line| line.strip_prefix("tfd:")?.split_whitespace().next()?.parse().ok())
}

const MOST_WATCHED: usize = 3;

fn describe_socket(fd: BorrowedFd<'_>) -> Option<String> {
    use rustix::net::{SocketType, sockopt};
    let kind = sockopt::socket_type(fd).ok()?;
    let own = name_of(fd, libc::getsockname)?;
    let peer = name_of(fd, libc::getpeername).and_then(|bytes| socket_address(&bytes));
    let local = socket_address(&own);
    let is_unix = own.first_chunk().map(|family| u16::from_ne_bytes(*family)) == u16::try_from(libc::AF_UNIX).ok();
    let protocol = match kind {
        _ if is_unix => "unix socket",
        SocketType::STREAM => "TCP",
        SocketType::DGRAM => "UDP",
        _ => "socket",
    };
    let listens = sockopt::socket_acceptconn(fd).unwrap_or(false);
    Some(match (peer, local) {
        (_, Some(local)) if listens => format!("{protocol} listening on {local}"),
        (Some(peer), _) if !peer.is_empty() => format!("{protocol} to {peer}"),
        // The accepting side of a unix socket: its client has no name.
        (_, Some(local)) if !local.is_empty() => format!("{protocol} {local}"),
        _ => format!("{protocol} without a name"),
    })
}

type Ask = unsafe extern "C" fn(libc::c_int, *mut libc::sockaddr, *mut libc::socklen_t) -> libc::c_int;

fn name_of(fd: BorrowedFd<'_>, ask: Ask) -> Option<Vec<u8>> {
    let mut bytes = vec![0_u8; 128];
    let mut length = libc::socklen_t::try_from(bytes.len()).ok()?;
    // SAFETY: the buffer has the length that is told, and the kernel writes no more.
    let result = unsafe { ask(fd.as_raw_fd(), bytes.as_mut_ptr().cast(), &raw mut length) };
    bytes.truncate(length as usize);
    (result == 0).then_some(bytes)
}

/// Formats a `struct sockaddr`. `None` for unsupported families.
pub fn socket_address(bytes: &[u8]) -> Option<String> {
    let family = i32::from(u16::from_ne_bytes(*bytes.first_chunk()?));
    let port = || Some(u16::from_be_bytes([*bytes.get(2)?, *bytes.get(3)?]));
    match family {
        libc::AF_INET => {
            let address: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
            Some(SocketAddr::from((Ipv4Addr::from(address), port()?)).to_string())
        }
        libc::AF_INET6 => {
            let address: [u8; 16] = bytes.get(8..24)?.try_into().ok()?;
            Some(SocketAddr::from((Ipv6Addr::from(address), port()?)).to_string())
        }
        libc::AF_UNIX => {
            let path = &bytes[2..];
            let (mark, path) = match path.first() {
                Some(0) => ("@", &path[1..]),
                _ => ("", path),
            };
            let end = path.iter().position(|&byte| byte == 0).unwrap_or(path.len());
            Some(format!("{mark}{}", String::from_utf8_lossy(&path[..end])))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsRawFd;

    #[test]
    fn sockets_and_files_are_told_by_what_is_at_the_other_end() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let client = TcpStream::connect(address).expect("connects");
        let mut descriptors = Descriptors::new(std::process::id());
        assert_eq!(descriptors.describe(client.as_raw_fd()), format!("TCP to {address}"));
        assert_eq!(descriptors.describe(listener.as_raw_fd()), format!("TCP listening on {address}"));
        let file = std::fs::File::open("/dev/null").expect("there");
        assert_eq!(descriptors.describe(file.as_raw_fd()), "/dev/null");
        assert_eq!(descriptors.describe(-1), "");
    }

    #[test]
    fn of_an_epoll_it_is_told_what_it_watches() {
        use rustix::event::epoll;
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        let poll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll");
        let mut descriptors = Descriptors::new(std::process::id());
        assert_eq!(descriptors.describe(poll.as_raw_fd()), "anon_inode:[eventpoll]", "it watches nothing");
        let clients: Vec<TcpStream> = (0..4).map(|_| TcpStream::connect(address).expect("connects")).collect();
        for (number, client) in clients.iter().enumerate() {
            epoll::add(&poll, client, epoll::EventData::new_u64(0), epoll::EventFlags::IN).expect("added");
            let told = descriptors.describe(poll.as_raw_fd());
            let few = format!("an epoll of {}", vec![format!("TCP to {address}"); number + 1].join(" and "));
            assert_eq!(told, if number < MOST_WATCHED { few } else { "anon_inode:[eventpoll]".into() });
        }
    }

    #[test]
    fn addresses_of_every_family_and_of_no_length() {
        let four = [2, 0, 0x15, 0x38, 10, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 0];
        assert_eq!(socket_address(&four).as_deref(), Some("10.0.0.5:5432"));
        assert_eq!(socket_address(b"\x01\x00/run/x\0y").as_deref(), Some("/run/x"));
        assert_eq!(socket_address(b"\x01\x00\0abstract").as_deref(), Some("@abstract"));
        for short in [&four[..0], &four[..1], &four[..3], &four[..7]] {
            assert_eq!(socket_address(short), None);
        }
    }
}
