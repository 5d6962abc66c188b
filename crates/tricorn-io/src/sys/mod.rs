//! The only room with `unsafe`: what the operating system offers and the safe wrappers do not, and a pointer (`seat`).
pub mod channel;
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
