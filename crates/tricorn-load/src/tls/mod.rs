//! TLS, as a client has it. rustls does the protocol.
//!
//! ```text
//!   plan::Tls ──config──> Tls, one for each origin: whom it trusts, who we are, tickets of the server
//!                          │
//!                          └──for each connection──> Session: records in, plaintext out, and back
//!                                                       │
//!                                                       └──when it is agreed──> Handshake ──> Handshakes, counted
//! ```
//!
//! Only `session.rs` names rustls' connection. A session moves its own records, between rustls and a socket that does not
//! block.
mod config;
mod handshake;
mod session;
mod tickets;
mod trial;
mod verifier;

pub use config::Tls;
pub use handshake::{Handshake, Handshakes};
pub use session::Session;
pub use trial::try_out;
