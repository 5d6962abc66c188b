//! The opening handshake (RFC 6455 section 4.2), server side.
//!
//! ```text
//!   RequestHead ──> upgrade::read ──> None: an ordinary request
//!                        │    └─────> Wrong: refused
//!                        └──> Asked { key, Wanted } ──> the application chooses ──> upgrade::answer ──> Reply: 101
//! ```
//!
//! `Wanted` (subprotocols, extensions, version) is read from fields alone: an extended CONNECT of HTTP/2 (RFC 8441) has the same, and is
//! answered with a 200 that has no accept field.
mod accept;
mod extensions;
mod upgrade;
mod wanted;
mod wrong;
pub use accept::{Key, accept};
pub use upgrade::{Answer, Asked, answer, read};
pub use wanted::Wanted;
pub use wrong::Wrong;
