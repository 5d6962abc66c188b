//! Everything the core is told. One per worker, immutable.
use crate::clock::SECOND;
use crate::compress::Compressors;
use crate::files::StaticMap;
use crate::stream::Stream;
use crate::tls::Source;
use rustix::fd::OwnedFd;
use std::any::Any;
use std::sync::Arc;
use tricorn_diagnosis::wait_sites::WaitSite;
use tricorn_proto::cgi::Protocol;
use tricorn_proto::http1::HeadPolicy;
use tricorn_proto::http2;
use tricorn_proto::message::FieldList;
use tricorn_proto::peer::Trust;
use tricorn_proto::peer::proxy_protocol::Accepts;

/// Times are nanoseconds, sizes bytes.
#[derive(Debug, Clone)]
pub struct Config {
    /// App threads that may be inside `serve` at once; under a hub, calls that may be under way.
    pub threads: usize,
    /// One thread has all the calls: it waits in an event loop of its own, which watches our descriptors.
    pub hub: bool,
    /// A request begins when its head is complete; the application reads the body while it comes ([`crate::Incoming`]).
    pub streaming: bool,
    /// Other workers share the listeners: do not take what a sibling could serve at once.
    pub siblings: bool,
    /// Most requests running or waiting at once; beyond it nothing is accepted. Under a hub: most that run.
    pub worker_connections: usize,
    /// Most connections held; beyond it others are closed to make room (`reactor/connections/evict.rs`), or nothing is accepted.
    pub max_connections: usize,
    /// Most descriptors that clients hold: connections, files of bodies and of replies. The others are the
    /// application's.
    pub max_descriptors: usize,
    /// Idle time of a connection between two requests; 0 closes after each response.
    pub keepalive: u64,
    /// Requests after which a connection is closed; 0: any number.
    pub connection_max_requests: u64,
    /// Age from which on it is closed after its next reply, or when it is idle; 0: any.
    pub connection_max_age: u64,
    /// A worker that leaves closes idle connections at once: their clients are to meet its successor (`reload`).
    pub closes_idle: bool,
    /// Time from a connection's first byte (or its acceptance) to its complete head.
    pub header_timeout: u64,
    /// Most memory of all heads that are not complete; beyond it the longest are refused (`reactor/connections/evict.rs`).
    pub head_buffer_total: usize,
    /// Time a body may take before `body_min_rate` counts, and the longest in which nothing of it comes.
    pub body_timeout: u64,
    /// Bytes per second below which a body is given up once `body_timeout` is over.
    pub body_min_rate: u64,
    /// Time in which a client must take some of the response that waits for it.
    pub write_timeout: u64,
    /// How long an event stream may be silent before it gets a comment; 0: as long as it likes.
    pub sse_ping: u64,
    /// Event streams that the server ends tell clients to wait between so many milliseconds and so many.
    pub sse_retry: Option<(u32, u32)>,
    /// Most bytes of one request body in memory; more goes to an unlinked temporary file.
    pub body_buffer_size: usize,
    /// Most bytes of all request bodies in memory; beyond it new bodies go to disk at once.
    pub body_buffer_total: usize,
    /// What slow clients do not take of responses goes to disk, rather than that the application waits.
    pub response_buffering: bool,
    /// Most bytes of one response that wait in memory; beyond it they go to disk, or the application waits.
    pub response_buffer_size: usize,
    /// Most bytes of all responses in memory; beyond it the rest of a whole response goes to disk at once.
    pub response_buffer_total: usize,
    /// Most bytes of one response on disk, and of all.
    pub response_disk_size: u64,
    pub response_disk_total: u64,
    /// Most bytes of all request bodies on disk, of all workers together; beyond it they are refused. 0: any number.
    pub body_disk_total: u64,
    /// Where bodies go that are too long for memory; `None`: the system's directory for temporary files.
    pub upload_dir: Option<std::path::PathBuf>,
    pub policy: HeadPolicy,
    /// A balancer announces connections by the PROXY protocol; `None`: that is not looked for.
    pub proxy_protocol: Option<Box<ProxyProtocol>>,
    /// What differs from listener to listener, in their order; listeners without a door are plain ones.
    pub doors: Vec<Door>,
    /// What doors with TLS need.
    pub tls: Option<Box<TlsDoors>>,
    /// How HTTP/2 is spoken; `None`: it is not.
    pub http2: Option<Box<Http2>>,
    /// Requests have ids (`X-Request-ID`).
    pub request_id: bool,
    /// Files that the server sends itself.
    pub static_map: StaticMap,
    pub admin: Box<AdminPaths>,
    /// Value of the Server field; empty: there is none.
    pub server: Vec<u8>,
    /// Replies have a Date. The server's own pages have it in any case.
    pub date: bool,
    /// Fields that every reply has unless the application sets one of the same name.
    pub standing_fields: FieldList,
    /// Compresses replies; `None`: none is.
    pub compress: Option<Arc<Compressors>>,
    /// Responses to trusted peers tell the load of this server (`metrics/load/`).
    pub load_report: bool,
    /// Makes the gateway's own buffers for large bodies.
    pub allocate: Option<Allocate>,
    /// Age from which a call counts as stuck: the arbiter is told. 0: never.
    pub timeout: u64,
    /// How long an event loop may be held up before what holds it up is told; 0: nothing is looked for.
    pub doctor_threshold: u64,
    /// How long a call on a thread may make no progress before it is told what it is at; 0: none is.
    pub doctor_slow_request: u64,
    /// Where libraries wait for room in a pool.
    pub wait_sites: Arc<[WaitSite]>,
    /// /proc/thread-self/syscall of the first thread, opened before the process changed its user.
    pub call_file: Option<Arc<OwnedFd>>,
    /// A thread that computes in native code may be halted by a signal, so that its stack is told.
    pub doctor_deep: bool,
    /// A developer watches the log: it also tells what delays no other request, or is the first request's.
    pub development: bool,
    /// How long a call may take before it is looked at where it is; 0: none is.
    pub profile_after: u64,
    /// The file into which is written what was found, and orders of profiles.
    pub profile: Option<Arc<OwnedFd>>,
    /// The read end of a pipe, non-blocking, into which the arbiter writes for such an order.
    pub profile_bell: Option<Arc<OwnedFd>>,
    /// Time an application call may take before it is ended; 0: as long as it likes.
    pub request_timeout: u64,
    /// Requests after which the arbiter is told that this worker should be replaced; 0: never.
    pub max_requests: u64,
    /// Most requests that wait for an app thread; 0: any number.
    pub queue_limit: usize,
    /// How long a request may wait; 0: as long as it likes.
    pub queue_timeout: u64,
    pub queue_order: QueueOrder,
    /// Most requests that run at once in all workers together.
    pub max_concurrency: MaxConcurrency,
    /// What is to go wrong here, for tests of what others make of it.
    pub fault: Option<Failpoint>,
    /// The pipe to the arbiter.
    pub messages: Option<Arc<OwnedFd>>,
    /// The read end of a pipe that ends when the arbiter does.
    pub life: Option<Arc<OwnedFd>>,
    /// How long this worker may finish what it has when the arbiter is gone.
    pub graceful_timeout: u64,
}

