//! The channel when it is full, when its words are wrong, and when an app thread does not come for what it was shown.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::group::*;
use harness::*;
use std::sync::{Arc, Mutex};
use tricorn_io::Wake;

#[track_caller]
fn words_agree(workers: &Workers) {
    until("the words of the group agree", || workers.shared(Shared::Sent) == workers.shared(Shared::Taken));
}

#[test]
fn a_message_that_was_counted_but_never_sent_or_taken_but_never_counted_is_forgotten() {
    let workers = Workers::echo(plan(2));
    let mut client = workers.connect(0);
    workers.set_shared(Shared::Sent, 7);
    assert_eq!(client.get("/").answer().worker, Some(0));
    words_agree(&workers);
    // While all are busy, too, it takes the place of no other one.
    let mut clients: Vec<Client> = (0..4).map(|_| workers.connect(0)).collect();
    workers.block(0);
    workers.block(1);
    workers.set_shared(Shared::Sent, workers.shared(Shared::Sent) + 100);
    let before = workers.shared(Shared::Sent);
    for client in &mut clients {
        client.ask("/");
    }
    until("the front goes into the channel", || workers.shared(Shared::Sent) > before);
    workers.unblock_all();
    clients.iter_mut().for_each(|client| assert_eq!(client.response().answer().status, 200));
    assert_eq!(client.get("/").answer().status, 200);
    words_agree(&workers);
}

#[test]
fn a_message_that_was_sent_but_never_counted_is_taken() {
    let workers = Workers::echo(plan(2));
    let mut clients = workers.four_that_wait();
    workers.set_shared(Shared::Sent, workers.shared(Shared::Taken));
    workers.unblock(1);
    for client in &mut clients {
        assert_eq!(client.response().answer().worker, Some(1));
    }
    workers.unblock(0);
    let mut last = workers.connect(1);
    assert_eq!(last.get("/").answer().status, 200);
    words_agree(&workers);
}

#[test]
fn what_a_full_channel_does_not_take_waits_where_it_is() {
    let workers = Workers::echo(Plan { buffer: Some(1), spare_pages: 1, ..plan(2) });
    // There seems to be room for all, which would be sent at once.
    workers.set_page(2, Word::State, SERVING);
    workers.set_page(2, Word::Free, 100);
    workers.set_shared(Shared::Pages, 3);
    let mut clients: Vec<Client> = (0..20).map(|_| workers.connect(0)).collect();
    workers.block(0);
    workers.block(1);
    for (place, client) in clients.iter_mut().enumerate() {
        // The second is larger than any message that the channel takes.
        let body = if place == 1 { noise(20_000) } else { noise(100) };
        client.post(&format!("/{place}"), &body);
        workers.until_waiting(place as u64 + 1);
    }
    assert!(workers.get(0, Word::Queued) > 0, "the channel took everything");
    assert!(workers.in_channel() > 1, "the channel took nothing");
    workers.unblock(1);
    for (place, client) in clients.iter_mut().enumerate() {
        let answer = client.response().answer();
        assert_eq!((answer.path, answer.worker), (format!("/{place}"), Some(1)));
    }
    workers.unblock(0);
    words_agree(&workers);
}

#[test]
fn what_nobody_understands_is_dropped_and_told() {
    let workers = Workers::echo(plan(1));
    let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
    let parts = [rustix::io::IoSlice::new(b"nonsense")];
    workers.channel().post(&parts, &[std::os::fd::AsFd::as_fd(&writer)]).expect("room");
    drop(writer);
    // Its descriptor is closed.
    assert_eq!(rustix::io::read(&reader, &mut [0; 1]).expect("a pipe"), 0);
    until("a notice", || workers.servers[0].notices().iter().any(|notice| notice.text.contains("another worker")));
    assert_eq!(workers.connect(0).get("/").answer().worker, Some(0));
    words_agree(&workers);
}

#[test]
fn a_newcomer_whom_a_thread_was_shown_that_does_not_come_goes_to_a_sibling() {
    let workers = Workers::echo(Plan { by_hand: Some(0), ..plan(2) });
    let engine = &workers.servers[0].engine;
    let slot = engine.join(true).expect("a place");
    assert!(matches!(engine.next(slot, None), Wake::Nothing));
    let mut client = workers.servers[0].connect();
    client.ask("/newcomer");
    engine.wait(slot);
    // Here it would wait for the GIL.
    assert_eq!(client.response().answer().worker, Some(1));
    // It is back, and serves; if it gets a processor soon enough.
    let serves = (0..50).any(|_| {
        assert!(matches!(engine.next(slot, None), Wake::Nothing));
        let mut client = workers.servers[0].connect();
        client.ask("/own");
        engine.wait(slot);
        let Wake::Request(mut exchange) = engine.next(slot, None) else { return false };
        answer(engine, &mut exchange, b"0 /own\n");
        assert!(matches!(engine.next(slot, Some(exchange)), Wake::Nothing));
        client.response().answer().worker == Some(0)
    });
    assert!(serves, "never");
    engine.leave(slot, None);
}

