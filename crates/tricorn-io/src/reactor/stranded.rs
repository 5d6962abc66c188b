//! Requests that will never be served: the worker is leaving, and no thread of it comes back (`Watchdog::is_stranded`).
use super::Reactor;
use super::connections::{After, Rejection, Unbegun};
use crate::scoreboard::Word;
use tricorn_proto::access_log::Outcome;

const STRANDED: Rejection<'_> = Rejection::for_now(
    "This server is restarting; the request was not begun.",
    Unbegun::Leaving,
    After::Keep,
    Outcome::Leaving,
);

impl Reactor {
    /// Answers requests that wait, as many as the baton may be held for, and tells their clients that another try is safe: none
    /// of them was begun.
    pub fn shed_stranded(&mut self) {
        while !self.connections.work().is_hold_over()
            && let Some(id) = self.dispatch.take_oldest()
        {
            if let Some(peer) = self.connections.reject(id, &STRANDED, Word::Leaving) {
                self.connections.notice(true, || {
                    format!("Rejected a request from {peer} with 503: all threads are stuck, and the worker shuts down")
                });
            }
        }
        self.dispatch.publish();
        self.act_on_updates();
    }
}
