//! The rest of a reply, sent as its client takes it.
use super::Connections;
use super::conn::Role;
use super::phase::Phase;
use super::work::Work;
use crate::clock;
use crate::exchange::id::RequestId;
use crate::exchange::link::Loss;
use crate::exchange::outbox::Flush;
use crate::exchange::output::{DiskOutcome, Lent};
use crate::http2::Trunk;
use crate::reactor::warnings::Incident;
use crate::scoreboard::Word;
use crate::sys::poll::Token;
use std::sync::Arc;
use tricorn_proto::http2::ErrorCode;

impl Connections {
    pub(super) fn hold(&mut self, token: Token, now: u64) {
        if self.work.hold(token, now) {
            self.send_held();
        }
    }

    /// Sends the answers that were held back, one after another.
    pub fn send_held(&mut self) {
        if self.work.has_held() {
            let now = self.work.time();
            while let Some(token) = self.work.next_held() {
                match self.conns.get_mut(token).map(|conn| &mut conn.role) {
                    Some(Role::Trunk(reader)) => {
                        let trunk = reader.unhold().clone();
                        self.flush_trunk(&trunk);
                    }
                    _ => self.flush(token, false, now),
                }
            }
        }
    }

    /// Sends what waits on a trunk. Its streams that have room have their turn.
    pub(super) fn flush_trunk(&mut self, trunk: &Trunk) {
        let mut ready = std::mem::take(&mut self.frames.ready);
        trunk.flush(|entry| ready.push(entry));
        ready.drain(..).for_each(|entry| self.later(entry));
        self.frames.ready = ready;
    }

    /// The trunk of a stream, while its connection is there.
    pub(super) fn trunk_of(&self, token: Token) -> Option<Arc<Trunk>> {
        let Role::Stream { trunk, .. } = self.conns.get(token)?.role else { return None };
        match &self.conns.get(trunk)?.role {
            Role::Trunk(reader) => Some(reader.trunk().clone()),
            _ => None,
        }
    }

    /// `now`: the time, or that of a moment ago; the deadlines of what comes next count from then.
    pub(super) fn flush(&mut self, token: Token, broken: bool, now: u64) {
        self.work.invalidate_now();
        let Some(conn) = self.conns.get_mut(token) else { return };
        let (Some(_), Some(output)) = (conn.phase.get_mut().outgoing(), &mut conn.output) else { return };
        if output.note_event() {
            return;
        }
        let burst = Work::burst(output.stream());
        let (result, sent) = output.flush_some(burst, &mut self.chores.spent);
        self.work.moved(output.stream(), sent as usize);
        let result = match result {
            Some(Flush::Disk) if output.lend(&self.extra.disks, token) == Lent::Full => Some(Flush::Blocked),
            result => result,
        };
        self.board.add(Word::BytesOut, sent);
        self.flushed(token, result, broken, now);
    }

    /// Takes the outcome of a job at a disk, if one is over. Whether one was, and the exchange that is to be told.
    pub(super) fn take_returned(&mut self) -> Option<Option<RequestId>> {
        let DiskOutcome { token, flush, had_event, sent, mut spent, error } = self.extra.returned.try_recv().ok()?;
        self.chores.spent.append(&mut spent);
        self.board.add(Word::BytesOut, sent);
        if let Some(error) = error {
            self.log.tell_of_disk(&error, clock::now(), &mut self.chores);
        }
        let result = flush.filter(|flush| !(had_event && *flush == Flush::Blocked));
        Some(match self.conns.get_mut(token).map(|conn| conn.phase.get()) {
            Some(Phase::Flushing(_)) => {
                self.flushed(token, result, false, clock::now());
                None
            }
            // Of room the kernel will tell.
            Some(Phase::Busy(_)) if result != Some(Flush::Blocked) => self.may_have_room(token),
            _ => None,
        })
    }

    /// `result`: what came of sending; `None`: more can be sent.
    fn flushed(&mut self, token: Token, result: Option<Flush>, broken: bool, now: u64) {
        let Some(result) = result else {
            self.later(token);
            return;
        };
        let Some(conn) = self.conns.get_mut(token) else { return };
        let (Some(outgoing), Some(output)) = (conn.phase.get_mut().outgoing(), &mut conn.output) else { return };
        match result {
            Flush::Empty => {
                output.conclude(&mut self.chores.spent);
                self.extra.closed(outgoing.release_file());
                let then = outgoing.then;
                self.go_on(token, then, now);
            }
            Flush::Blocked | Flush::Disk if !broken => {}
            Flush::Blocked | Flush::Disk | Flush::Gone => {
                self.board.add(Word::ClientGone, 1);
                self.close(token);
            }
            Flush::Truncated => {
                let peer = conn.origin.peer;
                self.log.tell_of_truncated(peer, now, &mut self.chores);
                self.close(token);
            }
        }
    }

    /// Ends a connection or a stream whose reply cannot go on.
    #[cold]
    pub(super) fn cut_off(&mut self, token: Token, loss: Loss) {
        self.count_loss(loss);
        if loss == Loss::TimedOut
            && let Some(Role::Stream { trunk, id }) = self.conns.get(token).map(|conn| &conn.role)
            && let Some(Role::Trunk(reader)) = self.conns.get(*trunk).map(|conn| &conn.role)
        {
            // Else the client is told of an error of the server's.
            reader.trunk().reset(*id, ErrorCode::Cancel);
        }
        self.close(token);
    }

    fn count_loss(&mut self, loss: Loss) {
        match loss {
            Loss::Gone => self.board.add(Word::ClientGone, 1),
            Loss::TimedOut => {
                self.board.add(Word::WriteTimeouts, 1);
                self.log.warn(Incident::ReaderLate);
            }
            Loss::AnsweredFor => {}
        }
    }
}
