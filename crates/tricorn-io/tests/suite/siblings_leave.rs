//! Workers that drain, stop or die while requests wait: another worker serves those.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::group::*;
use harness::*;
use rustix::event::{EventfdFlags, Timespec, epoll, eventfd};
use std::os::fd::AsFd;

#[test]
fn requests_that_wait_in_a_worker_that_drains_go_to_the_other() {
    let workers = Workers::echo(plan(2));
    let mut clients: Vec<Client> = (0..8).map(|_| workers.connect(0)).collect();
    workers.block(0);
    workers.block(1);
    for (place, client) in clients.iter_mut().enumerate() {
        client.post(&format!("/{place}"), &noise(place * 1000));
        workers.until_waiting(place as u64 + 1);
    }
    workers.servers[0].engine.drain();
    workers.unblock(1);
    for (place, client) in clients.iter_mut().enumerate() {
        let answer = client.response().answer();
        assert_eq!((answer.worker, answer.path, answer.closes), (Some(1), format!("/{place}"), false));
        assert!(answer.body == noise(place * 1000));
    }
    // But for its own call; a sender lets go of a connection when another worker may have it already.
    workers.servers[0].until(Word::Connections, 1);
    workers.unblock(0);
    workers.servers[0].until_ended();
    assert_eq!(clients[3].get("/again").answer().worker, Some(1));
}

#[test]
fn a_connection_that_moves_keeps_the_count_of_its_requests() {
    let mut plan = plan(2);
    plan.config.connection_max_requests = 4;
    let workers = Workers::echo(plan);
    let mut client = workers.connect(0); // which asks once
    workers.block(1);
    for _ in 0..2 {
        let answer = client.get("/stays").answer();
        assert_eq!((answer.worker, answer.closes), (Some(0), false));
    }
    workers.block(0);
    client.ask("/moves");
    workers.until_waiting(1);
    workers.unblock(1);
    let answer = client.response().answer();
    assert_eq!((answer.worker, answer.closes), (Some(1), true));
    client.is_closed();
    workers.unblock(0);
}

#[test]
fn a_worker_that_drains_takes_nothing_while_a_sibling_serves() {
    let mut plan = plan(3);
    plan.config.threads = 2;
    let workers = Workers::echo(plan);
    let (mut client, mut own) = (workers.connect(1), workers.connect(0));
    // One thread is free: that of the worker that drains.
    for index in [0, 1, 1, 2, 2] {
        workers.block(index);
    }
    let before = workers.get(0, Word::TakenOver);
    workers.servers[0].engine.drain();
    client.ask("/waits");
    until("it is in the channel", || workers.in_channel() == 1);
    // The free thread goes through its loop; if it gets no processor for that its own request is passed on as well.
    own.ask("/own");
    until("one or the other", || own.has_something() || workers.in_channel() == 2);
    assert!(workers.in_channel() >= 1);
    workers.unblock(2);
    assert_eq!(client.response().answer().worker, Some(2));
    let answer = own.response().answer();
    assert!((answer.worker, answer.closes) == (Some(0), true) || answer.worker == Some(2), "{answer:?}");
    assert_eq!(workers.get(0, Word::TakenOver), before);
    workers.unblock_all();
    workers.servers[0].until_ended();
}

#[test]
fn the_last_worker_takes_what_is_left() {
    let workers = Workers::echo(plan(2));
    let mut clients = workers.four_that_wait();
    workers.servers[0].engine.drain();
    until("the rest goes on, too, for one still serves", || workers.in_channel() > 0);
    workers.servers[1].engine.drain();
    // The worker that comes first takes them; the other has nothing left to do.
    workers.unblock_all();
    for client in &mut clients {
        let answer = client.response().answer();
        assert!(answer.status == 200 && answer.closes);
    }
    workers.servers.iter().for_each(Server::until_ended);
    workers.until_waiting(0);
}

#[test]
fn a_worker_that_drains_alone_serves_its_own() {
    let workers = Workers::echo(plan(2));
    let mut clients: Vec<Client> = (0..4).map(|_| workers.connect(0)).collect();
    workers.block(0);
    workers.servers[1].engine.drain();
    workers.servers[1].until_ended();
    let before = workers.sum(Word::HandedOver);
    for client in &mut clients {
        client.ask("/");
    }
    workers.servers[0].until(Word::Queued, 4);
    workers.servers[0].engine.drain();
    workers.unblock(0);
    for client in &mut clients {
        assert_eq!(client.response().answer().worker, Some(0));
    }
    workers.servers[0].until_ended();
    assert_eq!(workers.sum(Word::HandedOver), before);
}

