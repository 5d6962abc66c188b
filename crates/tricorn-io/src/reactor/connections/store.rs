//! Bodies that the writer has: what a connection does when its bytes are on disk.
use super::phase::{Change, Phase};
use super::{Connections, Outcome};
use crate::clock;
use crate::exchange::body::{Body, Spool};
use crate::exchange::id::RequestId;
use tricorn_proto::message::{Refusal, RefusalKind};

impl Connections {
    /// The body has come to its end: the request is complete when the rest of it is on disk.
    pub(super) fn store(&mut self, id: RequestId) {
        let Some(request) = self.conns.request_mut(id) else { return };
        let is_lent = request.body.spool().is_some_and(Spool::is_lent);
        if !is_lent && let Err(refusal) = self.bodies.write(id, request) {
            self.refuse(id, &refusal);
            return;
        }
        self.await_disk(id);
    }

    /// The connection waits for the disk: the deadline of that.
    pub(super) fn await_disk(&mut self, id: RequestId) {
        self.count_file(id);
        let request = self.conns.request(id);
        if let Some(until) = request.and_then(|request| self.deadlines.timeouts().disk(request)) {
            self.set_deadline(id.connection(), until);
        }
    }

    /// Takes an outcome of a job at a disk. A piece of a body is on disk: its connection is read from again.
    pub fn take_disk_news(&mut self) -> Option<Outcome> {
        if let Some(told) = self.take_returned() {
            return told.map(Outcome::Ready);
        }
        let conns = &self.conns;
        let is_awaited = |id| conns.request(id).and_then(|request| request.body.spool()).is_some_and(Spool::is_lent);
        let Some(written) = self.bodies.take_written(is_awaited) else {
            self.work.note_disk_news(false);
            self.wake_line();
            return None;
        };
        let (id, now) = (written.id, clock::now());
        let conn = self.conns.get_mut(id.connection())?;
        let is_stream = conn.is_stream();
        let serial = &mut conn.serial;
        let request = serial.request_mut(id)?;
        let Body::Spooled(spool) = &mut request.body else { return None };
        spool.go_on(now);
        match written.result {
            Ok(file) => spool.give_back(file),
            Err(error) => {
                spool.give_up();
                self.refuse(id, &spool_failed(&error));
                return None;
            }
        }
        let is_unwritten = spool.is_unwritten();
        match conn.phase.get() {
            Phase::Storing if is_unwritten => self.store(id),
            Phase::Storing => {
                request.times.complete = now;
                conn.phase.enter(Change::Complete);
                return Some(Outcome::Complete(id));
            }
            _ if conn.edges.is_readable() || conn.edges.is_hangup() || is_stream => {
                request.times.body_mark.1 = now;
                self.later(id.connection());
            }
            _ => {
                request.times.body_mark.1 = now; // the client's silence begins here
                let deadline = self.deadlines.timeouts().body(request);
                self.set_deadline(id.connection(), deadline);
            }
        }
        None
    }
}

#[cold]
fn spool_failed(error: &std::io::Error) -> Box<Refusal> {
    let detail = format!(" in the directory for uploads: {error}");
    Box::new(Refusal::new(RefusalKind::SpoolFailed, detail))
}
