//! Requests that never meet the application: they are wrong (`read.rs`), wait beyond a limit (`queue.rs`), or nobody will
//! ever serve them: the worker is leaving, and no thread of it comes back (`Watchdog::is_stranded`).
use super::Reactor;
use super::conn::Token;
use super::queue::{RETRY_AFTER, STATUS};
use crate::clock;
use crate::peer::Peer;
use crate::scoreboard::Word;
use rustix::net::{SendFlags, send};
use tricorn_proto::exchange::error_page;
use tricorn_proto::http1::Method;

const STRANDED: Rejection<'_> = Rejection {
    status: STATUS,
    message: "This server is restarting; the request was not begun.",
    fields: RETRY_AFTER,
    is_whole: true,
};

/// What a request is answered that never meets the application.
pub(super) struct Rejection<'a> {
    pub status: u16,
    pub message: &'a str,
    /// More fields of the response, each with its line end.
    pub fields: &'a [u8],
    /// The request is complete and right, so that its connection can be kept; else nobody knows where the next one begins.
    pub is_whole: bool,
}

impl Reactor {
    /// Answers, counts, writes the access log, and keeps the connection or closes it. Who it was that asked, if the log
    /// should be told: admin connections are not counted.
    pub(super) fn reject(&mut self, token: Token, rejection: &Rejection<'_>, counter: Word) -> Option<Peer> {
        let now = clock::now();
        self.wall.refresh(now);
        let conn = self.conns.get_mut(token)?;
        let mut request = conn.request.take();
        let head = request.as_deref().filter(|_| rejection.is_whole).map(|request| &request.head);
        let keep = head.is_some_and(|head| head.keep_alive) && !self.draining && self.config.keepalive > 0;
        let mut page = Vec::with_capacity(512);
        error_page::write_for(&mut page, rejection.status, rejection.message, rejection.fields, keep);
        if head.is_some_and(|head| head.kind == Method::Head) {
            page.truncate(page.len() - error_page::body(&page).len());
        }
        // A fresh answer fits any send buffer; if it does not the client has stopped reading long ago.
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let sent = conn.socket.as_ref().and_then(|socket| send(socket, &page, flags).ok()).unwrap_or(0);
        let (peer, is_admin) = (conn.peer, conn.is_admin());
        self.board.add(Word::BytesOut, sent as u64);
        if !is_admin {
            self.board.add(counter, 1);
            self.board.status(rejection.status);
            self.log_refused(peer, request.as_deref(), rejection.status, &page, now);
        }
        if let Some(mut request) = request.take() {
            if rejection.is_whole {
                self.keep_excess(token, &mut request);
            }
            self.recycle(request);
        }
        if rejection.is_whole {
            self.settle(token, keep && sent == page.len(), now);
        } else {
            self.linger(token);
        }
        (!is_admin).then_some(peer)
    }

    /// Answers every request that waits, and tells its client that another try is safe: none of them was begun.
    pub fn turn_away(&mut self) {
        while let Some(token) = self.ready.pop_front() {
            if let Some(peer) = self.reject(token, &STRANDED, Word::Refused) {
                self.notice(true, || {
                    format!("A request of {peer} was turned away: every thread is stuck, and the worker leaves")
                });
            }
        }
        self.tell_queue();
    }
}
