//! Who writes the first byte of a reply: the exchange, or, once its request is far too late, the monitor.
//!
//! ```text
//!            begin                     reopen (after an interim response)
//!   Open ───────────▶ Writing ───────────▶ Open
//!    │ take                                        the exchange is over
//!    └────▶ Taking ────▶ Taken           any ────────────────────────────▶ Over
//! ```
//!
//! Only with `request_timeout`: without it no exchange has a claim. The monitor takes while it holds the baton, so that the
//! exchange cannot be given back meanwhile; should it be dropped all the same (something panicked), its socket is open for
//! as long as the claim says Taking.
//!
//! The bytes are the responder's; the write is the monitor's own. The connection is the exchange's, which the application's
//! thread may hold for ever: there is no outbox here to leave a rest in. Nothing was sent of this reply, so that a page of 200
//! bytes finds room unless the client has not read the replies before it.
use super::responder::Responder;
use crate::stream::{Lent, Stream};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};
use std::sync::atomic::{AtomicBool, AtomicU8};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tricorn_proto::message::Method;

const OVER: u8 = 0;
const OPEN: u8 = 1;
const WRITING: u8 = 2;
const TAKING: u8 = 3;
const TAKEN: u8 = 4;

/// One app thread's, reused from exchange to exchange.
#[derive(Debug, Default)]
pub struct Claim {
    state: AtomicU8,
    stream: Lent,
    /// The client asked with HEAD, whose answer has no body.
    head_only: AtomicBool,
    /// The request's X-Request-ID; empty: none. Locked while the monitor answers.
    request_id: Mutex<Vec<u8>>,
}

impl Claim {
    /// Answers in place of an exchange that has sent nothing: writes a 504 and closes our side. Whether it was so.
    pub fn take(&self, date: &[u8]) -> bool {
        let request_id = self.request_id();
        if !self.step(OPEN, TAKING) {
            return false;
        }
        let method = if self.head_only.load(Acquire) { Method::Head } else { Method::Get };
        let page = late_page(date, method, &request_id);
        if let Ok(mut stream) = self.stream.handle() {
            let _ = stream.send(&page);
            let _ = stream.end_sending();
        }
        self.state.store(TAKEN, Release);
        true
    }

    fn request_id(&self) -> MutexGuard<'_, Vec<u8>> {
        self.request_id.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn step(&self, from: u8, to: u8) -> bool {
        self.state.compare_exchange(from, to, AcqRel, Acquire).is_ok()
    }
}

/// The exchange's hold on its claim; must go before its socket does.
#[derive(Debug)]
pub struct HeldClaim(Arc<Claim>);

impl HeldClaim {
    pub fn open(claim: &Arc<Claim>, stream: &Stream, method: Method) -> HeldClaim {
        claim.stream.lend(stream);
        claim.head_only.store(method == Method::Head, Release);
        claim.request_id().clear();
        claim.state.store(OPEN, Release);
        HeldClaim(claim.clone())
    }

    /// The request got its id.
    pub fn name(&self, request_id: &[u8]) {
        self.0.request_id().extend_from_slice(request_id);
    }

    /// The exchange is about to write; whether it still may.
    pub fn begin(&self) -> bool {
        self.0.step(OPEN, WRITING) || self.0.state.load(Acquire) == WRITING
    }

    /// What was written was no answer yet.
    pub fn reopen(&self) {
        self.0.step(WRITING, OPEN);
    }

    /// The monitor has answered.
    pub fn was_taken(&self) -> bool {
        matches!(self.0.state.load(Acquire), TAKING | TAKEN)
    }
}

impl Drop for HeldClaim {
    fn drop(&mut self) {
        let mut now = self.0.state.load(Acquire);
        while now != TAKING {
            match self.0.state.compare_exchange(now, OVER, AcqRel, Acquire) {
                Ok(_) => return,
                Err(other) => now = other,
            }
        }
        // The monitor is at one `send`, which does not wait; this thread does, and may have the GIL and the only processor.
        let _answered = self.0.request_id();
        self.0.state.store(OVER, Release);
    }
}

/// The answer to a request that took too long. Its length does not depend on the date.
pub fn late_page(date: &[u8], method: Method, request_id: &[u8]) -> Vec<u8> {
    let mut page = Vec::new();
    Responder { request_id, ..Responder::of_errors(date, method) }.write_page(&mut page, 504, "", &[]);
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{MILLI, thread_cpu};
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    #[test]
    fn an_exchange_that_is_over_waits_asleep_for_the_answer_under_way() {
        let (ours, _theirs) = UnixStream::pair().expect("sockets");
        let claim = Arc::new(Claim::default());
        let held = HeldClaim::open(&claim, &Stream::new(ours.into()), Method::Get);
        let answering = claim.request_id();
        assert!(claim.step(OPEN, TAKING));
        let waiting = std::thread::spawn(move || {
            let begun = thread_cpu();
            drop(held);
            thread_cpu() - begun
        });
        // Not for synchronisation: so long the answer takes.
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert!(!waiting.is_finished());
        claim.state.store(TAKEN, Release);
        drop(answering);
        let took = waiting.join().expect("a thread");
        assert!(took < 20 * MILLI, "{took} ns of a processor");
    }

    #[test]
    fn whoever_comes_first_writes_and_nobody_after_the_end() {
        let (ours, mut theirs) = UnixStream::pair().expect("sockets");
        let ours = Stream::new(ours.into());
        let claim = Arc::new(Claim::default());
        assert!(!claim.take(b"no exchange"));
        let before = HeldClaim::open(&claim, &ours, Method::Get);
        before.name(b"another request");
        drop(before);
        let held = HeldClaim::open(&claim, &ours, Method::Head);
        held.name(b"id");
        assert!(held.begin() && held.begin());
        assert!(!claim.take(b"begun"));
        held.reopen();
        assert!(claim.take(b"date"));
        assert!(!held.begin() && held.was_taken());
        assert!(!claim.take(b"again"));
        drop(held);
        assert!(!claim.take(b"over"));
        let mut got = String::new();
        theirs.read_to_string(&mut got).expect("our side is closed");
        assert_eq!(got.as_bytes(), late_page(b"date", Method::Head, b"id"));
        assert!(got.contains("\r\nX-Request-ID: id\r\n") && got.ends_with("\r\n\r\n"), "{got}");
    }
}
