//! The clients of a thread, whose requests are streams, and their connections.
//!
//! ```text
//!   Resting ──ask──> Waiting ──a stream is free──> Open ──answered, failed──> Resting
//! ```
//!
//! What is asked is written when the driver calls `flush`: requests that begin together go out together.
use rustix::io::Errno;
use std::collections::VecDeque;
use tricorn_proto::http2::ErrorCode;

use crate::client::{Step, Task};
use crate::clock::Clock;
use crate::failure::{Broken, Failure};
use crate::http2::channel::{Channel, Lost};
use crate::http2::connection::Event;
use crate::http2::io::Io;
use crate::http2::links::Links;
use crate::notes::Notes;

pub struct Clients {
    all: Vec<Client>,
    links: Links,
    channels: Channels,
    /// What became of clients' requests, for the driver.
    steps: VecDeque<(u32, Step)>,
    keeps_alive: bool,
    /// Latency counts from when the stream was free, as a closed client has no more requests than the server allows.
    is_closed: bool,
    takes_notes: bool,
}

struct Client {
    link: u32,
    state: State,
    task: Task,
    /// Where the last answer redirects to.
    location: Option<String>,
    /// Only if there are samples.
    notes: Option<Box<Notes>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Resting,
    Waiting,
    Open {
        channel: u32,
        stream: u32,
    },
    /// The server's queue of new connections is full (unix sockets say so), so the connection is to be tried again.
    Postponed,
}

/// By their tokens, and those that have something to send.
#[derive(Default)]
struct Channels {
    all: Vec<Option<Channel>>,
    free: Vec<u32>,
    marked: Vec<u32>,
}

impl Channels {
    fn add(&mut self, channel: Channel) -> u32 {
        let token = self.free.pop().unwrap_or_else(|| {
            self.all.push(None);
            self.all.len() as u32 - 1
        });
        self.all[token as usize] = Some(channel);
        token
    }

    fn get_mut(&mut self, token: u32) -> Option<&mut Channel> {
        self.all.get_mut(token as usize)?.as_mut()
    }

    fn remove(&mut self, token: u32) -> Option<Channel> {
        let removed = self.all.get_mut(token as usize)?.take();
        self.free.extend(removed.is_some().then_some(token));
        removed
    }

    /// It is flushed the next time.
    fn mark(&mut self, token: u32) {
        if let Some(channel) = self.get_mut(token).filter(|channel| !channel.is_marked) {
            channel.is_marked = true;
            self.marked.push(token);
        }
    }
}

impl Clients {
    /// `most` connections, with so many streams at a time on each.
    pub fn new(origins: usize, (most, streams): (usize, usize), keeps_alive: bool, is_closed: bool) -> Clients {
        Clients {
            all: Vec::new(),
            links: Links::new(origins, most, streams),
            channels: Channels::default(),
            steps: VecDeque::new(),
            keeps_alive,
            is_closed,
            takes_notes: false,
        }
    }

    pub fn taking_notes(mut self, takes_notes: bool) -> Clients {
        self.takes_notes = takes_notes;
        self
    }

    /// Whether there was room for another client. `number`: which of all threads' connections it may open.
    pub fn add(&mut self, origin: u32, number: usize) -> bool {
        let Some(link) = self.links.assign(origin, number) else { return false };
        let notes = self.takes_notes.then(Box::default);
        self.all.push(Client { link, state: State::Resting, task: Task::default(), location: None, notes });
        true
    }

    pub fn count_connected(&self) -> usize {
        self.channels.all.iter().flatten().count()
    }

    pub fn task(&self, client: u32) -> Task {
        self.all[client as usize].task
    }

    pub fn notes(&self, client: u32) -> Option<&Notes> {
        self.all[client as usize].notes.as_deref()
    }

    pub fn is_busy(&self, client: u32) -> bool {
        self.all[client as usize].state != State::Resting
    }

    pub fn is_postponed(&self, client: u32) -> bool {
        self.all[client as usize].state == State::Postponed
    }

    pub fn location(&mut self, client: u32) -> Option<String> {
        self.all[client as usize].location.take()
    }

