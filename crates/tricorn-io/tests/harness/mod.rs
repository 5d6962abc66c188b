//! What the tests have in common: an engine with plain threads in place of Python's, and clients on the loopback.
//!
//! Nothing here sleeps to let something happen: a test waits for a condition, and gives up at `DEADLINE`.
#![allow(dead_code, unused_imports, clippy::expect_used)] // A test may panic, and need not use all of this.
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use tricorn_io::{Chores, Config, ENTRY, Engine, Exchange, Notice, Scoreboard, Sent, TABLE, Wake, page_bytes};
use tricorn_proto::exchange::{End, HeadInputs};
use tricorn_proto::http1::HeadPolicy;

pub use tricorn_io::clock::{MILLI, SECOND};

/// When a test stops hoping.
pub const DEADLINE: Duration = Duration::from_secs(20);
/// An hour: a limit that the test does not mean to reach.
pub const NEVER: u64 = 3600 * SECOND;

/// Words of the scoreboard, version 2, as a reader in another process knows them.
#[derive(Debug, Clone, Copy)]
pub enum Word {
    State = 3,
    Heartbeat = 4,
    Orders = 6,
    Connections = 8,
    InFlight = 9,
    Queued = 10,
    BodyBytes = 11,
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
}

/// The states of a worker.
pub const SERVING: u64 = 2;
pub const DRAINING: u64 = 3;
pub const STOPPED: u64 = 4;
/// Where the three histograms begin, and how long each is.
pub const HISTOGRAMS: [usize; 3] = [64, 192, 320];
pub const BUCKETS: usize = 128;

