//! Jobs of an output: what waits in files is sent, and what waits in memory is written to one.
//!
//! ```text
//!   lend ──▶ SendFile ── sends, without the lock; counts, and sends what lies in memory behind the file, under it ──▶ DiskOutcome
//!   store ─▶ StoreRest ─ writes, without the lock; puts the file in the place of the bytes, under it ───────────────▶ DiskOutcome
//! ```
//!
//! The owner adds to the outbox meanwhile, and gets no further than to the file: nothing overtakes anything. One job of either kind is
//! out for an output at a time.
use super::sending::{Loan, Rest, Sending, Shared};
use crate::config;
use crate::disk::{DiskFile, Job, Place, Pool};
use crate::exchange::outbox::{Flush, SharedBytes, Storing};
use crate::exchange::overflow::{Full, Held, Overflow, Store};
use crate::exchange::segments::Segment;
use crate::stream::Stream;
use crate::sys::poll::Token;
use rustix::fd::{AsFd, AsRawFd, RawFd};
use rustix::io::Errno;
use std::io::{Error, IoSlice};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// Most bytes per `sendfile`, so that one client cannot hold a thread in the kernel.
const FILE_PIECE: u64 = 1 << 20;

/// The pool, as the outputs of a worker use it.
pub struct Disks {
    pool: Pool,
    returned: Sender<DiskOutcome>,
    at_work: Mutex<Vec<AtWork>>,
}

/// A connection that a job sends on.
struct AtWork {
    socket: RawFd,
    shared: Weak<Shared>,
}

/// For a fork: the list of connections that jobs send on.
pub struct DiskLocks<'d>(MutexGuard<'d, Vec<AtWork>>);

/// A job's end, for the reactor.
pub struct DiskOutcome {
    /// Whose output it was.
    pub token: Token,
    /// How sending ended; `None`: more can be sent.
    pub flush: Option<Flush>,
    /// Something happened to the connection meanwhile.
    pub had_event: bool,
    /// Bytes that were sent and that no exchange counts.
    pub sent: u64,
    /// Owners of bytes whose output is gone. To be dropped by a thread that holds the GIL.
    pub spent: Vec<SharedBytes>,
    /// Why bytes could not be written.
    pub error: Option<Error>,
}

/// Where the file is that an output has in front.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lent {
    /// With a job.
    Out,
    /// It waits for room in the socket.
    Full,
    /// There is none.
    NoFile,
}

impl Disks {
    /// With the end at which jobs return.
    pub fn new(pool: Pool) -> (Disks, Receiver<DiskOutcome>) {
        let (returned, inbox) = channel();
        (Disks { pool, returned, at_work: Mutex::default() }, inbox)
    }

    pub fn pool(&self) -> &Pool {
        &self.pool
    }

    fn at_work(&self) -> MutexGuard<'_, Vec<AtWork>> {
        self.at_work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn hold_still(&self) -> DiskLocks<'_> {
        DiskLocks(self.at_work())
    }

    /// Has the reactor look at a connection: a job for it is over.
    pub(crate) fn tell(&self, token: Token) {
        // The reactor may be gone.
        let _ = self.returned.send(DiskOutcome::of(token));
    }

    /// Connections that jobs keep open though they have ended.
    pub fn abandoned(&self) -> usize {
        self.at_work().iter().filter(|lent| lent.shared.strong_count() == 1).count()
    }
}

impl DiskLocks<'_> {
    /// The sockets that jobs send on.
    pub fn descriptors(&self) -> impl Iterator<Item = RawFd> {
        self.0.iter().map(|lent| lent.socket)
    }
}

impl Shared {
    /// Has what waits in a file sent, if that is next.
    pub fn lend(self: &Arc<Shared>, disks: &Arc<Disks>, token: Token) -> Lent {
        let begun = self.sending().rest.as_mut().map_or(Err(Lent::NoFile), |rest| rest.begin_loan(&self.stream));
        match begun {
            Ok(place) => {
                self.dispatch(place, disks, token);
                Lent::Out
            }
            Err(lent) => lent,
        }
    }

