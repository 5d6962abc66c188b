//! Who is at the other end and what it may claim.
pub mod request_id;
pub mod request_start;
pub mod trust;
pub use trust::Trust;
