//! A request whose worker is busy is answered by a sibling that is not.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
mod harness;
use harness::group::*;
use harness::*;
use std::time::{Duration, Instant};

#[test]
fn a_kept_connection_whose_worker_is_busy_is_answered_by_the_idle_one_and_stays_there() {
    let workers = Workers::echo(plan(2));
    let mut client = workers.connect(0);
    workers.block(0);
    let begin = Instant::now();
    let answer = client.get("/next").answer();
    assert_eq!((answer.worker, answer.path.as_str()), (Some(1), "/next"));
    assert!(begin.elapsed() < Duration::from_secs(1), "not at once: {:?}", begin.elapsed());
    assert!(!answer.closes);
    assert_eq!((workers.get(0, Word::HandedOver), workers.get(0, Word::TakenOver)), (1, 0));
    assert_eq!((workers.get(1, Word::HandedOver), workers.get(1, Word::TakenOver)), (0, 1));
    assert_eq!((workers.get(0, Word::Connections), workers.get(1, Word::Connections)), (1, 1));
    workers.unblock();
    for _ in 0..3 {
        assert_eq!(client.get("/later").answer().worker, Some(1));
    }
    assert_eq!(workers.sum(Word::HandedOver), 1);
    assert_eq!((workers.shared(Shared::Sent), workers.shared(Shared::Taken)), (1, 1));
}
