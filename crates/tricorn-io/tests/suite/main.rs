//! The tests that only look at what is theirs, in one program: each program costs as much to compile as several of them.
//!
//! A file beside this directory is a program of its own, because it looks at the whole process: its threads, descriptors,
//! processor time, or who takes its signals.
#[path = "../harness/mod.rs"]
mod harness;

mod access_log;
mod active;
mod bodies;
mod bridge;
mod channel;
mod compressed;
mod front_ends;
mod hand_over;
mod hand_over_cargo;
mod held;
mod held_by_sessions;
mod http2;
mod hub;
mod late_bodies;
mod leaving;
mod lend;
mod limits;
mod queue;
mod replies;
mod requests;
mod scoreboard;
mod siblings_leave;
mod streaming;
mod tickets;
mod timeouts;
mod tls;
mod uploads;
mod waits;
mod websocket;
