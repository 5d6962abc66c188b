//! Figures of a worker, and lines about its requests: shared memory and text. No clients, no Python.
//!
//! * [`scoreboard`]: a worker's page of shared memory, and the pages beside it.
//! * [`metrics`]: what all pages say, for Prometheus, load balancers and people.
//! * [`access_log`], [`collectors`], [`logs`]: lines of requests, to files, syslog and statsd.
//! * [`limiter`]: how many requests may run at once, by the scoreboard's latencies.

pub mod access_log;
pub mod collectors;
pub mod limiter;
pub mod logs;
pub mod metrics;
pub mod scoreboard;
