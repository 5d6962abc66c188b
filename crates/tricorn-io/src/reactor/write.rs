//! After the application: what becomes of the reply and of the connection.
use super::conn::Conn;
use super::outgoing::{Outgoing, Then};
use super::phase::{Change, Phase};
use super::sender::{Ending, Errand};
use super::spooler::Spooler;
use super::warnings::Incident;
use super::wire::Wire;
use super::work::Work;
use super::{Chores, Reactor};
use crate::clock;
use crate::config;
use crate::exchange::body::Body;
use crate::exchange::buffers::Request;
use crate::exchange::id::RequestId;
use crate::exchange::link::{Link, Loss};
use crate::exchange::lost::Lent;
use crate::exchange::outbox::{Flush, SharedBytes};
use crate::exchange::output::Concluded;
use crate::exchange::{AppEnd, Exchange, Returned, Timing};
use crate::scoreboard::{self, Word};
use crate::sys::poll::Token;
use rustix::fd::BorrowedFd;
use rustix::io::Errno;

/// Input thrown away per turn of a lingering connection.
const DISCARD: usize = 64 * 1024;

impl Reactor {
    /// Takes an exchange back: its socket, its buffers, and what is left to be sent.
    pub fn finish(&mut self, mut exchange: Box<Exchange>, now: u64) {
        exchange.lane.end_lease();
        exchange.resolve();
        let elsewhere = exchange.is_elsewhere();
        exchange.end_of_body(&self.config);
        let link = exchange.lane.link();
        let Returned { id, mut output, mut request, attachment, receiver, timing } = exchange.into_returned();
        let Concluded { sent, waits, is_held, file } = output.conclude(&mut self.chores.spent);
        self.chores.files.extend(file);
        self.work.it_is(now);
        self.admission.capacity_mut().ended();
        self.count(&timing, sent, &request, now);
        let partial = request.partial;
        if link.may_reuse() && !partial {
            self.keep_excess(id, &mut request);
        }
        self.recycle(request);
        let token = id.connection();
        let Some(conn) = self.conns.get_mut(token) else {
            self.chores.attachments.extend(attachment); // the worker has ended with a bridge
            self.chores.end(output);
            return;
        };
        conn.attachment = attachment;
        let Wire::Http1(http1) = &mut conn.wire;
        http1.take_back(receiver);
        if link.is_taken() {
            if conn.phase.get().is_bridged() {
                self.chores.end(output);
                self.end_bridge(token, now);
                return;
            }
            if !elsewhere {
                output.stream().unblock(); // else it is closed here, and a thread of the application's may go on with it
            }
        }
        // What is still to come of a body, or of the protocol that followed, was not looked for yet.
        if partial || link == Link::Switched {
            conn.edges.may_be_readable();
        }
        let output = conn.output.insert(output);
        match (link.loss(), waits) {
            _ if elsewhere => self.close(token),
            (Some(loss), _) => {
                self.count_loss(loss);
                self.close(token);
            }
            (None, false) => self.settle(token, link.may_reuse(), now),
            (None, true) => {
                let outgoing = Outgoing::new(output, Then::of(link.may_reuse()));
                self.extra.opened(outgoing.holds_file());
                self.deadlines.enter(token, &mut conn.phase, Change::Left(outgoing), now);
                self.register(token);
                if is_held {
                    self.hold(token, now);
                } else {
                    // Room that came while the exchange had the socket made its edge then, and makes no other.
                    self.flush(token, false, now);
                }
            }
        }
    }

    /// An exchange was dropped, and its socket with it. Nothing can be said to the client but that.
    #[cold]
    pub fn lose(&mut self, lent: Lent) {
        self.admission.capacity_mut().ended();
        self.bodies.lose(lent.counted, lent.spooled);
        self.extra.closed(lent.filed);
        self.board.set(Word::InFlight, self.admission.capacity().busy() as u64);
        self.board.add(Word::Requests, 1);
        self.board.add(Word::AppErrors, 1);
        self.publish_free();
        self.close(lent.request.connection());
    }

