//! One request's reply: the rules of RFC 9110 on what a response may carry, once for every gateway and wire.
mod app_field;
pub mod dictation;
pub mod error_page;
mod framing;
pub mod reply;
pub use dictation::{Dictation, Left, NoResponse, Part};
pub use reply::{End, Fault, HeadInputs, Reply};
