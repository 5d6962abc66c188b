//! From bytes on admin connections to answers.
use super::super::outgoing::Then;
use super::conn::{Look, Moved, State};
use super::questions::{Question, Sight};
use super::{Admin, View};
use crate::clock;
use crate::config;
use crate::exchange::responder::Responder;
use crate::metrics::load::{Asked, Balance, agent};
use crate::scoreboard::Scoreboard;
use crate::sys::poll::{Event, Token};
use tricorn_proto::message::{Refusal, Version};
use tricorn_proto::response::End;

/// Input thrown away at a time.
const DISCARD: usize = 16 * 1024;

impl Admin {
    /// Something happened to a connection, whose token is that of the table. How many steps of the reactor it took.
    pub fn on_event(&mut self, token: Token, event: Event, view: &View<'_>) -> u32 {
        let Some(conn) = self.conns.get_mut(token) else { return 0 };
        conn.edges.came(event);
        self.go_on(token, event.error, view)
    }

    /// A connection has more to do. How many steps it took.
    pub fn look_again(&mut self, token: Token, view: &View<'_>) -> u32 {
        let Some(conn) = self.conns.get_mut(token) else { return 0 };
        conn.edges.unlist();
        self.go_on(token, false, view)
    }

    /// `broken`: nothing that is sent arrives.
    fn go_on(&mut self, token: Token, broken: bool, view: &View<'_>) -> u32 {
        let Some(conn) = self.conns.get_mut(token) else { return 0 };
        match conn.state {
            State::Idle | State::Head => return self.read(token, view),
            State::Waiting => {}
            State::Flushing(then) => match conn.flush(then, broken) {
                Moved::Some => self.list(token),
                Moved::Waits => {}
                moved @ (Moved::All(_) | Moved::Gone) => {
                    if self.goes_on_after(token, moved) {
                        self.list(token);
                    }
                }
            },
            State::Lingering => self.discard(token),
        }
        1
    }

    /// Time has passed: connections that are due end, scrapes are answered without the application's metrics, a pause is over. How many
    /// steps that took.
    #[inline]
    pub fn expire(&mut self, now: u64, view: &View<'_>) -> u32 {
        if self.next_due().is_none_or(|due| now < due) {
            return 0;
        }
        self.expire_due(now, view)
    }

    #[cold]
    fn expire_due(&mut self, now: u64, view: &View<'_>) -> u32 {
        let paused = self.gate.paused_until();
        if paused != 0 && now >= paused {
            self.end_pause(now);
        }
        let due: Vec<Token> =
            self.conns.iter().filter(|(_, conn)| conn.deadline <= now).map(|(token, _)| token).collect();
        for token in &due {
            match self.conns.get(*token).map(|conn| conn.state) {
                Some(State::Waiting) => self.answer_scrape(*token, view),
                _ => self.close(*token),
            }
        }
        self.due = self.conns.iter().map(|(_, conn)| conn.deadline).min().unwrap_or(u64::MAX);
        due.len() as u32
    }

    /// The application's metrics have been read: who waits for them is answered. How many steps that took.
    pub fn scraped(&mut self, view: &View<'_>) -> u32 {
        let waiting = self.telemetry.scrapes.came(clock::now());
        for token in &waiting {
            self.answer_scrape(*token, view);
        }
        waiting.len() as u32
    }

    fn answer_scrape(&mut self, token: Token, view: &View<'_>) {
        self.telemetry.scrapes.leave(token);
        let waits = self.conns.get(token).is_some_and(|conn| conn.state == State::Waiting);
        if waits && self.answer(token, view) {
            self.list(token);
        }
    }

    /// Reads and answers until there is nothing more to read. How many steps it took.
    pub(super) fn read(&mut self, token: Token, view: &View<'_>) -> u32 {
        let mut answers = 0;
        loop {
            let Some(conn) = self.conns.get_mut(token) else { return answers };
            match conn.look(&self.config.policy) {
                Look::NeedMore => {}
                Look::Question => {
                    answers += 1;
                    if self.awaits_application(token) || !self.answer(token, view) {
                        return answers;
                    }
                    // One read may bring hundreds of questions.
                    if answers >= config::STEPS / 2 {
                        self.list(token);
                        return answers;
                    }
                    continue;
                }
                Look::Wrong(refusal) => {
                    self.refuse(token, &refusal, view);
                    return answers + 1;
                }
            }
            match conn.fill(|| self.pool.take()) {
                Moved::Some => {}
                Moved::Waits => {
                    self.await_more(token);
                    return answers + 1;
                }
                Moved::Gone | Moved::All(_) => {
                    self.close(token);
                    return answers + 1;
                }
            }
        }
    }