/// What the clients of one listener meet.
#[derive(Debug, Clone, Default)]
pub struct Door {
    pub tls: bool,
    /// As [`Config::proxy_protocol`], for this one alone.
    pub proxy_protocol: Option<Box<ProxyProtocol>>,
    /// Its clients are front ends that bring requests as vars; `None`: they speak HTTP.
    pub front_end: Option<Box<FrontEnd>>,
}

/// What front ends speak at a door, and which may.
#[derive(Debug, Clone)]
pub struct FrontEnd {
    pub protocol: Protocol,
    pub allow: Trust,
}

/// What doors with TLS need.
#[derive(Debug, Clone)]
pub struct TlsDoors {
    pub source: Arc<Source>,
    /// Time from the acceptance of a connection to the end of its handshake.
    pub handshake_timeout: u64,
    /// Most handshakes under way; beyond it silent clients are closed, then no more are accepted.
    pub pending_handshakes: usize,
    /// Bytes that all sessions may hold for their sockets.
    pub buffer_total: usize,
    /// Plain HTTP is sent to https, and not refused.
    pub redirect: bool,
}

/// How HTTP/2 is spoken (RFC 9113). By TLS, clients ask for it themselves ([`tls::Bundle::alpn`](crate::tls::Bundle)).
#[derive(Debug, Clone)]
pub struct Http2 {
    /// A plain connection may begin with its preface ("prior knowledge", section 3.3).
    pub cleartext: bool,
    /// Idle time of a connection without a stream.
    pub idle_timeout: u64,
    pub settings: http2::Settings,
}

