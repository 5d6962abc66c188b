//! A request whose worker is busy is answered by a sibling that is not.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::group::*;
use harness::*;

#[test]
fn a_kept_connection_whose_worker_is_busy_is_answered_by_the_idle_one_and_stays_there() {
    let workers = Workers::echo(plan(2));
    let mut client = workers.connect(0);
    workers.block(0);
    let answer = client.get("/next").answer();
    assert_eq!((answer.worker, answer.path.as_str()), (Some(1), "/next"), "the first one is still blocked");
    assert!(!answer.closes);
    workers.servers[0].until_at_least(Word::HandedOver, 1);
    assert!(workers.get(1, Word::TakenOver) >= 1);
    workers.servers[0].until(Word::Connections, 1);
    assert_eq!(workers.get(1, Word::Connections), 1);
    workers.unblock_all();
    for _ in 0..3 {
        assert_eq!(client.get("/later").answer().worker, Some(1));
    }
}

#[test]
fn nothing_is_handed_over_while_the_own_thread_is_free() {
    // A thread that the system does not let run for milliseconds is not free; but that is not always so.
    let given: Vec<u64> = (0..10).map(|_| hand_overs_of_fast_requests()).take_while(|given| *given > 0).collect();
    assert!(given.len() < 10 && given.iter().all(|given| *given < 100), "{given:?} of 10000");
}

/// One connection with each worker: a request can only come when the one before it was answered.
fn hand_overs_of_fast_requests() -> u64 {
    let workers = Workers::echo(plan(2));
    std::thread::scope(|scope| {
        for index in 0..2 {
            let mut client = workers.connect(index);
            scope.spawn(move || {
                for _ in 0..5_000 {
                    assert_eq!(client.get("/").answer().status, 200);
                }
            });
        }
    });
    assert!(workers.sum(Word::Requests) >= 10_000);
    if workers.sum(Word::TakenOver) == 0 {
        assert_eq!((workers.shared(Shared::Sent), workers.shared(Shared::Taken)), (0, 0));
    }
    workers.sum(Word::HandedOver)
}

#[test]
fn every_request_that_comes_meanwhile_goes_to_whoever_is_idle() {
    let workers = Workers::echo(plan(3));
    let mut clients: Vec<Client> = (0..10).map(|_| workers.connect(0)).collect();
    workers.block(0);
    workers.block(1);
    for client in &mut clients {
        assert_eq!(client.get("/").answer().worker, Some(2));
    }
    workers.unblock_all();
    workers.servers[0].until_at_least(Word::HandedOver, 10);
    assert!(workers.get(2, Word::TakenOver) >= 10);
}

#[test]
fn a_second_thread_of_the_own_worker_comes_before_a_sibling() {
    let mut plan = plan(2);
    plan.config.threads = 2;
    let workers = Workers::echo(plan);
    let mut clients: Vec<Client> = (0..2).map(|_| workers.connect(0)).collect();
    workers.block(0);
    drop(workers.connect(0)); // was served by the other thread
    workers.block(0);
    for client in &mut clients {
        assert_eq!(client.get("/").answer().worker, Some(1));
    }
    assert!(workers.sum(Word::TakenOver) >= 2);
    workers.unblock_all();
}

#[test]
fn a_newcomer_goes_to_the_worker_that_is_idle_without_being_handed_over() {
    let workers = Workers::echo(plan(2));
    workers.block(0);
    for _ in 0..50 {
        assert_eq!(workers.connect_to_all().get("/").answer().worker, Some(1));
    }
    // The busy one accepts only while the idle one has no processor.
    assert!(workers.sum(Word::HandedOver) < 25, "{}", workers.sum(Word::HandedOver));
    workers.unblock_all();
}

#[test]
fn without_a_channel_each_serves_its_own() {
    let workers = Workers::echo(Plan { hands_over: false, ..plan(2) });
    let mut client = workers.connect(0);
    workers.block(0);
    client.ask("/");
    workers.servers[0].until(Word::Queued, 1);
    let mut idle = workers.connect(1);
    assert_eq!(idle.get("/").answer().worker, Some(1));
    assert_eq!(workers.get(0, Word::Queued), 1);
    workers.unblock_all();
    assert_eq!(client.response().answer().worker, Some(0));
    assert_eq!(workers.sum(Word::HandedOver), 0);
}
