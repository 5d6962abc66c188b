//! WebSocket (RFC 6455) with permessage-deflate (RFC 7692), both sides.
//!
//! ```text
//!   request head ──> handshake ──> 101, Agreed ──> Receiver, Sender, Keepalive
//!                       └──> Wrong: 400, 405, 426
//!
//!   bytes ──> Receiver ──> frame, mask ──> deflate ──> utf8 ──> Event: message, piece, ping, pong, close
//!                 └──> Violation: the code and reason to close with
//!   message, ping, pong, close ──> Sender ──> deflate ──> frame, mask ──> bytes
//!                                    └── close::Closing: who said goodbye, and what may still be sent
//! ```
//!
//! `frame` alone knows the bits of a head, `close` alone the closing handshake, `violation` alone what a broken rule is
//! called. Memory that messages need for a moment is shared by the connections of a thread (`deflate::Spare`).
pub mod close;
pub mod deflate;
pub mod frame;
pub mod handshake;
pub mod keepalive;
pub mod mask;
pub mod receiver;
pub mod sender;
mod utf8;
mod violation;

pub use close::{Close, Closing};
pub use deflate::Spare;
pub use frame::{Kind, Role};
pub use keepalive::Keepalive;
pub use receiver::{Delivery, Event, Progress, Receiver};
pub use sender::{Sender, Unsendable};
pub use violation::Violation;
