//! What the tests have in common: an engine with plain threads in place of Python's, and clients on the loopback.
//!
//! Nothing here sleeps to let something happen: a test waits for a condition, and gives up at `DEADLINE`.
#![allow(dead_code, unused_imports, clippy::expect_used)] // A test may panic, and need not use all of this.
mod client;
mod ear;
pub mod group;
pub mod http2;
pub mod hub;
pub mod lending;
pub mod tls;

pub use client::{Client, Response, post, request};
pub use ear::{Ear, pipe};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixListener;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tricorn_io::{
    AccessLog, Chores, Config, Descriptor, ENTRY, Engine, Exchange, Logs, Notice, Scoreboard, Sent, Siblings,
    StaticMap, TABLE, Wake, page_bytes,
};
use tricorn_proto::access_log::{Format, Record};
use tricorn_proto::http1::HeadPolicy;
use tricorn_proto::message::{FieldList, RequestHead};
use tricorn_proto::response::{End, HeadInputs};

pub use tricorn_io::clock::{MILLI, SECOND};

/// Tells the logs of a request; the line of a server from `Server::logging` is this one.
pub fn tell(engine: &Engine, line: &str) {
    engine.tell(&record(&|_| Some(line.into())));
}

/// A request of which nothing is known but its environ.
pub fn record<'a>(environ: &'a dyn Fn(&str) -> Option<Vec<u8>>) -> Record<'a> {
    static HEAD: LazyLock<RequestHead> = LazyLock::new(RequestHead::default);
    static FIELDS: LazyLock<FieldList> = LazyLock::new(FieldList::default);
    Record {
        head: &HEAD,
        bytes: b"",
        remote: b"",
        status: 200,
        fields: &FIELDS,
        sent: 0,
        micros: 518,
        time: b"",
        millis: 0,
        pid: 0,
        request_id: b"",
        queue_micros: None,
        call_time: None,
        outcome: None,
        environ,
    }
}

/// The socket of an exchange's client.
pub fn socket(exchange: &Exchange) -> BorrowedFd<'_> {
    let Descriptor::Own(socket) = exchange.lane.descriptor() else { panic!("it is a connection") };
    socket
}

/// When a test stops hoping.
pub const DEADLINE: Duration = Duration::from_secs(60);
/// An hour: a limit that the test does not mean to reach.
pub const NEVER: u64 = 3600 * SECOND;

/// Words of the scoreboard, version 10, as a reader in another process knows them.
#[derive(Debug, Clone, Copy)]
pub enum Word {
    State = 3,
    Heartbeat = 4,
    Orders = 6,
    Connections = 8,
    InFlight = 9,
    Queued = 10,
    BodyBytes = 11,
    Free = 12,
    Oldest = 13,
    ResponseBytes = 14,
    ResponseDiskBytes = 15,
    Accepted = 16,
    Requests = 17,
    Refused = 18,
    HeadTimeouts = 19,
    BodyTimeouts = 20,
    WriteTimeouts = 21,
    IdleCloses = 22,
    Evicted = 23,
    ClientGone = 24,
    Spooled = 25,
    AppErrors = 26,
    BytesIn = 27,
    BytesOut = 28,
    Rescues = 29,
    LogLost = 30,
    Informational = 32,
    Successful = 33,
    Redirection = 34,
    ClientErrors = 35,
    ServerErrors = 36,
    HandedOver = 40,
    TakenOver = 41,
    QueueFull = 42,
    QueueLate = 43,
    LeftQueue = 44,
    Entries = 46,
    Leaving = 47,
    Late = 49,
    HeadBytes = 50,
    HeadsShed = 51,
    DiskBytes = 52,
    Cancel = 62,
    CancelSlot = 63,
    TlsFull = 448,
    TlsResumed = 449,
    /// Failed handshakes that had no version in common; the other reasons follow.
    TlsFailed = 450,
    TlsHandshakes = 462,
    TlsBytes = 463,
    Http2Resets = 466,
    Http2Violations = 467,
    Lent = 468,
}

