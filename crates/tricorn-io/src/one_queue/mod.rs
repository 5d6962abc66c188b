//! The one queue: a request never waits behind a busy worker while another is idle.
//!
//! ```text
//!   request complete, no app thread free here
//!        │
//!        ▼                 a sibling is idle, or: among the first of all that wait
//!   this worker's queue ──────────────────────────▶ the channel ──▶ a worker with a free app thread
//!        │  beyond queue_limit or queue_timeout
//!        ▼
//!   503, Retry-After
//! ```
//!
//! The channel holds the front of the queue of all workers, at most one request for each of them, so that the worker that becomes
//! free takes the next one at once. Everything behind the front stays with the worker that read it, which keeps its limits
//! and its deadlines and sees its client leave.
//!
//! Here stands what that takes: what is known of the siblings, when something may be sent, and the message in which a request
//! travels. `reactor/hand_over.rs` sends and takes one, `engine/one_queue.rs` says when.

pub mod affinity;
pub mod births;
pub mod company;
pub mod message;
pub mod rules;
pub mod siblings;