    /// The application has taken this socket: nothing is waited for there any more. Returns what was read already.
    pub fn let_go(&mut self, id: RequestId, socket: BorrowedFd<'_>) -> Vec<u8> {
        self.conns.unwatch(id.connection(), Some(socket));
        self.take_unread(id)
    }

    fn hold(&mut self, token: Token, now: u64) {
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

    /// `sent`: bytes that the exchange has sent.
    fn count(&mut self, timing: &Timing, sent: u64, request: &Request, now: u64) {
        let board = &self.board;
        board.set(Word::InFlight, self.admission.capacity().busy() as u64);
        self.publish_free();
        board.add(Word::Requests, 1);
        if request.reply.has_status() {
            board.status(request.reply.status_code());
        }
        board.add(Word::BytesOut, sent);
        board.add(Word::BytesIn, request.received);
        match timing.end {
            AppEnd::Well => {}
            AppEnd::Failed | AppEnd::Late => board.add(Word::AppErrors, 1),
            AppEnd::Leaving => board.add(Word::StreamsClosed, 1),
        }
        board.observe(scoreboard::QUEUE_TIME, timing.started.saturating_sub(request.times.complete));
        board.observe(scoreboard::APP_TIME, timing.answered.saturating_sub(timing.started));
        board.observe(scoreboard::TOTAL_TIME, now.saturating_sub(request.times.first_byte));
        if let Some(split) = request.times.call {
            board.add(Word::CallBlocked, u64::from(split.blocked) * 1000);
            board.add(Word::CallDelayed, u64::from(split.delayed) * 1000);
        }
        if let Some(nanos) = timing.gil() {
            board.observe_gil(nanos);
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

    pub(super) fn recycle(&mut self, mut request: Box<Request>) {
        if request.counted.memory > 0 || request.counted.disk > 0 {
            self.bodies.release(&mut request);
            self.wake_line();
        }
        self.extra.closed(request.counted.has_file);
        if let Body::Memory(bytes) = &mut request.body
            && bytes.capacity() >= config::READ_BURST
        {
            // Giving much memory back to the system takes milliseconds.
            self.chores.spent.push(Box::new(std::mem::take(bytes)));
        }
        self.buffers.give(request);
    }

    /// The body of this request may be in a file by now.
    pub(super) fn count_file(&mut self, id: RequestId) {
        if let Some(request) = self.conns.request_mut(id) {
            self.extra.opened(request.takes_file());
        }
    }

    /// A reply is with the kernel: the next request, or the end.
    #[inline]
    pub(super) fn settle(&mut self, token: Token, reuse: bool, now: u64) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        if !reuse {
            if conn.has_unread_input() {
                self.linger(token);
            } else {
                self.part(token);
            }
            return;
        }
        conn.served = true;
        let Wire::Http1(http1) = &mut conn.wire;
        http1.next_request();
        if self.deadlines.timeouts().ends_idle() && conn.is_done_with() {
            self.end_idle(token);
            return;
        }
        let Wire::Http1(http1) = &mut conn.wire;
        self.deadlines.keep(token, &mut conn.phase, http1.last_from(), now);
        if conn.edges.is_readable() || conn.wire.holds_input() {
            self.later(token);
        } else if !conn.edges.is_registered() {
            self.register(token);
        } else {
            self.connection_is_kept();
        }
    }

    /// `now`: the time, or that of a moment ago; the deadlines of what comes next count from then.
    pub(super) fn flush(&mut self, token: Token, broken: bool, now: u64) {
        self.work.time_goes_by();
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

    /// Closes our side and reads on for a moment: a close with unread input would reset the connection, and the client
    /// would lose the answer it has not read yet (RFC 9112 section 9.6).
    pub(super) fn linger(&mut self, token: Token) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        let Some(stream) = conn.stream() else { return };
        if stream.end_sending().is_err() {
            self.close(token);
            return;
        }
        conn.edges.may_be_readable();
        self.deadlines.enter(token, &mut conn.phase, Change::Shut, clock::now());
        for request in conn.wire.end() {
            self.recycle(request);
        }
        self.register(token);
        self.discard(token);
    }

    pub(super) fn discard(&mut self, token: Token) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        let Some(stream) = conn.stream() else { return };
        let scratch = self.buffers.scratch(DISCARD);
        let mut taken = 0;
        loop {
            match stream.discard(scratch) {
                Ok(0) => break,
                Ok(count) => {
                    taken += count;
                    self.work.spend(count);
                }
                Err(Errno::AGAIN) => return,
                Err(_) => break,
            }
            if taken >= config::READ_BURST || self.work.is_turn_over() {
                self.later(token);
                return;
            }
        }
        self.close(token);
    }

    /// Ends a connection whose client has all that it was to have.
    pub(super) fn part(&mut self, token: Token) {
        if let Some(stream) = self.conns.get(token).and_then(Conn::stream) {
            stream.farewell();
        }
        self.close(token);
    }

    /// Ends a connection. What Python owns goes to the chores: this may be the monitor's thread.
    pub(super) fn close(&mut self, token: Token) {
        let Some(conn) = self.conns.remove(token) else { return };
        let Conn { output, mut phase, mut wire, attachment, .. } = conn;
        if let Some(output) = output {
            // The sender keeps the socket until it is done.
            self.extra.opened(matches!(phase.get(), Phase::Flushing(_)) && output.is_lent());
            self.chores.end(output);
        }
        if matches!(phase.get(), Phase::Shaking) {
            self.handshake_ends(token);
        }
        for request in wire.end() {
            self.recycle(request);
        }
        match phase.get_mut() {
            Phase::Flushing(outgoing) => self.extra.closed(outgoing.release_file()),
            Phase::Bridged(bridge) => {
                if bridge.part() {
                    self.extra.bridge_ends();
                }
                bridge.clear(&mut self.chores.spent);
            }
            _ => {}
        }
        self.chores.attachments.extend(attachment);
        self.board.set(Word::Connections, self.connections() as u64);
        self.admin.descriptors_are_free();
    }

    /// The listeners stay for a moment: a client that has connected already is still served. Idle connections get a moment too,
    /// in which a request already on its way is answered.
    pub fn drain(&mut self, now: u64) {
        self.deadlines.drain();
        self.publish_free();
        if self.board.orders_yield() {
            self.leave_listeners();
        } else {
            self.gate.call_last(now);
        }
        if self.board.orders_replaced() {
            self.leave_admin();
        }
        self.hurry_idle(now);
    }

    /// Closes the listeners. To be followed by `close_from`.
    pub fn close_gate(&mut self) {
        self.send_held();
        self.deadlines.drain();
        self.set_gate(false);
        self.gate.close();
        self.admin.close_all();
    }

    /// Closes connections that no exchange holds, from this place of the table on; where to go on.
    pub fn close_from(&mut self, start: usize) -> Option<usize> {
        let positions = self.conns.positions();
        for position in start..positions.min(start + config::SWEEP) {
            if self.work.is_hold_over() {
                return Some(position);
            }
            let found = self.conns.at(position).filter(|(_, conn)| !conn.phase.get().is_busy());
            if let Some((token, conn)) = found {
                let is_bridged = conn.phase.get().is_bridged();
                self.work.takes_step();
                if is_bridged { self.abandon_bridge(token) } else { self.close(token) }
            }
        }
        (start + config::SWEEP < positions).then_some(start + config::SWEEP)
    }

    /// The thread that writes bodies, to be ended without the baton.
    pub fn take_spooler(&mut self) -> Option<Spooler> {
        self.bodies.take_spooler()
    }

    /// The same of the thread that sends files.
    pub fn take_sender(&mut self) -> Option<Ending> {
        self.extra.sender.part()
    }

    /// Owners of bytes that were with that thread.
    pub fn take_owners(&mut self, mut owners: Vec<SharedBytes>) {
        self.chores.spent.append(&mut owners);
    }

    pub fn take_chores(&mut self) -> Chores {
        std::mem::take(&mut self.chores)
    }
}