/// What became of a call that was to be cancelled: it was told to end; had ended; was over, or told before.
pub const TOLD: u64 = u64::MAX;
pub const ENDED: u64 = u64::MAX - 1;
pub const OVER: u64 = u64::MAX - 2;

/// The states of a worker.
pub const SERVING: u64 = 2;
pub const DRAINING: u64 = 3;
pub const STOPPED: u64 = 4;
/// Where the three histograms begin, and how long each is.
pub const HISTOGRAMS: [usize; 3] = [64, 165, 266];
pub const BUCKETS: usize = 101;

pub fn config() -> Config {
    Config {
        threads: 1,
        hub: false,
        streaming: false,
        siblings: false,
        worker_connections: 1000,
        max_connections: 20_000,
        max_descriptors: usize::MAX,
        keepalive: NEVER,
        connection_max_requests: 0,
        connection_max_age: 0,
        closes_idle: false,
        header_timeout: NEVER,
        head_buffer_total: 64 << 20,
        body_timeout: NEVER,
        body_min_rate: 1,
        sse_ping: 0,
        sse_retry: None,
        write_timeout: NEVER,
        body_buffer_size: 1 << 20,
        body_buffer_total: 64 << 20,
        response_buffering: false,
        response_buffer_size: 256 << 10,
        response_buffer_total: 64 << 20,
        response_disk_size: 1 << 30,
        response_disk_total: 1 << 30,
        body_disk_total: 0,
        upload_dir: None,
        policy: HeadPolicy::default(),
        request_id: false,
        admin: Box::default(),
        server: b"tricorn".to_vec(),
        date: true,
        standing_fields: FieldList::new(),
        compress: None,
        load_report: false,
        allocate: None,
        timeout: 0,
        doctor_threshold: 0,
        doctor_slow_request: 0,
        wait_sites: Arc::default(),
        call_file: None,
        doctor_deep: false,
        development: false,
        profile_after: 0,
        profile: None,
        profile_bell: None,
        request_timeout: 0,
        queue_limit: 0,
        queue_timeout: 0,
        queue_order: tricorn_io::QueueOrder::Fifo,
        max_concurrency: tricorn_io::MaxConcurrency::Unlimited,
        proxy_protocol: None,
        doors: Vec::new(),
        tls: None,
        http2: None,
        fault: None,
        max_requests: 0,
        messages: None,
        life: None,
        graceful_timeout: 0,
        static_map: StaticMap::default(),
    }
}

/// An engine, its app threads, and what they were told.
pub struct Server {
    pub engine: Arc<Engine>,
    pub address: SocketAddr,
    words: &'static [AtomicU64],
    threads: Vec<JoinHandle<()>>,
    tally: Arc<Tally>,
}

/// What app threads saw besides requests.
#[derive(Default)]
pub struct Tally {
    ended: AtomicUsize,
    spent: AtomicUsize,
    notices: Mutex<Vec<Notice>>,
}

impl Tally {
    fn keep(&self, chores: Chores) {
        self.spent.fetch_add(chores.spent.len(), Ordering::SeqCst);
        self.notices.lock().unwrap_or_else(PoisonError::into_inner).extend(chores.notices);
    }
}

impl Server {
    pub fn start(config: Config, handler: impl Fn(&Engine, &mut Exchange) + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (words, board) = page(config.threads);
        let count = config.threads;
        let engine = engine(config, vec![listener.into()], board, None);
        Server::with(engine, count, address, words, Arc::new(handler))
    }

