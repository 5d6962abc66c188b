//! The metrics there are: a row for each, from which they are rendered and documented.
//!
//! Each has something that feeds it. The label `worker` is a worker's slot, which is used again, so that the number of time
//! series is bounded; there is no label for a method, a path or a client.

use super::load::Report;
use crate::scoreboard::ledger::{EXITS, LedgerWord, RELOADS};
use crate::scoreboard::routes::RouteCounts;
use crate::scoreboard::{APP_TIME, QUEUE_TIME, State, TOTAL_TIME, Word};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
    Info,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
            Kind::Info => "info",
        }
    }
}

/// One metric, without the prefix `tricorn_`; a counter without the suffix `_total`.
#[derive(Debug)]
pub struct Family {
    pub name: &'static str,
    pub kind: Kind,
    /// The name of its label; empty: it has none.
    pub label: &'static str,
    pub help: &'static str,
    pub(super) source: Source,
}

/// A number that is worked out.
#[derive(Debug, Clone, Copy)]
pub(super) enum Number {
    Count(u64),
    /// Told in seconds.
    Nanoseconds(u64),
    Ratio(f64),
}

/// Where the numbers come from.
#[derive(Debug)]
pub(super) enum Source {
    /// A word that only grows, of all workers that ever were; and several of them by the value of the label.
    Count(Word),
    Counts(&'static [(&'static str, Word)]),
    /// The same, left out as long as all are zero: not every worker class has them.
    SomeCounts(&'static [(&'static str, Word)]),
    /// The same in nanoseconds.
    Nanoseconds(Word),
    /// The same, left out as long as it is zero.
    SomeNanoseconds(Word),
    /// The sum of a gauge over the workers there are.
    Sum(Word),
    /// The same, left out as long as it is zero.
    SomeSum(Word),
    Sums(&'static [(&'static str, Word)]),
    /// What is given by where it begins.
    Durations(usize),
    GilWaits,
    Codes,
    Refusals,
    /// Of each route: a count, nanoseconds, how long its requests took.
    ByRoute(fn(&RouteCounts) -> u64),
    SecondsByRoute(fn(&RouteCounts) -> u64),
    RouteDurations,
    /// Words of the arbiter.
    Arbiter(LedgerWord),
    /// The same where it is not 0.
    SomeArbiter(LedgerWord),
    Named(LedgerWord, &'static [&'static str]),
    /// In how many states workers are.
    States(&'static [(&'static str, State)]),
    /// A word of each worker's page; and one in nanoseconds.
    ByWorker(Word),
    SecondsByWorker(Word),
    /// Connections that wait in the kernel by listener, and how many may.
    Backlog,
    BacklogLimit,
    Capacity,
    /// Of the load report.
    Load(fn(&Report) -> Number),
    OldestWait,
    BusyRatio,
    ConcurrencyLimit,
    StartTime,
    /// What became of the files of the application's metrics.
    Files,
    LeftOut,
    Info,
}

const fn row(kind: Kind, name: &'static str, label: &'static str, help: &'static str, source: Source) -> Family {
    Family { name, kind, label, help, source }
}

use Kind::{Counter, Gauge, Histogram};
use Source::*;

