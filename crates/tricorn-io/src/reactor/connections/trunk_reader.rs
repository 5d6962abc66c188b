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

/// How a trunk stands that has one stream less.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Released {
    /// It has no other: it is idle, or over.
    Idle,
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
        let Standing { streams, waits, .. } = self.trunk.standing();
        match streams {
            0 => Released::Idle,
            _ if waits && !std::mem::replace(&mut self.is_held, true) => Released::Unsent,
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

    /// When it is to be looked at. `idle` and `write`: how long it may be without a stream, and the client without taking anything.
    pub fn deadline(&mut self, idle: u64, write: u64, now: u64) -> u64 {
        let Standing { streams, waits, acknowledged, deadline, .. } = self.trunk.standing();
        if streams > 0 {
            self.active = now;
        }
        if !waits || acknowledged > self.mark.0 {
            self.mark = (acknowledged, now);
        }
        let session = deadline.map(|millis| millis.saturating_mul(MILLI));
        let idle = (streams == 0 && !self.is_draining).then(|| self.active.saturating_add(idle));
        let write = waits.then(|| self.mark.1.saturating_add(write));
        let never = now.saturating_add(LONGEST);
        [session, idle, write].into_iter().flatten().min().unwrap_or(never)
    }

    /// Something was read.
    pub fn note_activity(&mut self, now: u64) {
        self.active = now;
    }

    /// Whether it is without a stream for too long, and whether the client takes nothing.
    pub fn overdue(&self, idle: u64, write: u64, now: u64) -> (bool, bool) {
        let Standing { streams, waits, acknowledged, .. } = self.trunk.standing();
        let is_stuck = waits && acknowledged <= self.mark.0 && now >= self.mark.1.saturating_add(write);
        (streams == 0 && now >= self.active.saturating_add(idle), is_stuck)
    }
}

/// Without a deadline it is looked at that often.
const LONGEST: u64 = 3600 * crate::clock::SECOND;