    /// The same with an access log; its lines are the handler's.
    pub fn logging(
        config: Config,
        log: AccessLog,
        handler: impl Fn(&Engine, &mut Exchange) + Send + Sync + 'static,
    ) -> Server {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (words, board) = page(config.threads);
        let count = config.threads;
        let access = Some(Arc::new(log.with_stalls(config.fault == Some(tricorn_io::Failpoint::StallLog))));
        let logs = Logs { format: Format::parse("%({line}e)s").ok(), access, ..Logs::default() };
        let engine = Engine::new(config, vec![listener.into()], board, logs).expect("an engine");
        engine.start().expect("a monitor");
        Server::with(Arc::new(engine), count, address, words, Arc::new(handler))
    }

    /// Without app threads, since the test is one, and without a monitor that steps in. It listens at `unix`, too.
    pub fn by_hand(config: Config, unix: UnixListener) -> Server {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (words, board) = page(config.threads);
        let engine =
            Engine::new(config, vec![listener.into(), unix.into()], board, Logs::default()).expect("an engine");
        Server::with(Arc::new(engine), 0, address, words, Arc::new(|_: &Engine, _: &mut Exchange| {}))
    }

    fn with(
        engine: Arc<Engine>,
        count: usize,
        address: SocketAddr,
        words: &'static [AtomicU64],
        handler: Arc<impl Fn(&Engine, &mut Exchange) + Send + Sync + 'static>,
    ) -> Server {
        let tally = Arc::new(Tally::default());
        let threads = (0..count)
            .map(|index| {
                let (engine, handler, tally) = (engine.clone(), handler.clone(), tally.clone());
                let (joined, has_joined) = std::sync::mpsc::channel();
                let thread = std::thread::spawn(move || {
                    let slot = engine.join(index == 0).expect("a place for the thread");
                    joined.send(slot).expect("the test waits");
                    app_thread(&engine, slot, &*handler, &tally);
                });
                assert_eq!(has_joined.recv(), Ok(index));
                thread
            })
            .collect();
        Server { engine, address, words, threads, tally }
    }

    /// Handshakes that failed for a reason.
    pub fn failed(&self, reason: tricorn_io::tls::Reason) -> u64 {
        self.words[Word::TlsFailed as usize + reason as usize].load(Ordering::Relaxed)
    }

    #[track_caller]
    pub fn until_failed(&self, reason: tricorn_io::tls::Reason, count: u64) {
        until("so many handshakes have failed", || self.failed(reason) == count);
    }

    pub fn get(&self, word: Word) -> u64 {
        self.words[word as usize].load(Ordering::Relaxed)
    }

    /// As the arbiter does.
    pub fn set(&self, word: Word, value: u64) {
        self.words[word as usize].store(value, Ordering::Relaxed);
    }

    /// As the arbiter does: the call at this slot is to end if it began then. What the monitor answers.
    #[track_caller]
    pub fn cancel(&self, slot: usize, started: u64) -> u64 {
        self.set(Word::CancelSlot, slot as u64);
        self.words[Word::Cancel as usize].store(started, Ordering::Release);
        self.until(Word::Cancel, 0);
        self.get(Word::CancelSlot)
    }

    fn entry(&self, slot: usize) -> &[AtomicU64] {
        &self.words[TABLE + slot * ENTRY..][..ENTRY]
    }

    /// When the call of an app thread began.
    pub fn call_started(&self, slot: usize) -> Option<u64> {
        Some(self.entry(slot)[0].load(Ordering::Acquire)).filter(|started| *started != 0)
    }

