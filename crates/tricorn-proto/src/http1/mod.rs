//! HTTP/1.0 and HTTP/1.1, receiving side (RFC 9112).
//!
//! ```text
//!   bytes ──> receiver ──> request_line, fields ──> framing, host, scheme ──> RequestHead
//!                │                  │ refused or incomplete
//!                │                  └──> lines: says what is wrong with which line, or that more must come
//!                └──> chunked: the body's own framing and its trailers
//! ```
//!
//! `state` alone decides what comes next; `grammar` alone knows the character classes.
pub mod chunked;
pub mod error;
mod field_line;
mod fields;
mod fold;
mod framing;
pub mod grammar;
pub mod head;
mod host;
pub mod limits;
mod lines;
pub mod receiver;
mod request_line;
mod scheme;
mod state;
mod step;
pub mod target;

pub use error::{Refusal, RefusalKind};
pub use head::{Field, Framing, Known, Method, RequestHead, Scheme, Span, Version};
pub use limits::{HeadPolicy, HeaderMap, Leniency, Limits};
pub use receiver::Receiver;
pub use step::{Progress, Step};
