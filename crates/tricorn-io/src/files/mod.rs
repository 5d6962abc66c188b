//! Files that the server sends itself: which file a path means, and how it is opened.
//!
//! ```text
//!   path of a request ── map: prefix, segments ──▶ Wanted ── lookup: beneath the directory ──▶ Lookup: a file, or why there is none
//! ```
//!
//! Nothing here knows a connection. `reactor/files.rs` asks, for the cached part at once and for the rest by jobs of the pool, and
//! `exchange/representation.rs` sends.
mod beneath;
mod lookup;
mod map;

pub(crate) use lookup::{Found, How, Lookup, look_up};
pub use map::{Mapping, Named, StaticMap};
pub(crate) use map::{Match, NamedBy, Wanted, Watched};
