//! Libraries with a protocol of their own (`asyncio.Protocol`, such as aiohttp's) on the reactor's connections.
//!
//! ```text
//!   reactor: a checked request ──▶ data_received ──▶ the library: parses, calls the application
//!                                                        │ write
//!   reply machine ◀── head, body, end ◀── dictation ◀────┘
//! ```
//!
//! One protocol belongs to one connection and sees a transport; between two of its requests the connection is the reactor's.
//! So the library's own server is not needed, and deadlines, limits, hand-over, the scoreboard and the access log are those
//! of every other class.
//!
//! * `gateway.rs`: what a loop's transports share, and where requests begin.
//! * `connection.rs`: the transport as Python sees it (`asyncio.Transport`), its state, its end.
//! * `reading.rs`: the request, as bytes again; `writing.rs`: the response, out of bytes.
mod connection;
mod gateway;
mod outcome;
mod reading;
mod writing;

pub use connection::Transport;
pub use gateway::{TransportGateway, Transports};
