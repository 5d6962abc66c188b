//! Who is at the other end and what it may claim.
pub mod trust;
pub use trust::Trust;