    /// A loan has begun: submits its job. Without the lock, as the job may have to be done here.
    pub fn dispatch(self: &Arc<Shared>, place: Place, disks: &Arc<Disks>, token: Token) {
        let socket = self.stream.socket().as_raw_fd();
        disks.at_work().push(AtWork { socket, shared: Arc::downgrade(self) });
        disks.pool.submit_or_run(place, Box::new(SendFile { shared: self.clone(), disks: disks.clone(), token }));
    }

    /// Has what waits in memory written to the output's own file, the first `keep` bytes excepted. Whether there is anything to write.
    pub fn store(
        self: &Arc<Shared>,
        disks: &Arc<Disks>,
        held: &Held,
        store: &Store,
        keep: usize,
    ) -> Result<bool, Full> {
        let storing = self.sending().rest().outbox.begin_storing(store, held, keep)?;
        let Some(storing) = storing else { return Ok(false) };
        let (shared, disks, directory) = (Arc::downgrade(self), disks.clone(), store.directory.clone());
        let job = StoreRest { shared, disks: disks.clone(), storing, directory, token: store.token };
        disks.pool.submit_or_run(Place::TEMPORARY, Box::new(job));
        Ok(true)
    }
}

impl Rest {
    /// From now on a job has the file in front, and there is to be one ([`Shared::dispatch`]). Else where the file is.
    pub fn begin_loan(&mut self, stream: &Stream) -> Result<Place, Lent> {
        if self.is_away() {
            return Err(Lent::Out);
        }
        let Some((file, ..)) = self.outbox.file_in_front() else { return Err(Lent::NoFile) };
        if self.loan == Loan::Full && !stream.has_room() {
            return Err(Lent::Full);
        }
        let place = file.place();
        self.loan = Loan::Out { had_event: false };
        Ok(place)
    }
}

/// Sends from the file in front.
struct SendFile {
    /// It keeps the connection open.
    shared: Arc<Shared>,
    disks: Arc<Disks>,
    token: Token,
}

/// How a step of a job ended.
enum Step {
    Next,
    Done(Option<Flush>),
}

impl SendFile {
    /// Sends about `room` bytes at most, and leaves what is left of that.
    fn step(&self, room: &mut u64, returned: &mut DiskOutcome) -> Step {
        let piece = {
            let sending = self.shared.sending();
            let front = sending.rest.as_ref().and_then(|rest| rest.outbox.file_in_front());
            front.map(|(file, at, left)| (file.clone(), at, left))
        };
        let Some((file, mut at, mut left)) = piece else { return Step::Done(None) };
        let result = self.shared.stream.send_file(file.as_fd(), &mut at, &mut left, FILE_PIECE.min(*room));
        let count = match result {
            Ok(0) => return Step::Done(Some(Flush::Truncated)),
            Ok(count) => count as u64,
            Err(Errno::AGAIN) => return Step::Done(Some(Flush::Blocked)),
            Err(Errno::INTR) => 0,
            Err(_) => return Step::Done(Some(Flush::Gone)),
        };
        *room = room.saturating_sub(count);
        let (step, idle) = self.count(&file, count, *room, returned);
        drop(idle);
        step
    }

    /// So many bytes of the file are sent: counts them, and sends what lies in memory behind it. With a file that is to be closed without
    /// the lock.
    fn count(
        &self,
        file: &Arc<DiskFile>,
        count: u64,
        room: u64,
        returned: &mut DiskOutcome,
    ) -> (Step, Option<Box<Overflow>>) {
        let Sending { rest, .. } = &mut *self.shared.sending();
        let Some(rest) = rest else {
            returned.sent += count;
            return (Step::Done(None), None);
        };
        let before = rest.outbox.sent();
        let is_there = rest.outbox.file_was_sent(file, count);
        let idle = rest.outbox.take_idle_file(file);
        let most = usize::try_from(room).unwrap_or(usize::MAX);
        let flush = rest.outbox.flush_some(&self.shared.stream, &mut rest.spent, most);
        if rest.is_over {
            returned.sent += rest.outbox.sent() - before;
        }
        let step = match flush {
            Some(Flush::Disk) if room > 0 && is_there => Step::Next,
            Some(Flush::Disk) => Step::Done(None),
            flush => Step::Done(flush),
        };
        (step, idle)
    }
}

