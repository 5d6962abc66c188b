//! Libraries with a protocol of their own (`asyncio.Protocol`, such as aiohttp's) on the reactor's connections.
//!
//! ```text
//!   reactor: a checked request ──▶ data_received ──▶ the library: parses, calls the application
//!                                                        │ write
//!   reply machine ◀── head, body, end ◀── parser ◀───────┘
//! ```
//!
//! One protocol belongs to one connection and sees a transport; between two of its requests the connection is the reactor's.
//! So the library's own server is not needed, and deadlines, limits, hand-over, the scoreboard and the access log are those
//! of every other class.
//!
//! * `gateway.rs`: where connections and requests begin. `ground.rs`: what a loop's transports share.
//! * `connection.rs`: the transport, its state, its end. `events.rs`: what happens to it. `lost.rs`: how its protocol is told that it is gone.
//! * `reading.rs`: the request, as bytes again. `writing.rs`: the response, out of bytes.
//! * `aiohttp.rs`, `request_factory.rs`: what is natively asked of aiohttp's. `methods.rs`: the transport as Python sees it. `scope.rs`: a request as hooks see it.
mod aiohttp;
mod connection;
mod events;
mod gateway;
mod ground;
mod lost;
mod methods;
mod outcome;
mod reading;
mod request_factory;
mod scope;
mod writing;

pub use connection::Transport;
pub use gateway::{TransportGateway, Transports};
pub use request_factory::RequestFactory;
