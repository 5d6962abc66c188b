//! An idle worker does nothing at all. (Alone in its process: it looks at threads by name.)
#![allow(clippy::expect_used, reason = "a test may panic")]
mod harness;
use harness::*;

/// Voluntary context switches of the threads with this name.
fn switches(name: &str) -> Option<u64> {
    let mut total = None;
    for task in std::fs::read_dir("/proc/self/task").ok()?.flatten() {
        let comm = std::fs::read_to_string(task.path().join("comm")).unwrap_or_default();
        if comm.trim_end() != name {
            continue;
        }
        let status = std::fs::read_to_string(task.path().join("status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        total = Some(total.unwrap_or(0) + line.trim().parse::<u64>().ok()?);
    }
    total
}

#[test]
fn the_monitor_sleeps_while_nothing_is_in_flight() {
    let server = Server::start(tricorn_io::Config { threads: 2, ..config() }, |engine, exchange| {
        answer(engine, exchange, b"");
    });
    let mut client = server.connect();
    for round in 0..3 {
        assert_eq!(client.get("/").status, 200);
        // It falls asleep: over half a second, five hundred ticks long, it does not look around.
        let quiet = until_some(|| {
            let before = (switches("tricorn-monitor")?, server.get(Word::Heartbeat));
            std::thread::sleep(std::time::Duration::from_millis(500)); // the period that is measured
            (before == (switches("tricorn-monitor")?, server.get(Word::Heartbeat))).then_some(())
        });
        assert!(quiet.is_some(), "round {round}: the monitor never slept through half a second");
    }
    // And wakes for a request that takes long.
    assert_eq!(client.get("/").status, 200);
}