#[rustfmt::skip]
pub static FAMILIES: [Family; 73] = [
    row(Histogram, "request_duration_seconds", "", "Time from a request's first byte to the last write of its response, of requests that met the application.", Durations(TOTAL_TIME)),
    row(Histogram, "queue_duration_seconds", "", "Time that complete requests waited for the application.", Durations(QUEUE_TIME)),
    row(Histogram, "application_duration_seconds", "", "Time from the call of the application to the last piece of its response.", Durations(APP_TIME)),
    row(Histogram, "gil_wait_seconds", "", "Time that threads with a request at hand waited for the GIL (sync, gthread).", GilWaits),
    row(Counter, "requests", "", "Requests that the application was called for, and that are over.", Count(Word::Requests)),
    row(Counter, "responses", "code", "Responses by status, the server's own among them; code other: of statuses beyond the first 21.", Codes),
    row(Counter, "application_errors", "", "Requests whose application raised an exception or broke its protocol.", Count(Word::AppErrors)),
    row(Counter, "shed", "reason", "Requests answered with 503 that the application was not called for.", Counts(&[("queue_full", Word::QueueFull), ("queue_late", Word::QueueLate), ("leaving", Word::Leaving), ("head_memory", Word::HeadsShed)])),
    row(Counter, "refused", "reason", "Requests that were refused, by the rule that they broke.", Refusals),
    row(Counter, "client_left_queue", "", "Clients that left while their request waited for the application.", Count(Word::LeftQueue)),
    row(Counter, "late_calls", "limit", "Calls of the application that were older than a limit.", Counts(&[("timeout", Word::Stuck), ("request_timeout", Word::Late)])),
    row(Counter, "connections_accepted", "", "Connections that were accepted.", Count(Word::Accepted)),
    row(Counter, "connections_closed", "reason", "Connections that ended because of their client or a limit.", Counts(&[("idle", Word::IdleCloses), ("evicted", Word::Evicted), ("head_timeout", Word::HeadTimeouts), ("body_timeout", Word::BodyTimeouts), ("write_timeout", Word::WriteTimeouts), ("client_gone", Word::ClientGone)])),
    row(Counter, "handovers", "direction", "Requests handed over to another worker, and taken over from one.", Counts(&[("sent", Word::HandedOver), ("taken", Word::TakenOver)])),
    row(Counter, "bytes", "direction", "Bytes read from and written to clients, without TLS and admin connections.", Counts(&[("in", Word::BytesIn), ("out", Word::BytesOut)])),
    row(Counter, "tls_handshakes", "kind", "Handshakes of TLS that came to their end: full ones, and those that resumed a session.", SomeCounts(&[("full", Word::TlsFull), ("resumed", Word::TlsResumed)])),
    row(Counter, "tls_handshakes_failed", "reason", "Handshakes of TLS that failed.", SomeCounts(&[("version", Word::TlsFailedVersion), ("cipher", Word::TlsFailedCipher), ("protocol", Word::TlsFailedProtocol), ("name", Word::TlsFailedName), ("certificate", Word::TlsFailedCertificate), ("alert", Word::TlsFailedAlert), ("plain", Word::TlsFailedPlain), ("garbage", Word::TlsFailedGarbage), ("left", Word::TlsFailedLeft), ("timeout", Word::TlsFailedTimeout), ("crowded", Word::TlsFailedCrowded), ("internal", Word::TlsFailedInternal)])),
    row(Counter, "websocket_messages", "direction", "Messages of WebSockets (asgi).", SomeCounts(&[("in", Word::MessagesIn), ("out", Word::MessagesOut)])),
    row(Counter, "streams_closed", "", "Responses that the server ended since their worker leaves: event streams, and others without a length.", Count(Word::StreamsClosed)),
    row(Counter, "spooled_bodies", "", "Request bodies that were kept on disk.", Count(Word::Spooled)),
    row(Counter, "unforwarded", "", "Requests of untrusted peers from which forwarded headers were taken.", Count(Word::Unforwarded)),
    row(Counter, "rescues", "", "Times the monitor went on with I/O because no thread of the application did.", Count(Word::Rescues)),
    row(Counter, "lines_lost", "log", "Lines of a log that were lost.", Counts(&[("access", Word::LogLost), ("syslog", Word::SyslogLost), ("statsd", Word::StatsdLost)])),
    row(Counter, "cpu_seconds", "", "Processor time of all workers.", Nanoseconds(Word::Cpu)),
    row(Counter, "loop_work_seconds", "", "Time in which event loops did not wait for events (gevent, eventlet, event loops; uvloop: while requests wait for it).", SomeNanoseconds(Word::LoopWorked)),
    row(Counter, "loop_blocked_seconds", "", "Of that, time in which they neither computed nor wanted a processor: calls that hold up all others.", SomeNanoseconds(Word::LoopBlocked)),
    row(Counter, "call_blocked_seconds", "", "Time in which calls on threads neither computed nor wanted a processor (sync, gthread; without their first milliseconds).", SomeNanoseconds(Word::CallBlocked)),
    row(Counter, "call_delayed_seconds", "", "Time in which calls on threads wanted a processor and had none (sync, gthread; without their first milliseconds).", SomeNanoseconds(Word::CallDelayed)),
    row(Histogram, "route_duration_seconds", "route", "Time from the call of the application to the last piece of its response, by route (route_metrics); route other: all without one.", RouteDurations),
    row(Counter, "route_errors", "route", "Requests of a route that were answered with a status from 500 on.", ByRoute(|route| route.errors)),
    row(Counter, "route_cpu_seconds", "route", "Time that requests of a route computed, of those that took longer than a few milliseconds.", SecondsByRoute(|route| route.computed)),
    row(Counter, "route_blocked_seconds", "route", "Time that they waited without giving way: on a thread, or while they held up an event loop.", SecondsByRoute(|route| route.blocked)),
    row(Counter, "route_yielded_seconds", "route", "Time that they gave way to others (event loops).", SecondsByRoute(|route| route.yielded())),
    row(Counter, "route_delayed_seconds", "route", "Time that they wanted a processor and had none.", SecondsByRoute(|route| route.delayed)),
    row(Counter, "offload_calls", "", "Calls that native threads made for greenlets and coroutines (healed drivers, tricorn.offload).", SomeCounts(&[("", Word::OffloadCalls)])),
    row(Counter, "offload_seconds", "", "Time that those took that are over: it would have held up the others of their worker.", SomeNanoseconds(Word::OffloadTime)),
    row(Counter, "offload_abandoned", "", "Calls that went on when their request waited no longer.", SomeCounts(&[("", Word::OffloadAbandoned)])),
    row(Counter, "arrived", "", "Requests that came to be answered by the application, those too that were turned away or left before.", Load(|report| Number::Count(report.arrived))),
    row(Counter, "busy_seconds", "", "Time for which workers were busy: each thread with calls, those under way included; event loops with anything but waiting.", Load(|report| Number::Nanoseconds(report.busy))),
    row(Counter, "workers_started", "", "Workers that were started.", Arbiter(LedgerWord::Spawned)),
    row(Counter, "worker_exits", "reason", "Workers that ended.", Named(LedgerWord::Exits, &EXITS)),
    row(Counter, "reloads", "result", "Reloads that ended.", Named(LedgerWord::Reloads, &RELOADS)),
    row(Gauge, "workers", "state", "Workers there are.", States(&[("booting", State::Booting), ("serving", State::Serving), ("draining", State::Draining)])),
    row(Gauge, "workers_target", "", "Workers that are wanted.", Arbiter(LedgerWord::Target)),
    row(Gauge, "generation", "", "The number of the generation in force; each reload makes one.", Arbiter(LedgerWord::Generation)),
    row(Gauge, "tls_certificate_not_after_seconds", "", "When the first certificate ends that is in force, in seconds since 1970; only with TLS.", SomeArbiter(LedgerWord::CertificateEnds)),
    row(Gauge, "connections", "", "Connections that are open.", Sum(Word::Connections)),
    row(Gauge, "tls_handshakes_pending", "", "Handshakes of TLS that are under way.", SomeSum(Word::TlsHandshakes)),
    row(Gauge, "requests_running", "", "Requests that are with the application.", Sum(Word::InFlight)),
    row(Gauge, "requests_waiting", "", "Complete requests that wait for the application.", Sum(Word::Queued)),
    row(Gauge, "oldest_wait_seconds", "", "How long the request waits that waits longest.", OldestWait),
    row(Gauge, "capacity", "", "Requests that can run at once in the workers that serve.", Capacity),
    row(Gauge, "busy_ratio", "", "Requests that run, of those that can run at once.", BusyRatio),
    row(Gauge, "load_capacity", "", "Seconds of work that workers which serve can do in a second: one for each thread, one for each event loop.", Load(|report| Number::Count(report.capacity))),
    row(Gauge, "utilisation", "", "The share of that which was used in the last seconds.", Load(|report| Number::Ratio(report.figures.utilisation))),
    row(Gauge, "demand", "", "Work that came in the last seconds, of what workers can do: more than 1 if it is too much.", Load(|report| Number::Ratio(report.figures.demand))),
    row(Gauge, "weight", "", "The share of requests that balancers should send here, of 100 at this host's best speed.", Load(|report| Number::Count(report.weight))),
    row(Gauge, "concurrency_limit", "", "Requests that may run at once in all workers (max_concurrency).", ConcurrencyLimit),
    row(Gauge, "worker_busy", "worker", "Requests that are with the application in a worker, by its slot.", ByWorker(Word::InFlight)),
    row(Gauge, "worker_rss_bytes", "worker", "Resident memory of a worker, what workers share included, by its slot.", ByWorker(Word::Resident)),
    row(Gauge, "worker_cpu_seconds", "worker", "Processor time of the worker that has a slot now.", SecondsByWorker(Word::Cpu)),
    row(Gauge, "listen_backlog", "listener", "Connections that wait in the kernel to be accepted (TCP without reuse_port).", Backlog),
    row(Gauge, "listen_backlog_limit", "listener", "How many may wait there: backlog, cut to net.core.somaxconn.", BacklogLimit),
    row(Gauge, "database_connections", "", "Connections to databases that green workers hold.", SomeSum(Word::Databases)),
    row(Gauge, "offload_threads", "", "Native threads there are for such calls.", SomeSum(Word::OffloadThreads)),
    row(Gauge, "offload_busy", "", "Such calls that are under way.", SomeSum(Word::OffloadBusy)),
    row(Gauge, "offload_waiting", "", "Such calls that wait for a thread, or for the one before of the same object.", SomeSum(Word::OffloadWaiting)),
    row(Gauge, "memory_bytes", "of", "Memory of unfinished heads, of request bodies, of responses that slow clients have not taken, and of unfinished and unsent records of TLS.", Sums(&[("heads", Word::HeadBytes), ("bodies", Word::BodyBytes), ("responses", Word::ResponseBytes), ("tls", Word::TlsBytes)])),
    row(Gauge, "disk_bytes", "of", "Request bodies and responses on disk.", Sums(&[("bodies", Word::DiskBytes), ("responses", Word::ResponseDiskBytes)])),
    row(Gauge, "start_time_seconds", "", "When the arbiter began, in seconds since 1970.", StartTime),
    row(Gauge, "application_files", "state", "Files of the application's own metrics (metrics_app) that were merged, and that are broken or too long.", Files),
    row(Gauge, "application_values_left_out", "", "Values among them that belong to no metric that could be told.", LeftOut),
    row(Kind::Info, "", "", "The server's version, Python's, and the worker class.", Info),
];
