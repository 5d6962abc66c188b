//! Responses whose clients are slow: kept here, so that the application's thread goes on (`response_buffering`).
//!
//! ```text
//!   the socket takes it ──▶ sent at once
//!   up to `response_buffer_size` ──▶ memory
//!   beyond it, and the client takes nothing for a moment ──▶ a temporary file, up to `response_disk_size`
//!   beyond that, or without room on disk ──▶ the application waits for its client (`room.rs`)
//! ```
//!
//! The order is that of the bytes; only what the socket does not take is kept. While the application runs, its pieces push
//! the rest out, and the monitor does in between (`turn.rs`); when it is done the reactor sends the rest. `write_timeout`
//! counts all the time: a client without progress is cut off at the next piece, or by the reactor, and its file is gone.
use super::Engine;
use super::shared::Shared;
use crate::clock;
use crate::exchange::opening::Opening;
use crate::exchange::outbox::SharedBytes;
use crate::exchange::overflow::{Full, Store};
use crate::exchange::patience::Patience;
use crate::exchange::room::Room;
use crate::exchange::{Exchange, Sent};
use crate::stream;
use crate::sys::poll::ready;
use rustix::event::PollFlags;
use rustix::fd::OwnedFd;
use std::path::PathBuf;
use std::time::Duration;
use tricorn_proto::response::HeadInputs;

/// How long a client may take before a file is made for it: one that reads makes room in less.
const MOMENT: u64 = 5 * clock::MILLI;

/// A producer's wait for its client.
#[derive(Debug)]
pub struct Behind {
    patience: Patience,
    since: u64,
    /// Bytes were given to the disk.
    stores: bool,
    /// No file takes more: only the client can make room.
    full: bool,
}

impl Engine {
    /// The exchange is over its mark ([`Sent::OverMark`]): how long its client may take, for [`Engine::room`].
    pub fn fall_behind(&self, exchange: &mut Exchange) -> Behind {
        let fresh = exchange.patience(self.config());
        let patience = exchange.lane.patience_since_file().unwrap_or(fresh);
        Behind { patience, since: clock::now(), stores: false, full: false }
    }

    /// Sends what the socket takes, and has the rest put on disk if the client does not take enough for a moment. Without the GIL; it
    /// waits for no disk, so that a hub's thread may call it.
    pub fn room(&self, exchange: &mut Exchange, behind: &mut Behind) -> Room {
        let room = self.look_for_room(exchange, behind).or_away(&mut exchange.lane, &self.shared.responses.disks);
        self.tell_of_rest(exchange);
        room
    }

    fn look_for_room(&self, exchange: &mut Exchange, behind: &mut Behind) -> Room {
        let room = exchange.room(self.config(), &mut behind.patience);
        let Room::Wanted(nanos) = room else {
            if behind.stores && room == Room::Over(Sent::Accepted) {
                exchange.lane.resume(behind.patience);
            }
            return room;
        };
        exchange.lane.share(&self.shared.responses.held);
        behind.full |= exchange.lane.take_store_failure();
        if !self.config().response_buffering || behind.full {
            return room;
        }
        let waited = clock::now().saturating_sub(behind.since);
        if waited < MOMENT && !exchange.lane.is_on_disk() {
            return Room::Wanted(nanos.min(MOMENT - waited));
        }
        match self.shared.store(exchange) {
            Ok(begun) => behind.stores |= begun,
            Err(Full) => behind.full = true,
        }
        Room::Wanted(nanos.min(MOMENT))
    }

    /// Blocks until there is room for the next piece, in memory, on disk or with the client. Without the GIL.
    ///
    /// The time is the client's: `timeout` does not count it.
    pub fn make_room(&self, exchange: &mut Exchange) -> Sent {
        let slot = &self.shared.waiting.slots[exchange.slot];
        slot.progress.waits_for_client(slot.calls());
        let mut behind = self.fall_behind(exchange);
        let sent = loop {
            match self.room(exchange, &mut behind) {
                Room::Wanted(nanos) => {
                    wait_for_room(exchange, nanos);
                }
                Room::Away(nanos) => {
                    if let Some(alarm) = exchange.lane.await_job() {
                        ready(alarm.as_fd(), PollFlags::IN, nanos);
                    }
                }
                Room::Over(sent) => break sent,
            }
        };
        slot.progress.client_is_back(clock::now());
        sent
    }

