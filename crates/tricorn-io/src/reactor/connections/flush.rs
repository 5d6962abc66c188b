//! The rest of a reply, sent as its client takes it.
use super::Connections;
use super::work::Work;
use crate::clock;
use crate::exchange::link::Loss;
use crate::exchange::outbox::Flush;
use crate::reactor::sender::Errand;
use crate::reactor::warnings::Incident;
use crate::scoreboard::Word;
use crate::sys::poll::Token;

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
                self.flush(token, false, now);
            }
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
        let spent = &mut self.chores.spent;
        let (result, sent) = if output.begins_with_file() {
            match self.extra.sender.lend(token, output.lend()) {
                Ok(()) => return,
                Err(loan) => {
                    output.give_back(loan);
                    output.flush_file(burst, spent)
                }
            }
        } else {
            output.flush_some(burst, spent)
        };
        self.work.moved(output.stream(), sent as usize);
        self.board.add(Word::BytesOut, sent);
        self.flushed(token, result, broken, now);
    }

    /// The thread that sends files gives the rest of a reply back, if there is one. Whether it did.
    pub(super) fn take_back_loan(&mut self) -> bool {
        let Some(Errand { token, mut loan }) = self.extra.sender.take() else { return false };
        self.chores.spent.append(&mut loan.take_spent());
        self.board.add(Word::BytesOut, loan.sent);
        let flush = loan.flush;
        let output = self.conns.get_mut(token).and_then(|conn| conn.output.as_mut());
        let Some(output) = output.filter(|output| output.is_lent()) else {
            self.extra.closed(true); // the socket, with the loan
            self.chores.end_outbox(&mut loan.into_outbox());
            return true;
        };
        let had_event = output.give_back(loan);
        self.flushed(token, flush.filter(|flush| !(had_event && *flush == Flush::Blocked)), false, clock::now());
        true
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
                self.chores.files.extend(output.conclude(&mut self.chores.spent).file);
                self.extra.closed(outgoing.release_file());
                let then = outgoing.then;
                self.go_on(token, then, now);
            }
            Flush::Blocked if !broken => {}
            Flush::Blocked | Flush::Gone => {
                self.board.add(Word::ClientGone, 1);
                self.close(token);
            }
            Flush::Truncated => self.close(token),
        }
    }

    #[cold]
    pub(super) fn count_loss(&mut self, loss: Loss) {
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
