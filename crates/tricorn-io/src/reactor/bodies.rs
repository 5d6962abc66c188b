//! What request bodies take of a worker's memory and of the disk, and the way from the one to the other.
use super::spooler::{NoThread, Piece, Spooler, Written};
use crate::clock;
use crate::config::{self, Config, Received};
use crate::disk::Pool;
use crate::exchange::body::{Body, NoMemory, Pending, Spool};
use crate::exchange::buffers::Request;
use crate::exchange::id::RequestId;
use crate::one_queue::siblings::Pages;
use crate::scoreboard::{Scoreboard, Word};
use crate::stream::Stream;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::sync::Arc;
use tricorn_proto::message::{Refusal, RefusalKind};

/// Vectors kept for the next pieces.
const SPARE: usize = 8;

/// Counts what bodies take, and moves them to disk.
pub struct Bodies {
    config: Arc<Config>,
    board: Scoreboard,
    /// Of all workers, ours among them; `None`: there are no others.
    pages: Option<Pages>,
    /// Bytes in memory, those on their way to the disk included.
    held: usize,
    /// Those on their way: pending or with the writer.
    leaving: usize,
    /// Bytes on disk and on their way there.
    on_disk: u64,
    spooler: Spooler,
    /// Requests whose bodies are not read until less is on its way to the disk.
    line: VecDeque<RequestId>,
    spare: Vec<Vec<u8>>,
}

/// Where the next bytes of a body on disk go.
pub enum Ahead {
    /// To memory first: so many.
    Room(usize),
    /// Nowhere until something was written: the connection is told.
    Wait,
}

impl Bodies {
    pub fn new(config: Arc<Config>, board: Scoreboard, pool: Pool) -> Bodies {
        Bodies {
            spooler: Spooler::new(pool, config.upload_dir.clone()),
            config,
            board,
            pages: None,
            held: 0,
            leaving: 0,
            on_disk: 0,
            line: VecDeque::new(),
            spare: Vec::new(),
        }
    }

    /// The limit of what is on disk is one of all workers.
    pub fn join(&mut self, pages: Pages) {
        self.pages = Some(pages);
    }

    /// Whether so many more bytes of this body may stay in memory.
    pub fn fits(&self, counted: usize, more: usize) -> bool {
        counted.saturating_add(more) <= self.config.body_buffer_size
            && self.held.saturating_add(more) <= self.config.body_buffer_total
    }

    /// So many more bytes of this body may be read while its request waits, for a sibling to which only the whole of it could go.
    pub fn room_ahead(&self, counted: usize) -> usize {
        if self.pages.is_none() {
            return 0;
        }
        let own = self.config.body_buffer_size.saturating_sub(counted);
        own.min(self.config.body_buffer_total.saturating_sub(self.held))
    }

    /// Bodies take more memory than they may: who reads next goes to disk.
    pub fn is_over_memory(&self) -> bool {
        self.held > self.config.body_buffer_total
    }

    /// Memory holds `count` bytes more of a body.
    pub fn hold(&mut self, count: usize, counted: &mut usize) {
        *counted += count;
        self.held += count;
        self.tell_memory();
    }

    /// Whether a body may grow to `len` bytes on disk, by `more`.
    pub fn admit(&self, len: u64, more: u64) -> Result<(), Box<Refusal>> {
        let total = self.config.body_disk_total;
        if total == 0 {
            return Ok(());
        }
        let limit = "bytes that all request bodies together may take on disk (body_disk_total)";
        if len > total {
            let detail = format!("{len} > {total} {limit}");
            return Err(Box::new(Refusal::new(RefusalKind::BodyTooLarge, detail)));
        }
        let others = self.pages.as_ref().map_or(self.on_disk, |pages| pages.sum(Word::DiskBytes));
        if others.saturating_add(more) > total {
            let detail = format!(": {others} of {total} {limit} are taken, {more} more were wanted");
            return Err(Box::new(Refusal::new(RefusalKind::Overloaded, detail)));
        }
        Ok(())
    }