    /// What became of requests since the last call.
    pub fn next_step(&mut self) -> Option<(u32, Step)> {
        self.steps.pop_front()
    }

    /// Writes the request, or lets it wait for a stream. What becomes of it is said by `next_step`.
    pub fn ask(&mut self, client: u32, task: Task, io: &mut Io<'_>) {
        let asking = &mut self.all[client as usize];
        asking.task = task;
        asking.state = State::Waiting;
        if let Some(notes) = &mut asking.notes {
            notes.begin();
        }
        let link = asking.link;
        self.links.get_mut(link).waiting.push_back(client);
        self.begin_waiting(link, false, io);
    }

    /// Begins what waits, as far as the connection has streams for it. `is_late`: the server made it wait.
    fn begin_waiting(&mut self, link: u32, is_late: bool, io: &mut Io<'_>) {
        let (place, all) = (self.links.get_mut(link), &mut self.all);
        while !place.waiting.is_empty() {
            let token = match place.channel {
                Some(token) => token,
                None => match io.origins[place.origin as usize].open(place.number) {
                    Ok(wire) => {
                        io.moved.opened += 1;
                        *place.channel.insert(self.channels.add(Channel::new(wire, link)))
                    }
                    Err(error) => {
                        let refused = place.waiting.drain(..);
                        self.steps.extend(refused.map(|client| (client, all[client as usize].refuse(error))));
                        return;
                    }
                },
            };
            let Some(channel) = self.channels.get_mut(token) else { return };
            if !channel.connection.may_begin() {
                if channel.connection.is_leaving() {
                    place.channel = None;
                    continue;
                }
                return;
            }
            let Some(client) = place.waiting.pop_front() else { return };
            let asking = &mut all[client as usize];
            if is_late && self.is_closed {
                let now = io.clock.now();
                (asking.task.due, asking.task.begun) = (now, now);
            }
            let stream = channel.connection.begin(client, &io.prepared[asking.task.request as usize]);
            asking.state = State::Open { channel: token, stream };
            self.channels.mark(token);
        }
    }

    /// Something happened to the descriptor of a connection.
    pub fn look(&mut self, token: u32, io: &mut Io<'_>) {
        let Some(channel) = self.channels.get_mut(token) else { return };
        let (link, clock) = (channel.link, io.clock);
        let (all, steps, mut body) = (&mut self.all, &mut self.steps, 0);
        let (mut is_reused, mut has_response) = (channel.is_reused, false);
        let received = channel.receive(io, |client, event| {
            if let Event::Body(piece) = &event {
                body += piece.len() as u64;
            }
            is_reused |= matches!(event, Event::Answered(_));
            has_response = true;
            steps.extend(all[client as usize].take(event, clock).map(|step| (client, step)));
        });
        channel.is_reused = is_reused;
        if has_response {
            channel.last_response = clock.now();
        }
        io.moved.body += body;
        if is_reused && !self.keeps_alive {
            channel.connection.retire();
        }
        // With what was received a handshake may be complete, or a window wider.
        self.channels.mark(token);
        match received {
            Ok(()) => self.close_if_left(token),
            Err(lost) => self.lose(token, lost, io),
        }
        self.begin_waiting(link, true, io);
    }

    /// Sends what connections have to send. Whether there are steps.
    pub fn flush(&mut self, io: &mut Io<'_>) -> bool {
        while let Some(token) = self.channels.marked.pop() {
            let Some(channel) = self.channels.get_mut(token) else { continue };
            channel.is_marked = false;
            match channel.flush(token, io) {
                Ok(flushed) if self.takes_notes => {
                    for stream in channel.connection.streams() {
                        let Some(notes) = &mut self.all[stream.client as usize].notes else { continue };
                        let now = io.clock.now();
                        if flushed.is_connected {
                            notes.connected = now;
                        }
                        if flushed.is_empty && stream.is_written() && notes.written == 0 {
                            notes.written = now;
                        }
                    }
                }
                Ok(_) => {}
                Err(lost) => {
                    let link = channel.link;
                    self.lose(token, lost, io);
                    self.begin_waiting(link, true, io);
                }
            }
        }
        !self.steps.is_empty()
    }

