//! What slows down the requests of a worker: stack samples, and the state machines in virtual time that judge them.
//!
//! It reads the memory of its own process (tricorn-doctor) and files of source. It knows no engine: the monitor of tricorn-io tells the
//! machines what is under way, and hands their records to the arbiter.
//!
//! * [`stalls`], [`census`], [`saturation`], [`slow`]: one call holds up an event loop; requests wait for room in a pool; the worker has more
//!   to do than it can; a request on a thread takes long. [`examiner`] is the thread that looks for them.
//! * [`stack_samples`]: samples of calls that wait in a hub. [`wait_sites`]: where libraries wait for room in a pool.
//! * [`sampling`]: which requests are looked at, and what is kept of them; [`report_file`]: how that gets to the arbiter.

#![forbid(unsafe_code)]

pub mod census;
pub mod examiner;
mod packages;
pub mod report_file;
pub mod sampling;
pub mod saturation;
pub mod slow;
pub mod stack_lines;
pub mod stack_samples;
mod stall_record;
pub mod stalls;
pub mod wait_sites;
