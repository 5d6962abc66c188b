//! One request's reply: the rules of RFC 9110 on what a response may carry, once for every gateway and wire.
mod app_field;
pub mod error_page;
mod framing;
pub mod reply;
pub use reply::{End, Fault, HeadInputs, Reply};