    /// The application is done and its client is behind: what is left stays in memory if all responses together may have as
    /// much, else it goes to disk. Without the GIL.
    pub fn keep_rest(&self, exchange: &mut Exchange) {
        let shared = &*self.shared;
        let total = shared.responses.held.memory() + exchange.lane.in_memory() as u64;
        if shared.config.response_buffering && total > shared.config.response_buffer_total as u64 {
            // Without room on disk it stays where it is.
            let _ = shared.store(exchange);
        }
        exchange.lane.share(&shared.responses.held);
    }

    /// Has a file opened that is to be sent. The exchange, if it is attended, is told by [`crate::Readiness`]`::writable` when that is done.
    pub fn open_file(&self, exchange: &Exchange, path: PathBuf) -> Opening {
        Opening::begin(&self.shared.responses.disks, exchange.lane.id().connection(), path)
    }

    /// After a switch of protocols: sends bytes as they are. What the client does not take at once, and is below the mark, the monitor
    /// sends.
    pub fn write_raw(&self, exchange: &mut Exchange, bytes: &[u8], keep: impl FnOnce() -> SharedBytes) -> Sent {
        let sent = exchange.write_raw(bytes, keep);
        if sent == Sent::Accepted {
            exchange.lane.leave_rest();
            self.tell_of_rest(exchange);
        }
        sent
    }

    /// Sends a part of a file by the kernel: an offset, and a length. The caller waits for no disk. `is_last`: the reply ends with it, so
    /// that the reactor sees to what waits; else the monitor does.
    pub fn write_file(
        &self,
        exchange: &mut Exchange,
        inputs: &HeadInputs<'_>,
        file: OwnedFd,
        part: (u64, u64),
        is_last: IsLast,
    ) -> Sent {
        let disks = &self.shared.responses.disks;
        let mut file = file;
        if is_last == IsLast::Yes && exchange.may_answer_file(inputs) {
            match exchange.answer_own_file(disks, inputs, (file, part.0, part.1), clock::wall_seconds()) {
                Ok(()) => return if exchange.is_gone() { Sent::Gone } else { Sent::Accepted },
                Err(back) => file = back,
            }
        }
        let sent = exchange.write_file(disks, inputs, file, part.0, part.1);
        if is_last == IsLast::No {
            exchange.lane.leave_rest();
            self.tell_of_rest(exchange);
        }
        sent
    }
}

/// Blocks until more can be sent, for so many nanoseconds at most.
fn wait_for_room(exchange: &Exchange, nanos: u64) {
    match exchange.lane.room() {
        Ok(stream::Room::Socket(socket)) => ready(socket, PollFlags::OUT, nanos),
        Ok(stream::Room::Alarm(alarm)) => ready(alarm.as_fd(), PollFlags::IN, nanos),
        // Without a descriptor it is looked at again now and then.
        Err(_) => {
            std::thread::sleep(Duration::from_nanos(nanos.min(MOMENT)));
            PollFlags::empty()
        }
    };
}

/// Whether a reply ends with a piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsLast {
    Yes,
    No,
}

impl Shared {
    /// Has what waits in memory put on disk, but for the first of it. Whether there is anything to be put there.
    fn store(&self, exchange: &mut Exchange) -> Result<bool, Full> {
        let store = Store {
            token: exchange.lane.id().connection(),
            directory: self.config.upload_dir.clone(),
            each: self.config.response_disk_size,
            total: self.config.response_disk_total,
        };
        exchange.lane.store(&self.responses.disks, &self.responses.held, &store)
    }
}
