//! An echo server in a closed loop: each connection sends its next message when the echo of the last one came.
use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::poller::{Events, Poller};
use crate::websocket::connection::{Connection, Seen, Shared};
use crate::websocket::handshake::{self, PATIENCE};
use crate::websocket::messages;
use crate::websocket::options::Options;
use crate::websocket::report::Report;

/// What a connection does that has had its echo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Then {
    AskAgain,
    Rest,
}

/// Connections, by number; `None`: it is gone.
pub struct Group {
    pub connections: Vec<Option<Connection>>,
    pub poller: Poller,
    events: Events,
    pub report: Report,
    shared: Shared,
    /// How many wait for an echo.
    waiting: usize,
}

impl Group {
    pub fn open(options: &Options, count: usize) -> Result<Group, String> {
        let poller = Poller::new()?;
        let mut report = Report::default();
        let mut connections = Vec::with_capacity(count);
        let mut messages: Option<Rc<[messages::Message]>> = None;
        for number in 0..count {
            let mut opened =
                handshake::open(options).map_err(|reason| format!("connection {}: {reason}", number + 1))?;
            opened.wire.watch(&poller, number, true)?;
            report.handshakes.extend(opened.wire.take_handshake());
            let messages = match &messages {
                Some(messages) => Rc::clone(messages),
                None => {
                    report.deflate = opened.deflate.is_some();
                    let made = messages::make(options.size, options.kind, opened.deflate.as_ref())?;
                    Rc::clone(messages.insert(made.into()))
                }
            };
            connections.push(Some(Connection::new(opened, messages, options.kind, number)));
        }
        Ok(Group { connections, poller, events: Events::default(), report, shared: Shared::new(), waiting: 0 })
    }

    pub fn count(&self) -> usize {
        self.connections.iter().flatten().count()
    }

    pub fn is_waiting(&self) -> bool {
        self.waiting > 0
    }

    pub fn count_waiting(&self) -> usize {
        self.waiting
    }

    pub fn ask_all(&mut self, now: Instant) {
        for number in 0..self.connections.len() {
            self.ask(number, now);
        }
    }

    fn ask(&mut self, number: usize, now: Instant) {
        let Some(connection) = &mut self.connections[number] else { return };
        self.waiting += 1;
        let asked = connection.ask(now);
        self.settle(number, true, asked.map(|()| Seen::Nothing), now, Then::Rest);
    }

    /// Until then, or until none waits any more.
    pub fn turn_until(&mut self, end: Instant, then: Then) -> Result<(), String> {
        while self.is_waiting() {
            let now = Instant::now();
            if now >= end {
                if then == Then::Rest {
                    self.report.note(format!("no echo within {} s", PATIENCE.as_secs()));
                }
                return Ok(());
            }
            self.wait(Some(end - now), |group, number| group.look(number, then))?;
        }
        Ok(())
    }

    /// Waits once, and does `work` for each that something happened to.
    pub fn wait(&mut self, timeout: Option<Duration>, mut work: impl FnMut(&mut Group, usize)) -> Result<(), String> {
        let mut events = std::mem::take(&mut self.events);
        let waited = self.poller.wait(&mut events, timeout);
        events.tokens().for_each(|number| work(self, number));
        self.events = events;
        waited
    }

    pub fn look(&mut self, number: usize, then: Then) {
        let Some(Some(connection)) = self.connections.get_mut(number) else { return };
        let (was_waiting, was_flushed) = (connection.is_waiting(), connection.is_flushed());
        let mut seen = connection.look(&mut self.shared);
        if !connection.is_flushed()
            && let Err(error) = connection.flush()
        {
            seen = Err(error);
        }
        if !was_flushed && connection.is_flushed() {
            let changed = connection.wire.watch(&self.poller, number, true);
            seen = changed.and(seen);
        }
        self.settle(number, was_waiting, seen, Instant::now(), then);
    }

    /// What a look, or a message sent, came to.
    fn settle(&mut self, number: usize, was_waiting: bool, seen: Result<Seen, String>, now: Instant, then: Then) {
        let Some(connection) = &mut self.connections[number] else { return };
        match seen {
            Ok(Seen::Nothing) if connection.is_flushed() => {}
            Ok(Seen::Nothing) => {
                if let Err(error) = connection.wire.watch(&self.poller, number, false) {
                    self.report.note(error);
                }
            }
            Ok(Seen::Echo) => {
                self.report.latencies.push((now - connection.asked_at).as_nanos() as u64);
                self.waiting -= 1;
                if then == Then::AskAgain {
                    self.ask(number, now);
                }
            }
            Ok(Seen::Closed) => self.forget(number),
            Err(error) => {
                self.waiting -= usize::from(was_waiting);
                self.report.note(error);
                self.forget(number);
            }
        }
    }

    /// Says goodbye on all connections and waits for the answers.
    pub fn leave(&mut self) -> Result<(), String> {
        let end = Instant::now() + PATIENCE;
        for number in 0..self.connections.len() {
            let Some(connection) = &mut self.connections[number] else { continue };
            let left = connection.leave();
            self.settle(number, false, left.map(|()| Seen::Nothing), end, Then::Rest);
        }
        while self.count() > 0 {
            let left = end.saturating_duration_since(Instant::now());
            if left == Duration::ZERO {
                self.report.note(format!("no close frame within {} s", PATIENCE.as_secs()));
                break;
            }
            self.wait(Some(left), |group, number| group.look(number, Then::Rest))?;
        }
        Ok(())
    }

    fn forget(&mut self, number: usize) {
        if let Some(connection) = self.connections[number].take() {
            self.poller.remove(&connection.wire);
        }
    }
}