    /// Nothing more to read for now.
    fn await_more(&mut self, token: Token) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        let is_begun = conn.request().is_some_and(|request| !request.input.is_empty());
        match conn.state {
            _ if !is_begun => {
                if let Some(request) = conn.take_buffers() {
                    self.pool.give(request);
                }
            }
            State::Idle => {
                conn.state = State::Head;
                self.set_deadline(token, clock::now() + self.config.header_timeout);
            }
            _ => {}
        }
        self.watch(token);
    }

    /// Whether this is a scrape, and waits for the application's metrics.
    fn awaits_application(&mut self, token: Token) -> bool {
        let admin = &self.config.admin;
        let (Some(directory), Some(conn)) = (&admin.application, self.conns.get_mut(token)) else { return false };
        let allowed = admin.allow.allows(conn.peer.ip());
        let is_scrape = conn.request().is_some_and(|request| {
            Question::of(&request.head, request.head_bytes(), admin, None, allowed) == Question::Metrics
        });
        let now = clock::now();
        let waits = is_scrape && self.telemetry.scrapes.must_wait(token, directory, self.config.fault, now);
        if waits {
            conn.state = State::Waiting;
            self.set_deadline(token, now + config::ADMIN_READING);
        }
        waits
    }

    /// Whether the next question can be looked at; else the connection has ended, or goes on when its client has taken the answer.
    fn answer(&mut self, token: Token, view: &View<'_>) -> bool {
        let now = clock::now();
        let own = self.telemetry.own();
        let not_ready = not_ready(own, view.is_draining);
        let Some(conn) = self.conns.get_mut(token) else { return false };
        let (peer, borrowed) = (conn.peer, conn.borrowed);
        let Some(request) = conn.request() else { return false };
        let head = &request.head;
        let responder = Responder {
            date: view.date,
            server: &self.config.server,
            method: head.kind,
            version: head.version,
            keep: head.keep_alive && !(head.framing.has_body() || is_replaced(own, view.is_draining) || borrowed),
            request_id: b"",
        };
        let (paths, bytes) = (&self.config.admin, request.head_bytes());
        let allowed = paths.allow.allows(peer.ip());
        let is_leaving = not_ready.is_some();
        let sight = Sight { telemetry: &self.telemetry, listeners: view.listeners, info: &paths.info, is_leaving, now };
        let answer = Question::of(head, bytes, paths, not_ready, allowed).answer(head, bytes, &sight);
        let mut out = std::mem::take(&mut request.out);
        out.clear();
        let end = responder.write(&mut out, answer.status, &answer.fields(), answer.text.as_bytes()).end;
        let moved = conn.send(&out, if end == End::Reuse { Then::Next } else { Then::Linger });
        conn.answered_in_place(out, now);
        self.goes_on_after(token, moved)
    }

    /// No question is read from these bytes. They may be a balancer's own way to ask: HAProxy's `agent-send`.
    fn refuse(&mut self, token: Token, refusal: &Refusal, view: &View<'_>) {
        let now = clock::now();
        let own = self.telemetry.own();
        let Some(conn) = self.conns.get_mut(token) else { return };
        let answer = match conn.first_bytes().and_then(Asked::of) {
            Some(_) if !self.config.admin.allow.allows(conn.peer.ip()) => {
                b"# forbidden: this address is not in admin_allow\n".to_vec()
            }
            Some(asked) => {
                let report = self.telemetry.report(now);
                let balance = Balance::of(&report, not_ready(own, view.is_draining).is_some());
                agent(asked, &report, balance).into_bytes()
            }
            None => {
                let Some(method) = conn.request().map(|request| request.probable_method()) else { return };
                let mut page = Vec::new();
                let responder = Responder::of_errors(view.date, method, Version::Http11);
                responder.write_page(&mut page, refusal.status(), &refusal.message(), &[]);
                page
            }
        };
        let moved = conn.send(&answer, Then::Linger);
        self.goes_on_after(token, moved);
    }

    /// Acts on what came of sending an answer. Whether the next question can be looked at.
    fn goes_on_after(&mut self, token: Token, moved: Moved) -> bool {
        let now = clock::now();
        let Some(conn) = self.conns.get_mut(token) else { return false };
        match moved {
            // What did not fit the socket is lost: the descriptor is needed.
            _ if conn.borrowed => self.close(token),
            Moved::Gone => self.close(token),
            Moved::All(Then::Next) => {
                conn.next_question();
                self.set_deadline(token, now + config::ADMIN_IDLE);
                return true;
            }
            Moved::All(_) => self.linger(token, now),
            Moved::Some | Moved::Waits => {
                self.set_deadline(token, now + config::ADMIN_WRITE);
                self.watch(token);
                // Room that came before the poller watched made no edge.
                self.list(token);
            }
        }
        false
    }

    /// Closes our side, and reads on for a moment, so that the client can read the answer before a reset (RFC 9112 section 9.6).
    fn linger(&mut self, token: Token, now: u64) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        if conn.shut() == Moved::Gone {
            self.close(token);
            return;
        }
        if let Some(request) = conn.take_buffers() {
            self.pool.give(request);
        }
        self.set_deadline(token, now + config::LINGER);
        self.watch(token);
        self.discard(token);
    }

    fn discard(&mut self, token: Token) {
        let Some(conn) = self.conns.get_mut(token) else { return };
        match conn.discard(&mut [0; DISCARD]) {
            Moved::Some => self.list(token),
            Moved::Waits => {}
            Moved::Gone | Moved::All(_) => self.close(token),
        }
    }
}

/// This worker leaves, and others serve on.
fn is_replaced(own: Scoreboard, is_draining: bool) -> bool {
    is_draining && own.orders_replaced()
}

/// Why requests should be sent elsewhere. Who asks wants to know of the server: it is ready as long as others serve on.
fn not_ready(own: Scoreboard, is_draining: bool) -> Option<&'static str> {
    match () {
        () if is_draining && !is_replaced(own, is_draining) => Some("draining\n"),
        () if own.orders_not_ready() => Some("not ready\n"),
        () => None,
    }
}
