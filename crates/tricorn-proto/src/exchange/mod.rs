//! One request's reply: the rules of RFC 9110 on what a response may carry, once for every gateway and wire.
mod app_field;
mod body;
pub mod dictation;
pub mod error_page;
mod fault;
mod fields;
mod framing;
pub mod reply;
pub use dictation::{Dictation, Left, NoResponse, Part};
pub use fault::Fault;
pub use reply::{End, HeadInputs, Reply};
