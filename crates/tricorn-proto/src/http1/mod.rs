//! HTTP/1.0 and HTTP/1.1 as text (RFC 9112).
//!
//! ```text
//!   bytes ──> receiver ──> request_line, fields ──> framing, host, scheme ──> RequestHead
//!                │                  │ refused or incomplete
//!                │                  └──> lines: says what is wrong with which line, or that more must come
//!                └──> chunked: the body's own framing and its trailers
//!
//!   what the reply machine has decided ──> encode ──> bytes
//! ```
//!
//! `state` alone decides what comes next. `response_parser` reads responses that another library has written.
pub mod chunked;
pub mod encode;
mod field_line;
pub(crate) mod fields;
mod fold;
pub(crate) mod framing;
pub mod limits;
mod lines;
pub mod receiver;
pub(crate) mod request_line;
pub mod response_parser;
pub(crate) mod scheme;
mod state;
mod step;

pub use limits::{HeadPolicy, HeaderMap, Leniency, Limits};
pub use receiver::Receiver;
pub use response_parser::{Left, NoResponse, Part, ResponseParser};
pub use step::{Progress, Step};
