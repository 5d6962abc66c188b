//! HTTP/1.0 and HTTP/1.1, receiving side (RFC 9112).
pub mod error;
pub mod head;
pub mod limits;
pub mod receiver;

pub use error::{Refusal, RefusalKind};
pub use head::{Field, Framing, Known, Method, RequestHead, Scheme, Span, Version};
pub use limits::{HeaderMap, HeadPolicy, Leniency, Limits};
pub use receiver::{Progress, Receiver, Step};
