//! The client of an exchange, and the listener that it came by.
use crate::peer::Peer;
use std::any::Any;

/// Values a gateway keeps with a connection (addresses as Python strings). Made and dropped by the gateway's threads only.
pub type Attachment = Box<dyn Any + Send + Sync>;

pub struct Client {
    pub peer: Peer,
    /// The listener that the connection came by.
    pub listener: u16,
    /// The peer may claim things by forwarded headers.
    pub trusted: bool,
    pub attachment: Option<Attachment>,
}
