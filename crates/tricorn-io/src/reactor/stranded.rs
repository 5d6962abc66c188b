//! Requests that nobody will ever serve: the worker is leaving, and no thread of it comes back (`Watchdog::is_stranded`).
use super::Reactor;
use super::queue::{RETRY_AFTER, STATUS};
use tricorn_proto::exchange::error_page;

const MESSAGE: &str = "This server is restarting; the request was not begun.";

impl Reactor {
    /// Answers every request that waits, and tells its client that another try is safe: none of them was begun.
    pub fn turn_away(&mut self) {
        let mut page = Vec::with_capacity(512);
        error_page::write_with(&mut page, STATUS, MESSAGE, RETRY_AFTER);
        while let Some(token) = self.ready.pop_front() {
            self.send_away(token, STATUS, &page, |ip| {
                format!("A request of {ip} was turned away: every thread is stuck, and the worker leaves")
            });
        }
        self.tell_queue();
    }
}