/// Who may announce connections, and how.
#[derive(Debug, Clone)]
pub struct ProxyProtocol {
    pub accepts: Accepts,
    pub allow: Trust,
    /// A connection that is not announced is refused.
    pub required: bool,
}

impl Config {
    /// Whether a balancer announces the connections of this listener.
    #[inline]
    pub(crate) fn proxy_protocol_at(&self, listener: u16) -> Option<&ProxyProtocol> {
        let door = self.doors.get(usize::from(listener));
        door.map_or(&self.proxy_protocol, |door| &door.proxy_protocol).as_deref()
    }

    /// What front ends speak at this listener, instead of HTTP.
    #[inline]
    pub(crate) fn front_end_at(&self, listener: u16) -> Option<&FrontEnd> {
        self.doors.get(usize::from(listener))?.front_end.as_deref()
    }

    /// Whether the clients of this listener speak TLS.
    #[inline]
    pub(crate) fn is_tls_at(&self, listener: u16) -> bool {
        self.doors.get(usize::from(listener)).is_some_and(|door| door.tls)
    }

    /// How fast a body has to come.
    #[inline]
    pub(crate) fn body_rate(&self) -> BodyRate {
        BodyRate { timeout: self.body_timeout, bytes_per_second: self.body_min_rate }
    }

    /// How long a disk may take to open a file that is sent.
    #[inline]
    pub(crate) fn opening_timeout(&self) -> u64 {
        if self.request_timeout > 0 { self.request_timeout } else { self.write_timeout }
    }

    /// Bytes that a client has to take within `write_timeout`, at the minimum rate.
    #[inline]
    pub(crate) fn progress(&self) -> u64 {
        self.body_min_rate.saturating_mul(self.write_timeout / SECOND).max(1)
    }
}

/// How fast a body has to come.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BodyRate {
    /// Time it may take before its rate counts, and the longest in which nothing of it comes.
    pub timeout: u64,
    pub bytes_per_second: u64,
}

impl BodyRate {
    /// Time that so many bytes may take.
    #[inline]
    pub fn earned_by(&self, bytes: u64) -> u64 {
        bytes.saturating_mul(SECOND) / self.bytes_per_second.max(1)
    }
}

/// What is asked on admin listeners.
#[derive(Debug, Clone)]
pub struct AdminPaths {
    /// Whether the worker lives.
    pub health: Vec<u8>,
    /// Whether it should be sent requests.
    pub ready: Vec<u8>,
    /// What it and its siblings have counted; empty: that is not told.
    pub metrics: Vec<u8>,
    /// A page for people; empty: there is none. What it shows is at [`LIVE`] behind it.
    pub page: Vec<u8>,
    /// What the server and its workers are at is told at [`STATUS`].
    pub status: bool,
    /// Whose questions are answered.
    pub allow: Trust,
    /// Labels of the metric `tricorn_info` and their values.
    pub info: Vec<(String, String)>,
    /// Where prometheus_client keeps what the application counts; `None`: that is not told.
    pub application: Option<std::path::PathBuf>,
}

