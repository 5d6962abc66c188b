//! Single requests: what became of each, for reports that no histogram can give.
use serde::Serialize;

use crate::client::Task;
use crate::failure::Failure;
use crate::notes::Notes;

/// Columns, a row for each request that came to its end; seconds from when the counting began.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Samples {
    /// When the request was to be sent.
    pub due: Vec<f64>,
    /// When a client took it.
    pub begun: Vec<f64>,
    /// When the client's connection was there. It is `begun` where the connection was kept from the last request.
    pub connected: Vec<f64>,
    /// When all of the request was sent. It is `done` where that never happened; so is `first`.
    pub written: Vec<f64>,
    /// When the first bytes of the answer came.
    pub first: Vec<f64>,
    /// When the answer was complete, or the request failed.
    pub done: Vec<f64>,
    /// The status, or why there is none.
    pub ended: Vec<Ended>,
    /// The request was due while all connections were busy.
    pub held: Vec<bool>,
    /// The beginning of the body.
    pub body: Vec<String>,
    /// Requests of which nothing is kept, since there is no room for more.
    pub left_out: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Ended {
    Answered(u16),
    Failed(&'static str),
}

/// The samples of a thread.
pub struct Recorder {
    samples: Samples,
    /// Nanoseconds from the start of the run.
    counted: u64,
    most: usize,
}

impl Recorder {
    pub fn new(counted: u64, most: usize) -> Recorder {
        Recorder { samples: Samples::default(), counted, most }
    }

    pub fn record(&mut self, task: Task, notes: &Notes, ended: Result<u16, Failure>, done: u64) {
        if self.samples.due.len() >= self.most {
            self.samples.left_out += 1;
            return;
        }
        let Task { due, begun, is_held, .. } = task;
        let seconds = |moment: u64| (moment as f64 - self.counted as f64) / 1e9;
        let or = |moment: u64, other: u64| seconds(if moment > 0 { moment } else { other });
        let it = &mut self.samples;
        it.due.push(seconds(due));
        it.begun.push(seconds(begun));
        it.connected.push(or(notes.connected, begun));
        it.written.push(or(notes.written, done));
        it.first.push(or(notes.first, done));
        it.done.push(seconds(done));
        it.ended.push(ended.map_or_else(|failure| Ended::Failed(failure.name()), Ended::Answered));
        it.held.push(is_held);
        it.body.push(notes.beginning());
    }

    pub fn into_samples(self) -> Samples {
        self.samples
    }
}

impl Samples {
    pub fn add(&mut self, mut other: Samples) {
        self.due.append(&mut other.due);
        self.begun.append(&mut other.begun);
        self.connected.append(&mut other.connected);
        self.written.append(&mut other.written);
        self.first.append(&mut other.first);
        self.done.append(&mut other.done);
        self.ended.append(&mut other.ended);
        self.held.append(&mut other.held);
        self.body.append(&mut other.body);
        self.left_out += other.left_out;
    }
}
