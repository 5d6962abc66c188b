//! The WSGI gateway (PEP 3333): environ, the call, the response.
//!
//! ```text
//!   Server::answer ── environ.rs ──▶ application(environ, start_response)
//!        │                                   │            │
//!        │                               handle.rs ◀──────┘  start_response, write, early hints
//!        └── respond.rs: pieces of the result ──▶ Exchange ──▶ socket
//! ```
mod buffer;
mod environ;
mod handle;
mod input;
mod peer;
mod respond;
mod server;
mod socket;
mod wait;

pub use buffer::BytesBuffer;
pub use respond::is_ours_alone;
pub use server::{Ground, Server, WsgiGateway};
pub use wait::{Hub, Wait};
