//! Who is at the other end and what it may claim.
mod forwarded;
mod forwarded_field;
mod node;
pub mod proxy;
pub mod proxy_protocol;
pub mod request_id;
pub mod request_start;
pub mod session;
pub mod trace_context;
pub mod x509;
pub use crate::trust::Trust;
pub use forwarded::client_of;
pub use node::Node;
pub use proxy::{Claims, ProxyPolicy};
