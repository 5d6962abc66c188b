//! What the logs are told of requests and connections that no exchange has.
use super::conn::Origin;
use super::proxied::Proxied;
use crate::clock::{SECOND, WallText};
use crate::config::{Config, TELL};
use crate::exchange::buffers::Request;
use crate::exchange::coder::NamedFile;
use crate::exchange::{AppEnd, Exchange};
use crate::logs::Logs;
use crate::peer::Peer;
use crate::reactor::chores::Chores;
use crate::reactor::warnings::{Incident, Overload, Shortage, Warnings};
use crate::scoreboard::Scoreboard;
use rustix::io::Errno;
use std::io::Error;
use std::path::Path;
use std::sync::Arc;
use tricorn_proto::access_log::{Outcome, Record};
use tricorn_proto::message::{FieldList, Refusal};
use tricorn_proto::peer::request_id;

pub(super) struct Log {
    config: Arc<Config>,
    logs: Arc<Logs>,
    warnings: Warnings,
    proxied: Proxied,
    /// When the log was told last of a client that speaks TLS where it should not.
    told_of_tls: u64,
    /// When the log was told last of a disk that takes nothing.
    told_of_disk: u64,
    /// When the log was told last of a file that cannot be sent.
    told_of_file: u64,
    /// When the log was told last of a file that the application has named.
    told_of_named: u64,
    /// The log was told of a field that `header_map` has dropped.
    told_of_dropped: bool,
}

impl Log {
    pub fn new(config: Arc<Config>, logs: Arc<Logs>) -> Log {
        Log {
            config,
            logs,
            warnings: Warnings::default(),
            proxied: Proxied::default(),
            told_of_tls: 0,
            told_of_disk: 0,
            told_of_file: 0,
            told_of_named: 0,
            told_of_dropped: false,
        }
    }

    /// Applies what front ends say of a complete head, before its body.
    #[inline]
    pub fn believe(
        &mut self,
        request: &mut Request,
        origin: Origin,
        board: Scoreboard,
        chores: &mut Chores,
    ) -> Result<(), Box<Refusal>> {
        if !request.head.dropped.is_empty() {
            self.tell_of_dropped(request, chores);
        }
        let Some(policy) = &self.config.policy.proxy else { return Ok(()) };
        self.proxied.believe(request, origin, policy, board, chores)
    }

    /// Warns of the first field that was dropped. Once for each worker: clients choose the names.
    #[cold]
    fn tell_of_dropped(&mut self, request: &Request, chores: &mut Chores) {
        if std::mem::replace(&mut self.told_of_dropped, true) {
            return;
        }
        let name = request.head.dropped.of(request.head_bytes());
        let name = String::from_utf8_lossy(&name[..name.len().min(NAME)]);
        chores.notice(true, || {
            format!(
                "Dropped the header {name}: in a WSGI environ, names with underscores and with hyphens share one \
                 key. Send {} instead, or see header_map and forwarder_headers. Further ones are dropped silently",
                name.replace('_', "-")
            )
        });
    }

    /// Whether the log is to be told of a client that speaks TLS where that is not spoken: once a minute.
    pub fn is_due_of_tls(&mut self, now: u64) -> bool {
        let is_due = self.told_of_tls == 0 || now.saturating_sub(self.told_of_tls) >= MINUTE;
        if is_due {
            self.told_of_tls = now;
        }
        is_due
    }

    /// Tells the log that bytes of a response could not be put on disk.
    #[cold]
    pub fn tell_of_disk(&mut self, error: &Error, now: u64, chores: &mut Chores) {
        if self.told_of_disk > 0 && now.saturating_sub(self.told_of_disk) < TELL {
            return;
        }
        self.told_of_disk = now;
        chores.notice(true, || {
            format!(
                "Cannot buffer a response on disk: {error}; the application waits for the client. Free disk space, \
                 or set tmp_upload_dir."
            )
        });
    }

    /// Tells the log of a file of the server's that could not be opened, or has shrunk while it was sent.
    #[cold]
    fn tell_of_file(&mut self, now: u64, chores: &mut Chores, text: impl FnOnce() -> String) {
        if self.told_of_file > 0 && now.saturating_sub(self.told_of_file) < MINUTE {
            return;
        }
        self.told_of_file = now;
        chores.notice(true, text);
    }

