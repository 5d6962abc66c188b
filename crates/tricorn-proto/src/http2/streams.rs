//! The streams of a connection: those whose calls run, and the memory of those that are over.
use super::flow::{ReceiveWindow, SendWindow};
use super::priority::{Candidate, Priority};
use super::reading::Reading;
use super::state::{Event, State, Transition, next};
use std::collections::VecDeque;

/// A request, from its head to the end of its call.
#[derive(Debug)]
pub(super) struct Stream {
    pub id: u32,
    pub state: State,
    pub send: SendWindow,
    pub receive: ReceiveWindow,
    /// Bytes of content that its Content-Length still promises.
    pub promised: Option<u64>,
    pub priority: Priority,
    /// The head of the final response was sent.
    pub has_head: bool,
    /// It has something to send.
    pub wants: bool,
    pub reading: Reading,
}

impl Stream {
    /// Lets the state follow an event.
    pub fn advance(&mut self, event: Event) -> Transition {
        let transition = next(self.state, event);
        if let Transition::To(state) = transition {
            self.state = state;
        }
        transition
    }

    /// Whether its response is complete.
    pub fn has_ended(&self) -> bool {
        matches!(self.state, State::HalfClosedLocal | State::Closed)
    }

    /// Whether either side has reset it.
    pub fn is_reset(&self) -> bool {
        matches!(self.state, State::ResetByPeer | State::ResetByServer)
    }

    /// Counts content against the Content-Length; `false` if they differ.
    pub fn count_content(&mut self, length: usize, end: bool) -> bool {
        let Some(promised) = self.promised else { return true };
        match promised.checked_sub(length as u64) {
            Some(left) => {
                self.promised = Some(left);
                !end || left == 0
            }
            None => false,
        }
    }
}

/// How a stream that is over has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Past {
    Ended,
    ResetByPeer,
    /// Frames of the peer may still be under way.
    ResetByServer,
}

/// Where a stream stands that a frame names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whereabouts {
    Idle,
    Live,
    Past(Past),
    /// Over for long, or never begun though a later one has.
    Forgotten,
}

#[derive(Debug, Default)]
pub(super) struct Streams {
    /// In the order of their identifiers, which only rise.
    live: Vec<Stream>,
    past: VecDeque<(u32, Past)>,
    /// The last one that the peer has begun.
    highest: u32,
}

impl Streams {
    pub fn whereabouts(&self, id: u32) -> Whereabouts {
        if self.place(id).is_some() {
            return Whereabouts::Live;
        }
        // RFC 9113 section 5.1.1: clients use odd identifiers; an even one is idle for ever.
        if id > self.highest || id.is_multiple_of(2) {
            return Whereabouts::Idle;
        }
        let past = self.past.iter().rev().find(|(held, _)| *held == id);
        past.map_or(Whereabouts::Forgotten, |(_, past)| Whereabouts::Past(*past))
    }

    pub fn get(&self, id: u32) -> Option<&Stream> {
        self.place(id).and_then(|place| self.live.get(place))
    }

    pub fn get_mut(&mut self, id: u32) -> Option<&mut Stream> {
        self.place(id).and_then(|place| self.live.get_mut(place))
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.live.iter_mut()
    }

    /// Notes that the peer has begun a stream, whatever becomes of it.
    pub fn begin_at(&mut self, id: u32) {
        self.highest = self.highest.max(id);
    }

    pub fn insert(&mut self, stream: Stream) {
        self.live.push(stream);
    }

    pub fn remove(&mut self, id: u32) -> Option<Stream> {
        let stream = self.live.remove(self.place(id)?);
        self.remember(
            id,
            match stream.state {
                State::ResetByPeer => Past::ResetByPeer,
                State::Closed => Past::Ended,
                _ => Past::ResetByServer,
            },
        );
        if self.live.is_empty() && self.live.capacity() > KEPT {
            self.live = Vec::new();
        }
        Some(stream)
    }

    /// Remembers how a stream has ended.
    pub fn remember(&mut self, id: u32, past: Past) {
        if self.past.len() == MAX_PAST {
            self.past.pop_front();
        }
        self.past.push_back((id, past));
    }

    pub fn highest(&self) -> u32 {
        self.highest
    }

    pub fn len(&self) -> usize {
        self.live.len()
    }

    /// Whether the peer has as many streams as it may have at a time.
    ///
    /// RFC 9113 section 5.1.2: those count that are open or half-closed. A stream that is complete on both sides is closed for the peer,
    /// which may begin another one before we learn that the call is over. As many calls again may run on behind their
    /// responses. Calls of streams that were reset count (CVE-2023-44487).
    pub fn is_full(&self, most: usize) -> bool {
        let is_current = |stream: &&Stream| stream.state != State::Closed;
        self.live.len() >= most
            && (self.live.len() >= most.saturating_mul(2) || self.live.iter().filter(is_current).count() >= most)
    }

    /// Those that could send a frame of DATA now.
    pub fn candidates(&self) -> impl Iterator<Item = Candidate> {
        let ready =
            |stream: &&Stream| stream.wants && stream.has_head && stream.state.is_sending() && stream.send.room() > 0;
        self.live.iter().filter(ready).map(|stream| Candidate { stream: stream.id, priority: stream.priority })
    }

    fn place(&self, id: u32) -> Option<usize> {
        self.live.binary_search_by_key(&id, |stream| stream.id).ok()
    }
}

/// As many are remembered as there may be at a time by default.
const MAX_PAST: usize = 100;
/// Room for this many stays with an idle connection.
const KEPT: usize = 4;
