//! A load generator for WebSockets, for the benchmarks.
//!
//! ```text
//!   tricorn-load PORT --connections 64 --size 125 --seconds 3      an echo server, in a closed loop
//!   tricorn-load PORT --idle 10000                                 WebSockets that are only held
//! ```
//!
//! One thread with an epoll. Messages are made once, masked and compressed, so that sending one costs a system call; what
//! comes back is unpacked and compared, byte by byte. Results are a line of JSON each.
#![allow(clippy::disallowed_methods)] // Who measures looks at the clock.

mod connection;
mod echo;
mod handshake;
mod idle;
mod messages;
mod options;
mod poller;
mod report;

use std::process::ExitCode;

fn main() -> ExitCode {
    let options = match options::parse(std::env::args().skip(1)) {
        Ok(options) => options,
        Err(reason) => {
            eprintln!("{reason}\n\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    let done = if options.idle > 0 { idle::run(&options) } else { echo::run(&options) };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => {
            eprintln!("{reason}");
            ExitCode::FAILURE
        }
    }
}
