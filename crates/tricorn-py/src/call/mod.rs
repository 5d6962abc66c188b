//! Requests for servers that are made of Python classes: each is a `Call`, which such a class reads and answers
//! (`tricorn.gateway.call` has its promises in words).
//!
//! * `gateway.rs`: how such a server is called, and what all calls of a loop share.
//! * `call.rs`: one request: its answer, its end. `body.rs`: its body. `room.rs`: its client, when it is behind or leaves.
//! * `head.rs`: header fields in, header fields out.

mod body;
#[expect(clippy::module_inception, reason = "a call is what this is about")]
mod call;
mod gateway;
mod head;
mod room;

pub use call::Call;
pub use gateway::{CallGateway, CallServer};
