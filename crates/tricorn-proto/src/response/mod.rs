//! One request's response: the rules of RFC 9110 on what it may carry, once for every gateway and wire.
mod app_field;
mod body;
pub mod error_page;
mod fault;
mod fields;
mod framing;
pub mod reply;
pub use fault::Fault;
pub use reply::{End, HeadInputs, Reply};
