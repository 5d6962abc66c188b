//! Requests that take longer than `profile_after`, and everything while a profile is taken: what is looked at, and what is kept.
//!
//! * `plan.rs`: which slow requests are looked at, and when; virtual time. `routes.rs`: what is kept, and its bounds.
//! * `profile.rs`: what is kept while an operator has everything sampled.
//! * `route.rs`: what a route is. `counts.rs`: how many requests were not slow.
pub mod counts;
pub mod plan;
pub mod profile;
pub mod route;
mod routes;

use tricorn_doctor::PyFrame;

/// The innermost first.
pub type Frames = Vec<PyFrame>;

/// The route of the request that began then in this slot, as its application has told it.
#[derive(Debug)]
pub struct Named {
    pub slot: usize,
    pub started: u64,
    pub hash: u64,
    pub name: String,
}

/// Where a request waits while the event loop is at something else: at that.
pub fn held_up(frames: &[PyFrame], by: &str) -> Frames {
    let function = if by.is_empty() { "held up".to_owned() } else { format!("held up by {by}") };
    let mut held = frames.to_vec();
    held.push(PyFrame { file: "[event loop]".to_owned(), function, line: 0 });
    held
}
