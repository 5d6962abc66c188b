//! What is asked on admin connections, and what it is answered.
use super::super::listener::Listener;
use super::telemetry::Telemetry;
use crate::config::{AdminPaths, LOAD, STATUS};
use crate::exchange::responder::Field;
use crate::metrics::load::{self, Balance};
use crate::metrics::{self, Sources, live, status};
use crate::one_queue::siblings::Pages;
use std::borrow::Cow;
use tricorn_proto::message::{Method, RequestHead};

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Question {
    /// Nothing that takes a look: status and text.
    Simple(u16, &'static str),
    Metrics,
    Status,
    Load,
    Page,
    /// The data of the page, from this time on.
    Live(u64),
}

pub(super) struct Answer {
    pub status: u16,
    kind: &'static str,
    pub text: Cow<'static, str>,
}

/// What an answer may be made of.
pub(super) struct Sight<'a> {
    pub telemetry: &'a Telemetry,
    pub listeners: &'a [Listener],
    pub info: &'a [(String, String)],
    /// Requests should be sent elsewhere.
    pub is_leaving: bool,
    /// Monotonic nanoseconds.
    pub now: u64,
}

impl Question {
    /// `not_ready`: why requests should be sent elsewhere.
    pub fn of(
        head: &RequestHead,
        bytes: &[u8],
        admin: &AdminPaths,
        not_ready: Option<&'static str>,
        allowed: bool,
    ) -> Question {
        if !allowed {
            return Question::Simple(403, "forbidden: this address is not in admin_allow\n");
        }
        let path = head.path.of(bytes);
        let is = |known: &[u8]| !known.is_empty() && path == known;
        let question = match not_ready {
            _ if is(&admin.health) => Question::Simple(200, "ok\n"),
            Some(why) if is(&admin.ready) => Question::Simple(503, why),
            None if is(&admin.ready) => Question::Simple(200, "ready\n"),
            _ if is(&admin.metrics) => Question::Metrics,
            _ if admin.status && path == STATUS => Question::Status,
            _ if path == LOAD => Question::Load,
            _ if is(&admin.page) => Question::Page,
            _ if admin.is_live(path) => Question::Live(since(head.query.of(bytes))),
            _ => return Question::Simple(404, "not found\n"),
        };
        if matches!(head.kind, Method::Get | Method::Head) {
            question
        } else {
            Question::Simple(NOT_ALLOWED, "method not allowed\n")
        }
    }

    pub fn answer(self, head: &RequestHead, bytes: &[u8], sight: &Sight<'_>) -> Answer {
        match self {
            Question::Simple(status, text) => Answer { status, kind: "text/plain", text: Cow::Borrowed(text) },
            Question::Page => Answer { status: 200, kind: HTML, text: Cow::Borrowed(live::PAGE) },
            Question::Live(since) => {
                let text = sight.sources(|sources| live::render(sources, since));
                Answer { status: 200, kind: "application/json", text: Cow::Owned(text) }
            }
            Question::Status => {
                let text = sight.sources(status::render);
                Answer { status: 200, kind: "application/json", text: Cow::Owned(text) }
            }
            Question::Load => {
                let report = sight.telemetry.report(sight.now);
                let text = load::json(&report, Balance::of(&report, sight.is_leaving));
                Answer { status: 200, kind: "application/json", text: Cow::Owned(text) }
            }
            Question::Metrics => {
                let exposition = metrics::negotiated(values(head, bytes, b"accept"));
                let load = Some(sight.telemetry.report(sight.now));
                let text = sight.sources(|sources| metrics::render(&Sources { load, ..*sources }, exposition));
                Answer { status: 200, kind: exposition.content_type(), text: Cow::Owned(text) }
            }
        }
    }
}

impl Answer {
    /// Besides those that every response has.
    pub fn fields(&self) -> Vec<Field<'_>> {
        let mut fields: Vec<Field<'_>> = vec![(b"Content-Type", self.kind.as_bytes()), (b"Cache-Control", b"no-store")];
        if self.status == NOT_ALLOWED {
            fields.push((b"Allow", b"GET, HEAD"));
        }
        if self.kind == HTML {
            fields.extend([(b"Content-Security-Policy".as_slice(), POLICY), (b"X-Content-Type-Options", b"nosniff")]);
        }
        fields
    }
}

impl Sight<'_> {
    /// Those of all workers; of this one if it is alone.
    fn sources<T>(&self, render: impl FnOnce(&Sources<'_>) -> T) -> T {
        let (own, pages) = ([self.telemetry.own()], self.telemetry.pages());
        let backlogs: Vec<_> = self.listeners.iter().filter_map(Listener::backlog).collect();
        render(&Sources {
            pages: pages.map_or(&own, Pages::used),
            ledger: pages.and_then(Pages::ledger),
            group: pages.map(Pages::group),
            routes: pages.and_then(Pages::routes),
            info: self.info,
            now: self.now,
            application: self.telemetry.scrapes.reading(self.now),
            backlogs: &backlogs,
            load: None,
        })
    }
}

/// `since=1700000000000` in a query, in milliseconds; 0: it is not there.
fn since(query: &[u8]) -> u64 {
    let value = query.split(|byte| *byte == b'&').find_map(|part| part.strip_prefix(b"since="));
    value.and_then(|value| std::str::from_utf8(value).ok()?.parse().ok()).unwrap_or(0)
}

/// The values of a field by its lower-case name.
fn values<'a>(head: &'a RequestHead, bytes: &'a [u8], name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let named = head.fields.iter().filter(move |field| field.name.of(bytes).eq_ignore_ascii_case(name));
    named.map(move |field| field.value.of(bytes))
}

const NOT_ALLOWED: u16 = 405;
const HTML: &str = "text/html; charset=utf-8";
/// The page has all that it needs in it, asks this listener alone, and stands in no frame.
const POLICY: &[u8] = b"default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_in_the_query_is_a_number_or_none() {
        for (query, time) in [("", 0), ("since=7", 7), ("a=1&since=12&b", 12), ("since=", 0), ("since=-1", 0)] {
            assert_eq!(since(query.as_bytes()), time, "{query}");
        }
    }

    #[test]
    fn the_data_is_beside_the_page() {
        let mut admin = AdminPaths::default();
        assert!(admin.is_live(b"/live.json") && !admin.is_live(b"//live.json") && !admin.is_live(b"/x/live.json"));
        admin.page = b"/server".to_vec();
        assert!(admin.is_live(b"/server/live.json") && !admin.is_live(b"/live.json"));
        admin.page.clear();
        assert!(!admin.is_live(b"/live.json"));
    }
}
