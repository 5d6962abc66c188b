//! The single words of a worker's page: the one table from which figures, metrics, sums and the page of the layout are made.

/// What becomes of a word when pages are summed up, and when its worker is gone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// It only grows. Its sum is over all workers that ever were: the ledger takes it over.
    Counter,
    /// Its sum is over the workers there are.
    Gauge,
    /// It says something of this worker alone: who it is, a moment, an order.
    Own,
}

impl Role {
    pub const fn name(self) -> &'static str {
        match self {
            Role::Counter => "counter",
            Role::Gauge => "gauge",
            Role::Own => "own",
        }
    }
}

/// One row of the table.
#[derive(Debug)]
pub struct Row {
    pub word: Word,
    /// How many words it is, from that one on.
    pub count: usize,
    pub role: Role,
    /// Its name among the figures of a page; empty: it is none of them.
    pub figure: &'static str,
    /// The metric whose sample it is (`metrics/families.rs`), and the value of that one's label; empty: none.
    pub metric: &'static str,
    pub label: &'static str,
    pub text: &'static str,
}

/// A row: its text, its name and index, its role and how many words it is; then its name as a figure, and the metric and the value of
/// the metric's label.
macro_rules! words {
    ($($(#[doc = $text:literal])+ $name:ident = $index:literal, $role:ident $(* $count:literal)?
        $(, $figure:literal)? $(=> $metric:literal $(: $label:literal)?)?;)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(usize)]
        pub enum Word {
            $($(#[doc = $text])+ $name = $index,)*
        }

        pub const WORDS: &[Row] = &[$(Row {
            word: Word::$name,
            count: 1 $(* $count)?,
            role: Role::$role,
            figure: concat!($($figure)?),
            metric: concat!($($metric)?),
            label: concat!($($($label)?)?),
            text: concat!($($text),+),
        },)*];
    };
}

words! {
    /// `TRICORN\0`.
    Magic = 0, Own;
    /// The version of the layout.
    Version = 1, Own;
    /// The pid.
    Pid = 2, Own;
    /// 1 booting, 2 serving, 3 draining, 4 stopped.
    State = 3, Own;
    /// When the monitor last looked around; it rests while nothing is in flight.
    Heartbeat = 4, Own;
    /// Requests that can run at once.
    Threads = 5, Own;
    /// [Orders](#orders), written by the arbiter.
    Orders = 6, Own;
    /// The level of the log that an operator has asked for, as Python numbers them; 0: as configured. Written by the arbiter.
    LogLevel = 7, Own;
    /// Connections.
    Connections = 8, Gauge, "connections" => "connections";
    /// Requests in the application.
    InFlight = 9, Gauge, "in_flight" => "requests_running";
    /// Requests that wait.
    Queued = 10, Gauge, "queued" => "requests_waiting";
    /// Bytes of request bodies in memory.
    BodyBytes = 11, Gauge, "body_bytes" => "memory_bytes": "bodies";
    /// App threads that could begin a request now; 0 while the worker boots, drains, is stuck, or is gone.
    Free = 12, Gauge, "free";
    /// When the request that waits longest began to wait; 0: none waits.
    Oldest = 13, Own;
    /// Bytes of responses that wait in memory for slow clients; any thread's.
    ResponseBytes = 14, Gauge, "response_bytes" => "memory_bytes": "responses";
    /// Bytes of responses that wait on disk; any thread's.
    ResponseDiskBytes = 15, Gauge, "response_disk_bytes" => "disk_bytes": "responses";
    /// Connections accepted.
    Accepted = 16, Counter, "accepted" => "connections_accepted";
    /// Requests that the application has completed.
    Requests = 17, Counter, "requests" => "requests";
    /// Requests refused, of all kinds.
    Refused = 18, Counter, "refused";
    /// Connections closed because a head came too slowly.
    HeadTimeouts = 19, Counter, "head_timeouts" => "connections_closed": "head_timeout";
    /// Connections closed because a body came too slowly.
    BodyTimeouts = 20, Counter, "body_timeouts" => "connections_closed": "body_timeout";
    /// Connections closed because their client did not take its response.
    WriteTimeouts = 21, Counter, "write_timeouts" => "connections_closed": "write_timeout";
    /// Connections closed when they were idle for `keepalive`.
    IdleCloses = 22, Counter, "idle_closes" => "connections_closed": "idle";
    /// Connections closed to make room for others.
    Evicted = 23, Counter, "evicted" => "connections_closed": "evicted";
    /// Connections that their client closed during a request.
    ClientGone = 24, Counter, "client_gone" => "connections_closed": "client_gone";
    /// Request bodies stored on disk.
    Spooled = 25, Counter, "spooled" => "spooled_bodies";
    /// Requests in which the application failed.
    AppErrors = 26, Counter, "app_errors" => "application_errors";
    /// Bytes received.
    BytesIn = 27, Counter, "bytes_in" => "bytes": "in";
    /// Bytes sent.
    BytesOut = 28, Counter, "bytes_out" => "bytes": "out";
    /// Times the monitor had to step in for app threads.
    Rescues = 29, Counter, "rescues" => "rescues";
    /// Lines of the access log that were lost.
    LogLost = 30, Counter, "log_lost" => "lines_lost": "access";
    /// Nanoseconds in which calls on threads were blocked, without their first moments (`waiting/mark.rs`).
    CallBlocked = 31, Counter, "call_blocked_nanoseconds" => "call_blocked_seconds";
    /// Responses with status 1xx to 5xx.
    StatusClass = 32, Counter * 5;
    /// Nanoseconds in which a hub's event loop did not wait for events (`waiting/loop_time.rs`).
    LoopWorked = 37, Counter, "loop_work_nanoseconds" => "loop_work_seconds";
    /// Nanoseconds in which it was blocked meanwhile.
    LoopBlocked = 38, Counter, "loop_blocked_nanoseconds" => "loop_blocked_seconds";
    /// Nanoseconds in which calls on threads wanted a processor in vain, without their first moments.
    CallDelayed = 39, Counter, "call_delayed_nanoseconds" => "call_delayed_seconds";
    /// Requests sent to other workers, each with its connection.
    HandedOver = 40, Counter, "handed_over" => "handovers": "sent";
    /// Requests taken from other workers.
    TakenOver = 41, Counter, "taken_over" => "handovers": "taken";
    /// Requests answered 503 because of `queue_limit`.
    QueueFull = 42, Counter, "queue_full" => "shed": "queue_full";
    /// Requests answered 503 because of `queue_timeout`.
    QueueLate = 43, Counter, "queue_late" => "shed": "queue_late";
    /// Requests left by their clients while they waited.
    LeftQueue = 44, Counter, "left_queue" => "client_left_queue";
    /// Connections to databases that the worker holds, written by its Python.
    Databases = 45, Gauge, "databases" => "database_connections";
    /// Entries of the table of requests that were ever used, from the first one on.
    Entries = 46, Own;
    /// Requests answered 503 because the worker leaves and every thread of it is stuck.
    Leaving = 47, Counter, "leaving" => "shed": "leaving";
    /// Calls without progress for `timeout`.
    Stuck = 48, Counter, "stuck" => "late_calls": "timeout";
    /// Calls that lasted longer than `request_timeout`.
    Late = 49, Counter, "late" => "late_calls": "request_timeout";
    /// Memory of request heads that are not complete.
    HeadBytes = 50, Gauge, "head_bytes" => "memory_bytes": "heads";
    /// Unfinished heads refused beyond `head_buffer_total`.
    HeadsShed = 51, Counter, "heads_shed" => "shed": "head_memory";
    /// Bytes of request bodies on disk, or on their way there; `body_disk_total` limits the sum over all workers.
    DiskBytes = 52, Gauge, "body_disk_bytes" => "disk_bytes": "bodies";
    /// Requests of untrusted peers from which forwarded headers were taken.
    Unforwarded = 53, Counter, "unforwarded" => "unforwarded";
    /// Processor time of the process in nanoseconds, as its monitor saw it last.
    Cpu = 54, Counter, "cpu_nanoseconds" => "cpu_seconds";
    /// The worker's slot.
    Slot = 55, Own, "slot";
    /// The worker's generation.
    Generation = 56, Own, "generation";
    /// Messages of WebSockets that came; any thread's.
    MessagesIn = 57, Counter, "messages_in" => "websocket_messages": "in";
    /// Messages of WebSockets that were sent; any thread's.
    MessagesOut = 58, Counter, "messages_out" => "websocket_messages": "out";
    /// Messages to syslog that were lost.
    SyslogLost = 59, Counter, "syslog_lost" => "lines_lost": "syslog";
    /// Messages to statsd that were lost.
    StatsdLost = 60, Counter, "statsd_lost" => "lines_lost": "statsd";
    /// Resident memory of the process in bytes, as its monitor saw it last.
    Resident = 61, Gauge, "resident_bytes";
    /// When [the call to be cancelled](#orders) began, written by the arbiter; 0: none is.
    Cancel = 62, Own;
    /// The slot of that call; when the order was taken, what became of it.
    CancelSlot = 63, Own;
    /// Responses that were ended because the worker leaves.
    StreamsClosed = 439, Counter, "streams_closed" => "streams_closed";
    /// Nanoseconds for which the load report has seen the worker busy, written by the worker that takes a sample.
    LoadSeen = 440, Own;
    /// Nanoseconds for which the load report has seen its event loop work, written by the same.
    LoadSeenLoop = 441, Own;
    /// Calls that native threads began for greenlets and coroutines, written by any thread of the worker's Python, as the next five are.
    OffloadCalls = 442, Counter, "offload_calls" => "offload_calls";
    /// Nanoseconds of such calls that ended.
    OffloadTime = 443, Counter, "offload_nanoseconds" => "offload_seconds";
    /// Such calls that their callers left meanwhile.
    OffloadAbandoned = 444, Counter, "offload_abandoned" => "offload_abandoned";
    /// Threads for such calls.
    OffloadThreads = 445, Gauge, "offload_threads" => "offload_threads";
    /// Such calls under way.
    OffloadBusy = 446, Gauge, "offload_busy" => "offload_busy";
    /// Such calls that wait for their turn.
    OffloadWaiting = 447, Gauge, "offload_waiting" => "offload_waiting";
    /// Handshakes of TLS that were full.
    TlsFull = 448, Counter, "tls_full" => "tls_handshakes": "full";
    /// Handshakes that resumed a session.
    TlsResumed = 449, Counter, "tls_resumed" => "tls_handshakes": "resumed";
    /// Handshakes that failed: no version in common.
    TlsFailedVersion = 450, Counter, "tls_failed_version" => "tls_handshakes_failed": "version";
    /// No cipher suite, group or signature in common.
    TlsFailedCipher = 451, Counter, "tls_failed_cipher" => "tls_handshakes_failed": "cipher";
    /// None of the client's protocols (ALPN) is spoken here.
    TlsFailedProtocol = 452, Counter, "tls_failed_protocol" => "tls_handshakes_failed": "protocol";
    /// The client asked for no name, or for one that is unknown.
    TlsFailedName = 453, Counter, "tls_failed_name" => "tls_handshakes_failed": "name";
    /// The client's certificate is missing, or is not accepted.
    TlsFailedCertificate = 454, Counter, "tls_failed_certificate" => "tls_handshakes_failed": "certificate";
    /// The client does not accept the certificate, or says so by another alert.
    TlsFailedAlert = 455, Counter, "tls_failed_alert" => "tls_handshakes_failed": "alert";
    /// The client speaks plain HTTP.
    TlsFailedPlain = 456, Counter, "tls_failed_plain" => "tls_handshakes_failed": "plain";
    /// The client speaks something else.
    TlsFailedGarbage = 457, Counter, "tls_failed_garbage" => "tls_handshakes_failed": "garbage";
    /// The client left before the end.
    TlsFailedLeft = 458, Counter, "tls_failed_left" => "tls_handshakes_failed": "left";
    /// The handshake took longer than `tls_handshake_timeout`.
    TlsFailedTimeout = 459, Counter, "tls_failed_timeout" => "tls_handshakes_failed": "timeout";
    /// The connection was closed for others, which are many.
    TlsFailedCrowded = 460, Counter, "tls_failed_crowded" => "tls_handshakes_failed": "crowded";
    /// A defect of the server, or of the configuration.
    TlsFailedInternal = 461, Counter, "tls_failed_internal" => "tls_handshakes_failed": "internal";
    /// Handshakes under way.
    TlsHandshakes = 462, Gauge, "tls_handshakes" => "tls_handshakes_pending";
    /// Bytes that sessions of TLS hold for their sockets; any thread's.
    TlsBytes = 463, Gauge, "tls_bytes" => "memory_bytes": "tls";
    /// Connections on which HTTP/2 was begun.
    Http2Connections = 464, Counter, "http2_connections" => "http2_connections";
    /// Streams that clients have begun.
    Http2Streams = 465, Counter, "http2_streams" => "http2_streams";
    /// Streams that their clients have reset.
    Http2Resets = 466, Counter, "http2_resets" => "http2_resets";
    /// Rules of HTTP/2 that clients have broken, its limits among them: each ends a stream, or a connection.
    Http2Violations = 467, Counter, "http2_violations" => "http2_violations";
    /// Requests that another worker answers while their connections stay here (TLS, HTTP/2); they are handed over, too.
    Lent = 468, Counter, "lent" => "requests_lent";
    /// Sessions that are this worker's since it sent or saw their names (`one_queue/affinity.rs`).
    SessionsLearned = 469, Counter, "sessions_learned" => "sessions": "learned";
    /// Requests sent to the worker that has their session.
    SessionsFollowed = 470, Counter, "sessions_followed" => "sessions": "followed";
    /// Sessions that gave way to newer ones.
    SessionsForgotten = 471, Counter, "sessions_forgotten" => "sessions": "forgotten";
    /// Requests that the server has answered with files of its own, or for want of them.
    StaticFiles = 472, Counter, "static_files" => "static_files";
    /// Memory of the process in bytes, shared pages divided among those that share them (PSS); 0: not measured. Written by the arbiter, as the next two are.
    Pss = 473, Own;
    /// Bytes that no other process has (USS).
    Uss = 474, Own;
    /// Bytes that other processes have, too.
    Shared = 475, Own;
}

/// The words that are samples of a metric, in the order of its labels.
pub fn samples_of(metric: &str) -> impl Iterator<Item = &'static Row> {
    WORDS.iter().filter(move |row| row.metric == metric)
}

/// The words of a role, by index.
const fn indices<const COUNT: usize>(role: Role) -> [usize; COUNT] {
    let (mut found, mut length, mut row) = ([0; COUNT], 0, 0);
    while row < WORDS.len() {
        let mut word = 0;
        while word < WORDS[row].count && WORDS[row].role as usize == role as usize {
            found[length] = WORDS[row].word as usize + word;
            (length, word) = (length + 1, word + 1);
        }
        row += 1;
    }
    found
}

/// How many words of a role there are.
const fn count(role: Role) -> usize {
    let (mut sum, mut row) = (0, 0);
    while row < WORDS.len() {
        sum += if WORDS[row].role as usize == role as usize { WORDS[row].count } else { 0 };
        row += 1;
    }
    sum
}

/// The single words that only grow. Besides them all histograms do, and what is counted by a key.
pub static COUNTERS: [usize; count(Role::Counter)] = indices(Role::Counter);
/// Those that are summed over the workers there are.
pub static GAUGES: [usize; count(Role::Gauge)] = indices(Role::Gauge);

/// Words come in order, and do not overlap one another, or what lies from `from` up to `to`, or beyond `end`.
pub(super) const fn are_apart(from: usize, to: usize, end: usize) -> bool {
    let (mut next, mut row) = (0, 0);
    while row < WORDS.len() {
        let first = WORDS[row].word as usize;
        let behind = first + WORDS[row].count;
        if first < next || (behind > from && first < to) {
            return false;
        }
        (next, row) = (behind, row + 1);
    }
    next <= end
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_counter_and_gauge_is_a_figure() {
        let nameless = WORDS.iter().filter(|row| row.role != Role::Own && row.figure.is_empty());
        assert!(nameless.map(|row| row.word).eq([Word::StatusClass]));
    }

    #[test]
    fn every_word_has_a_text() {
        assert!(WORDS.iter().all(|row| row.text.trim().ends_with('.')));
    }
}
