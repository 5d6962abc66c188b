//! A trunk as the reactor has it: bytes of a frame that is not complete, and since when it does nothing.
use crate::clock::MILLI;
use crate::http2::{Standing, Trunk};
use crate::sys::poll::Token;
use std::sync::Arc;
use tricorn_proto::http2::Request;

/// Memory for what is read of all trunks, one after another.
#[derive(Debug, Default)]
pub(super) struct Frames {
    pub input: Vec<u8>,
    pub request: Request,
    pub ready: Vec<Token>,
}

/// Until when a trunk may go on as it stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Limits {
    session: Option<u64>,
    /// Of a trunk with streams it is the earliest moment: their end moves it, and is not looked at for that.
    idle: Option<u64>,
    write: Option<u64>,
}

impl Limits {
    /// When it is to be looked at.
    pub fn next(&self, now: u64) -> u64 {
        let never = now.saturating_add(LONGEST);
        [self.session, self.idle, self.write].into_iter().flatten().min().unwrap_or(never)
    }

    /// It is without a stream for too long.
    pub fn is_idle(&self, now: u64) -> bool {
        self.idle.is_some_and(|idle| now >= idle)
    }

    /// The client takes nothing.
    pub fn is_stuck(&self, now: u64) -> bool {
        self.write.is_some_and(|write| now >= write)
    }
}

/// How a trunk stands that has one stream less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Released {
    /// It has no other, and is over or has something to send: it is to be looked at.
    Last,
    /// It is to be flushed with others.
    Unsent,
    /// There is nothing to be sent, or it is known that there is.
    Sent,
}

#[derive(Debug)]
pub(super) struct TrunkReader {
    trunk: Arc<Trunk>,
    /// A frame that is not complete.
    rest: Vec<u8>,
    requests: u32,
    /// It is among those whose answers are held back (`held.rs`).
    is_held: bool,
    /// The client was told to begin no more streams.
    is_draining: bool,
    /// When it was last seen with a stream, or a frame came.
    active: u64,
    /// Bytes that the client had acknowledged, and when it was seen that they are more.
    mark: (u64, u64),
}

impl TrunkReader {
    /// `first`: bytes that were read.
    pub fn new(trunk: Trunk, first: Vec<u8>, now: u64) -> TrunkReader {
        let trunk = Arc::new(trunk);
        TrunkReader { trunk, rest: first, requests: 0, is_held: false, is_draining: false, active: now, mark: (0, now) }
    }

    pub fn trunk(&self) -> &Arc<Trunk> {
        &self.trunk
    }

    /// What was read before, in the memory for all.
    pub fn take_input(&mut self, mut input: Vec<u8>) -> Vec<u8> {
        input.clear();
        input.extend_from_slice(&self.rest);
        self.rest = Vec::new();
        input
    }

    /// Keeps what is no complete frame. The memory for all.
    pub fn put_input(&mut self, input: Vec<u8>) -> Vec<u8> {
        if !input.is_empty() {
            self.rest = input.as_slice().to_vec();
        }
        input
    }

    /// A stream is over.
    pub fn release(&mut self, id: u32, now: u64) -> Released {
        self.active = now;
        self.trunk.release(id);
        let Standing { streams, waits, is_over, .. } = self.trunk.standing();
        match streams {
            0 if waits || is_over => Released::Last,
            1.. if waits && !std::mem::replace(&mut self.is_held, true) => Released::Unsent,
            _ => Released::Sent,
        }
    }

    /// What was held back is sent now.
    pub fn unhold(&mut self) -> &Arc<Trunk> {
        self.is_held = false;
        &self.trunk
    }

    /// One more request: which one it is.
    pub fn count_request(&mut self) -> u32 {
        self.requests += 1;
        self.requests - 1
    }

    /// Whether it is new that the client is told to begin no more streams.
    pub fn begin_drain(&mut self) -> bool {
        !std::mem::replace(&mut self.is_draining, true)
    }

    /// Until when it may go on as it stands. `idle` and `write`: how long it may be without a stream, and the client without taking
    /// anything.
    pub fn limits(&mut self, standing: &Standing, idle: u64, write: u64, now: u64) -> Limits {
        if standing.streams > 0 {
            self.active = now;
        }
        if !standing.waits || standing.acknowledged > self.mark.0 {
            self.mark = (standing.acknowledged, now);
        }
        Limits {
            session: standing.deadline.map(|millis| millis.saturating_mul(MILLI)),
            idle: (!self.is_draining).then(|| self.active.saturating_add(idle)),
            write: standing.waits.then(|| self.mark.1.saturating_add(write)),
        }
    }

    /// Something was read.
    pub fn note_activity(&mut self, now: u64) {
        self.active = now;
    }
}

/// Without a deadline it is looked at that often.
const LONGEST: u64 = 3600 * crate::clock::SECOND;
