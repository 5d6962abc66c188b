//! Two WebSocket sessions and the line between them: whatever is done and whatever comes, in whatever order and pieces, what
//! one sends the other reads, nothing follows a goodbye, and memory stays within its bounds.
//!
//! ```text
//!   send, close, leave, time ──> Session ──out──> taken by the network ──> arrived ──> Session ──take──> got
//!                                               injected bytes ───────────┘
//! ```
//!
//! Three things judge: what was sent (while no such bytes came), `Receiver` alone over all that came at once, and `Receiver`
//! of the other role over all that went out.
#![no_main]
use libfuzzer_sys::fuzz_target;
use std::cell::Cell;
use std::rc::Rc;
use tricorn_fuzz::{Choices, agreed, masked};
use tricorn_proto::websocket::close::may_be_sent;
use tricorn_proto::websocket::deflate::Agreed;
use tricorn_proto::websocket::session::{Goodbye, MAX_REST, Settings};
use tricorn_proto::websocket::{
    Delivery, Event, Kind, Receiver, Role, Session, ContextPool, StepInput, Unsendable, Violation, receiver,
};

type Message = (Kind, Vec<u8>);

/// A message in an inbox, counted for as long as it exists.
struct Kept {
    message: Message,
    waiting: Rc<Cell<usize>>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.waiting.set(self.waiting.get() - weight(&self.message.1));
    }
}

/// As an inbox counts.
fn weight(data: &[u8]) -> usize {
    data.len() + 256
}

/// One side, and what a connection has besides its session.
struct End<'a> {
    session: Session<Kept>,
    settings: Settings<'a>,
    spare: ContextPool,
    /// All that it ever said: the network took so much of it, and so much has arrived.
    out: Vec<u8>,
    taken: usize,
    arrived: usize,
    /// All that it was ever given, by the peer and by injection.
    came: Vec<u8>,
    is_spoilt: bool,
    sent: Vec<Message>,
    got: Vec<Message>,
    waiting: Rc<Cell<usize>>,
    /// It ended of itself: what came later need not have been looked at.
    has_left: bool,
    /// The connection was lost, or the peer given up: it need not have been told.
    is_lost: bool,
}