    /// The request an app thread is at, as a reader in another process gets it.
    pub fn call_text(&self, slot: usize) -> Option<Vec<u8>> {
        let started = self.call_started(slot)?;
        let entry = self.entry(slot);
        let length = entry[1].load(Ordering::Relaxed) as usize;
        let words = entry[2..15].iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes());
        let text = words.take(length).collect();
        std::sync::atomic::fence(Ordering::Acquire);
        (entry[0].load(Ordering::Relaxed) == started).then_some(text)
    }

    /// All observations of a histogram.
    pub fn observations(&self, histogram: usize) -> u64 {
        self.words[histogram..histogram + BUCKETS].iter().map(|word| word.load(Ordering::Relaxed)).sum()
    }

    #[track_caller]
    pub fn until(&self, word: Word, value: u64) {
        let got = until_some(|| (self.get(word) == value).then_some(()));
        assert!(got.is_some(), "{word:?} is {}, not {value}", self.get(word));
    }

    #[track_caller]
    pub fn until_at_least(&self, word: Word, value: u64) {
        let got = until_some(|| (self.get(word) >= value).then_some(()));
        assert!(got.is_some(), "{word:?} is {}, less than {value}", self.get(word));
    }

    pub fn connect(&self) -> Client {
        Client::new(TcpStream::connect(self.address).expect("a connection"))
    }

    /// App threads that were told `Ended`.
    pub fn ended(&self) -> usize {
        self.tally.ended.load(Ordering::SeqCst)
    }

    /// Owners of shared bytes that came back in the chores.
    pub fn spent(&self) -> usize {
        self.tally.spent.load(Ordering::SeqCst)
    }

    pub fn notices(&self) -> Vec<Notice> {
        self.tally.notices.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits until every app thread was told that the engine has ended.
    #[track_caller]
    pub fn until_ended(&self) {
        until("every thread got Ended", || self.ended() == self.threads.len());
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.engine.stop();
        if std::thread::panicking() {
            return; // a handler may be blocked for good
        }
        for thread in self.threads.drain(..) {
            assert!(thread.join().is_ok(), "an app thread panicked");
        }
        self.engine.close();
        assert!(!self.engine.is_broken(), "the core broke");
    }
}

fn engine(config: Config, listeners: Vec<OwnedFd>, board: Scoreboard, siblings: Option<Siblings>) -> Arc<Engine> {
    let engine = Arc::new(Engine::new(config, listeners, board, Logs::default()).expect("an engine"));
    if let Some(siblings) = siblings {
        engine.open_group(siblings).expect("a group");
    }
    engine.start().expect("a monitor");
    engine
}

/// A scoreboard page of this process's own, and its words.
fn page(threads: usize) -> (&'static [AtomicU64], Scoreboard) {
    let words: &'static [AtomicU64] = Vec::leak((0..page_bytes(threads) / 8).map(|_| AtomicU64::new(0)).collect());
    // SAFETY: the words are aligned, leaked (mapped for good), and only used as atomic words.
    (words, unsafe { Scoreboard::at(words.as_ptr().cast_mut().cast(), threads) })
}

/// The loop of a worker's app thread.
fn app_thread(engine: &Engine, slot: usize, handler: &dyn Fn(&Engine, &mut Exchange), tally: &Tally) {
    let mut done = None;
    loop {
        match engine.next(slot, done.take()) {
            Wake::Request(mut exchange) => {
                handler(engine, &mut exchange);
                if exchange.timing.answered == 0 {
                    exchange.answered();
                }
                done = Some(exchange);
            }
            Wake::Ready(_) => {}
            Wake::Chores => tally.keep(engine.take_chores()),
            Wake::Signal => {}
            Wake::Nothing => {
                if !engine.poll_now() {
                    engine.wait(slot);
                }
            }
            Wake::Ended => break,
        }
    }
    engine.leave(slot, None);
    tally.keep(engine.take_chores());
    tally.ended.fetch_add(1, Ordering::SeqCst);
}

/// The path the client asked for.
pub fn path(exchange: &Exchange) -> String {
    let request = &*exchange.request;
    String::from_utf8_lossy(request.head.path.of(request.head_bytes())).into_owned()
}

/// Waits until so many bytes are in the socket of an exchange.
pub fn until_unread(exchange: &Exchange, count: usize) {
    until("it has come", || rustix::io::ioctl_fionread(socket(exchange)).expect("a socket") as usize >= count);
}

