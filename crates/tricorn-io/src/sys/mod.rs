//! The only room with `unsafe`: what the operating system offers and the safe wrappers do not.
pub mod fds;
pub mod poll;
pub mod signals;
pub mod wake;
