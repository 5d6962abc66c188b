//! The metrics there are: a row for each, from which they are rendered and documented. Words of the scoreboard say in their own table
//! which of them they belong to.
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
    /// The words that the scoreboard's table names for it: of counters the sum over all workers that ever were, of gauges over those
    /// there are. Nanoseconds are told in seconds.
    Words,
    /// The same, left out as long as all are zero: not every worker class has them.
    SomeWords,
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
    /// A word of each worker's page, and those of the arbiter and of the molds, where they are not 0.
    Memory(Word, LedgerWord, LedgerWord),
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
pub static FAMILIES: [Family; 83] = [
    row(Histogram, "request_duration_seconds", "", "Total request duration, from the first byte received to the last byte sent, for requests passed to the application.", Durations(TOTAL_TIME)),
    row(Histogram, "queue_duration_seconds", "", "Time complete requests waited before the application was called.", Durations(QUEUE_TIME)),
    row(Histogram, "application_duration_seconds", "", "Time from calling the application to the last piece of its response.", Durations(APP_TIME)),
    row(Histogram, "gil_wait_seconds", "", "Time threads with a pending request waited for the GIL (sync, gthread).", GilWaits),
    row(Counter, "requests", "", "Requests completed by the application.", Words),
    row(Counter, "responses", "code", "Responses by status code, including the server's own; code other: status codes beyond the first 21.", Codes),
    row(Counter, "application_errors", "", "Requests in which the application raised an exception or violated its protocol.", Words),
    row(Counter, "shed", "reason", "Requests rejected with 503 before reaching the application.", Words),
    row(Counter, "refused", "reason", "Requests rejected as invalid, by the rule they broke.", Refusals),
    row(Counter, "client_left_queue", "", "Clients that disconnected while their request was waiting for the application.", Words),
    row(Counter, "late_calls", "limit", "Application calls that exceeded a time limit.", Words),
    row(Counter, "connections_accepted", "", "Accepted connections.", Words),
    row(Counter, "connections_closed", "reason", "Connections closed by their client or by a limit.", Words),
    row(Counter, "handovers", "direction", "Requests passed to another worker, and received from one.", Words),
    row(Counter, "requests_lent", "", "Requests passed to another worker without their connection, which uses TLS or HTTP/2. They count as passed, too.", SomeWords),
    row(Counter, "static_files", "", "Requests answered with files of `static_map`, which the application does not see. They do not count as requests.", SomeWords),
    row(Counter, "sessions", "event", "Sessions that workers keep, requests sent to the worker that has their session, and sessions forgotten for newer ones.", SomeWords),
    row(Counter, "bytes", "direction", "Bytes received from and sent to clients, excluding TLS overhead and admin connections.", Words),
    row(Counter, "tls_handshakes", "kind", "Completed TLS handshakes: full ones, and those that resumed a session.", SomeWords),
    row(Counter, "tls_handshakes_failed", "reason", "Failed TLS handshakes.", SomeWords),
    row(Counter, "http2_connections", "", "HTTP/2 connections.", SomeWords),
    row(Counter, "http2_streams", "", "Streams that clients have begun: requests over HTTP/2.", SomeWords),
    row(Counter, "http2_resets", "", "Streams reset by their client.", SomeWords),
    row(Counter, "http2_violations", "", "Streams and connections ended because the client broke a rule of HTTP/2 or exceeded one of its limits.", SomeWords),
    row(Counter, "websocket_messages", "direction", "WebSocket messages (asgi).", SomeWords),
    row(Counter, "streams_closed", "", "Responses ended by the server because their worker was shutting down: event streams, and others without a length.", Words),
    row(Counter, "spooled_bodies", "", "Request bodies stored on disk.", Words),
    row(Counter, "unforwarded", "", "Requests from untrusted peers whose forwarded headers were removed.", Words),
    row(Counter, "rescues", "", "Times the monitor took over I/O because no application thread did.", Words),
    row(Counter, "lines_lost", "log", "Log lines lost.", Words),
    row(Counter, "cpu_seconds", "", "CPU time of all workers.", Words),
    row(Counter, "loop_work_seconds", "", "Time event loops were busy, that is not waiting for events (gevent, eventlet, event loops; uvloop: while requests are pending).", SomeWords),
    row(Counter, "loop_blocked_seconds", "", "Part of loop_work_seconds spent off the CPU in blocking calls, which stall all other requests of the worker.", SomeWords),
    row(Counter, "call_blocked_seconds", "", "Time calls on threads were blocked off the CPU (sync, gthread; without their first milliseconds).", SomeWords),
    row(Counter, "call_delayed_seconds", "", "Time calls on threads were runnable but waiting for a CPU (sync, gthread; without their first milliseconds).", SomeWords),
    row(Histogram, "route_duration_seconds", "route", "Time from calling the application to the last piece of its response, by route (route_metrics); route other: requests without a route.", RouteDurations),
    row(Counter, "route_errors", "route", "Responses with a 5xx status, by route.", ByRoute(|route| route.errors)),
    row(Counter, "route_cpu_seconds", "route", "CPU time of requests by route, for requests that took longer than a few milliseconds.", SecondsByRoute(|route| route.computed)),
    row(Counter, "route_blocked_seconds", "route", "Time requests of a route spent in blocking calls: on a thread, or while blocking an event loop.", SecondsByRoute(|route| route.blocked)),
    row(Counter, "route_yielded_seconds", "route", "Time requests of a route spent awaiting, while others could run (event loops).", SecondsByRoute(|route| route.yielded())),
    row(Counter, "route_delayed_seconds", "route", "Time requests of a route were runnable but waiting for a CPU.", SecondsByRoute(|route| route.delayed)),
    row(Counter, "offload_calls", "", "Calls made on native threads for greenlets and coroutines (healed drivers, tricorn.offload).", SomeWords),
    row(Counter, "offload_seconds", "", "Total time spent in finished offloaded calls; without offloading they would have blocked their worker.", SomeWords),
    row(Counter, "offload_abandoned", "", "Offloaded calls that outlived their request.", SomeWords),
    row(Counter, "arrived", "", "Requests received for the application, including rejected and abandoned ones.", Load(|report| Number::Count(report.arrived))),
    row(Counter, "busy_seconds", "", "Time workers were busy: for threads, time in calls, including running ones; for event loops, all time except waiting for events.", Load(|report| Number::Nanoseconds(report.busy))),
    row(Counter, "workers_started", "", "Workers started.", Arbiter(LedgerWord::Spawned)),
    row(Counter, "worker_exits", "reason", "Workers that exited.", Named(LedgerWord::Exits, &EXITS)),
    row(Counter, "reloads", "result", "Completed reloads.", Named(LedgerWord::Reloads, &RELOADS)),
    row(Gauge, "workers", "state", "Current number of workers.", States(&[("booting", State::Booting), ("serving", State::Serving), ("draining", State::Draining)])),
    row(Gauge, "workers_target", "", "Configured number of workers.", Arbiter(LedgerWord::Target)),
    row(Gauge, "generation", "", "Number of the current generation; each reload creates one.", Arbiter(LedgerWord::Generation)),
    row(Gauge, "tls_certificate_not_after_seconds", "", "Expiry time of the TLS certificate that expires first, as a Unix timestamp; only with TLS.", SomeArbiter(LedgerWord::CertificateEnds)),
    row(Gauge, "connections", "", "Open connections.", Words),
    row(Gauge, "tls_handshakes_pending", "", "TLS handshakes in progress.", SomeWords),
    row(Gauge, "requests_running", "", "Requests being processed by the application.", Words),
    row(Gauge, "requests_waiting", "", "Complete requests waiting for the application.", Words),
    row(Gauge, "oldest_wait_seconds", "", "Age of the oldest waiting request.", OldestWait),
    row(Gauge, "capacity", "", "Number of requests that the ready workers can run at once.", Capacity),
    row(Gauge, "busy_ratio", "", "Running requests as a share of capacity.", BusyRatio),
    row(Gauge, "load_capacity", "", "Seconds of work that the ready workers can do per second: one per thread, one per event loop.", Load(|report| Number::Count(report.capacity))),
    row(Gauge, "utilisation", "", "Share of load_capacity used in the last seconds.", Load(|report| Number::Ratio(report.figures.utilisation))),
    row(Gauge, "demand", "", "Work received in the last seconds as a share of load_capacity; more than 1 means overload.", Load(|report| Number::Ratio(report.figures.demand))),
    row(Gauge, "weight", "", "Share of requests that load balancers should send here; 100 at this host's best speed.", Load(|report| Number::Count(report.weight))),
    row(Gauge, "concurrency_limit", "", "Maximum number of requests running at once in all workers (max_concurrency).", ConcurrencyLimit),
    row(Gauge, "worker_busy", "worker", "Requests being processed by the application, by worker slot.", ByWorker(Word::InFlight)),
    row(Gauge, "worker_rss_bytes", "worker", "Resident memory of a worker, including memory shared between workers, by slot.", ByWorker(Word::Resident)),
    row(Gauge, "process_pss_bytes", "process", "Memory of the arbiter, of the mold (preload_app), and of each worker by slot; memory that processes share is divided among them. The sum is the memory of the server. Measured one process at a time; absent where the kernel does not tell it.", Memory(Word::Pss, LedgerWord::ArbiterPss, LedgerWord::MoldPss)),
    row(Gauge, "process_uss_bytes", "process", "Memory that the process shares with no other.", Memory(Word::Uss, LedgerWord::ArbiterUss, LedgerWord::MoldUss)),
    row(Gauge, "process_shared_bytes", "process", "Memory that the process shares with others.", Memory(Word::Shared, LedgerWord::ArbiterShared, LedgerWord::MoldShared)),
    row(Gauge, "worker_cpu_seconds", "worker", "CPU time of the current worker in each slot.", SecondsByWorker(Word::Cpu)),
    row(Gauge, "listen_backlog", "listener", "Connections waiting in the kernel to be accepted (TCP without reuse_port).", Backlog),
    row(Gauge, "listen_backlog_limit", "listener", "Maximum length of that queue: backlog, capped at net.core.somaxconn.", BacklogLimit),
    row(Gauge, "database_connections", "", "Database connections held by greenlet workers.", SomeWords),
    row(Gauge, "offload_threads", "", "Native threads for offloaded calls.", SomeWords),
    row(Gauge, "offload_busy", "", "Offloaded calls in progress.", SomeWords),
    row(Gauge, "offload_waiting", "", "Offloaded calls waiting for a thread, or for the previous call of the same object.", SomeWords),
    row(Gauge, "memory_bytes", "of", "Memory used for incomplete request headers, request bodies, responses that slow clients have not read, and TLS records.", Words),
    row(Gauge, "disk_bytes", "of", "Disk space used for request bodies and responses.", Words),
    row(Gauge, "start_time_seconds", "", "Start time of the arbiter, as a Unix timestamp.", StartTime),
    row(Gauge, "application_files", "state", "Files of the application's own metrics (metrics_app): merged, or corrupt or too long.", Files),
    row(Gauge, "application_values_left_out", "", "Values in these files that match no known metric.", LeftOut),
    row(Kind::Info, "", "", "Versions of the server and of Python, and the worker class.", Info),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoreboard::{Role, WORDS, samples_of};

    fn is_of_words(family: &Family) -> bool {
        matches!(family.source, Source::Words | Source::SomeWords)
    }

    #[test]
    fn every_metric_of_words_has_words_of_its_kind() {
        for family in FAMILIES.iter().filter(|family| is_of_words(family)) {
            let role = if family.kind == Kind::Counter { Role::Counter } else { Role::Gauge };
            assert!(samples_of(family.name).count() > 0, "{}", family.name);
            for row in samples_of(family.name) {
                assert_eq!(row.role, role, "{:?}", row.word);
                assert_eq!(row.label.is_empty(), family.label.is_empty(), "{:?}", row.word);
            }
        }
    }

    #[test]
    fn every_word_that_names_a_metric_is_told_as_one() {
        for row in WORDS.iter().filter(|row| !row.metric.is_empty()) {
            let told = FAMILIES.iter().filter(|family| family.name == row.metric && is_of_words(family)).count();
            assert_eq!(told, 1, "{:?}", row.word);
        }
    }
}