    /// Tells the log of a file that could not be opened: once a minute.
    #[cold]
    pub fn tell_of_unreadable(&mut self, path: &Path, error: Errno, now: u64, chores: &mut Chores) {
        self.tell_of_file(now, chores, || {
            let error = Error::from(error);
            format!("Cannot open {}: {error}. Let the worker's user read it, or change static_map.", path.display())
        });
    }

    /// Tells the log of a file that the application has named: once a second.
    #[cold]
    pub fn tell_of_named(&mut self, named: &NamedFile, (why, below): (&str, &str), now: u64, chores: &mut Chores) {
        if self.told_of_named > 0 && now.saturating_sub(self.told_of_named) < TELL {
            return;
        }
        self.told_of_named = now;
        let (field, path) = (named.by.name(), String::from_utf8_lossy(&named.name));
        chores.notice(true, || {
            format!(
                "Cannot send the file of the application's {field}, {path}: {why}. x_sendfile has {below}; name files \
                 below, or extend it."
            )
        });
    }

    /// Tells the log of a response that was cut off since its file has become shorter: once a minute.
    #[cold]
    pub fn tell_of_truncated(&mut self, peer: Peer, now: u64, chores: &mut Chores) {
        self.tell_of_file(now, chores, || {
            format!(
                "Cut off a response to {peer}: its file has become shorter while it was sent. Replace a file by renaming \
                 a new one to its name."
            )
        });
    }

    /// The error log is told of this, with others of its kind.
    pub fn warn(&mut self, incident: Incident) {
        self.warnings.note(incident);
    }

    /// What was short, if the log is to be told now.
    #[inline]
    pub fn take_shortage(&mut self, now: u64) -> Option<Shortage> {
        self.warnings.take_shortage(now)
    }

    /// What was turned away, if the log is to be told now.
    #[inline]
    pub fn take_overload(&mut self, now: u64) -> Option<Overload> {
        self.warnings.take_overload(now)
    }

    /// An access-log line for a request that was answered with a file of the server's.
    pub fn served(&self, exchange: &Exchange, now: u64) {
        if !self.logs.are_on() {
            return;
        }
        let request = &*exchange.request;
        let remote = request.client_address(exchange.client.peer).unwrap_or_default();
        self.logs.tell(&Record {
            head: &request.head,
            bytes: request.head_bytes(),
            remote: remote.as_bytes(),
            status: request.reply.status_code(),
            fields: request.reply.fields(),
            sent: request.reply.body_sent(),
            micros: exchange.micros(now),
            time: exchange.wall.log_time(),
            millis: exchange.wall.millis(),
            pid: std::process::id(),
            request_id: request.reply.request_id(),
            queue_micros: (exchange.timing.end != AppEnd::Uncalled).then_some(exchange.timing.queue / 1000),
            call_time: exchange.call_time(),
            outcome: Some(exchange.outcome()),
            environ: &|_| None,
        });
    }

    /// An access-log line for a request that never met the application; the body of its answer has `sent` bytes.
    pub fn refused(
        &self,
        peer: Peer,
        request: &Request,
        (status, outcome): (u16, Outcome),
        sent: u64,
        now: u64,
        wall: &WallText,
    ) {
        if !self.logs.are_on() {
            return;
        }
        let remote = peer.ip().map(|ip| ip.to_string()).unwrap_or_default();
        let named = self.config.request_id.then(|| request_id::given(&request.head, request.head_bytes())).flatten();
        let since = |start: u64| if start > 0 { now.saturating_sub(start) / 1000 } else { 0 };
        let record = Record {
            head: &request.head,
            bytes: request.head_bytes(),
            remote: remote.as_bytes(),
            status,
            fields: &FieldList::default(),
            sent,
            micros: since(request.times.first_byte),
            time: wall.log_time(),
            millis: wall.millis(),
            pid: std::process::id(),
            request_id: named.unwrap_or_default(),
            queue_micros: (request.times.waits_since > 0).then(|| since(request.times.waits_since)),
            call_time: None,
            outcome: Some(outcome),
            environ: &|_| None,
        };
        self.logs.tell(&record);
    }
}

/// Most bytes of a field's name in the log.
const NAME: usize = 100;
const MINUTE: u64 = 60 * SECOND;
