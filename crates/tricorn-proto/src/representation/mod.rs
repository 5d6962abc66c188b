//! Which part of a representation a request gets (RFC 9110 sections 8, 13 and 14), whatever the representation is.
//!
//! ```text
//!   fields of the request ──▶ Conditions ─┐
//!   ETag, Last-Modified, length ──────────┴─▶ judge: whole, one range, several, 304, 412 or 416
//! ```
//!
//! Users: files of the server (`tricorn_io::reactor::files`), and files of an application that sets validators.
mod conditions;
mod date;
mod entity_tag;
mod judge;
mod media_type;
mod multipart;
mod range;

pub use conditions::Conditions;
pub use date::{imf_fixdate, parse_http_date};
pub use entity_tag::EntityTag;
pub use judge::{Selected, Verdict, judge};
pub use media_type::{MediaType, media_type};
pub use multipart::Multipart;
pub use range::{Part, content_range, unsatisfied_range};