impl<'a> End<'a> {
    fn new(choices: &mut Choices<'_>, role: Role, deflate: Option<&'a Agreed>) -> End<'a> {
        let max_message_size = match choices.byte() {
            255 => 1 << 20,
            most => u64::from(most) * 40,
        };
        let settings = Settings {
            role,
            max_message_size,
            deflate,
            inbox: usize::from(choices.byte()) * 16,
            ping_interval: u64::from(choices.byte() % 64),
            ping_timeout: u64::from(choices.byte() % 64),
            close_timeout: u64::from(choices.byte() % 64),
            seed: 7,
        };
        End {
            session: Session::new(&settings, 0),
            settings,
            // Nothing that one message leaves behind serves another: so what is held is this session's.
            spare: ContextPool::new(0, usize::from(choices.byte() % 2)),
            out: Vec::new(),
            taken: 0,
            arrived: 0,
            came: Vec::new(),
            is_spoilt: false,
            sent: Vec::new(),
            got: Vec::new(),
            waiting: Rc::default(),
            has_left: false,
            is_lost: false,
        }
    }

    fn turn<T>(&mut self, now: u64, step: impl FnOnce(&mut Session<Kept>, &mut StepInput<'_>) -> T) -> T {
        let is_behind = self.taken < self.out.len();
        let End { session, out, spare, .. } = self;
        step(session, &mut StepInput { out, spare, now, is_behind })
    }

    /// What makes a message of its bytes, and sees that it may be one.
    fn keep(&self) -> impl FnMut(Kind, &[u8]) -> Kept + use<> {
        let is_deaf = self.session.goodbye().is_some() || !self.session.is_open();
        let (waiting, mark, most) =
            (Rc::clone(&self.waiting), self.settings.inbox.max(1), self.settings.max_message_size);
        move |kind, data| {
            assert!(!is_deaf, "a message after the goodbye");
            assert!(waiting.get() < mark, "a message for a full inbox");
            assert!(data.len() as u64 <= most && (kind == Kind::Binary || std::str::from_utf8(data).is_ok()));
            waiting.set(waiting.get() + weight(data));
            Kept { message: (kind, data.to_vec()), waiting: Rc::clone(&waiting) }
        }
    }

    /// One read.
    fn read(&mut self, bytes: &[u8], now: u64) {
        assert!(self.session.wants_read());
        let mut buffer = Vec::new();
        self.session.prefix(&mut buffer);
        assert!(buffer.len() < MAX_REST, "{} bytes were left", buffer.len());
        buffer.extend_from_slice(bytes);
        self.came.extend_from_slice(bytes);
        let (said, was_behind) = (self.out.len(), self.taken < self.out.len());
        let keep = self.keep();
        self.turn(now, |session, turn| session.receive(&mut buffer, turn, keep));
        let says_nothing = self.out.len() == said || !self.session.is_open();
        assert!(!was_behind || says_nothing, "more and more for who takes nothing: at most a goodbye");
        // What has come of a message, and what is left of this read.
        let most = self.settings.max_message_size as usize + 1 + MAX_REST + bytes.len();
        assert!(self.session.held() <= most, "{} bytes are held, of {most}", self.session.held());
    }

    fn take(&mut self) -> bool {
        let kept = self.session.take();
        assert_eq!(
            self.session.has_messages(),
            self.waiting.get() > kept.as_ref().map_or(0, |kept| weight(&kept.message.1))
        );
        let message = kept.map(|kept| kept.message.clone());
        let is_some = message.is_some();
        self.got.extend(message);
        is_some
    }

    fn send(&mut self, kind: Kind, data: &[u8], by_head: bool, now: u64) {
        let (was_open, before) = (self.session.is_open(), self.out.len());
        let headed = match by_head {
            true => self.session.head(kind, data.len(), &mut self.out),
            false => Ok(None),
        };
        let result = match headed {
            Ok(Some(())) => {
                self.out.extend_from_slice(data);
                Ok(())
            }
            Ok(None) => self.turn(now, |session, turn| session.send(kind, data, turn)),
            Err(error) => Err(error),
        };
        assert_eq!(result, if was_open { Ok(()) } else { Err(Unsendable::Closing) });
        match result {
            Ok(()) => self.sent.push((kind, data.to_vec())),
            Err(_) => assert_eq!(self.out.len(), before),
        }
    }

    /// For the application, or for the server.
    fn close(&mut self, code: Option<u16>, reason: &str, leaves: bool, now: u64) {
        let (before, had) = (self.out.len(), self.session.has_messages());
        let result = self.turn(now, |session, turn| match (leaves, code) {
            (true, Some(code)) => session.leave(code, turn),
            _ => session.close(code, reason, turn),
        });
        match result {
            Ok(()) => {
                let keeps = leaves && code.is_some();
                assert_eq!(self.session.has_messages(), keeps && had);
                assert!(!self.session.is_open() && self.out.len() > before);
                self.has_left = true;
            }
            Err(_) => assert_eq!(self.out.len(), before),
        }
    }

    fn tick(&mut self, now: u64) {
        let was_over = self.session.is_over();
        self.turn(now, |session, turn| session.tick(turn));
        assert!(self.session.due_at().is_none_or(|due| due > now), "what is due is done");
        self.is_lost |= !was_over && self.session.is_over();
        self.has_left |= self.is_lost;
    }

    /// The network takes what was said.
    fn flush(&mut self) {
        self.taken = self.out.len();
        self.session.caught_up(&mut self.out);
        self.taken = self.out.len();
    }

    /// After every step.
    fn settle(&mut self, now: u64) {
        if self.session.wants_resume() {
            let keep = self.keep();
            self.turn(now, |session, turn| session.resume(turn, keep));
            assert!(!self.session.wants_resume(), "it goes on for ever");
        }
        let session = &self.session;
        if session.is_over() {
            assert!(!session.is_open() && !session.wants_read() && session.due_at().is_none());
            assert_eq!(session.held(), 0, "nothing is held for who has left");
        }
        if let Some(Goodbye { code, .. }) = session.goodbye() {
            assert!(may_be_sent(*code) || matches!(code, 1005 | 1006), "{code}");
        }
        let bound = self.settings.inbox.max(1) + weight(&[]) + self.settings.max_message_size as usize;
        assert!(self.waiting.get() < bound, "{} bytes wait, of {bound}", self.waiting.get());
    }

    /// Everything is taken; whether there was anything.
    fn drain(&mut self, now: u64) -> bool {
        let before = self.got.len();
        while self.take() {
            self.settle(now);
        }
        self.got.len() > before
    }

    /// All that came, read at once by a receiver alone: the same messages, the same end.
    fn check_what_came(&self) {
        let Settings { role, max_message_size, deflate, .. } = self.settings;
        let (messages, ending) = read_all(role, max_message_size, deflate, &self.came);
        assert!(messages.starts_with(&self.got), "what was got had come");
        if self.has_left {
            return;
        }
        assert_eq!(self.got.len(), messages.len(), "all that came was got");
        let code = self.session.goodbye().map(|goodbye| goodbye.code);
        match (code, ending) {
            (None, Ending::Open) => {}
            (Some(code), Ending::Closed(said, _)) => assert_eq!(code, said.unwrap_or(1005)),
            // Several things can be wrong with what was inflated; which is seen first depends on how much came.
            (Some(1007 | 1009), Ending::Broken(violation)) if matches!(violation.code(), 1007 | 1009) => {}
            (Some(code), Ending::Broken(violation)) => assert_eq!(code, violation.code()),
            other => panic!("{other:?}"),
        }
    }

    /// All that went out, read by a strict peer: the messages that were sent, and at most one Close frame, the last one.
    fn check_what_went_out(&self) {
        let (messages, ending) = read_all(opposite(self.settings.role), u64::MAX, self.settings.deflate, &self.out);
        assert!(messages == self.sent, "what was sent went out");
        match ending {
            Ending::Open => assert!(self.session.is_open() || self.has_left && !self.session.is_clean()),
            Ending::Closed(code, after) => {
                assert_eq!((code, after), (self.session.sent_code(), 0), "the last frame");
                assert!(!self.session.is_open());
            }
            Ending::Broken(violation) => panic!("{violation}"),
        }
    }
}