pub fn config() -> Config {
    Config {
        threads: 1,
        siblings: false,
        worker_connections: 1000,
        max_connections: 20_000,
        keepalive: NEVER,
        header_timeout: NEVER,
        body_timeout: NEVER,
        body_min_rate: 1,
        write_timeout: NEVER,
        body_buffer_size: 1 << 20,
        body_buffer_total: 64 << 20,
        upload_dir: None,
        policy: HeadPolicy::default(),
        request_id: false,
        admin: tricorn_io::reactor::AdminPaths::default(),
        server: b"tricorn".to_vec(),
        allocate: None,
        access_format: None,
        timeout: 0,
        request_timeout: 0,
        queue_limit: 0,
        queue_timeout: 0,
        queue_order: tricorn_io::QueueOrder::Fifo,
        max_concurrency: tricorn_io::MaxConcurrency::Unlimited,
        fault: None,
        max_requests: 0,
        messages: None,
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
        let count = config.threads;
        let words = (0..page_bytes(count) / 8).map(|_| AtomicU64::new(0)).collect();
        let words: &'static [AtomicU64] = Vec::leak(words);
        // SAFETY: the words are aligned, leaked (mapped for good), and only used as atomic words.
        let board = unsafe { Scoreboard::at(words.as_ptr().cast_mut().cast(), count) };
        let engine = Arc::new(Engine::new(config, vec![listener.into()], board, None).expect("an engine"));
        engine.start().expect("a monitor");
        let handler = Arc::new(handler);
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

    pub fn get(&self, word: Word) -> u64 {
        self.words[word as usize].load(Ordering::Relaxed)
    }

    /// As the arbiter does.
    pub fn set(&self, word: Word, value: u64) {
        self.words[word as usize].store(value, Ordering::Relaxed);
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

/// The request's body, from wherever it is; and whether it was on disk.
pub fn body_of(exchange: &mut Exchange) -> (Vec<u8>, bool) {
    match exchange.take_body() {
        tricorn_io::Body::Empty => (Vec::new(), false),
        tricorn_io::Body::Memory(bytes) => (bytes, false),
        tricorn_io::Body::Foreign(buffer) => (buffer.filled().to_vec(), false),
        tricorn_io::Body::Spooled(mut spool) => (spool.read_all().expect("the spool"), true),
    }
}

/// A whole reply at once.
pub fn answer(engine: &Engine, exchange: &mut Exchange, body: &[u8]) -> End {
    exchange.answered();
    exchange.request.reply.status(b"200 OK").expect("a status");
    let wall = exchange.wall.clone();
    let length = Some(body.len() as u64);
    let (server, close) = (&engine.config().server, engine.closes_connections());
    let inputs = HeadInputs { date: wall.date(), server, body_length: length, close };
    exchange.write_last(&inputs, body, || Box::new(body.to_vec()))
}

/// A piece of a reply of unknown length; waits for room as an app thread does.
pub fn write(engine: &Engine, exchange: &mut Exchange, piece: &[u8]) -> Sent {
    if !exchange.request.reply.has_status() {
        exchange.request.reply.status(b"200 OK").expect("a status");
    }
    let wall = exchange.wall.clone();
    let (server, close) = (&engine.config().server, engine.closes_connections());
    let inputs = HeadInputs { date: wall.date(), server, body_length: None, close };
    match engine.write(exchange, &inputs, piece, || Box::new(piece.to_vec())) {
        Sent::OverMark => exchange.wait_for_room(engine.config()),
        sent => sent,
    }
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
        let end = Instant::now() + DEADLINE;
        let mut places = self.places();
        places.inside += 1;
        while places.open == 0 {
            let left = end.saturating_duration_since(Instant::now());
            assert!(!left.is_zero(), "nobody opened the gate");
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

    /// Waits until `count` handlers are held.
    #[track_caller]
    pub fn until_held(&self, count: usize) {
        until("the handlers are blocked", || self.places().inside == count);
    }
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

/// A client that knows as much of HTTP as these tests need.
pub struct Client {
    pub stream: TcpStream,
    buffer: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Response {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

impl Response {
    pub fn closes(&self) -> bool {
        self.head.contains("\r\nConnection: close\r\n")
    }
}

impl Client {
    pub fn new(stream: TcpStream) -> Client {
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        stream.set_write_timeout(Some(DEADLINE)).expect("a timeout");
        stream.set_nodelay(true).expect("no delay");
        Client { stream, buffer: Vec::new() }
    }

    #[track_caller]
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("a server that reads");
    }

    #[track_caller]
    pub fn ask(&mut self, path: &str) {
        self.send(request(path).as_bytes());
    }

    #[track_caller]
    pub fn post(&mut self, path: &str, body: &[u8]) {
        self.send(post(path, body.len()).as_bytes());
        self.send(body);
    }

    /// Asks and reads the answer.
    #[track_caller]
    pub fn get(&mut self, path: &str) -> Response {
        self.ask(path);
        self.response()
    }

    /// More bytes; whether there were any.
    fn more(&mut self) -> bool {
        let mut piece = vec![0u8; 1 << 16];
        match self.stream.read(&mut piece) {
            Ok(count) => {
                self.buffer.extend_from_slice(&piece[..count]);
                count > 0
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => false,
            Err(error) => panic!("nothing to read: {error}; so far {:?}", String::from_utf8_lossy(&self.buffer)),
        }
    }

    /// The next `count` bytes.
    #[track_caller]
    pub fn take(&mut self, count: usize) -> Vec<u8> {
        while self.buffer.len() < count {
            assert!(self.more(), "closed after {} of {count} bytes", self.buffer.len());
        }
        self.buffer.drain(..count).collect()
    }

    /// What comes before `mark`, and the mark.
    #[track_caller]
    pub fn take_until(&mut self, mark: &[u8]) -> Vec<u8> {
        let mut from = 0;
        loop {
            let found = self.buffer[from..].windows(mark.len()).position(|window| window == mark);
            if let Some(at) = found {
                return self.buffer.drain(..from + at + mark.len()).collect();
            }
            from = self.buffer.len().saturating_sub(mark.len());
            assert!(self.more(), "closed: {:?}", String::from_utf8_lossy(&self.buffer));
        }
    }

    #[track_caller]
    pub fn head(&mut self) -> (u16, String) {
        let head = String::from_utf8(self.take_until(b"\r\n\r\n")).expect("an ASCII head");
        let status = head.get(9..12).and_then(|digits| digits.parse().ok()).expect("a status");
        (status, head)
    }

    /// One chunk; empty for the last.
    #[track_caller]
    pub fn chunk(&mut self) -> Vec<u8> {
        let line = String::from_utf8(self.take_until(b"\r\n")).expect("a chunk size");
        let size = usize::from_str_radix(line.trim_end(), 16).expect("a chunk size");
        let mut chunk = self.take(size + 2);
        chunk.truncate(size);
        chunk
    }

    #[track_caller]
    pub fn response(&mut self) -> Response {
        let (status, head) = self.head();
        let body = if let Some((_, rest)) = head.split_once("\r\nContent-Length: ") {
            let digits = rest.split("\r\n").next().and_then(|digits| digits.parse().ok());
            self.take(digits.expect("a length"))
        } else if head.contains("\r\nTransfer-Encoding: chunked\r\n") {
            let mut body = Vec::new();
            loop {
                let chunk = self.chunk();
                if chunk.is_empty() {
                    break body;
                }
                body.extend_from_slice(&chunk);
            }
        } else {
            self.rest()
        };
        Response { status, head, body }
    }

    /// Everything until the server closes.
    pub fn rest(&mut self) -> Vec<u8> {
        while self.more() {}
        std::mem::take(&mut self.buffer)
    }

    /// The server closes without another word.
    #[track_caller]
    pub fn is_closed(&mut self) {
        let rest = self.rest();
        assert!(rest.is_empty(), "closed, but not before {:?}", String::from_utf8_lossy(&rest));
    }
}

pub fn request(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n")
}

pub fn post(path: &str, length: usize) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {length}\r\n\r\n")
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