impl AdminPaths {
    /// Whether this is the path of the data of the page.
    pub fn is_live(&self, path: &[u8]) -> bool {
        let beside = self.page.strip_suffix(b"/").unwrap_or(&self.page);
        !self.page.is_empty() && path.strip_prefix(beside) == Some(LIVE)
    }
}

/// Where the admin listener tells what the server is at.
pub const STATUS: &[u8] = b"/status";

/// Where the admin listener tells the load.
pub const LOAD: &[u8] = b"/load";

/// Where the page of the admin listener finds its data, behind its own path.
pub const LIVE: &[u8] = b"/live.json";

impl Default for AdminPaths {
    fn default() -> AdminPaths {
        AdminPaths {
            health: b"/healthz".to_vec(),
            ready: b"/readyz".to_vec(),
            metrics: b"/metrics".to_vec(),
            page: b"/".to_vec(),
            status: false,
            allow: Trust::everybody(),
            info: Vec::new(),
            application: None,
        }
    }
}

/// Memory for one body of known length that belongs to the gateway (a Python `bytes` object that is being filled).
pub trait BodyBuffer: Send + Sync {
    /// The bytes so far.
    fn filled(&self) -> &[u8];
    /// Adds bytes, of which there are never more than the length asked for.
    fn append(&mut self, bytes: &[u8]);
    /// Reads up to `room` bytes to the end of those so far ([`Stream::read_into`]).
    fn receive(&mut self, stream: &Stream, room: usize) -> Received;
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// What a read brought: a number of bytes, or the system's error.
pub type Received = rustix::io::Result<usize>;

/// Makes a buffer for a body of so many bytes. Only called on app threads, which hold the GIL.
pub type Allocate = fn(usize) -> Option<Box<dyn BodyBuffer>>;

/// Which of the waiting requests is served first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum QueueOrder {
    #[default]
    Fifo,
    /// The newest first while the queue stands: its client is the likeliest to be there still.
    Adaptive,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum MaxConcurrency {
    #[default]
    Unlimited,
    Fixed(usize),
    /// What the measured latency allows (`limiter/`).
    Auto,
}

/// A place between two steps of a hand-over where the process is killed, or something else that is to go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Failpoint {
    BeforeSend,
    AfterSend,
    BeforeTake,
    AfterTake,
    BeforeStart,
    /// So many heads of responses panic, with these words.
    Panics(usize, &'static str),
    /// The monitor panics when a call is in flight.
    MonitorPanics,
    /// The disk hangs while the file `stall` in `upload_dir` is a FIFO that is not open for writing.
    StallDisk,
    /// The disk of the access log's file hangs while the same path with the extension `stall` is such a FIFO.
    StallLog,
    /// A thread that joins works for longer than the baton may be held.
    LongHold,
}

/// A queue stands that has not been empty for so long.
pub const STANDING: u64 = 100 * crate::clock::MILLI;
/// A client that closes its sending side together with its request still listens. One that does so this long after its
/// request was complete has left.
pub const HALF_CLOSE: u64 = 50 * crate::clock::MILLI;
/// How often waiting requests are looked at again although nothing has happened.
pub const SHARE_TICK: u64 = 5 * crate::clock::MILLI;
/// How often the log is told of requests that were turned away, and of responses that could not be kept on disk.
pub const TELL: u64 = crate::clock::SECOND;

/// A hub that does not come for less than this is held up for a moment only.
pub const MOMENT: u64 = 250 * crate::clock::MILLI;
/// Most requests that a hub says it could begin at once, however many it could: what is sent to it waits for it.
pub const HUB_FREE: usize = 8;

/// Of a WebSocket's output, so much may wait before its application should.
pub const LOW_WATER: usize = 64 * 1024;
/// How long a closed connection is read from, so that the client can read our last words before a reset.
pub const LINGER: u64 = 2 * crate::clock::SECOND;
/// Most connections taken from one listener's queue in a row.
pub const ACCEPT_BURST: u32 = 64;
/// Most body bytes read from one connection in a row.
pub const READ_BURST: usize = 256 * 1024;
/// The same where they are encrypted or decrypted, which takes longer than to copy them.
pub const SECURED_BURST: usize = 64 * 1024;
/// Steps of work while the baton is held once: an event, a new connection, an end by a deadline. Each takes up to some 20 µs.
pub const STEPS: u32 = 16;
/// Steps that an answer of the reactor's own takes: a page is written, a line logged, and our side closed.
pub const REJECTION_STEPS: u32 = 3;
/// Bytes that are read or sent in the time of a step.
pub const STEP_BYTES: usize = 16 * 1024;
/// Places of the table of connections, or deadlines, that are looked at while the baton is held once.
pub const SWEEP: usize = 256;
/// Bytes that are read and sent between two looks at the events. Copying so many takes well under a millisecond; then newcomers,
/// deadlines and other threads have their turn, however much more there is.
pub const TURN_BYTES: usize = 2 << 20;
/// Bytes of a body that are written to disk at a time.
pub const SPOOL_PIECE: usize = 256 * 1024;
/// Bytes of all bodies that may be on their way to the disk. Beyond them clients wait, by TCP flow control.
pub const SPOOL_AHEAD: usize = 8 << 20;
/// Bodies from this length on are read into the gateway's own buffers; below it a copy is cheaper than an allocation.
pub const FOREIGN: usize = 32 * 1024;
/// While other requests wait and calls take this long (nanoseconds, from … to), answers that are ready are held back to
/// be sent together: each one sent alone would wake a client that sleeps, and with it another processor.
pub const GATHER_ANSWERS: std::ops::Range<u64> = 20_000..250_000;
/// The longest an answer is held back by that, unless a call takes longer than the last ones did; then it is a tick or two.
pub const HOLD: u64 = 1_000_000;
/// Most answers held back.
pub const HELD: usize = 16;
/// Most admin connections held; a newcomer takes the place of one that is idle.
pub const ADMIN_CONNECTIONS: usize = 64;
/// How long an admin connection may be silent: longer than the usual distance between two probes.
pub const ADMIN_IDLE: u64 = 60 * crate::clock::SECOND;
/// The longest the events are not looked at while requests follow one another without a pause, if there are admin listeners.
pub const ADMIN_PATIENCE: u64 = 20 * crate::clock::MILLI;
/// How long the client of an admin connection may take for an answer that does not fit the socket at once.
pub const ADMIN_WRITE: u64 = 5 * crate::clock::SECOND;
/// How long an answer waits for the disk from which the application's metrics are read: then it is given without them.
pub const ADMIN_READING: u64 = 2 * SECOND;
/// How long an admin connection that was accepted with a reserved descriptor may take for its question.
pub const ADMIN_HASTE: u64 = crate::clock::SECOND;
/// How long accepting pauses after the system ran out of descriptors, or no room could be made.
pub const ACCEPT_PAUSE: u64 = 100 * crate::clock::MILLI;
/// Least connections that are closed when descriptors run out: the application needs some as well.
pub const RELIEF: usize = 4;
/// A head is overdue after this time. A client that has its request ready needs a round trip, and after a lost packet the
/// time to its retransmission (RFC 6298: at first a second).
pub const HEAD_DUE: u64 = crate::clock::SECOND;
/// The monitor's tick while application calls are in flight.
pub const TICK: u64 = crate::clock::MILLI;
/// Its tick while calls follow one another closely, and under a hub: each wakes a thread that takes the processor from the
/// application for some 20 µs.
pub const LONG_TICK: u64 = 3 * TICK;
/// Most notices kept for the log until an app thread takes them.
pub const NOTICES: usize = 256;
/// How long a draining worker still takes connections: those whose handshake was done before the arbiter let no more
/// begin, a round trip or two ago.
pub const LAST_CALL: u64 = 100 * crate::clock::MILLI;
