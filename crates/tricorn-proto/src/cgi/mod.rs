//! Requests that a front end has read, and brings as vars: uwsgi, SCGI, FastCGI.
//!
//! ```text
//!   bytes ──> uwsgi, scgi, fastcgi ──> vars (one form of them) ──> a head as HTTP/1 text ──> http1::Receiver
//!                        └──> what is answered to the connection itself (FastCGI)
//!
//!   what the reply machine has decided ──> encode ──> bytes
//! ```
//!
//! The head is read by the rules of HTTP/1, so that a front end gets nothing past them. The vars stand before it, for gateways.
pub mod encode;
pub mod fastcgi;
mod opening;
mod protocol;
mod records;
mod scgi;
mod uwsgi;
mod vars;

use crate::message::Refusal;
pub use opening::{Opening, Scan};
pub use protocol::{MAX_BYTES, MAX_VARS, Protocol};
pub use vars::{Origin, Vars};

/// Looks at the first bytes of a request. Vars that are complete are appended to `block`.
///
/// # Errors
/// They are none of this protocol, or more than there may be.
pub fn open(protocol: Protocol, input: &[u8], scan: &mut Scan, block: &mut Vec<u8>) -> Result<Opening, Box<Refusal>> {
    match protocol {
        Protocol::Uwsgi => uwsgi::open(input, block),
        Protocol::Scgi => scgi::open(input, block),
        Protocol::FastCgi => fastcgi::open(input, scan, block),
    }
}