impl Job for SendFile {
    fn run(self: Box<Self>) -> bool {
        let mut room = config::TURN_BYTES as u64;
        let mut returned = DiskOutcome::of(self.token);
        returned.flush = loop {
            match self.step(&mut room, &mut returned) {
                Step::Next => {}
                Step::Done(flush) => break flush,
            }
        };
        {
            let Sending { rest, .. } = &mut *self.shared.sending();
            if let Some(rest) = rest {
                let is_full = returned.flush == Some(Flush::Blocked);
                rest.is_broken |= matches!(returned.flush, Some(Flush::Gone | Flush::Truncated));
                let before = std::mem::replace(&mut rest.loan, if is_full { Loan::Full } else { Loan::None });
                returned.had_event = before == Loan::Out { had_event: true };
                rest.tell_waiter();
            }
        }
        (*self).give_back(returned);
        true
    }

    fn give_up(self: Box<Self>) {
        let returned = DiskOutcome::of(self.token);
        (*self).give_back(returned);
    }
}

impl SendFile {
    fn give_back(self, returned: DiskOutcome) {
        let SendFile { shared, disks, .. } = self;
        let own = Arc::as_ptr(&shared);
        disks.at_work().retain(|lent| lent.shared.as_ptr() != own);
        drop(shared);
        // The reactor may be gone.
        let _ = disks.returned.send(returned);
    }
}

impl DiskOutcome {
    fn of(token: Token) -> DiskOutcome {
        DiskOutcome { token, flush: None, had_event: false, sent: 0, spent: Vec::new(), error: None }
    }
}

/// Writes bytes to the output's own file.
struct StoreRest {
    /// The connection may end meanwhile.
    shared: Weak<Shared>,
    disks: Arc<Disks>,
    storing: Storing,
    directory: Option<PathBuf>,
    token: Token,
}

impl StoreRest {
    fn write(&mut self) -> std::io::Result<Arc<DiskFile>> {
        let Storing { segments, file, at, reserved } = &self.storing;
        let file = match file {
            Some(file) => file.clone(),
            None => {
                let file = DiskFile::temporary(self.directory.as_deref(), &self.disks.pool)?;
                Arc::new(file.counted(reserved.clone()))
            }
        };
        let mut slices: Vec<_> = segments.iter().filter_map(Segment::bytes).map(IoSlice::new).collect();
        file.write(&mut slices, *at)?;
        Ok(file)
    }
}

impl Job for StoreRest {
    fn run(mut self: Box<Self>) -> bool {
        let written = self.write();
        let StoreRest { shared, disks, mut storing, token, .. } = *self;
        let mut returned = DiskOutcome::of(token);
        if let Some(shared) = shared.upgrade()
            && let Some(rest) = &mut shared.sending().rest
        {
            let is_kept = match &written {
                Ok(file) => rest.outbox.was_stored(file, &mut storing, &mut rest.spent),
                Err(_) => rest.outbox.was_not_stored(&mut storing),
            };
            rest.store_failed = is_kept && written.is_err();
            rest.tell_waiter();
        }
        returned.error = written.err();
        returned.spent = storing.segments.into_iter().filter_map(Segment::into_shared).collect();
        let _ = disks.returned.send(returned);
        true
    }

