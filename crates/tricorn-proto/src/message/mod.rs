//! What a message says, whatever bytes it comes in (RFC 9110).
//!
//! ```text
//!   head: RequestHead, its fields, and how its body is framed
//!   field_list: names and values, to be sent or logged
//!   refusal: why a request is not served      status: codes and their phrases
//!   target: percent-decoding                  grammar: tokens, field values, lists
//!   coding: content codings, and which of them a client accepts
//! ```
//!
//! Spans point into the bytes that a version of HTTP has brought; nothing here knows how these were framed.
pub mod coding;
mod field_list;
pub mod grammar;
mod head;
pub(crate) mod host;
pub mod refusal;
pub mod status;
pub mod target;
mod words;

pub use field_list::FieldList;
pub use head::{Field, Framing, Known, Method, RequestHead, Scheme, Span, Version};
pub use refusal::{Refusal, RefusalKind};
