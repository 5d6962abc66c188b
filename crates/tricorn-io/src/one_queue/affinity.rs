//! Requests of one session go to the worker that has it.
//!
//! ```text
//!   a response tells a name ──▶ learn ──▶ the table that all workers share (`scoreboard/sessions.rs`)
//!   a request has a name ─────▶ whose ──┬─▶ nobody's: it is begun here, or goes to whoever is idle
//!                                       ├─▶ a new one's: it is begun here, or goes to the worker with the fewest (`births.rs`)
//!                                       ├─▶ ours: it waits for this worker, whoever is idle
//!                                       └─▶ another worker's: into that one's mailbox (`reactor/affinity.rs`)
//! ```
use crate::clock::{self, SECOND};
use crate::scoreboard::sessions::{Learned, SessionName, Sessions};
use crate::scoreboard::{Scoreboard, Word};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use tricorn_proto::message::{FieldList, RequestHead};
use tricorn_proto::peer::session::{self, Naming};

/// Whom a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    Nobodys,
    /// That of a session that begins with it.
    ANewOnes,
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

    /// From now on this worker has no session.
    pub fn give_up(&self) {
        self.sessions.own(self.own, 0);
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

    /// Whose session a request belongs to. `bytes`: what the head's spans point into; `address`: the client's.
    pub fn whose(&self, head: &RequestHead, bytes: &[u8], address: impl Fn() -> Option<String>) -> Whose {
        let Some((naming, name)) = self.named(head, bytes, address) else {
            let begins = self.namings().iter().any(|naming| naming.begins(head, bytes));
            return if begins { Whose::ANewOnes } else { Whose::Nobodys };
        };
        match self.sessions.find(name, minute()) {
            Some(mailbox) => self.at(mailbox),
            None if naming.is_the_clients() => Whose::ANewOnes,
            None => Whose::Nobodys,
        }
    }

    /// The same of a request that goes to no other worker to begin a session: one that its client names is the first worker's that asks.
    pub fn whose_at_last(&self, head: &RequestHead, bytes: &[u8], address: impl Fn() -> Option<String>) -> Whose {
        let Some((naming, name)) = self.named(head, bytes, address) else { return Whose::Nobodys };
        match self.sessions.find(name, minute()) {
            Some(mailbox) => self.at(mailbox),
            // Of two workers that ask at once, one has it: whose entry is found.
            None if naming.is_the_clients() => {
                self.remember(name);
                self.sessions.find(name, minute()).map_or(Whose::Nobodys, |mailbox| self.at(mailbox))
            }
            None => Whose::Nobodys,
        }
    }

    pub fn own_mailbox(&self) -> u16 {
        self.own
    }

    /// Mailbox and pid of each worker, and the number of its sessions that are used.
    pub fn recent_counts(&self) -> Vec<(u16, u32, usize)> {
        self.sessions.recent_counts(minute())
    }

    /// Mailbox and pid of each worker that may have sessions.
    pub fn owners(&self) -> impl Iterator<Item = (u16, u32)> + Clone {
        self.sessions.owners()
    }

    fn at(&self, mailbox: u16) -> Whose {
        if mailbox == self.own { Whose::Ours } else { Whose::Anothers(mailbox) }
    }

    fn named(
        &self,
        head: &RequestHead,
        bytes: &[u8],
        address: impl Fn() -> Option<String>,
    ) -> Option<(&Naming, SessionName)> {
        self.namings().iter().find_map(|naming| {
            let name = match naming {
                Naming::Peer => self.sessions.name(naming.kind(), address()?.as_bytes()),
                _ => self.sessions.name(naming.kind(), naming.of_request(head, bytes)?),
            };
            Some((naming, name))
        })
    }

    /// A response is about to be sent: this worker has the sessions that `told` finds in it.
    fn learn<'t>(&self, told: impl Fn(&Naming) -> Option<&'t [u8]>) {
        for naming in self.namings() {
            if let Some(name) = told(naming) {
                self.remember(self.sessions.name(naming.kind(), name));
            }
        }
    }

    fn remember(&self, name: SessionName) {
        match self.sessions.learn(name, self.own, self.pid, minute()) {
            Learned::Known | Learned::Not => {}
            Learned::New => self.board.add(Word::SessionsLearned, 1),
            Learned::InPlace => {
                self.board.add(Word::SessionsLearned, 1);
                self.board.add(Word::SessionsForgotten, 1);
            }
        }
    }
}

/// Finds the names of sessions in a response while it is sent.
#[derive(Debug)]
pub struct Learner {
    affinity: Arc<Affinity>,
    /// The content's first bytes.
    beginning: Vec<u8>,
    is_gzip: bool,
    knows_fields: bool,
}

impl Learner {
    pub fn new(affinity: Arc<Affinity>) -> Learner {
        Learner { affinity, beginning: Vec::new(), is_gzip: false, knows_fields: false }
    }

    /// A piece of the content is about to be sent.
    pub fn look(&mut self, fields: &FieldList, piece: &[u8]) {
        if !self.knows_fields {
            self.knows_fields = true;
            self.is_gzip = fields.iter().any(|(name, value)| {
                name.eq_ignore_ascii_case(b"content-encoding") && value.eq_ignore_ascii_case(b"gzip")
            });
            self.affinity.learn(|naming| naming.of_response(fields));
        }
        let room = session::LOOK.saturating_sub(self.beginning.len());
        if room == 0 || piece.is_empty() || !self.affinity.namings().iter().any(Naming::is_in_content) {
            return;
        }
        self.beginning.extend_from_slice(&piece[..piece.len().min(room)]);
        let plain =
            if self.is_gzip { Cow::Owned(session::gunzip(&self.beginning)) } else { Cow::Borrowed(&*self.beginning) };
        self.affinity.learn(|naming| naming.of_content(&plain));
    }
}

/// The clock is the same in all processes.
fn minute() -> u16 {
    (clock::now() / (60 * SECOND)) as u16
}
