//! One WebSocket under way (ASGI WebSocket specification 2.5): its state, and what happens to it from outside.
//!
//! ```text
//!   Asked ──websocket.accept──▶ Open ──websocket.close──▶ Closed
//!     ├──websocket.close (403), an error (500)──────────▶ Closed
//!     └──websocket.http.response.start──▶ Denying ──body──▶ Closed
//! ```
//!
//! * `socket.rs`: its state, and its end. `opening.rs` in the folder above calls the application.
//! * `send.rs` and `deny.rs` move it, `receive.rs` hands out events, `room.rs` waits for the client.
//!
//! The connection may be over before the application is told so, or the application before the connection: the last Close
//! frame is waited for without it. Python is never run while the state is locked: what is worked on is taken out meanwhile.
mod deny;
mod events;
mod receive;
mod room;
mod send;
mod socket;

pub use receive::receive;
pub use send::send;
pub use socket::Socket;
