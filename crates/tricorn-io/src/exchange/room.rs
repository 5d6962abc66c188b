//! A producer that is too far ahead of its client waits: its thread does, or a caller that may not block waits in a way of its own.
use super::lane::Lane;
use super::link::Loss;
use super::output::{Disks, Lent};
use super::patience::Patience;
use super::{Exchange, Sent};
use crate::clock;
use crate::config::Config;
use std::sync::Arc;

/// Whether there is room for the next piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Room {
    /// The socket should take bytes within so many nanoseconds.
    Wanted(u64),
    /// A job is at what is sent next; the client has so many nanoseconds.
    Away(u64),
    Over(Sent),
}

impl Lane {
    /// Sends what the socket takes; there is room when no more than `level` bytes are left.
    fn room_at(&mut self, level: usize, config: &Config, patience: &mut Patience) -> Room {
        let (sent, so_far) = self.flush_to(level);
        if sent != Sent::OverMark {
            return Room::Over(sent);
        }
        let now = clock::now();
        if self.output.is_away() {
            patience.renew(config, now); // a disk is waited for
        }
        match patience.left(config, so_far, now) {
            Some(nanos) => Room::Wanted(nanos),
            None => Room::Over(self.lose(Loss::TimedOut)),
        }
    }
}

impl Room {
    /// What lies in a file is sent by a job, which is begun here.
    pub(crate) fn or_away(self, lane: &mut Lane, disks: &Arc<Disks>) -> Room {
        match self {
            Room::Wanted(nanos) if lane.lend(disks) == Lent::Out => Room::Away(nanos),
            room => room,
        }
    }
}

impl Exchange {
    /// How long the client may take from now on. A caller that does not block asks [`Exchange::room`] with it, and waits until
    /// the socket takes bytes, until that is over.
    pub fn patience(&mut self, config: &Config) -> Patience {
        let late = if config.request_timeout > 0 { self.timing.started + config.request_timeout } else { u64::MAX };
        Patience::begin(config, self.lane.queued_sent(), late, clock::now())
    }

    /// Sends what the socket takes; then there is room, or no hope, or so long to be waited.
    pub fn room(&mut self, config: &Config, patience: &mut Patience) -> Room {
        self.lane.room_at(self.lane.low(), config, patience)
    }

    /// The same; there is room when all is sent.
    pub(crate) fn room_for_all(&mut self, config: &Config, patience: &mut Patience) -> Room {
        self.lane.room_at(0, config, patience)
    }
}
