//! Requests that go to a sibling, and those that come from one.
use super::Reactor;
use super::connections::has_left;
use crate::config::Failpoint;
use crate::exchange::id::RequestId;
use crate::one_queue::message::{HEADER, HandOverMessage, MESSAGE};
use crate::scoreboard::Word;
use crate::sys::channel::Channel;
use rustix::fd::AsFd;
use rustix::io;

/// What came of an attempt to hand a request over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Handed {
    Over,
    /// Nothing waits that may move.
    Nothing,
    /// The channel takes nothing now.
    Full,
}

/// What lies first in the channel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Front {
    /// Nothing, or a request that may go on waiting.
    Waits,
    /// A request that has waited too long, or whose client has left.
    Over,
    /// No request; it hides what is behind it.
    Nudge,
}

impl Reactor {
    /// Sends the request that would be served next into the channel: with its connection, or as a loan.
    pub fn hand_over(&mut self, channel: &Channel, most_hops: u64, sent: impl FnOnce()) -> Handed {
        let next = self.dispatch.find(|id| self.connections.may_move(id, most_hops));
        let Some(id) = next else { return Handed::Nothing };
        self.fail_here(Failpoint::BeforeSend);
        let Ok(near) = self.connections.post(id, channel.send.as_fd(), self.accepting.listeners()) else {
            return Handed::Full;
        };
        sent();
        self.fail_here(Failpoint::AfterSend);
        self.dispatch.remove(id);
        self.connections.depart(id, near);
        self.act_on_updates();
        // In this order a reader sees too few requests for a moment, but none twice.
        self.dispatch.publish();
        self.board.add(Word::HandedOver, 1);
        Handed::Over
    }

    /// Takes the first message of the channel; `None`: there is none. `taken` is called once there was one.
    pub fn take_over(&mut self, channel: &Channel, taken: impl Fn()) -> Option<RequestId> {
        if self.connections.is_crowded() && !(channel.holds_any() && self.has_room()) {
            return None;
        }
        loop {
            self.fail_here(Failpoint::BeforeTake);
            let mut message = self.connections.take_scratch(MESSAGE);
            let descriptors = channel.take(&mut message);
            let id = match descriptors {
                Ok(None) => {
                    self.connections.give_scratch(message);
                    return None;
                }
                Ok(Some(descriptors)) if descriptors.is_empty() => None, // a nudge
                Ok(Some(descriptors)) => {
                    taken();
                    self.fail_here(Failpoint::AfterTake);
                    self.connections.unpack(&message, descriptors, self.accepting.listeners())
                }
                Err(io::Errno::MFILE) => {
                    self.connections.give_scratch(message);
                    self.out_of_descriptors();
                    return None;
                }
                Err(error) => {
                    self.connections.give_scratch(message);
                    self.connections
                        .notice(true, || format!("tricorn: cannot receive a connection from another worker: {error}"));
                    return None;
                }
            };
            self.connections.give_scratch(message);
            if id.is_some() {
                self.fail_here(Failpoint::BeforeStart);
                return id;
            }
        }
    }

    /// What the first message of the channel is, which stays there.
    pub fn front(&self, channel: &Channel, now: u64) -> Front {
        let mut header = [0; HEADER];
        let Ok(Some((_, descriptor))) = channel.peek(&mut header) else { return Front::Waits };
        let Some(socket) = descriptor else { return Front::Nudge };
        // A message that cannot be decoded stays: the worker that takes it drops it.
        let Some(handed) = HandOverMessage::decode(&header) else { return Front::Waits };
        let limit = self.config.queue_timeout;
        let is_late = limit > 0 && now.saturating_sub(handed.waits_since) >= limit;
        if is_late || has_left(socket.as_fd(), handed.hangup, handed.complete, now) {
            Front::Over
        } else {
            Front::Waits
        }
    }

    /// Whether the request that is served next here has waited for longer than what lies first in the channel, and cannot go there. App
    /// threads take from the channel first: its turn would come when the channel is empty.
    pub fn comes_before(&self, channel: &Channel) -> bool {
        let is_bound = |id: &RequestId| !self.connections.may_move(*id, 1);
        if self.dispatch.find(|_| true).filter(is_bound).is_none() {
            return false;
        }
        let mut header = [0; HEADER];
        let Ok(Some((_, Some(_)))) = channel.peek(&mut header) else { return false };
        HandOverMessage::decode(&header).is_some_and(|first| first.complete > self.oldest())
    }

    #[inline]
    fn fail_here(&self, here: Failpoint) {
        if self.config.fault == Some(here) {
            let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
        }
    }
}
