//! WebSockets that are only held. Pings are answered.
use std::io::{Read, stdin};
use std::time::Instant;

use crate::poller::Interest;
use crate::websocket::echo::{Group, Then};
use crate::websocket::handshake::PATIENCE;
use crate::websocket::options::Options;
use crate::websocket::report::quoted;

pub fn run(options: &Options) -> Result<(), String> {
    let mut group = Group::open(options, options.idle)?;
    group.poller.add(stdin(), STDIN, Interest::Reading)?;
    tell(&group);
    loop {
        let mut is_told = false;
        group.wait(None, |group, number| match number {
            STDIN => is_told = true,
            number => group.look(number, Then::Rest),
        })?;
        if is_told {
            let mut said = [0; 64];
            let length = stdin().lock().read(&mut said).map_err(|error| format!("stdin: {error}"))?;
            if length == 0 {
                return group.leave();
            }
            for _ in said[..length].iter().filter(|&&byte| byte == b'\n') {
                let now = Instant::now();
                group.ask_all(now);
                // Whoever is asleep in a crowd of ten thousand may need a moment.
                group.turn_until(now + 3 * PATIENCE, Then::Rest)?;
                tell(&group);
            }
        }
    }
}

fn tell(group: &Group) {
    let errors = group.report.errors.iter().map(|(what, count)| format!("{}: {count}", quoted(what)));
    println!(
        "{{\"open\": {}, \"echoes\": {}, \"errors\": {{{}}}, \"deflate\": {}}}",
        group.count(),
        group.report.latencies.len(),
        errors.collect::<Vec<_>>().join(", "),
        group.report.deflate.as_deref().map_or("null".into(), quoted),
    );
}

/// Its token; connections have their number.
const STDIN: usize = usize::MAX;