/// How a stream ends.
#[derive(Debug)]
enum Ending {
    Open,
    /// Its code, and how many bytes come after it.
    Closed(Option<u16>, usize),
    Broken(Violation),
}

fn read_all(role: Role, most: u64, deflate: Option<&Agreed>, bytes: &[u8]) -> (Vec<Message>, Ending) {
    let settings = receiver::Settings { role, delivery: Delivery::Whole, max_message_size: most, deflate };
    let (mut receiver, mut spare) = (Receiver::new(&settings), ContextPool::default());
    let (mut bytes, mut at, mut messages) = (bytes.to_vec(), 0, Vec::new());
    loop {
        let progress = match receiver.advance(&mut bytes[at..], &mut spare) {
            Ok(progress) => progress,
            Err(violation) => return (messages, Ending::Broken(violation)),
        };
        at += progress.consumed;
        match progress.event {
            Event::Message { kind, data } => messages.push((kind, data.to_vec())),
            Event::Close(close) => {
                let code = close.code;
                return (messages, Ending::Closed(code, bytes.len() - at));
            }
            Event::NeedMore | Event::Dropped => return (messages, Ending::Open),
            Event::Ping(_) | Event::Pong(_) | Event::Piece { .. } => {}
        }
    }
}

fn opposite(role: Role) -> Role {
    match role {
        Role::Server => Role::Client,
        Role::Client => Role::Server,
    }
}

struct Pair<'a> {
    ends: [End<'a>; 2],
    now: u64,
}

