//! Bodies that the writer has: what a connection does when its bytes are on disk.
use super::Reactor;
use super::phase::{Change, Phase};
use crate::clock;
use crate::exchange::body::{Body, Spool};
use crate::sys::poll::Token;
use tricorn_proto::message::{Refusal, RefusalKind};

impl Reactor {
    /// The body has come to its end: the request is complete when the rest of it is on disk.
    pub(super) fn store(&mut self, token: Token) {
        let Some(request) = self.conns.get_mut(token).and_then(|conn| conn.request.as_deref_mut()) else { return };
        let is_lent = request.body.spool().is_some_and(Spool::is_lent);
        if !is_lent && let Err(refusal) = self.bodies.write(token, request) {
            self.refuse(token, &refusal);
            return;
        }
        self.await_disk(token);
    }

    /// The connection waits for the disk: the deadline of that.
    pub(super) fn await_disk(&mut self, token: Token) {
        self.count_file(token);
        let request = self.conns.get_mut(token).and_then(|conn| conn.request.as_deref());
        if let Some(until) = request.and_then(|request| self.deadlines.timeouts().disk(request)) {
            self.set_deadline(token, until);
        }
    }

    /// A piece is on disk: its connection is read from again. Returns the connection if its request is complete by that. The
    /// thread that sends files rings the same bell.
    pub(super) fn take_written(&mut self) -> Option<Token> {
        if self.take_back_loan() {
            return None;
        }
        let conns = &self.conns;
        let is_awaited = |token| {
            let request = conns.get(token).and_then(|conn| conn.request.as_deref());
            request.and_then(|request| request.body.spool()).is_some_and(Spool::is_lent)
        };
        let Some(written) = self.bodies.take_written(is_awaited) else {
            self.work.pieces_are_written(false);
            self.wake_line();
            return None;
        };
        let (token, now) = (written.token, clock::now());
        let conn = self.conns.get_mut(token)?;
        let request = conn.request.as_deref_mut()?;
        let Body::Spooled(spool) = &mut request.body else { return None };
        spool.go_on(now);
        match written.result {
            Ok(file) => spool.give_back(file),
            Err(error) => {
                spool.give_up();
                self.refuse(token, &spool_failed(&error));
                return None;
            }
        }
        let is_unwritten = spool.is_unwritten();
        match conn.phase.get() {
            Phase::Storing if is_unwritten => self.store(token),
            Phase::Storing => {
                request.times.complete = now;
                conn.phase.enter(Change::Complete);
                return Some(token);
            }
            _ if conn.edges.is_readable() || conn.edges.is_hangup() => {
                request.times.body_mark.1 = now;
                self.later(token);
            }
            _ => {
                request.times.body_mark.1 = now; // the client's silence begins here
                let deadline = self.deadlines.timeouts().body(request);
                self.set_deadline(token, deadline);
            }
        }
        None
    }

    /// Reads on from connections for whose bytes there is room again on the way to the disk.
    pub(super) fn wake_line(&mut self) {
        let mut room = if self.bodies.has_line() { self.bodies.room() } else { 0 };
        while room > 0
            && let Some(token) = self.bodies.next_in_line()
        {
            let request = self.conns.get_mut(token).and_then(|conn| conn.request.as_deref_mut());
            if let Some(Body::Spooled(spool)) = request.map(|request| &mut request.body)
                && !spool.is_lent()
            {
                spool.go_on(clock::now());
                room -= 1;
                self.later(token);
            }
        }
    }
}

#[cold]
fn spool_failed(error: &std::io::Error) -> Box<Refusal> {
    let detail = format!(" in the directory for uploads: {error}");
    Box::new(Refusal::new(RefusalKind::SpoolFailed, detail))
}
