//! Compressors of response bodies, and how many there may be.
//!
//! ```text
//!   a whole body   Compressors::whole  ──▶ one compressor for a moment, on the thread that sends
//!   a stream       Compressors::stream ──▶ Stream: a compressor for as long as the response lasts, one of STREAMS
//! ```
//!
//! Nothing is compressed under the baton or with the GIL held for long: the callers see to that (`exchange/compressed.rs`).
mod encoder;

pub use encoder::Failed;
use encoder::{Effort, Encoder, Then};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use tricorn_proto::message::coding::Coding;
use tricorn_proto::response::compression::Policy;

/// Most streams of a worker that are compressed at once, of half a MiB each. Others are sent as they are.
pub const STREAMS: usize = 64;

/// Compressors of a kind that are kept for the next response. To make one takes 3 to 8 µs more than to use one again.
const KEPT: usize = 2;

/// Longer bodies are compressed quickly: this much takes brotli 3 ms, which an event loop has to wait for.
const THOROUGH: usize = 128 * 1024;

/// A worker's compressors.
pub struct Compressors {
    policy: Policy,
    streams: AtomicUsize,
    /// Those that are not in use. A leaf: nothing else is locked, or run, meanwhile.
    kept: Mutex<Vec<(Coding, Effort, Encoder)>>,
}

impl std::fmt::Debug for Compressors {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Compressors")
            .field("policy", &self.policy)
            .field("streams", &self.streams)
            .finish_non_exhaustive()
    }
}

impl Compressors {
    /// `None`: nothing is to be compressed.
    pub fn of(policy: Policy) -> Option<Arc<Compressors>> {
        let is_asked_for = !policy.codings.is_empty() && !policy.types.is_empty();
        is_asked_for.then(|| Arc::new(Compressors { policy, streams: AtomicUsize::new(0), kept: Mutex::default() }))
    }

    pub(crate) fn policy(&self) -> &Policy {
        &self.policy
    }

    /// A whole body, compressed. `None`: that would not make it shorter, or the library has failed.
    pub fn whole(&self, coding: Coding, body: &[u8]) -> Option<Vec<u8>> {
        let effort = if body.len() > THOROUGH { Effort::Quick } else { Effort::Thorough };
        let mut encoder = self.take(coding, effort).ok()?;
        encoder.expect(body.len());
        let mut out = Vec::new();
        encoder.encode(body, Then::End, &mut out).ok()?;
        let _left = self.keep(coding, effort, encoder);
        (out.len() < body.len()).then_some(out)
    }

    /// A compressor for a stream. `None`: as many are in use as may be. `at_hand`: its pieces follow one another without a pause.
    pub fn stream(self: &Arc<Self>, coding: Coding, at_hand: bool) -> Option<Stream> {
        let more = |count: usize| (count < STREAMS).then_some(count + 1);
        self.streams.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok()?;
        // From here on it counts, whatever happens.
        let mut stream = Stream { compressors: self.clone(), coding, at_hand, encoder: None };
        stream.encoder = Some(self.take(coding, Effort::Quick).ok()?);
        Some(stream)
    }

    fn take(&self, coding: Coding, effort: Effort) -> Result<Encoder, Failed> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let place = kept.iter().position(|(of, with, _)| (*of, *with) == (coding, effort));
        let encoder = place.map(|place| kept.swap_remove(place).2);
        drop(kept);
        encoder.map_or_else(|| Encoder::new(coding, effort), Ok)
    }

    /// What is not kept comes back, to be dropped by the caller: zlib-rs frees what a reference in it points to, which is undefined for
    /// an argument (`websocket/deflate/pool.rs` of tricorn-proto).
    #[must_use]
    fn keep(&self, coding: Coding, effort: Effort, mut encoder: Encoder) -> Option<Encoder> {
        if !encoder.renew() {
            return Some(encoder);
        }
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.iter().filter(|(of, with, _)| (*of, *with) == (coding, effort)).count() == KEPT {
            return Some(encoder);
        }
        kept.push((coding, effort, encoder));
        None
    }
}

/// A stream that is compressed. Its place is free again when it is dropped.
pub struct Stream {
    compressors: Arc<Compressors>,
    coding: Coding,
    at_hand: bool,
    encoder: Option<Encoder>,
}

impl Stream {
    /// Compresses a piece: all of it can be read by the receiver, unless the next one is at hand. An empty piece is nothing.
    ///
    /// # Errors
    /// The library has failed: no more may be sent.
    pub fn encode(&mut self, piece: &[u8]) -> Result<Vec<u8>, Failed> {
        let then = if self.at_hand { Then::Piece } else { Then::Flush };
        if piece.is_empty() { Ok(Vec::new()) } else { self.encode_then(piece, then) }
    }

    /// Compresses the last piece, and ends the stream.
    ///
    /// # Errors
    /// The library has failed: no more may be sent.
    pub fn finish(&mut self, piece: &[u8]) -> Result<Vec<u8>, Failed> {
        self.encode_then(piece, Then::End)
    }

    fn encode_then(&mut self, piece: &[u8], then: Then) -> Result<Vec<u8>, Failed> {
        let mut out = Vec::new();
        self.encoder.as_mut().ok_or(Failed)?.encode(piece, then, &mut out)?;
        Ok(out)
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Some(encoder) = self.encoder.take() {
            let _left = self.compressors.keep(self.coding, Effort::Quick, encoder);
        }
        self.compressors.streams.fetch_sub(1, Ordering::Relaxed);
    }
}

// Miri cannot run the library of zstd, which is C.
#[cfg(all(test, not(miri)))]
mod tests;