impl Pair<'_> {
    /// Up to `most` bytes arrive, in one read.
    fn deliver(&mut self, to: usize, most: usize) -> bool {
        let from = &mut self.ends[1 - to];
        let length = most.min(from.taken - from.arrived);
        let bytes = from.out[from.arrived..from.arrived + length].to_vec();
        if length == 0 || !self.ends[to].session.wants_read() {
            return false;
        }
        self.ends[1 - to].arrived += length;
        self.ends[to].read(&bytes, self.now);
        true
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        let what = choices.byte();
        let (who, flushes, is_text) = (usize::from(what >> 7), what & 0x40 == 0, what & 0x20 == 0);
        let (end, now) = (&mut self.ends[who], self.now);
        match what % 16 {
            0..=3 => {
                let (piece, times) = (choices.bytes(), u32::from(choices.byte()));
                let data = piece.repeat((times * times / 128 + 1) as usize);
                match is_text {
                    true => end.send(Kind::Text, String::from_utf8_lossy(&data).as_bytes(), what & 1 == 0, now),
                    false => end.send(Kind::Binary, &data, what & 1 == 0, now),
                }
            }
            4..=6 => drop(self.deliver(who, usize::from(choices.byte()) + 1)),
            7 | 8 => drop(self.deliver(who, usize::MAX)),
            9 | 10 => drop(end.take()),
            11 => drop(end.drain(now)),
            12 | 13 if end.session.wants_read() => {
                let bytes = choices.bytes();
                let bytes =
                    if what & 1 == 0 || end.settings.role == Role::Client { bytes.to_vec() } else { masked(bytes) };
                end.is_spoilt = true;
                end.read(&bytes, now);
            }
            14 => {
                self.now += u64::from(choices.byte());
                end.tick(self.now);
            }
            15 => self.leave(who, choices),
            _ => {}
        }
        if flushes {
            self.ends[who].flush();
        }
        self.settle();
    }

    fn leave(&mut self, who: usize, choices: &mut Choices<'_>) {
        let (end, how) = (&mut self.ends[who], choices.byte());
        let code = u16::from_be_bytes([choices.byte() % 32, choices.byte()]);
        match how % 4 {
            0 => end.close(None, "", false, self.now),
            1 => end.close(Some(code), &String::from_utf8_lossy(choices.bytes()), false, self.now),
            2 => end.close(Some(code), "", true, self.now),
            _ => {
                end.session.lost();
                (end.has_left, end.is_lost) = (true, true);
            }
        }
    }

    fn settle(&mut self) {
        for end in &mut self.ends {
            end.settle(self.now);
        }
    }

    /// Everything is taken, arrives, and is got.
    fn pump(&mut self) {
        let mut rounds = 0;
        let mut goes_on = true;
        while goes_on {
            goes_on = false;
            for who in [0, 1] {
                self.ends[who].flush();
                goes_on |= self.deliver(1 - who, usize::MAX);
                self.settle();
                goes_on |= self.ends[1 - who].drain(self.now);
            }
            rounds += 1;
            assert!(rounds < 1000, "they talk for ever");
        }
    }

    /// What holds when nothing is under way any more.
    fn check(&self) {
        for (end, peer) in [(&self.ends[0], &self.ends[1]), (&self.ends[1], &self.ends[0])] {
            end.check_what_came();
            end.check_what_went_out();
            if !end.is_spoilt {
                assert!(peer.sent.starts_with(&end.got), "nothing but what the peer sent");
                assert!(!end.session.is_open() || end.got.len() == peer.sent.len(), "all of it");
            }
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut choices = Choices(data);
    let agreed = agreed(&mut choices);
    let ends = [Role::Server, Role::Client].map(|role| End::new(&mut choices, role, agreed.as_ref()));
    let mut pair = Pair { ends, now: 0 };
    while !choices.0.is_empty() {
        pair.step(&mut choices);
    }
    pair.pump();
    pair.check();
    // A session that is open says goodbye: an honest peer answers, and no other is waited for.
    let are_honest = pair.ends.iter().all(|end| !end.is_spoilt && !end.is_lost);
    let are_open = pair.ends.iter().all(|end| end.session.is_open());
    pair.ends[0].close(Some(1000), "bye", false, pair.now);
    pair.pump();
    pair.check();
    assert!(!are_honest || pair.ends.iter().all(|end| end.session.is_over()), "both have said goodbye");
    if are_honest && are_open {
        assert!(pair.ends.iter().all(|end| end.session.is_clean()));
        assert_eq!(pair.ends[1].session.goodbye(), Some(&Goodbye { code: 1000, reason: "bye".into() }));
    }
    pair.now += 64;
    pair.ends[0].tick(pair.now);
    assert!(pair.ends[0].session.is_over(), "it has waited long enough");
});