/// The request's body, from wherever it is; and whether it was on disk.
pub fn body_of(exchange: &mut Exchange) -> (Vec<u8>, bool) {
    match exchange.take_body() {
        tricorn_io::Body::Empty => (Vec::new(), false),
        tricorn_io::Body::Memory(bytes) => (bytes, false),
        tricorn_io::Body::Foreign(buffer) => (buffer.filled().to_vec(), false),
        tricorn_io::Body::Spooled(spool) => (spool.read_all().expect("the spool"), true),
    }
}

/// A whole reply at once.
pub fn answer(engine: &Engine, exchange: &mut Exchange, body: &[u8]) -> End {
    exchange.answered();
    exchange.request.reply.status(b"200 OK").expect("a status");
    let wall = exchange.wall.clone();
    let length = Some(body.len() as u64);
    let (server, close) = (&engine.config().server, engine.closes_connections());
    let inputs = HeadInputs { date: wall.date(), server, body_length: length, close, ..HeadInputs::default() };
    exchange.write_last(&inputs, body, || Box::new(body.to_vec()))
}

/// A piece of a reply of unknown length; waits for room as an app thread does.
pub fn write(engine: &Engine, exchange: &mut Exchange, piece: &[u8]) -> Sent {
    match push(engine, exchange, piece) {
        Sent::OverMark => engine.make_room(exchange),
        sent => sent,
    }
}

/// The same without waiting.
pub fn push(engine: &Engine, exchange: &mut Exchange, piece: &[u8]) -> Sent {
    if !exchange.request.reply.has_status() {
        exchange.request.reply.status(b"200 OK").expect("a status");
    }
    let wall = exchange.wall.clone();
    let (server, close) = (&engine.config().server, engine.closes_connections());
    let inputs = HeadInputs { date: wall.date(), server, body_length: None, close, ..HeadInputs::default() };
    engine.write(exchange, &inputs, piece, || Box::new(piece.to_vec()))
}

/// What holds a handler until the test lets it go.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<Places>, Condvar)>);

#[derive(Default)]
struct Places {
    open: usize,
    inside: usize,
}

impl Gate {
    fn places(&self) -> std::sync::MutexGuard<'_, Places> {
        self.0.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Blocks until a place is opened.
    pub fn pass(&self) {
        // Longer than what a test may wait for meanwhile.
        let end = Instant::now() + 3 * DEADLINE;
        let mut places = self.places();
        places.inside += 1;
        while places.open == 0 {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "the gate was not opened");
            places = self.0.1.wait_timeout(places, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        places.open -= 1;
        places.inside -= 1;
    }

    /// Lets `count` handlers pass, now or later.
    pub fn open(&self, count: usize) {
        self.places().open += count;
        self.0.1.notify_all();
    }

    /// How many handlers are held.
    pub fn held(&self) -> usize {
        self.places().inside
    }

    /// Waits until `count` handlers are held.
    #[track_caller]
    pub fn until_held(&self, count: usize) {
        until("the handlers are blocked", || self.places().inside == count);
    }
}

/// The process's open descriptors, without those of /proc: the monitor's look at its threads is over in a moment.
pub fn descriptors() -> usize {
    let open = std::fs::read_dir("/proc/self/fd").expect("proc").flatten();
    open.filter(|one| std::fs::read_link(one.path()).is_ok_and(|target| !target.starts_with("/proc"))).count()
}

/// Asks until there is an answer, or the deadline has passed.
pub fn until_some<T>(mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(Duration::from_millis(1)); // between two looks, not in place of one
    }
}

#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    assert!(until_some(|| holds().then_some(())).is_some(), "never: {what}");
}

/// Bytes of which no two ranges are likely to be the same.
pub fn noise(length: usize) -> Vec<u8> {
    let mut random = Random(0x5851_f42d_4c95_7f2d);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// xorshift64: the same numbers in every run.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub fn below(&mut self, end: usize) -> usize {
        (self.next() % end.max(1) as u64) as usize
    }
}
