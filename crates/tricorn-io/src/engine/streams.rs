//! Streams of a worker that leaves.
use super::Engine;
use crate::clock;
use crate::exchange::Exchange;
use crate::sys::random_seed;

impl Engine {
    /// Whether the worker leaves.
    #[inline]
    pub fn is_draining(&self) -> bool {
        self.shared.life.is_draining()
    }

    /// Has calls on threads and greenlets end their streams (nanoseconds): those whose clients come again when `lead` is over, within
    /// `spread`; others when `rest` is over. It takes no lock.
    pub fn close_streams(&self, lead: u64, spread: u64, rest: u64) {
        let now = clock::now();
        self.shared.responses.closing.close(now.saturating_add(lead), spread, now.saturating_add(rest));
    }

    /// Whether a call on a thread or greenlet is to end its reply here.
    #[inline]
    pub fn ends_stream(&self, exchange: &Exchange) -> bool {
        self.is_draining() && self.shared.responses.closing.ends(exchange, self.config().threads, clock::now())
    }

    /// Ends a stream since the worker leaves ([`Exchange::close_stream`]).
    pub fn close_stream(&self, exchange: &mut Exchange) {
        exchange.close_stream(self.retry());
    }

    /// Milliseconds that a client is to wait before it opens its stream again: other ones for each.
    fn retry(&self) -> Option<u32> {
        let (least, most) = self.config().sse_retry?;
        let [a, b, c, d, ..] = random_seed();
        let range = u64::from(most.saturating_sub(least)) + 1;
        Some(least + (u64::from(u32::from_ne_bytes([a, b, c, d])) % range) as u32)
    }
}
