//! System calls that the safe wrappers do not offer, a pointer (`seat`), and the clock. `unsafe` code is kept here.
pub mod channel;
pub mod clock;
pub mod fds;
pub mod files;
pub mod foreign_poll;
pub mod fork;
#[cfg(target_os = "linux")]
pub mod halt;
pub mod loop_poller;
pub mod memory;
pub mod poll;
pub mod processor;
mod random;
pub mod seat;
mod signal_stack;
pub mod signals;
mod sigpipe;
pub mod wake;

pub use random::random_seed;
pub use signal_stack::enlarge_signal_stack;
pub use sigpipe::without_sigpipe;
