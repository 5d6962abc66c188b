//! The ASGI gateway (ASGI 3; HTTP specification 2.5): scopes, calls, events.
//!
//! ```text
//!   LoopServer::poll ── begin ── scope.rs ──▶ application(scope, receive, send) ──▶ a task, run as far as it comes
//!        │                                                    │        │
//!        │                                      receive.rs ◀──┘        └──▶ send.rs ──▶ Exchange ──▶ socket
//!        └── on_readiness ──▶ call.rs: bytes have come, there is room, the client has left
//!
//!   opening.rs, websocket/: the same for handshakes and what follows them
//! ```
mod bound;
mod call;
mod event;
mod failure;
mod gateway;
mod ground;
mod headers;
mod opening;
mod parts;
mod receive;
mod scope;
mod send;
mod websocket;

pub use gateway::{Asgi, AsgiGateway};
