//! A run over WebSockets: each client sends its next message when the echo of the last one came.
use std::time::{Duration, Instant};
use tricorn_proto::websocket::Kind;

use crate::address::Address;
use crate::clock::Usage;
use crate::driver::Done;
use crate::failure::Failure;
use crate::outcome::{Outcome, Progress};
use crate::plan::{Plan, WebSocket};
use crate::request::find;
use crate::tally::{Count, Tally};
use crate::watcher::Watcher;
use crate::websocket::echo::{Group, Then};
use crate::websocket::options::Options;

/// # Errors
/// A sentence: what the plan asks for is not there, or the server does not do what it says.
pub fn run(plan: &Plan, socket: &WebSocket, watcher: &mut dyn Watcher) -> Result<Outcome, String> {
    let options = options(plan, socket)?;
    let mut group = Group::open(&options, options.connections)?;
    if options.deflate && !group.report.deflate {
        return Err("the server did not agree to permessage-deflate".into());
    }
    let before = Usage::now();
    let start = Instant::now();
    let end = start + options.duration;
    group.ask_all(start);
    let mut tally = Tally::new(plan.has_tls())?;
    if let Some(handshakes) = &mut tally.handshakes {
        group.report.handshakes.drain(..).for_each(|handshake| handshakes.count(handshake));
    }
    let mut progress = Progress::default();
    let mut next_tick = start + TICK;
    let mut goes_on = true;
    while goes_on && Instant::now() < end && group.is_waiting() {
        group.turn_until(end.min(Instant::now() + LOOK), Then::AskAgain)?;
        gather(&mut group, &mut tally);
        goes_on = watcher.goes_on();
        if Instant::now() >= next_tick {
            next_tick += TICK;
            progress = Progress::of(&progress, &tally, start.elapsed().as_nanos() as u64, group.count());
            goes_on &= watcher.tick(&progress);
        }
    }
    let ended = start.elapsed().as_nanos() as u64;
    let usage = Usage::now().since(before);
    tally.count(Count::Unanswered, group.count_waiting() as u64);
    if goes_on {
        group.turn_until(Instant::now() + PATIENCE, Then::Rest)?;
        group.report.latencies.clear();
        group.leave()?;
        gather(&mut group, &mut tally);
    }
    tally.count(Count::Sent, tally.answered() + tally.failed() + tally.counted(Count::Unanswered));
    Ok(Outcome::new(tally, vec![Done { usage, ended, samples: None }], !goes_on))
}

fn options(plan: &Plan, socket: &WebSocket) -> Result<Options, String> {
    let Some(target) = plan.targets.first() else { return Err("targets: expected one".into()) };
    let origin = find(target, plan)?;
    let Address::Tcp(address) = origin.address else {
        return Err("WebSockets over a unix socket are not in this version: use an address with a port".into());
    };
    let Some(seconds) = plan.bounds.seconds else {
        return Err("WebSockets are measured for a time, not for a number of messages: -z".into());
    };
    Ok(Options {
        address,
        host: target.host.clone(),
        tls: origin.tls,
        path: target.path.clone(),
        connections: plan.connections(),
        size: socket.size,
        duration: Duration::from_secs_f64(seconds),
        kind: if socket.binary { Kind::Binary } else { Kind::Text },
        deflate: socket.deflate,
    })
}

fn gather(group: &mut Group, tally: &mut Tally) {
    group.report.latencies.drain(..).for_each(|latency| tally.latencies.record(latency));
    for count in std::mem::take(&mut group.report.errors).into_values() {
        (0..count).for_each(|_| tally.fail(Failure::Echo));
    }
}

const TICK: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(50);
const PATIENCE: Duration = Duration::from_secs(5);
