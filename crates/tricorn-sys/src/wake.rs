//! Descriptors that end a wait: the self-pipe (signals and kicks) and the monitor's event descriptor.
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io;
use rustix::pipe::{PipeFlags, pipe_with};

/// A pipe whose write end a C signal handler may use (`signal.set_wakeup_fd` writes one byte, which an eventfd refuses).
#[derive(Debug)]
pub struct WakePipe {
    read: OwnedFd,
    write: OwnedFd,
}

impl WakePipe {
    pub fn new() -> io::Result<WakePipe> {
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK)?;
        Ok(WakePipe { read, write })
    }

    pub fn reader(&self) -> BorrowedFd<'_> {
        self.read.as_fd()
    }

    pub fn writer(&self) -> BorrowedFd<'_> {
        self.write.as_fd()
    }

    /// A full pipe is awake already, so a failed write is no loss.
    pub fn kick(&self) {
        let _ = io::write(&self.write, b"k");
    }

    pub fn drain(&self) {
        let mut sink = [0u8; 64];
        while let Ok(count) = io::read(&self.read, &mut sink) {
            if count < sink.len() {
                break;
            }
        }
    }

    /// Blocks until a kick, or a signal.
    pub fn wait(&self) {
        let mut fds = [PollFd::new(&self.read, PollFlags::IN)];
        let _ = poll(&mut fds, None);
    }
}

/// Most descriptors that a thread waits for beside its alarm.
const OTHERS: usize = 3;

/// What has ended a wait for an alarm, besides a ring or the time.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Woken {
    /// Which of the others.
    pub readable: [bool; OTHERS],
    /// The pipe has ended.
    pub orphaned: bool,
}

/// The monitor's alarm clock.
#[derive(Debug)]
pub struct Alarm {
    fd: OwnedFd,
}

impl Alarm {
    pub fn new() -> io::Result<Alarm> {
        Ok(Alarm { fd: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)? })
    }

    pub fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }

    /// Forgets rings.
    pub fn clear(&self) {
        let mut count = [0u8; 8];
        let _ = io::read(&self.fd, &mut count);
    }

    pub fn ring(&self) {
        let _ = io::write(&self.fd, &1u64.to_ne_bytes());
    }

    /// Waits for a ring, for one of `others` to become readable, for the pipe `life` to end, or for `timeout` nanoseconds.
    pub fn wait(
        &self,
        others: [Option<BorrowedFd<'_>>; OTHERS],
        life: Option<BorrowedFd<'_>>,
        timeout: Option<u64>,
    ) -> Woken {
        let timespec = timeout.map(super::poll::timespec);
        let mut fds: [_; OTHERS + 2] = std::array::from_fn(|_| PollFd::new(&self.fd, PollFlags::IN));
        let mut count = 1;
        for fd in others.into_iter().flatten() {
            fds[count] = PollFd::from_borrowed_fd(fd, PollFlags::IN);
            count += 1;
        }
        if let Some(life) = life {
            // Only its end is asked for, which is always reported (poll(2), POLLHUP).
            fds[count] = PollFd::from_borrowed_fd(life, PollFlags::empty());
            count += 1;
        }
        if poll(&mut fds[..count], timespec.as_ref()).is_err() {
            return Woken::default();
        }
        let [alarm, rest @ ..] = fds;
        if alarm.revents().contains(PollFlags::IN) {
            self.clear();
        }
        let mut told = rest[..count - 1].iter().map(PollFd::revents);
        let readable = others.map(|other| other.is_some() && told.next().is_some_and(|events| !events.is_empty()));
        let is_end = |events: PollFlags| events.intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL);
        Woken { readable, orphaned: life.is_some() && told.next().is_some_and(is_end) }
    }
}