    fn give_up(self: Box<Self>) {
        let StoreRest { disks, storing, token, .. } = *self;
        let spent = storing.segments.into_iter().filter_map(Segment::into_shared).collect();
        let _ = disks.returned.send(DiskOutcome { spent, ..DiskOutcome::of(token) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::outbox::Outbox;
    use crate::exchange::output::{Output, Piece, Progress, When};
    use crate::scoreboard::{Scoreboard, Word};
    use crate::sys::poll::ready;
    use rustix::event::PollFlags;
    use std::fs::File;
    use std::io::Read;
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    const TOKEN: Token = 7;

    struct Bench {
        disks: Arc<Disks>,
        outcomes: Receiver<DiskOutcome>,
        output: Output,
        theirs: UnixStream,
    }

    impl Bench {
        fn new() -> Bench {
            let (disks, outcomes) = Disks::new(Pool::new(None).expect("a pool"));
            let (ours, theirs) = UnixStream::pair().expect("sockets");
            ours.set_nonblocking(true).expect("a socket");
            Bench { disks: Arc::new(disks), outcomes, output: Output::new(Stream::new(ours.into())), theirs }
        }

        fn file(&self, bytes: &[u8]) -> Arc<DiskFile> {
            let file = DiskFile::temporary(None, self.disks.pool()).expect("disk");
            file.write(&mut [IoSlice::new(bytes)], 0).expect("disk");
            Arc::new(file)
        }

        fn opened(&self, path: &str) -> Arc<DiskFile> {
            Arc::new(DiskFile::new(File::open(path).expect("a file").into(), self.disks.pool()))
        }

        fn put(&mut self, file: Arc<DiskFile>, at: u64, left: u64) {
            let mut outbox = Outbox::default();
            outbox.push_file(file, at, left);
            self.output.put_outbox(outbox);
        }

        fn lend(&mut self) -> Lent {
            self.output.lend(&self.disks, TOKEN)
        }

        fn outcome(&self) -> DiskOutcome {
            let outcome = self.outcomes.recv_timeout(Duration::from_secs(20)).expect("an outcome");
            assert_eq!(outcome.token, TOKEN);
            outcome
        }

        /// Sends a file; how that has ended.
        fn sent(&mut self, file: Arc<DiskFile>, left: u64) -> Option<Flush> {
            self.put(file, 0, left);
            assert_eq!(self.lend(), Lent::Out);
            self.outcome().flush
        }
    }

    #[test]
    fn a_long_file_is_sent_by_jobs_as_the_client_takes_it() {
        let mut bench = Bench::new();
        let bytes: Vec<u8> = (0..3_000_000u32).map(|nr| (nr % 251) as u8).collect();
        bench.output.queue(b"head");
        let file = bench.file(&bytes);
        let file = (file, 1, bytes.len() as u64 - 1);
        let piece: Piece<'_, fn() -> SharedBytes> = Piece::File { head: b" ", file, tail: b"tail" };
        assert!(matches!(bench.output.send(piece, When::Now), Progress::Waits { .. }));
        let (mut got, mut piece) = (Vec::new(), vec![0; 1 << 20]);
        loop {
            match bench.lend() {
                Lent::Out => {}
                Lent::Full => {
                    let count = bench.theirs.read(&mut piece).expect("a socket");
                    got.extend_from_slice(&piece[..count]);
                    continue;
                }
                Lent::NoFile => break,
            }
            if bench.outcome().flush == Some(Flush::Empty) {
                break;
            }
        }
        while got.len() < bytes.len() + 8 {
            bench.output.flush();
            let count = bench.theirs.read(&mut piece).expect("a socket");
            got.extend_from_slice(&piece[..count]);
        }
        assert!(bench.output.is_clear());
        assert!(got == [b"head ".as_slice(), &bytes[1..], b"tail"].concat(), "{} bytes", got.len());
    }

    #[test]
    fn what_is_written_while_a_job_is_out_follows_the_file() {
        let mut bench = Bench::new();
        let directory = std::env::temp_dir().join(format!("tricorn-lent-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let (disks, outcomes) = Disks::new(Pool::new(Some(directory.clone())).expect("a pool"));
        (bench.disks, bench.outcomes) = (Arc::new(disks), outcomes);
        let stall = directory.join("stall");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            &stall,
            rustix::fs::FileType::Fifo,
            rustix::fs::Mode::from_raw_mode(0o600),
            0,
        )
        .expect("a FIFO");
        bench.put(bench.file(b"from a file"), 5, 6);
        assert_eq!((bench.lend(), bench.lend()), (Lent::Out, Lent::Out), "once");
        bench.output.queue(b", and behind it");
        assert!(matches!(bench.output.flush(), Progress::Waits { bytes: 15 }));
        assert!(bench.output.note_event() && bench.output.is_away());
        let alarm = bench.output.await_job().expect("a job is out");
        assert!(ready(alarm.as_fd(), PollFlags::IN, 0).is_empty());
        let mended = File::options().read(true).write(true).open(&stall).expect("the FIFO");
        assert!(!ready(alarm.as_fd(), PollFlags::IN, 20_000_000_000).is_empty(), "it is rung");
        let outcome = bench.outcome();
        assert_eq!((outcome.flush, outcome.had_event, outcome.sent), (Some(Flush::Empty), true, 0));
        assert!(bench.output.await_job().is_none() && !bench.output.note_event());
        assert_eq!(bench.output.conclude(&mut Vec::new()).sent, 21, "the exchange counts them");
        drop((mended, bench.output));
        let mut got = String::new();
        bench.theirs.read_to_string(&mut got).expect("a socket");
        assert_eq!(got, "a file, and behind it");
        std::fs::remove_dir_all(directory).expect("a directory");
    }

    #[test]
    fn what_needs_no_disk_is_sent_without_a_job_and_overtakes_nothing() {
        let mut bench = Bench::new();
        let file = bench.file(&[[b'x'; 500], [b'y'; 500]].concat());
        let (mut offset, mut left) = (100, 900);
        bench.output.send_cached(b"head", file.as_fd(), (&mut offset, &mut left), 400);
        assert_eq!((offset, left, bench.output.sent(), bench.output.is_clear()), (500, 500, 404, true));
        bench.output.queue(b"waits");
        let progress = bench.output.send_cached(b"", file.as_fd(), (&mut offset, &mut left), 400);
        assert!(matches!(progress, Progress::Sent));
        assert_eq!((offset, left), (500, 500));
        assert!(matches!(bench.output.flush(), Progress::Sent));
        bench.output.send_cached(b"", file.as_fd(), (&mut offset, &mut left), u64::MAX);
        drop(bench.output);
        let mut got = String::new();
        bench.theirs.read_to_string(&mut got).expect("a socket");
        assert_eq!(got, ["head", &"x".repeat(400), "waits", &"y".repeat(500)].concat());
    }

    #[test]
    fn how_sending_a_file_ends_is_told() {
        let mut bench = Bench::new();
        assert_eq!(bench.sent(bench.file(b"abc"), 10), Some(Flush::Truncated), "it is shorter than promised");
        bench.output.clear();
        // sendfile(2) of a directory is EINVAL, pread(2) of it EISDIR.
        assert_eq!(bench.sent(bench.opened("/"), 10), Some(Flush::Truncated), "and this is no client that left");
        bench.output.clear();
        drop(std::mem::replace(&mut bench.theirs, UnixStream::pair().expect("sockets").0));
        assert_eq!(bench.sent(bench.file(b"abc"), 3), Some(Flush::Gone), "nor is this a file that ended");
    }

    #[test]
    fn what_a_job_has_found_of_the_client_is_told_to_the_owner() {
        let mut bench = Bench::new();
        bench.put(bench.file(b"abc"), 0, 3);
        bench.output.queue(b"behind it");
        assert!(matches!(bench.output.flush(), Progress::Waits { .. }), "the file is in front of the socket");
        drop(std::mem::replace(&mut bench.theirs, UnixStream::pair().expect("sockets").0));
        assert_eq!((bench.lend(), bench.outcome().flush), (Lent::Out, Some(Flush::Gone)));
        let keep = || Box::new(b"more".to_vec()) as SharedBytes;
        let piece = Piece::Bytes { head: &mut Vec::new(), body: b"more", tail: b"", keep };
        assert_eq!(bench.output.send(piece, When::Streaming { gather: false, mark: 100 }), Progress::Gone);
    }

    #[test]
    fn a_file_of_a_file_system_without_sendfile_is_sent() {
        let mut bench = Bench::new();
        // procfs: EINVAL for sendfile(2), which is told of the file and not of the client.
        let bytes = std::fs::read("/proc/self/cmdline").expect("procfs");
        assert_eq!(bench.sent(bench.opened("/proc/self/cmdline"), bytes.len() as u64), Some(Flush::Empty));
        drop(bench.output);
        let mut got = Vec::new();
        bench.theirs.read_to_end(&mut got).expect("socket");
        assert_eq!(got, bytes);
    }

    #[test]
    fn a_connection_that_ends_while_a_job_is_out_is_closed_by_it() {
        let mut bench = Bench::new();
        bench.put(bench.file(&[b'x'; 1000]), 0, 1000);
        let keeps = bench.output.0.clone(); // as the job does
        let begun = bench.output.sending().rest.as_mut().expect("a file waits").begin_loan(&keeps.stream);
        assert!(begun.is_ok() && bench.disks.abandoned() == 0);
        drop(bench.output);
        keeps.dispatch(Place::UNKNOWN, &bench.disks, TOKEN);
        drop(keeps);
        let outcome = bench.outcomes.recv_timeout(Duration::from_secs(20)).expect("an outcome");
        assert_eq!((outcome.flush, outcome.sent), (None, 0));
        assert_eq!(bench.disks.abandoned(), 0);
        bench.disks.pool().end();
        assert_eq!(bench.theirs.read(&mut [0; 10]).expect("the end"), 0);
    }

    #[test]
    fn what_waits_goes_to_disk_and_from_there_to_the_client() {
        let mut bench = Bench::new();
        let board = Scoreboard::private(1);
        let held = Held::new(board);
        let store = |directory: Option<&str>| Store {
            token: TOKEN,
            directory: directory.map(PathBuf::from),
            each: 1 << 20,
            total: 1 << 20,
        };
        bench.output.queue(b"kept, ");
        bench.output.queue(&[b'x'; 20_000]);
        assert_eq!(bench.output.store(&bench.disks, &held, &store(Some("/nonexistent")), 6), Ok(true));
        assert!(bench.outcome().error.is_some() && bench.output.take_store_failure());
        assert!(!bench.output.take_store_failure() && !bench.output.is_on_disk() && held.disk() == 0);
        assert_eq!(bench.output.store(&bench.disks, &held, &store(None), 6), Ok(true));
        assert!(bench.outcome().error.is_none() && bench.output.is_on_disk());
        assert_eq!((bench.output.in_memory(), held.disk()), (6, 20_000));
        assert_eq!(bench.output.store(&bench.disks, &held, &store(None), 6), Ok(false), "it is there");
        assert!(matches!(bench.output.flush(), Progress::Waits { bytes: 0 }));
        assert_eq!((bench.lend(), bench.outcome().flush), (Lent::Out, Some(Flush::Empty)));
        assert!(!bench.output.is_on_disk());
        drop(bench.output);
        let mut got = String::new();
        bench.theirs.read_to_string(&mut got).expect("a socket");
        assert_eq!((got.len(), &got[..8]), (20_006, "kept, xx"));
        bench.disks.pool().end();
        assert_eq!(board.get(Word::ResponseDiskBytes), 0);
    }
}
