//! Every interleaving of workers that learn and look for sessions in one bucket: no name is ever led to another one's worker.
//!
//! The code is the product's, over loom's atomics.

#![allow(clippy::expect_used, reason = "a test may panic")]

mod atomics {
    pub use loom::sync::atomic::{AtomicU64, Ordering};
}

#[allow(dead_code, reason = "a model uses a part of it")]
#[path = "../src/scoreboard/session_places.rs"]
mod session_places;

use loom::sync::Arc;
use loom::thread;
use session_places::{Entry, Learned, Place, find, learn};

/// Sessions by their names, and the mailboxes of those that have them.
const ONE: (u64, u16) = (11, 1);
const TWO: (u64, u16) = (22, 2);

fn bucket(places: usize) -> Arc<Vec<Place>> {
    Arc::new((0..places).map(|_| Place::default()).collect())
}

fn entry(mailbox: u16, minute: u16) -> Entry {
    Entry { minute, mailbox, pid: u32::from(mailbox) * 100 }
}

fn is_there(entry: Entry) -> bool {
    entry.pid != 0 && entry.mailbox != u16::MAX
}

fn learned(bucket: &[Place], (name, mailbox): (u64, u16), minute: u16) -> Learned {
    learn(bucket, name, entry(mailbox, minute), is_there)
}

fn found(bucket: &[Place], name: u64) -> Option<u16> {
    find(bucket, name, 1, is_there).map(|entry| entry.mailbox)
}

/// Threads are interrupted up to three times each: more takes minutes.
fn model(run: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(3);
    builder.check(run);
}

fn leads_to_its_own(bucket: &[Place]) {
    for (name, mailbox) in [ONE, TWO] {
        assert!(found(bucket, name).is_none_or(|found| found == mailbox));
    }
}

#[test]
fn two_that_are_learned_at_once_are_both_there() {
    model(|| {
        let bucket = bucket(2);
        let other = thread::spawn({
            let bucket = bucket.clone();
            move || learned(&bucket, TWO, 0)
        });
        let one = learned(&bucket, ONE, 0);
        let two = other.join().expect("a thread that ends");
        assert_eq!([one, two], [Learned::New; 2]);
        assert_eq!([found(&bucket, ONE.0), found(&bucket, TWO.0)], [Some(ONE.1), Some(TWO.1)]);
    });
}

#[test]
fn whoever_looks_while_one_gives_way_to_another_is_led_to_neither_wrongly() {
    model(|| {
        let bucket = bucket(1);
        learned(&bucket, ONE, 0);
        let other = thread::spawn({
            let bucket = bucket.clone();
            move || learned(&bucket, TWO, 0)
        });
        leads_to_its_own(&bucket);
        assert_eq!(other.join().expect("a thread that ends"), Learned::InPlace);
        assert_eq!([found(&bucket, ONE.0), found(&bucket, TWO.0)], [None, Some(TWO.1)]);
    });
}

#[test]
fn one_that_is_used_while_it_gives_way_is_not_in_the_others_place() {
    model(|| {
        let bucket = bucket(1);
        // Both have the same worker and minute: their entries cannot be told apart.
        learned(&bucket, (ONE.0, TWO.1), 0);
        let other = thread::spawn({
            let bucket = bucket.clone();
            move || learned(&bucket, TWO, 0)
        });
        // It has begun anew in another worker.
        learned(&bucket, ONE, 0);
        other.join().expect("a thread that ends");
        leads_to_its_own(&bucket);
    });
}

#[test]
fn a_name_that_two_workers_learn_at_once_has_one_of_them() {
    model(|| {
        let bucket = bucket(2);
        let other = thread::spawn({
            let bucket = bucket.clone();
            move || {
                learned(&bucket, (ONE.0, 2), 0);
                found(&bucket, ONE.0)
            }
        });
        learned(&bucket, (ONE.0, 1), 0);
        let one = found(&bucket, ONE.0);
        let two = other.join().expect("a thread that ends");
        let last = found(&bucket, ONE.0);
        assert!(last.is_some());
        for found in [one, two, last].into_iter().flatten() {
            assert!([1, 2].contains(&found));
        }
    });
}

#[test]
fn one_that_is_used_is_always_found() {
    model(|| {
        let bucket = bucket(1);
        learned(&bucket, ONE, 0);
        let other = thread::spawn({
            let bucket = bucket.clone();
            move || learned(&bucket, ONE, 1)
        });
        assert_eq!(found(&bucket, ONE.0), Some(ONE.1));
        assert_eq!(other.join().expect("a thread that ends"), Learned::Known);
    });
}

#[test]
fn a_place_whose_writer_was_killed_is_taken_after_a_while() {
    model(|| {
        let bucket = bucket(1);
        bucket[0][1].store(5 << 48 | u64::from(u16::MAX) << 32 | 7, atomics::Ordering::SeqCst);
        assert_eq!(found(&bucket, 0), None);
        assert_eq!(learned(&bucket, ONE, 6), Learned::Not);
        assert_eq!((learned(&bucket, ONE, 7), found(&bucket, ONE.0)), (Learned::New, Some(ONE.1)));
    });
}
