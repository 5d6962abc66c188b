//! The WSGI gateway (PEP 3333): environ, the call, the response.
//!
//! ```text
//!   Server::answer ── environ.rs ──▶ application(environ, start_response)
//!        │                                   │            │
//!        │                               handle.rs ◀──────┘  start_response, write, early hints; body.rs: wsgi.input
//!        └── respond.rs: pieces of the result ──▶ Exchange ──▶ socket
//! ```
//!
//! `core.rs` (threads), `green/` (greenlets) and `on_loop.rs` (event loops) have a `Server` answer their requests.
mod body;
mod environ;
mod file;
mod handle;
mod input;
mod on_loop;
mod peer;
mod respond;
mod send;
mod server;
mod socket;
mod wait;

pub use body::BodySource;
pub use on_loop::OnLoop;
pub use server::{Begun, CallOptions, Server, WsgiGateway};
pub use wait::{Hub, Wait};
