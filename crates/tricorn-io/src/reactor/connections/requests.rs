//! Requests that no exchange has: what is known of them, and what becomes of their buffers.
use super::Connections;
use super::phase::{Change, Phase};
use crate::clock;
use crate::config;
use crate::exchange::body::Body;
use crate::exchange::buffers::Request;
use crate::exchange::id::RequestId;
use crate::sys::poll::Token;

/// How a complete request waits (times: monotonic nanoseconds).
#[derive(Debug, Clone, Copy)]
pub struct Waits {
    /// The HTTP/2 connection that it came by.
    pub trunk: Option<Token>,
    pub complete: u64,
    /// Perhaps before it was complete: by what a trusted front end says.
    pub since: u64,
}

impl Connections {
    /// Notes since when a complete request waits, if it is still there.
    pub fn note_wait(&mut self, id: RequestId, now: u64) -> Option<Waits> {
        let conn = self.conns.get_mut(id.connection())?;
        let request = conn.serial.request_mut(id)?;
        request.note_wait(conn.origin.trusted, now);
        let (complete, since) = (request.times.complete, request.times.waits_since);
        Some(Waits { trunk: conn.trunk(), complete, since })
    }

    /// A request that no exchange has.
    pub fn request(&self, id: RequestId) -> Option<&Request> {
        self.conns.request(id)
    }

    /// Whether a job still looks for the file of this request.
    pub fn awaits_file(&self, id: RequestId) -> bool {
        let conn = self.conns.get(id.connection()).filter(|conn| matches!(conn.phase.get(), Phase::Opening));
        conn.is_some_and(|conn| conn.serial.request(id).is_some())
    }

    /// There is no such file: the request waits for the application.
    pub fn let_begin(&mut self, id: RequestId) {
        if let Some(conn) = self.conns.get_mut(id.connection()) {
            conn.phase.enter(Change::Complete);
        }
    }

    /// When a request was complete; 0: it is gone.
    pub fn complete_since(&self, id: RequestId) -> u64 {
        self.conns.request(id).map_or(0, |request| request.times.complete)
    }

    /// The HTTP/2 connection that a request came by.
    #[inline]
    pub fn trunk(&self, id: RequestId) -> Option<Token> {
        self.conns.get(id.connection())?.trunk()
    }

    /// Whether the client of a request has left that has not begun.
    pub fn has_client_left(&mut self, id: RequestId, now: u64) -> bool {
        let Some(conn) = self.conns.get_mut(id.connection()) else { return false };
        conn.client_has_left(id, conn.edges.is_hangup(), now)
    }

    /// What was read of the next request, which a protocol that follows gets instead.
    pub fn take_unread(&mut self, id: RequestId) -> Vec<u8> {
        let conn = self.conns.get_mut(id.connection());
        let Some(mut next) = conn.and_then(|conn| conn.serial.take_unread(id)) else { return Vec::new() };
        let unread = std::mem::take(&mut next.input);
        self.recycle(next);
        unread
    }

    /// Bytes after the request (pipelined ones) stay with the connection.
    pub(super) fn keep_excess(&mut self, id: RequestId, request: &mut Request) {
        if request.partial || request.unread().is_empty() {
            return;
        }
        let mut next = self.buffers.take();
        next.input.extend_from_slice(request.unread());
        next.times.first_byte = request.times.complete;
        request.input.truncate(request.start);
        if let Some(conn) = self.conns.get_mut(id.connection()) {
            let serial = &mut conn.serial;
            serial.keep_excess(next);
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
    pub fn count_file(&mut self, id: RequestId) {
        if let Some(request) = self.conns.request_mut(id) {
            self.extra.opened(request.takes_file());
        }
    }

    /// Reads on from connections for whose bytes there is room again on the way to the disk.
    pub(super) fn wake_line(&mut self) {
        let mut room = if self.bodies.has_line() { self.bodies.room() } else { 0 };
        while room > 0
            && let Some(id) = self.bodies.next_in_line()
        {
            if let Some(Body::Spooled(spool)) = self.conns.request_mut(id).map(|request| &mut request.body)
                && !spool.is_lent()
            {
                spool.go_on(clock::now());
                room -= 1;
                self.later(id.connection());
            }
        }
    }
}
