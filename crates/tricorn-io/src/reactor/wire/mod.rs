//! How a connection carries its requests: what their bytes look like, and how many may be under way at once.
//!
//! ```text
//!   Listener.protocol ──▶ Wire ── Http1: one request after another
//! ```
//!
//! What every wire can answer is a method here, with one `match`. A step of the reactor that holds for one wire only takes it
//! apart (`let Wire::Http1(http1) = …`): with a second wire the compiler asks each of these steps what it means there. Such are
//! reading, and whatever takes the phase of the connection for that of its request.
mod http1;

pub use http1::{Http1, Reading};

use crate::exchange::buffers::Request;
use crate::exchange::id::RequestId;

/// What the clients of a listener speak.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Protocol {
    #[default]
    Http1,
}

#[derive(Debug)]
pub enum Wire {
    Http1(Http1),
}

impl Wire {
    #[inline]
    pub fn new(protocol: Protocol) -> Wire {
        match protocol {
            Protocol::Http1 => Wire::Http1(Http1::default()),
        }
    }

    /// A request that is being read, or waits.
    #[inline]
    pub fn request(&self, id: RequestId) -> Option<&Request> {
        match self {
            Wire::Http1(http1) => http1.request(id),
        }
    }

    #[inline]
    pub fn request_mut(&mut self, id: RequestId) -> Option<&mut Request> {
        match self {
            Wire::Http1(http1) => http1.request_mut(id),
        }
    }

    /// Takes a request, to be answered.
    #[inline]
    pub fn take_request(&mut self, id: RequestId) -> Option<Box<Request>> {
        match self {
            Wire::Http1(http1) => http1.take_request(id),
        }
    }

    /// Takes what was read behind a request that has begun: it is for the protocol that follows.
    pub fn take_unread(&mut self, id: RequestId) -> Option<Box<Request>> {
        match self {
            Wire::Http1(http1) => http1.take_unread(id),
        }
    }

    /// Whether bytes were read of a request that has not begun.
    #[inline]
    pub fn holds_input(&self) -> bool {
        match self {
            Wire::Http1(http1) => http1.holds_input(),
        }
    }

    /// Takes all requests that have not begun: the connection brings no more.
    #[inline]
    pub fn end(&mut self) -> impl Iterator<Item = Box<Request>> + use<> {
        match self {
            Wire::Http1(http1) => http1.end().into_iter(),
        }
    }
}
