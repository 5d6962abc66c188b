//! The extension module `tricorn._core`: converts, calls, maps errors. No parsing, no policy.
//!
//! * `core.rs`: the `Core` that a worker makes after its fork; the loop of an app thread.
//! * `green/`: the loop of a hub and its greenlets; `context.rs`: a context for each of their calls.
//! * `service.rs`: what servers of hubs and of event loops share.
//! * `wsgi/`: the WSGI gateway (PEP 3333), for threads, greenlets and event loops.
//! * `loop_server.rs`: the loop of an event loop; `loops/`: its gateways' common ground, and tasks.
//! * `asgi/`: the ASGI gateway.
//! * `call/`: requests for servers that are made of Python classes, tornado's for one.
//! * `transport/`: libraries that bring a protocol of their own.
//! * `late.rs`: exceptions for application calls that take too long.
//! * `given.rs`: options by name.
//! * `options.rs`: settings into the core's configuration.
//! * `functions.rs`: C functions bound to objects of ours.
//! * `panics.rs`: what a panic costs.
//! * `pieces.rs`: `bytes` as pieces of a reply.
//! * `doors.rs`: what differs from listener to listener; `tls.rs`: certificates, for the arbiter.
//! * `ends.rs`: the addresses of a connection.
//! * `signal_handler.rs`: what no debugger stops in.
//! * `session.rs`: what is told of a client's session of TLS.
//! * `forked.rs`: the end of a process that the application forked.
//! * `access.rs`: lines of the access log that go through Python's loggers.
//! * `collector.rs`: a connection to statsd or syslog, for messages of Python code.
//! * `load.rs`: the load generator, for `tricorn load`.
//! * `doctor.rs`: what the threads of a process do, for `tricorn doctor`.
//! * `scoreboard.rs`: pages of the scoreboard, for the arbiter.
//! * `self_signed.rs`: certificates for development and measurements.
//! * `report.rs`: what gateways say to the logs and the hooks.
//! * `reports.rs`: the file of a worker's reports and stacks, for the arbiter.
//! * `routes.rs`: which route a request has, and what routes cost.
//! * `text.rs`: bytes that came over the wire as Python strings, cached.
//! * `stack.rs`: stacks of greenlets that wait.
//! * `sync.rs`: locks.

mod access;
mod announced;
mod asgi;
mod buffer;
mod call;
mod call_soon;
mod collector;
mod context;
mod core;
mod coroutine_function;
mod doctor;
mod doors;
mod ends;
mod forked;
mod functions;
mod given;
mod green;
mod holders;
mod late;
mod load;
mod logs;
mod loop_clock;
mod loop_server;
mod loops;
mod marks;
mod memory;
mod options;
mod panics;
mod pieces;
mod report;
mod reports;
mod routes;
mod samples;
mod scoreboard;
mod self_signed;
mod service;
mod session;
mod sessions;
mod signal_handler;
mod stack;
mod sync;
mod text;
mod tls;
mod transport;
mod vars;
mod wsgi;

// A free-threaded interpreter turns the GIL on for this module. Nothing here was run without it, and one case is known to be wrong:
// a thread that waits for a lock of ours stays attached, so a collection that stops all threads would wait for it.
#[pyo3::pymodule(gil_used = true)]
mod _core {
    #[pymodule_export]
    use crate::access::{access_escape, access_object, basic_auth_user};
    #[pymodule_export]
    use crate::asgi::AsgiGateway;
    #[pymodule_export]
    use crate::call::Call;
    #[pymodule_export]
    use crate::call::CallGateway;
    #[pymodule_export]
    use crate::call_soon::CallSoon;
    #[pymodule_export]
    use crate::collector::Collector;
    #[pymodule_export]
    use crate::context::request_id;
    #[pymodule_export]
    use crate::core::Core;
    #[pymodule_export]
    use crate::core::adopt_orphans;
    #[pymodule_export]
    use crate::core::enlarge_signal_stack;
    #[pymodule_export]
    use crate::core::scoreboard_bytes;
    #[pymodule_export]
    use crate::core::trim_heap;
    #[pymodule_export]
    use crate::core::unavailable;
    #[pymodule_export]
    use crate::doctor::{doctor_look, doctor_walk};
    #[pymodule_export]
    use crate::green::GreenServer;
    #[pymodule_export]
    use crate::load::load;
    #[pymodule_export]
    use crate::logs::check_access_log_format;
    #[pymodule_export]
    use crate::loop_clock::LoopClock;
    #[pymodule_export]
    use crate::loop_server::LoopServer;
    #[pymodule_export]
    use crate::options::upload_dir_in_memory;
    #[pymodule_export]
    use crate::options::upload_dir_is_usable;
    #[pymodule_export]
    use crate::reports::Reports;
    #[pymodule_export]
    use crate::routes::{Route, RoutePages, route_bytes};
    #[pymodule_export]
    use crate::scoreboard::{Counts, LedgerReader, PageReader};
    #[pymodule_export]
    use crate::scoreboard::{Ledger, RunningRequest, Scoreboard, Snapshot};
    #[pymodule_export]
    use crate::scoreboard::{histogram_edges, is_metric_file, metric_families, pages_in_use, scoreboard_words};
    #[pymodule_export]
    use crate::self_signed::self_signed;
    #[pymodule_export]
    use crate::sessions::{Sessions, session_sizes};
    #[pymodule_export]
    use crate::signal_handler::SignalHandler;
    #[pymodule_export]
    use crate::tls::{check_tls, publish_tls, suite_names, tls_page_bytes};
    #[pymodule_export]
    use crate::transport::{RequestFactory, Transport, TransportGateway};
    #[pymodule_export]
    use crate::wsgi::{BodySource, WsgiGateway};
    use pyo3::prelude::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("LEDGER_BYTES", tricorn_io::LEDGER_BYTES)?;
        module.add("GROUP_BYTES", tricorn_io::GROUP_BYTES)
    }
}
