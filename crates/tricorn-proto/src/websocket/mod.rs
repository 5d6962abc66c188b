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
//!
//!   Session: all of these for one connection, with an inbox for the application
//! ```
//!
//! `frame` alone knows the bits of a head, `close` alone the closing handshake, `violation` alone what a broken rule is
//! called. Memory that messages need for a moment is shared by the connections of a thread (`deflate::ContextPool`).
//!
//! A connection that sends back what it receives:
//!
//! ```
//! use tricorn_proto::websocket::{Delivery, Event, Receiver, Role, Sender, ContextPool, receiver, sender};
//!
//! fn echo(receiver: &mut Receiver, sender: &mut Sender, spare: &mut ContextPool, input: &mut Vec<u8>, out: &mut Vec<u8>) {
//!     let mut at = 0;
//!     loop {
//!         let progress = match receiver.advance(&mut input[at..], spare) {
//!             Ok(progress) => progress,
//!             Err(violation) => return sender.fail(out, violation),
//!         };
//!         at += progress.consumed;
//!         // What cannot be sent any more, because the WebSocket is closing, is dropped.
//!         let _ = match progress.event {
//!             Event::Message { kind, data } => sender.message(out, kind, data, spare),
//!             Event::Ping(payload) => sender.pong(out, payload),
//!             Event::Close(close) => Ok(sender.answer(out, &close)),
//!             Event::Pong(_) | Event::Piece { .. } => Ok(()),
//!             Event::NeedMore | Event::Dropped => break,
//!         };
//!     }
//!     input.drain(..at);
//! }
//!
//! let reading = receiver::Settings {
//!     role: Role::Server,
//!     delivery: Delivery::Whole,
//!     max_message_size: 1 << 20,
//!     deflate: None,
//! };
//! let writing = sender::Settings { role: Role::Server, fragment: 0, deflate: None, seed: 0 };
//! let (mut receiver, mut sender, mut spare) = (Receiver::new(&reading), Sender::new(&writing), ContextPool::default());
//! let mut input = b"\x81\x85\x37\xfa\x21\x3d\x7f\x9f\x4d\x51\x58".to_vec();
//! let mut out = Vec::new();
//! echo(&mut receiver, &mut sender, &mut spare, &mut input, &mut out);
//! assert_eq!(out, b"\x81\x05Hello");
//! ```
pub mod close;
pub mod deflate;
pub mod frame;
pub mod handshake;
mod inbox;
pub mod keepalive;
pub mod mask;
pub mod receiver;
pub mod sender;
pub mod session;
mod utf8;
mod violation;

pub use close::{Close, Closing};
pub use deflate::ContextPool;
pub use frame::{Kind, Role};
pub use keepalive::Keepalive;
pub use receiver::{Delivery, Event, Progress, Receiver};
pub use sender::{Sender, Unsendable};
pub use session::{Session, StepInput};
pub use violation::Violation;
