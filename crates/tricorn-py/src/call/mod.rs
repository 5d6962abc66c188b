//! Requests for servers that are made of Python classes: each is a `Call`, which such a class reads and answers
//! (`tricorn.gateway.call` has its promises in words).
//!
//! * `gateway.rs`: how such a server is called. `ground.rs`: what all calls of a loop share.
//! * `call.rs`: one request: what happens to its client, and its end. `methods.rs`: the same as Python sees it.
//! * `body.rs`: its body. `head.rs`: header fields in, header fields out.

mod body;
#[expect(clippy::module_inception, reason = "a call is what this is about")]
mod call;
mod gateway;
mod ground;
mod head;
mod methods;

pub use call::Call;
pub use gateway::{CallGateway, CallServer};
