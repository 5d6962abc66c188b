//! Who is at the other end and what it may claim.
mod forwarded;
pub mod request_id;
pub mod request_start;
pub use crate::trust::Trust;
pub use forwarded::client_of;
