//! Requests for files of the server: answered without the application, before the queue.
//!
//! ```text
//!   complete ── no file's path ────────────────────────────────▶ the application (begin.rs)
//!      └─ the caches know ──┬─ there is none ──────────────────▶ the application, or 404
//!      └─ a job looks ──────┴─ a file ─▶ an exchange that this thread answers, and gives back at once
//! ```
//!
//! What the client does not take of a file is sent as the rest of any response is: by jobs, under `write_timeout`.
use super::Reactor;
use super::connections::{After, Rejection, Unbegun};
use super::files::{Asked, fields_of};
use crate::clock;
use crate::config;
use crate::exchange::id::RequestId;
use crate::exchange::representation::Representation;
use crate::exchange::{AppEnd, Exchange};
use crate::files::{Found, Lookup, Wanted};
use crate::scoreboard::Word;
use rustix::io::Errno;
use tricorn_proto::access_log::Outcome;
use tricorn_proto::message::FieldList;
use tricorn_proto::response::HeadInputs;

const CROWDED: Rejection<'_> = Rejection::for_now(
    "This server has more files to open than its disks can serve; the request was not begun.",
    Unbegun::Capacity,
    After::Keep,
    Outcome::QueueFull,
);

/// Most bytes of a file that this thread sends, which may hold the baton; jobs send the rest.
const MOST_CACHED: u64 = 256 << 10;

/// What a request for a file is answered.
pub(super) enum Answer {
    /// With what is told of it, and a status.
    File(Found, FieldList, u16),
    /// The path of a directory without its slash: to the same with one.
    Redirect,
    Page(u16),
}

impl Reactor {
    /// A request is complete. `None`: it is answered with a file, or will be.
    #[inline]
    pub(super) fn serve_file(&mut self, id: RequestId) -> Option<RequestId> {
        if self.files.is_none() { Some(id) } else { self.look_for_file(id) }
    }

    fn look_for_file(&mut self, id: RequestId) -> Option<RequestId> {
        let (Some(files), Some(request)) = (&mut self.files, self.connections.request(id)) else { return Some(id) };
        match files.ask(request) {
            Asked::Nothing => Some(id),
            Asked::Refused => self.answer(id, Answer::Page(404)),
            Asked::NotAllowed => self.answer(id, Answer::Page(405)),
            Asked::File(wanted, accepted) => match files.look_up_cached(&wanted, &accepted) {
                Lookup::Unknown => {
                    if files.submit(id, wanted, accepted).is_ok() {
                        self.connections.await_file(id, clock::now());
                        self.act_on_updates();
                    } else {
                        self.reject_file(id);
                    }
                    None
                }
                lookup => self.serve(id, &wanted, lookup),
            },
        }
    }

    /// Answers with what was found. The request if it is the application's.
    pub(super) fn serve(&mut self, id: RequestId, wanted: &Wanted, lookup: Lookup) -> Option<RequestId> {
        let files = self.files.as_ref()?;
        let mapping = files.mapping(wanted.mapping)?;
        let answer = match lookup {
            Lookup::File(found) => {
                let fields = fields_of(&found, mapping);
                Answer::File(found, fields, 200)
            }
            Lookup::Directory => Answer::Redirect,
            Lookup::Missing if mapping.falls_through => return Some(id),
            Lookup::Refused if files.is_overlay(wanted.mapping) => return Some(id),
            Lookup::Missing | Lookup::Refused | Lookup::Unknown => Answer::Page(404),
            Lookup::Failed(Errno::MFILE | Errno::NFILE | Errno::NOMEM) => {
                self.reject_file(id);
                return None;
            }
            Lookup::Failed(error) => {
                let path = mapping.directory.join(String::from_utf8_lossy(&wanted.path).as_ref());
                self.connections.tell_of_unreadable(&path, error, clock::now());
                Answer::Page(if matches!(error, Errno::ACCESS | Errno::PERM) { 403 } else { 500 })
            }
        };
        self.answer(id, answer)
    }

    /// No thread, no memory or no descriptor is left for a file.
    #[cold]
    fn reject_file(&mut self, id: RequestId) {
        self.connections.reject(id, &CROWDED, Word::StaticFiles);
        self.act_on_updates();
    }

    fn answer(&mut self, id: RequestId, answer: Answer) -> Option<RequestId> {
        let now = clock::now();
        self.connections.wall_mut().refresh(now);
        let mut exchange = self.connections.check_out(id)?;
        (exchange.timing.started, exchange.timing.end) = (now, AppEnd::Uncalled);
        exchange.may_compress(None); // copies that are compressed lie beside their files
        if let Some(ids) = self.files.as_mut().and_then(|files| files.ids.as_mut()) {
            exchange.request.identify(ids);
        }
        self.answer_exchange(exchange, answer);
        None
    }

    /// Answers, tells the log, and takes the exchange back.
    pub(super) fn answer_exchange(&mut self, mut exchange: Box<Exchange>, answer: Answer) {
        if !exchange.is_gone() {
            self.compose(&mut exchange, answer);
        }
        exchange.conclude();
        let now = clock::now();
        self.connections.log_served(&exchange, now);
        let sent = usize::try_from(exchange.lane.sent()).unwrap_or(usize::MAX);
        let effort = config::REJECTION_STEPS as usize * config::STEP_BYTES;
        self.connections.work_mut().spend(sent.saturating_add(effort));
        self.connections.check_in(exchange, now);
        self.act_on_updates();
    }

    fn compose(&self, exchange: &mut Exchange, answer: Answer) {
        let (config, wall) = (&self.config, exchange.wall.clone());
        let load = if config.load_report && exchange.client.trusted { self.load.fields() } else { None };
        let inputs = HeadInputs {
            date: if config.date { wall.date() } else { b"" },
            server: &config.server,
            standing: load.as_deref().unwrap_or(&config.standing_fields),
            body_length: None,
            close: config.keepalive == 0 || self.connections.is_draining() || self.board.orders_close(),
        };
        let sent = match answer {
            Answer::File(Found { file, length, .. }, fields, status) => {
                let what =
                    Representation { file, offset: 0, length, status, fields: &fields, most_cached: MOST_CACHED };
                exchange.answer_file(self.connections.disks(), &inputs, what, clock::wall_seconds())
            }
            Answer::Redirect => {
                let location = with_slash(exchange);
                exchange.answer_page(&inputs, 301, [(&b"Location"[..], location.as_slice())].into_iter())
            }
            Answer::Page(405) => exchange.answer_page(&inputs, 405, [(&b"Allow"[..], &b"GET, HEAD"[..])].into_iter()),
            Answer::Page(status) => exchange.answer_page(&inputs, status, std::iter::empty()),
        };
        if sent.is_err() {
            exchange.give_up(500, "");
        }
    }
}

/// The target of a request with a slash behind its path. It begins with one slash, not two: no path with an empty segment is a
/// directory's, so that it leads to no other host.
fn with_slash(exchange: &Exchange) -> Vec<u8> {
    let (head, bytes) = (&exchange.request.head, exchange.request.head_bytes());
    let mut location = [head.path.of(bytes), b"/"].concat();
    if !head.query.is_empty() {
        location.push(b'?');
        location.extend_from_slice(head.query.of(bytes));
    }
    location
}
