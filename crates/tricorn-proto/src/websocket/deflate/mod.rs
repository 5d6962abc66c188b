//! permessage-deflate (RFC 7692).
//!
//! ```text
//!   offers of the client ──> negotiation (server's Policy) ──> Agreed ──┬──> Inflater: the peer's messages
//!                                                                       └──> Deflater: ours
//!                                  ContextPool: contexts not in use, one per thread
//! ```
//!
//! What a connection holds while it is idle:
//!
//! | Direction | With context takeover | Without |
//! |---|---|---|
//! | inflate | `INFLATE_BYTES` at most, from the first compressed message on | nothing |
//! | deflate | `DEFLATE_BYTES` at most, until `Sender::rest` gives it back | nothing |
//!
//! A deflater may forget at any time what went before, because the peer need not be told: only ratio is lost. So there is a
//! bound on how many connections of a thread remember (`ContextPool::new`), beyond which the others forget. An inflater may
//! not forget; who wants less agrees on `client_no_context_takeover`. Smaller windows save little: 9 bits leave
//! 250 of 380 kB to a deflater, whose tables do not shrink, and nothing to an inflater. They are for the peer's sake.
//! What is given back lies in `ContextPool`, up to its size, so that a context is seldom made anew.
mod deflater;
mod inflater;
mod negotiation;
mod pool;
pub(super) use deflater::Deflater;
pub(super) use inflater::{Inflater, Inflation};
pub use negotiation::{Agreed, Offer, Policy};
pub use pool::ContextPool;

/// What the DEFLATE blocks of a message end with, which is not sent (RFC 7692 section 7.2.1).
const TAIL: [u8; 4] = [0x00, 0x00, 0xff, 0xff];

/// Most that one inflating context takes, whatever its window (tested).
pub const INFLATE_BYTES: usize = 48 * 1024;
/// Most that one deflating context takes, whatever its window (tested).
pub const DEFLATE_BYTES: usize = 384 * 1024;
/// How much the buffer of a message grows at once, at least, while it is inflated.
pub const BLOCK: usize = 4096;
