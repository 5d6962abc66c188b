//! What a message says, whatever bytes it comes in (RFC 9110).
//!
//! ```text
//!   head: RequestHead, its fields, and how its body is framed
//!   refusal: why a request is not served      status: codes and their phrases
//!   target: percent-decoding                  grammar: tokens, field values, lists
//! ```
//!
//! Spans point into the bytes that a version of HTTP has brought; nothing here knows how these were framed.
pub mod grammar;
mod head;
pub mod refusal;
pub mod status;
pub mod target;
mod words;

pub use head::{Field, Framing, Known, Method, RequestHead, Scheme, Span, Version};
pub use refusal::{Refusal, RefusalKind};
