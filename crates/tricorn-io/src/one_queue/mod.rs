//! What a worker knows of its siblings, and the message that a request travels in.

pub mod parcel;
pub mod siblings;
