//! Lines of the access log while they are being written.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
mod harness;
use harness::until;
use std::sync::atomic::{AtomicBool, Ordering};
use tricorn_io::AccessLog;

#[test]
fn a_line_added_while_others_are_written_does_not_wait_for_the_next_request() {
    let path = std::env::temp_dir().join(format!("tricorn-access-race-{}", std::process::id()));
    let log = AccessLog::open(path.to_str().expect("utf-8")).expect("a file");
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // As the monitor does: it writes when it is told that something waits, and only then.
        scope.spawn(|| {
            while !over.load(Ordering::SeqCst) {
                if log.has_pending() {
                    log.write_some();
                }
            }
        });
        let written = || std::fs::metadata(&path).map_or(0, |file| file.len());
        for round in 1..=5000u64 {
            log.add(|out| out.extend_from_slice(b"one\n"));
            log.add(|out| out.extend_from_slice(b"two\n"));
            if round % 10 == 0 {
                let done = harness::until_some(|| (written() == 8 * round).then_some(()));
                if done.is_none() {
                    over.store(true, Ordering::SeqCst);
                }
                assert!(done.is_some(), "round {round}: a line waits, and nobody is told");
            }
        }
        over.store(true, Ordering::SeqCst);
    });
    until("the file can go", || std::fs::remove_file(&path).is_ok());
}