#[test]
fn what_a_worker_left_in_the_channel_is_taken_by_those_that_stay() {
    let workers = Workers::echo(plan(3));
    let mut clients: Vec<Client> = (0..3).map(|_| workers.connect(0)).collect();
    (0..3).for_each(|index| workers.block(index));
    for (place, client) in clients.iter_mut().enumerate() {
        client.ask("/");
        workers.until_waiting(place as u64 + 1);
    }
    until("all are in the channel", || workers.in_channel() == 3);
    // Who sent them ends; and one more, that could have taken them.
    for index in 0..2 {
        workers.servers[index].engine.stop();
        workers.unblock(index);
        workers.servers[index].until_ended();
        workers.servers[index].engine.close();
    }
    assert_eq!(workers.in_channel(), 3);
    workers.unblock(2);
    for client in &mut clients {
        assert_eq!(client.response().answer().worker, Some(2));
    }
}

#[test]
fn a_sibling_that_is_not_there_though_its_page_says_so_keeps_nobody_waiting() {
    let workers = Workers::echo(Plan { spare_pages: 1, ..plan(2) });
    let mut clients: Vec<Client> = (0..6).map(|_| workers.connect(0)).collect();
    // As a worker leaves its page that was killed while it was idle.
    workers.set_page(2, Word::State, SERVING);
    workers.set_page(2, Word::Free, 4);
    workers.set_shared(Shared::Pages, 3);
    workers.block(0);
    workers.block(1);
    for (place, client) in clients.iter_mut().enumerate() {
        client.ask(&format!("/{place}"));
        workers.until_waiting(place as u64 + 1);
    }
    workers.unblock(1);
    for (place, client) in clients.iter_mut().enumerate() {
        let answer = client.response().answer();
        assert_eq!((answer.path, answer.worker), (format!("/{place}"), Some(1)));
    }
    workers.unblock_all();
}

#[test]
fn a_message_whose_wake_up_was_lost_wakes_another() {
    // The other sleeps by then as a rule. If it does not it needs no waking, and that shows nothing.
    assert!((0..200).any(|_| a_wake_up_is_stolen()), "never");
}

/// Whether a thief, which does not take the message, was woken for it; it is taken in any case.
fn a_wake_up_is_stolen() -> bool {
    let workers = Workers::echo(plan(2));
    let mut client = workers.connect(0);
    // The thief is first in the row, for the second worker leaves the channel while it is busy for long.
    let thief = epoll::create(epoll::CreateFlags::CLOEXEC).expect("epoll");
    let enough = eventfd(0, EventfdFlags::CLOEXEC).expect("eventfd");
    let (channel, exclusive) =
        (workers.channel().receive.as_fd(), epoll::EventFlags::IN | epoll::EventFlags::EXCLUSIVE);
    epoll::add(&thief, channel, epoll::EventData::new_u64(0), exclusive).expect("a channel");
    epoll::add(&thief, &enough, epoll::EventData::new_u64(1), epoll::EventFlags::IN).expect("an eventfd");
    let (tell, thread) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let woken = scope.spawn(|| {
            tell.send(rustix::thread::gettid()).expect("the test waits");
            let mut events = Vec::with_capacity(1);
            let end = Timespec { tv_sec: DEADLINE.as_secs() as i64, tv_nsec: 0 };
            epoll::wait(&thief, rustix::buffer::spare_capacity(&mut events), Some(&end)).expect("a wait");
            events.iter().any(|event| event.data.u64() == 0)
        });
        let stat = format!("/proc/self/task/{}/stat", thread.recv().expect("a thread").as_raw_nonzero());
        until("it sleeps there", || std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") S ")));
        workers.block(1);
        workers.servers[1].until_at_least(Word::Rescues, 1);
        workers.unblock(1);
        workers.block(0);
        workers.servers[1].until(Word::Free, 1);
        let answer = client.get("/").answer();
        assert_eq!(answer.worker, Some(1));
        rustix::io::write(&enough, &1u64.to_ne_bytes()).expect("an eventfd");
        workers.unblock_all();
        woken.join().expect("no panic")
    })
}
