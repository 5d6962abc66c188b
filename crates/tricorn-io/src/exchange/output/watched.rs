//! The monitor's side of an output: what streams have left, and requests that are too late.
use super::files::{Disks, Lent};
use super::sending::{Sending, Shared};
use crate::exchange::outbox::Flush;
use crate::exchange::responder::late_page;
use crate::exchange::turn::{Asked, Looked, Turn};
use crate::stream::Stream;
use crate::sys::poll::Token;
use rustix::fd::BorrowedFd;
use rustix::io::{self, Errno};
use std::sync::{Arc, Weak};

/// The monitor's handle: it keeps no socket open.
#[derive(Debug, Default, Clone)]
pub struct Watched {
    pub(super) shared: Weak<Shared>,
    pub(super) token: Token,
}

/// The outcome of an attempt to answer in the owner's place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LateAnswer {
    Sent,
    /// The owner has begun its reply, or the exchange is over.
    NotWanted,
    /// The owner is sending right now. To be asked again.
    Busy,
}

impl Watched {
    /// Names the output for as long as this handle exists.
    pub fn key(&self) -> u64 {
        self.shared.as_ptr().addr() as u64
    }

    /// The connection is closed.
    pub fn is_gone(&self) -> bool {
        self.shared.strong_count() == 0
    }

    /// Sends what was left here, as far as the socket takes it; `watch` is to tell when it has room. Whether to look again at the next
    /// tick. It waits neither for an owner nor for a disk: what is in a file is lent to a job.
    pub fn send_left(&self, disks: &Arc<Disks>, watch: impl FnOnce(BorrowedFd<'_>) -> io::Result<()>) -> bool {
        let Some(shared) = self.shared.upgrade() else { return false };
        let Some(mut sending) = shared.try_sending() else { return true };
        let Sending { turn, rest, .. } = &mut *sending;
        if !turn.is_left() {
            return false;
        }
        let mut lent = Err(Lent::NoFile);
        let looked = match rest.as_mut().map_or(Flush::Empty, |rest| rest.flush(&shared.stream)) {
            Flush::Empty => Looked::AllSent,
            Flush::Gone | Flush::Truncated => Looked::Broken,
            flush => {
                if let (Flush::Disk, Some(rest)) = (flush, rest) {
                    lent = rest.begin_loan(&shared.stream);
                }
                match flush == Flush::Blocked || matches!(lent, Err(Lent::Full)) {
                    true if self.leaves_to_reactor(&shared.stream, disks) => Looked::Full,
                    true if watch(shared.stream.socket()).is_ok() => Looked::Full,
                    true => Looked::Unwatched,
                    false => Looked::Away,
                }
            }
        };
        let looks_again = turn.looked(looked);
        drop(sending);
        if let Ok(place) = lent {
            shared.dispatch(place, disks, self.token);
        }
        looks_again
    }

    /// Whether the reactor goes on when there is room: that of a channel is its to see, that of a socket the kernel's.
    fn leaves_to_reactor(&self, stream: &Stream, disks: &Arc<Disks>) -> bool {
        let Some(channel) = stream.channel() else { return false };
        let (watched, disks) = (self.clone(), disks.clone());
        channel.on_room(Box::new(move || {
            watched.send_left(&disks, |_| Err(Errno::OPNOTSUPP));
        }));
        true
    }

    /// Answers in place of an exchange that has sent nothing: sends a 504, and closes our side.
    ///
    /// The bytes are the responder's; there is no outbox to leave a rest in, since the application's thread may hold the connection for
    /// ever. A page of 200 bytes finds room unless the client has not read the replies before it.
    pub fn answer_late(&self, date: &[u8]) -> LateAnswer {
        let Some(shared) = self.shared.upgrade() else { return LateAnswer::NotWanted };
        let Some(mut sending) = shared.try_sending() else { return LateAnswer::Busy };
        let Turn::Unanswered(Asked { method, version, request_id }) = &sending.turn else {
            return LateAnswer::NotWanted;
        };
        let page = late_page(date, *method, *version, request_id);
        let _ = shared.stream.send(&page);
        let _ = shared.stream.end_sending();
        sending.sent += page.len() as u64;
        sending.turn = Turn::Answered;
        LateAnswer::Sent
    }
}
