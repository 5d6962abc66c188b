//! Requests of one session go to the worker that has it.
//!
//! ```text
//!   a response tells a name ──▶ learn ──▶ the table that all workers share (`scoreboard/sessions.rs`)
//!   a request has a name ─────▶ whose ──┬─▶ nobody's: it is begun here, or goes to whoever is idle
//!                                       ├─▶ ours: it waits for this worker, whoever is idle
//!                                       └─▶ another worker's: into that one's mailbox (`reactor/affinity.rs`)
//! ```
use crate::clock::{self, SECOND};
use crate::peer::Peer;
use crate::scoreboard::sessions::{Learned, SessionName, Sessions};
use crate::scoreboard::{Scoreboard, Word};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use tricorn_proto::message::{FieldList, RequestHead};
use tricorn_proto::peer::session::Naming;

/// Whom a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    Nobodys,
    Ours,
    /// That of the worker with this mailbox.
    Anothers(u16),
}

#[derive(Debug)]
pub struct Affinity {
    sessions: Sessions,
    board: Scoreboard,
    /// Our own mailbox, and the pid by which others know us.
    own: u16,
    pid: u32,
    /// Where messages for each mailbox are sent to.
    mailboxes: Vec<OwnedFd>,
    /// Empty until the application is loaded.
    namings: OnceLock<Vec<Naming>>,
}

impl Affinity {
    /// `mailboxes[own]` is this worker's.
    pub fn new(sessions: Sessions, board: Scoreboard, own: u16, mailboxes: Vec<OwnedFd>) -> Affinity {
        let pid = rustix::process::getpid().as_raw_nonzero().get().cast_unsigned();
        sessions.own(own, pid);
        Affinity { sessions, board, own, pid, mailboxes, namings: OnceLock::new() }
    }

    /// From now on requests are known by these names.
    pub fn follow(&self, namings: Vec<Naming>) {
        let _ = self.namings.set(namings);
    }

    #[inline]
    fn namings(&self) -> &[Naming] {
        self.namings.get().map_or(&[], Vec::as_slice)
    }

    #[inline]
    pub fn is_in_use(&self) -> bool {
        !self.namings().is_empty()
    }

    /// Where messages for this mailbox are sent to.
    pub fn mailbox(&self, mailbox: u16) -> Option<BorrowedFd<'_>> {
        self.mailboxes.get(usize::from(mailbox)).map(AsFd::as_fd)
    }

    /// Whose session a request belongs to. One that its client names is the first worker's that asks.
    /// `bytes`: what the head's spans point into.
    pub fn whose(&self, head: &RequestHead, bytes: &[u8], peer: Peer) -> Whose {
        let Some((naming, name)) = self.named(head, bytes, peer) else { return Whose::Nobodys };
        match self.sessions.find(name, minute()) {
            Some(mailbox) if mailbox == self.own => Whose::Ours,
            Some(mailbox) => Whose::Anothers(mailbox),
            None if naming.is_the_clients() => {
                self.remember(name);
                Whose::Ours
            }
            None => Whose::Nobodys,
        }
    }

    fn named(&self, head: &RequestHead, bytes: &[u8], peer: Peer) -> Option<(&Naming, SessionName)> {
        self.namings().iter().find_map(|naming| {
            let name = match (naming, peer) {
                (Naming::Peer, Peer::Internet(address)) => address.ip().to_string().into_bytes(),
                _ => naming.of_request(head, bytes)?.to_vec(),
            };
            Some((naming, self.sessions.name(naming.kind(), &name)))
        })
    }

    /// A response with these fields is about to be sent: this worker has the session that it names. `content`: its first bytes, as far as they
    /// are known.
    pub fn learn(&self, fields: &FieldList, content: &[u8]) {
        for naming in self.namings() {
            let told = naming.of_response(fields).or_else(|| naming.of_content(content));
            if let Some(name) = told {
                self.remember(self.sessions.name(naming.kind(), name));
            }
        }
    }

    fn remember(&self, name: SessionName) {
        match self.sessions.learn(name, self.own, self.pid, minute()) {
            Learned::Known => {}
            Learned::New => self.board.add(Word::SessionsLearned, 1),
            Learned::InPlace => {
                self.board.add(Word::SessionsLearned, 1);
                self.board.add(Word::SessionsForgotten, 1);
            }
        }
    }
}

/// The clock is the same in all processes.
fn minute() -> u16 {
    (clock::now() / (60 * SECOND)) as u16
}
