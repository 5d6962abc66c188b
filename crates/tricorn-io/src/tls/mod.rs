//! TLS: what a worker needs of it. rustls does the protocol.
//!
//! ```text
//!   arbiter: Bundle (PEM) ──check──▶ publish ──▶ Page, shared by all workers
//!                                                 │ one word compared per handshake
//!   worker:  Source ──build, when it has changed──┘──▶ ServerConfig: Resolver, Tickets, verifier of clients
//!              │
//!              ▼ per connection
//!            Link: records in, plaintext out, and back ──▶ Facts, once the handshake is over
//! ```
//!
//! No file here moves bytes of sockets: `stream.rs` does, by `secured.rs`. Only `link.rs` names rustls' connection, and only `config.rs` its
//! configuration.
mod bundle;
mod certificates;
mod chains;
mod config;
mod facts;
mod failure;
mod key_log;
mod link;
mod page;
mod records;
mod source;
mod tickets;

pub use bundle::{Bundle, ClientCertificates, Identity, Version};
pub use certificates::Report;
pub use config::{check, suite_names};
pub use facts::Facts;
pub use failure::Failure;
pub use link::{AHEAD, Link, Opened, Scratch};
pub use page::{Page, TLS_PAGE_BYTES};
pub use records::RECORD;
pub use source::Source;
pub use tricorn_figures::scoreboard::handshakes::Reason;

/// Puts a bundle where all workers find it, after it was judged. On an error the page is as before.
pub fn publish(page: &Page, bundle: &Bundle) -> Result<(), String> {
    check(bundle)?;
    page.publish(&bundle.encode())
}

#[cfg(test)]
mod tests;