    /// The time of a request is over.
    pub fn give_up(&mut self, client: u32) -> Step {
        let asking = &mut self.all[client as usize];
        let (state, begun) = (std::mem::replace(&mut asking.state, State::Resting), asking.task.begun);
        match state {
            State::Open { channel: token, stream } => {
                let Some(channel) = self.channels.get_mut(token) else { return Step::Failed(Failure::Timeout) };
                let failure = if channel.is_shaking() { Failure::Handshake } else { Failure::Timeout };
                channel.connection.cancel(stream);
                // If nothing was answered all the time, nothing may ever be on this connection.
                if channel.last_response < begun {
                    channel.connection.retire();
                }
                self.channels.mark(token);
                self.close_if_left(token);
                Step::Failed(failure)
            }
            State::Waiting => {
                self.links.get_mut(asking.link).waiting.retain(|waiting| *waiting != client);
                Step::Failed(Failure::Timeout)
            }
            State::Resting | State::Postponed => Step::Failed(Failure::Timeout),
        }
    }

    /// Closes a connection whose last answer has come.
    fn close_if_left(&mut self, token: u32) {
        let Some(channel) = self.channels.get_mut(token) else { return };
        if !channel.connection.is_leaving() {
            return;
        }
        let (link, is_idle) = (channel.link, channel.connection.is_idle());
        let place = self.links.get_mut(link);
        place.channel = place.channel.filter(|current| *current != token);
        if is_idle && let Some(channel) = self.channels.remove(token) {
            channel.leave(ErrorCode::NoError);
        }
    }

    /// The connection broke, or the server broke a rule: its requests end without an answer.
    fn lose(&mut self, token: u32, lost: Lost, io: &mut Io<'_>) {
        let Some(mut channel) = self.channels.remove(token) else { return };
        let place = self.links.get_mut(channel.link);
        place.channel = place.channel.filter(|current| *current != token);
        for stream in channel.connection.abandon() {
            let step = match lost {
                Lost::Violated(_) => Step::Failed(Failure::Malformed),
                Lost::Broken(Broken::Tls(failure)) => Step::Failed(failure),
                Lost::Broken(Broken::System(_)) if channel.is_reused && !stream.is_begun => Step::Stale,
                Lost::Broken(Broken::System(error)) => {
                    let is_closed = channel.is_heard || matches!(error, Errno::CONNRESET | Errno::PIPE);
                    Step::Failed(if is_closed { Failure::Closed } else { Failure::Connect })
                }
            };
            self.all[stream.client as usize].state = State::Resting;
            self.steps.push_back((stream.client, step));
        }
        match lost {
            Lost::Violated(violation) => channel.leave(violation.code()),
            Lost::Broken(_) => io.moved.reasons.extend(channel.take_reason()),
        }
    }
}

impl Client {
    /// No connection can be opened for it.
    fn refuse(&mut self, broken: Broken) -> Step {
        self.state = State::Resting;
        match broken {
            Broken::System(Errno::AGAIN) => {
                self.state = State::Postponed;
                Step::Postponed
            }
            Broken::System(Errno::ADDRNOTAVAIL | Errno::ADDRINUSE) => Step::Failed(Failure::Ports),
            Broken::System(_) => Step::Failed(Failure::Connect),
            Broken::Tls(failure) => Step::Failed(failure),
        }
    }

    fn take(&mut self, event: Event<'_>, clock: &Clock) -> Option<Step> {
        let step = match event {
            Event::Begun => {
                if let Some(notes) = &mut self.notes {
                    notes.first = clock.now();
                }
                return None;
            }
            Event::Body(piece) => {
                if let Some(notes) = &mut self.notes {
                    notes.take(piece);
                }
                return None;
            }
            Event::Answered(response) => {
                self.location = response.location;
                Step::Answered(response.status)
            }
            Event::Failed(failure) => Step::Failed(failure),
            Event::Unprocessed => Step::Unprocessed,
        };
        self.state = State::Resting;
        Some(step)
    }
}
