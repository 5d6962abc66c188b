//! A fleet in virtual time: hosts, balancers that do not talk to each other, and the loop that adds and removes hosts.
//!
//! ```text
//! arrival ─▶ balancer (one of 20) ─choose─▶ host ─▶ a queue ─▶ slot ─▶ departure
//! ```
//!
//! `fleet waits`, `fleet slow` and `fleet scale` print a JSON object for each row of a table, which `python -m
//! benches.fleet` renders. Service is first come, first served, so that the wait of a request is known when it
//! arrives; only a balancer that counts needs to hear of departures.

mod choose;
mod hosts;
mod random;
mod scale;
mod waits;

use std::process::ExitCode;

const USAGE: &str = "usage: fleet waits|slow|scale [HOSTS]";

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let table = words.next().unwrap_or_default();
    let hosts = match words.next().map(|word| word.parse::<usize>()) {
        None => None,
        Some(Ok(hosts)) if hosts > 0 => Some(hosts),
        Some(_) => {
            eprintln!("{USAGE}: HOSTS is a number of at least 1");
            return ExitCode::from(2);
        }
    };
    match table.as_str() {
        "waits" => waits::equal_hosts(hosts.unwrap_or(1000)),
        "slow" => waits::a_tenth_is_slow(hosts.unwrap_or(200)),
        "scale" => scale::metrics(),
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}
