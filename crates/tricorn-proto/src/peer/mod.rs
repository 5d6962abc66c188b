//! Who is at the other end and what it may claim.
mod forwarded;
pub mod request_id;
pub mod request_start;
pub mod trust;
pub use forwarded::client_of;
pub use trust::Trust;