    /// Adds a piece to a body on disk.
    pub fn append(&mut self, request: &mut Request, piece: std::ops::Range<usize>) -> Result<(), Box<Refusal>> {
        let Request { input, body: Body::Spooled(spool), counted, .. } = request else { return Ok(()) };
        let bytes = input.get(piece).unwrap_or_default();
        self.admit(spool.len() + bytes.len() as u64, bytes.len() as u64)?;
        let gathered = spool.gather(bytes.len(), || self.spare.pop().unwrap_or_default()).map_err(no_memory)?;
        gathered.extend_from_slice(bytes);
        spool.added(bytes.len());
        counted.disk += bytes.len() as u64;
        self.leave(bytes.len(), &mut counted.memory);
        Ok(())
    }

    /// Reads up to `room` bytes of a body on disk, as far as it may grow. The inner result is the socket's.
    pub fn receive(&mut self, request: &mut Request, stream: &Stream, room: usize) -> Result<Received, Box<Refusal>> {
        let Request { body: Body::Spooled(spool), counted, .. } = request else { return Ok(Err(Errno::BADF)) };
        self.admit(spool.len() + room as u64, room as u64)?;
        let bytes = spool.gather(room, || self.spare.pop().unwrap_or_default()).map_err(no_memory)?;
        let count = match stream.read(bytes, room) {
            Ok(count) => count,
            Err(error) => return Ok(Err(error)),
        };
        spool.added(count);
        counted.disk += count as u64;
        self.leave(count, &mut counted.memory);
        Ok(Ok(count))
    }

    fn leave(&mut self, count: usize, counted: &mut usize) {
        self.hold(count, counted);
        self.leaving += count;
        self.on_disk += count as u64;
        self.tell_disk();
    }

    /// Moves what memory holds of a body towards the disk.
    pub fn spill(&mut self, request: &mut Request) -> Result<(), Box<Refusal>> {
        if matches!(request.body, Body::Spooled(_)) {
            return Ok(());
        }
        let len = request.body.len();
        self.admit(len, len)?;
        let first = match std::mem::take(&mut request.body) {
            Body::Memory(bytes) if bytes.is_empty() => Pending::None,
            Body::Memory(bytes) => Pending::Owned(bytes),
            Body::Foreign(buffer) => Pending::Foreign(buffer),
            Body::Empty | Body::Spooled(_) => Pending::None,
        };
        let spool = Spool::begin(first);
        self.leaving += spool.pending();
        self.on_disk += spool.len();
        request.counted.disk += spool.len();
        self.tell_disk();
        request.body = Body::Spooled(spool);
        self.board.add(Word::Spooled, 1);
        Ok(())
    }

    /// How much may be read of this body. Of one that goes to disk, what is pending goes to the writer when it is a whole piece, or when nothing
    /// more may be added to it.
    pub fn ahead(&mut self, id: RequestId, request: &mut Request) -> Result<Ahead, Box<Refusal>> {
        let Body::Spooled(spool) = &mut request.body else { return Ok(Ahead::Room(config::READ_BURST)) };
        if spool.waits_since().is_some() {
            return Ok(Ahead::Wait); // for the writer, or in the line
        }
        let pending = spool.pending();
        if pending >= config::SPOOL_PIECE || self.is_full() && pending > 0 {
            self.write(id, request)?;
            return Ok(Ahead::Wait);
        }
        if self.is_full() {
            spool.wait(clock::now());
            self.line.push_back(id);
            return Ok(Ahead::Wait);
        }
        Ok(Ahead::Room(config::SPOOL_PIECE - pending))
    }

    fn is_full(&self) -> bool {
        self.leaving + config::SPOOL_PIECE > config::SPOOL_AHEAD
    }

    /// The client's socket is empty: what is pending is written if that is worth it. Else it waits for more bytes; all that
    /// waits so is at most half of what may be on its way, so that the other half goes on.
    pub fn pause(&mut self, id: RequestId, request: &mut Request) -> Result<(), Box<Refusal>> {
        let Body::Spooled(spool) = &request.body else { return Ok(()) };
        let is_worth_it = spool.pending() >= config::SPOOL_PIECE / 4 || self.leaving > config::SPOOL_AHEAD / 2;
        if is_worth_it && spool.pending() > 0 && !spool.is_lent() {
            self.write(id, request)?;
        }
        Ok(())
    }

