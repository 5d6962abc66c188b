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
use crate::config::TELL;
use crate::exchange::lane::Descriptor;
use crate::exchange::overflow::{Store, Unstored};
use crate::exchange::patience::Patience;
use crate::exchange::room::Room;
use crate::exchange::{Exchange, Sent};
use crate::sys::poll::ready;
use rustix::event::PollFlags;
use std::sync::atomic::Ordering;

/// How long a client may take before a file is made for it: one that reads makes room in less.
const MOMENT: u64 = 5 * clock::MILLI;

/// A producer's wait for its client.
#[derive(Debug)]
pub struct Behind {
    patience: Patience,
    since: u64,
    /// No file takes more: only the client can make room.
    full: bool,
}

impl Engine {
    /// The exchange is over its mark ([`Sent::OverMark`]): how long its client may take, for [`Engine::room`].
    pub fn fall_behind(&self, exchange: &mut Exchange) -> Behind {
        let fresh = exchange.patience(self.config());
        let patience = exchange.lane.patience_since_file().unwrap_or(fresh);
        Behind { patience, since: clock::now(), full: false }
    }

    /// Sends what the socket takes, and puts the rest on disk if the client does not take enough for a moment. Without the GIL.
    pub fn room(&self, exchange: &mut Exchange, behind: &mut Behind) -> Room {
        let room = self.look_for_room(exchange, behind);
        self.tell_of_rest(exchange);
        room
    }

    fn look_for_room(&self, exchange: &mut Exchange, behind: &mut Behind) -> Room {
        let room = exchange.room(self.config(), &mut behind.patience);
        let Room::Wanted(nanos) = room else { return room };
        exchange.lane.share(&self.shared.responses.held);
        if !self.config().response_buffering || behind.full {
            return room;
        }
        let waited = clock::now().saturating_sub(behind.since);
        if waited < MOMENT && exchange.lane.in_file() == 0 {
            return Room::Wanted(nanos.min(MOMENT - waited));
        }
        if !self.shared.store(exchange) {
            behind.full = true;
            return room;
        }
        exchange.lane.resume(behind.patience);
        Room::Over(Sent::Accepted)
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
                    let Descriptor::Own(socket) = exchange.lane.descriptor();
                    ready(socket, PollFlags::OUT, nanos);
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
            shared.store(exchange);
        }
        exchange.lane.share(&shared.responses.held);
    }
}

impl Shared {
    /// Puts on disk what waits in memory, but for the first of it. Whether there was room.
    fn store(&self, exchange: &mut Exchange) -> bool {
        let store = Store {
            held: &self.responses.held,
            directory: self.config.upload_dir.as_deref(),
            each: self.config.response_disk_size,
            total: self.config.response_disk_total,
        };
        let outcome = exchange.lane.store(&store);
        if let Err(Unstored::Failed(error)) = &outcome {
            self.tell_of_disk(error);
        }
        outcome.is_ok()
    }

    #[cold]
    fn tell_of_disk(&self, error: &std::io::Error) {
        let (now, told) = (clock::now(), &self.responses.told);
        let before = told.load(Ordering::Relaxed);
        let is_due = before == 0 || now.saturating_sub(before) >= TELL;
        if !is_due || told.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed).is_err() {
            return;
        }
        let text = || {
            format!(
                "Cannot buffer a response on disk: {error}; the application waits for the client. Free disk space, \
                 or set tmp_upload_dir."
            )
        };
        self.baton.take().reactor.notice(true, text);
    }
}