#[test]
fn a_message_that_a_thread_was_shown_that_does_not_come_goes_to_a_sibling() {
    let workers = Workers::echo(Plan { by_hand: Some(0), ..plan(3) });
    let engine = &workers.servers[0].engine;
    let mut client = workers.connect(1);
    workers.block(1);
    workers.block(2);
    let slot = engine.join(true).expect("a place");
    assert!(matches!(engine.next(slot, None), Wake::Nothing));
    // Only this one is there to be woken.
    client.ask("/shown");
    engine.wait(slot);
    workers.unblock(2);
    assert_eq!(client.response().answer().worker, Some(2));
    assert!(matches!(engine.next(slot, None), Wake::Nothing));
    engine.leave(slot, None);
    workers.unblock_all();
}

#[test]
fn what_comes_by_the_channel_keeps_its_place_among_those_that_came_later() {
    let (workers, begun) = {
        let begun: Arc<Mutex<Vec<String>>> = Arc::default();
        let notes = begun.clone();
        let see = move |_, exchange: &mut tricorn_io::Exchange| notes.lock().expect("notes").push(path(exchange));
        (Workers::start(Plan { by_hand: Some(0), ..plan(3) }, see), begun)
    };
    let engine = &workers.servers[0].engine;
    let mut older = workers.connect(1);
    workers.block(1);
    workers.block(2);
    let slot = engine.join(true).expect("a place");
    assert!(matches!(engine.next(slot, None), Wake::Nothing));
    older.ask("/older");
    until("it is in the channel", || workers.in_channel() == 1);
    let mut newer = workers.servers[0].connect();
    newer.ask("/newer");
    // Both are shown to this thread, which does not come.
    engine.wait(slot);
    until("both wait", || workers.waiting() == 2 && workers.sum(Word::TakenOver) > 0);
    workers.unblock(2);
    assert_eq!(older.response().answer().worker, Some(2));
    assert_eq!(newer.response().answer().worker, Some(2));
    let begun = begun.lock().expect("notes").clone();
    assert_eq!(begun[begun.len() - 2..], ["/older", "/newer"]);
    assert!(matches!(engine.next(slot, None), Wake::Nothing));
    engine.leave(slot, None);
    workers.unblock_all();
}

#[test]
fn what_can_go_nowhere_comes_before_younger_ones_in_the_channel() {
    let workers = Workers::echo(Plan { by_hand: Some(0), ..plan(2) });
    let engine = &workers.servers[0].engine;
    workers.block(1);
    let (mut older, mut newer) = (workers.servers[0].connect(), workers.servers[0].connect());
    let slot = engine.join(true).expect("a place");
    assert!(matches!(engine.next(slot, None), Wake::Nothing));
    // A request with trailers stays. Both are shown to this thread, which does not come.
    older.send(b"POST /older HTTP/1.1\r\nHost: t\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX-Sum: 1\r\n\r\n");
    engine.wait(slot);
    workers.until_waiting(1);
    newer.ask("/newer");
    until("the newer one is in the channel", || workers.in_channel() == 1);
    let mut done = None;
    for wanted in ["/older", "/newer"] {
        let Wake::Request(mut exchange) = engine.next(slot, done.take()) else { panic!("{wanted} does not begin") };
        assert_eq!(path(&exchange), wanted);
        answer(engine, &mut exchange, b"");
        done = Some(exchange);
    }
    assert!(matches!(engine.next(slot, done), Wake::Nothing));
    engine.leave(slot, None);
    workers.unblock_all();
}

#[test]
fn a_nudge_that_nobody_took_hides_nobody_behind_it() {
    let config = tricorn_io::Config { queue_timeout: 300 * MILLI, ..plan(2).config };
    let workers = Workers::echo(Plan { config, ..plan(2) });
    let mut clients: Vec<Client> = (0..4).map(|place| workers.connect(place % 2)).collect();
    workers.block(0);
    workers.block(1);
    workers.channel().post(&[rustix::io::IoSlice::new(b"!")], &[]).expect("room");
    for (place, client) in clients.iter_mut().enumerate() {
        client.ask("/");
        workers.until_waiting(place as u64 + 1);
    }
    for client in &mut clients {
        assert_eq!(client.response().status, 503);
    }
    workers.unblock_all();
    for client in &mut clients {
        assert_eq!(client.get("/").answer().status, 200);
    }
}