    /// Gives the pending bytes to the writer.
    pub fn write(&mut self, id: RequestId, request: &mut Request) -> Result<(), Box<Refusal>> {
        let Request { body: Body::Spooled(spool), counted, .. } = request else { return Ok(()) };
        let (file, bytes) = spool.lend(clock::now());
        counted.memory = 0; // the writer's from now on, and counted until they are written
        self.spooler.write(Piece { id, file, bytes, len: spool.len() }).map_err(no_thread)
    }

    /// The next piece that was written and that a connection waits for. The memory it took is free; the disk as well, if
    /// its connection is gone.
    pub fn take_written(&mut self, is_awaited: impl Fn(RequestId) -> bool) -> Option<Written> {
        loop {
            let mut written = self.spooler.take_written()?;
            self.has_left(std::mem::take(&mut written.bytes));
            if is_awaited(written.id) {
                return Some(written);
            }
            self.on_disk = self.on_disk.saturating_sub(written.len);
            self.tell_disk();
        }
    }

    /// These bytes are out of memory.
    fn has_left(&mut self, bytes: Pending) {
        let count = bytes.as_ref().len();
        self.leaving = self.leaving.saturating_sub(count);
        self.held = self.held.saturating_sub(count);
        self.tell_memory();
        if let Pending::Owned(mut bytes) = bytes
            && self.spare.len() < SPARE
            && bytes.capacity() <= 2 * config::SPOOL_PIECE
        {
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    pub fn has_line(&self) -> bool {
        !self.line.is_empty()
    }

    /// How many bodies of the line may be read now.
    pub fn room(&self) -> usize {
        config::SPOOL_AHEAD.saturating_sub(self.leaving) / config::SPOOL_PIECE
    }

    pub fn next_in_line(&mut self) -> Option<RequestId> {
        self.line.pop_front()
    }

    /// A body came with a request that was handed over.
    pub fn adopt(&mut self, request: &mut Request) {
        match &request.body {
            Body::Spooled(spool) => {
                request.counted.disk = spool.len();
                self.on_disk += spool.len();
                self.tell_disk();
            }
            body => {
                let count = body.len() as usize;
                self.hold(count, &mut request.counted.memory);
            }
        }
    }

    /// The request is over: nothing of its body stays, but for what the writer still has.
    pub fn release(&mut self, request: &mut Request) {
        if request.counted.memory > 0 {
            self.held = self.held.saturating_sub(request.counted.memory);
            self.tell_memory();
        }
        if request.counted.disk == 0 {
            return;
        }
        request.counted.kept = None;
        if let Body::Spooled(spool) = std::mem::take(&mut request.body) {
            if spool.is_lent() {
                return; // counted back in `take_written`
            }
            self.leaving = self.leaving.saturating_sub(spool.pending());
        }
        self.on_disk = self.on_disk.saturating_sub(request.counted.disk);
        self.tell_disk();
    }

    /// A request was dropped with its body, of which so many bytes were in memory and so many on disk.
    pub fn lose(&mut self, counted: usize, spooled: u64) {
        self.held = self.held.saturating_sub(counted);
        self.on_disk = self.on_disk.saturating_sub(spooled);
        self.tell_memory();
        self.tell_disk();
    }

    /// The application gets the body of this request.
    pub fn lend_out(&self, request: &mut Request) {
        request.counted.kept = request.body.spool().and_then(Spool::file).and_then(|file| file.duplicate().ok());
    }

    fn tell_memory(&self) {
        self.board.set(Word::BodyBytes, self.held as u64);
    }

    fn tell_disk(&self) {
        self.board.set(Word::DiskBytes, self.on_disk);
    }
}

/// Bytes whose number a client chose find no memory.
#[cold]
pub fn no_memory(_: NoMemory) -> Box<Refusal> {
    Box::new(Refusal::new(RefusalKind::Overloaded, ": there is no memory for the request"))
}

#[cold]
fn no_thread(_: NoThread) -> Box<Refusal> {
    let detail = ": a thread that writes request bodies to disk cannot be made";
    Box::new(Refusal::new(RefusalKind::Overloaded, detail))
}
