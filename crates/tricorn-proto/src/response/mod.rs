//! One request's response: the rules of RFC 9110 on what it may carry, once for every gateway and wire.
mod app_field;
mod body;
pub mod compression;
pub mod error_page;
mod event_stream;
mod fault;
mod fields;
mod framing;
mod head;
pub mod reply;
pub use body::Portion;
pub use event_stream::EventStream;
pub use fault::Fault;
pub use framing::Framing;
pub use head::{Connection, Interim, ResponseHead};
pub use reply::{End, Ending, HeadInputs, Reply};
