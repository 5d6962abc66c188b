//! Requests of sessions: those of other workers' go to their mailboxes, and what comes to ours is begun here. So does what begins a session.
use super::Reactor;
use super::connections::{After, Rejection, Unbegun};
use super::mailbox::Mailbox;
use crate::exchange::id::RequestId;
use crate::one_queue::affinity::{Affinity, Whose};
use crate::scoreboard::Word;
use crate::sys::channel::Channel;
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;
use std::sync::Arc;
use tricorn_proto::access_log::Outcome;
use tricorn_proto::peer::session::Naming;

const FULL: Rejection<'_> = Rejection::for_now(
    "The worker that has this session has more requests than it can take; the request was not begun.",
    Unbegun::Queue,
    After::Keep,
    Outcome::QueueFull,
);

/// A request goes from worker to worker at most so often: the table may change meanwhile.
const HOPS: u8 = 4;

impl Reactor {
    /// What is sent to this worker comes by its mailbox.
    pub fn open_mailbox(&mut self, affinity: Arc<Affinity>, mailbox: Channel) -> Result<(), Errno> {
        self.accepting.watch_mailbox(mailbox.receive.as_fd())?;
        self.mailbox = Some(Box::new(Mailbox::new(mailbox)));
        self.connections.know_sessions(affinity);
        Ok(())
    }

    /// From now on sessions that have these names stay with their workers.
    pub fn follow_sessions(&mut self, namings: Vec<Naming>) {
        self.connections.follow_sessions(namings);
    }

    /// Takes one message of our own.
    pub(super) fn take_mail(&mut self) -> Option<RequestId> {
        let mut mailbox = self.mailbox.take()?;
        let id = self.take_over(mailbox.channel(), || {});
        mailbox.was_read(id.is_some());
        self.mailbox = Some(mailbox);
        id
    }

    /// A request is complete. `None`: it is of another worker's session, and was sent there, or turned away.
    #[inline]
    pub(super) fn follow(&mut self, id: RequestId) -> Option<RequestId> {
        if self.mailbox.is_none() { Some(id) } else { self.follow_session(id) }
    }

    fn follow_session(&mut self, id: RequestId) -> Option<RequestId> {
        let mut whose = self.connections.whose(id, false);
        if matches!(whose, Whose::Nobodys | Whose::Ours) {
            return Some(id);
        }
        let Some(affinity) = self.connections.affinity().cloned() else { return Some(id) };
        if whose == Whose::ANewOnes {
            if self.begins_elsewhere(id, &affinity) {
                return None;
            }
            whose = self.connections.whose(id, true);
        }
        let Whose::Anothers(mailbox) = whose else { return Some(id) };
        let Some(to) = affinity.mailbox(mailbox).filter(|_| self.connections.may_move(id, HOPS.into())) else {
            return Some(id);
        };
        match self.send(id, to, Word::SessionsFollowed) {
            Ok(()) => None,
            Err(Errno::AGAIN | Errno::NOBUFS) => {
                self.connections.reject(id, &FULL, Word::QueueFull);
                None
            }
            // The worker is gone, or there is no descriptor: it is served here, as it would be without the table.
            Err(_) => Some(id),
        }
    }

    /// Sends the request to the worker in which a session should begin with it (`one_queue/births.rs`); false: it begins here.
    fn begins_elsewhere(&mut self, id: RequestId, affinity: &Affinity) -> bool {
        let Some(births) = self.mailbox.as_mut().map(|mailbox| &mut mailbox.births) else { return false };
        // One that was sent here for that stays.
        if !self.connections.may_move(id, 1) {
            births.begins_here(affinity);
            return false;
        }
        let place = births.place(affinity, self.connections.would_lend(id), self.dispatch.looked_at());
        let Some(to) = place.and_then(|mailbox| affinity.mailbox(mailbox)) else { return false };
        self.send(id, to, Word::HandedOver).is_ok()
    }

    /// Sends the request into the mailbox of another worker.
    fn send(&mut self, id: RequestId, to: BorrowedFd<'_>, counted_as: Word) -> Result<(), Errno> {
        let near = self.connections.post(id, to, self.accepting.listeners())?;
        self.connections.depart(id, near);
        self.board.add(counted_as, 1);
        self.act_on_updates();
        Ok(())
    }
}
