//! The clients of a thread, whichever version of HTTP they speak, and what their steps use.
use crate::client::{Client, Line, Moved, Step, Task};
use crate::clock::Clock;
use crate::http2;
use crate::notes::Notes;
use crate::plan::{Model, Plan};
use crate::poller::Poller;
use crate::prepared::Prepared;
use crate::request::{Requests, share};

pub struct Pool {
    clients: Clients,
    /// For each client the address that it connects to.
    pub origins: Vec<u32>,
    pub prepared: Vec<Prepared>,
    pub moved: Moved,
    buffer: Vec<u8>,
    keeps_alive: bool,
    /// Clients note what a sample has of their requests.
    takes_notes: bool,
}

enum Clients {
    /// Each has a connection, and its place is its token.
    Http1(Vec<Client>),
    Http2(Box<http2::Clients>),
}

/// What steps of clients need besides.
#[derive(Clone, Copy)]
pub struct Means<'a> {
    pub poller: &'a Poller,
    pub clock: &'a Clock,
    pub requests: &'a Requests,
}

impl Pool {
    pub fn new(plan: &Plan, requests: &Requests, (thread, threads): (usize, usize)) -> Pool {
        let has_tls = requests.origins.iter().any(|origin| origin.tls.is_some());
        let (keeps_alive, takes_notes) = (plan.connection.keep_alive, plan.samples > 0);
        let clients = match plan.http2 {
            None => Clients::Http1(Vec::new()),
            Some(http2) => {
                let room = (share(plan.connections(), thread, threads), http2.streams);
                let is_closed = matches!(plan.model, Model::Closed(_));
                let clients = http2::Clients::new(requests.origins.len(), room, keeps_alive, is_closed);
                Clients::Http2(Box::new(clients.taking_notes(takes_notes)))
            }
        };
        Pool {
            clients,
            origins: Vec::new(),
            prepared: requests.prepared.clone(),
            moved: Moved::default(),
            buffer: vec![0; if has_tls { READ_TLS } else { READ }],
            keeps_alive,
            takes_notes,
        }
    }

    /// Adds a client, unless no connection has room for it. `number`: which of all threads' connections it may open.
    pub fn add(&mut self, origin: u32, number: usize) -> Option<u32> {
        match &mut self.clients {
            Clients::Http1(clients) => clients.push(Client::new(number, self.takes_notes)),
            Clients::Http2(clients) => clients.add(origin, number).then_some(())?,
        }
        self.origins.push(origin);
        Some(self.len() as u32 - 1)
    }

    /// The number of clients.
    pub fn len(&self) -> usize {
        self.origins.len()
    }

    pub fn count_connected(&self) -> usize {
        match &self.clients {
            Clients::Http1(clients) => clients.iter().filter(|client| client.is_connected()).count(),
            Clients::Http2(clients) => clients.count_connected(),
        }
    }

    #[inline]
    pub fn task(&self, client: u32) -> Task {
        match &self.clients {
            Clients::Http1(clients) => clients[client as usize].task,
            Clients::Http2(clients) => clients.task(client),
        }
    }

    pub fn notes(&self, client: u32) -> Option<&Notes> {
        match &self.clients {
            Clients::Http1(clients) => clients[client as usize].notes(),
            Clients::Http2(clients) => clients.notes(client),
        }
    }

    pub fn is_busy(&self, client: u32) -> bool {
        match &self.clients {
            Clients::Http1(clients) => clients[client as usize].is_busy(),
            Clients::Http2(clients) => clients.is_busy(client),
        }
    }

    pub fn is_postponed(&self, client: u32) -> bool {
        match &self.clients {
            Clients::Http1(clients) => clients[client as usize].is_postponed(),
            Clients::Http2(clients) => clients.is_postponed(client),
        }
    }

    /// Where the last answer redirects to.
    pub fn location(&mut self, client: u32) -> Option<String> {
        match &mut self.clients {
            Clients::Http1(clients) => clients[client as usize].location(),
            Clients::Http2(clients) => clients.location(client),
        }
    }

    /// Sends a request. Over HTTP/2 it goes out with the next `flush`.
    #[inline]
    pub fn ask(&mut self, client: u32, task: Task, means: Means<'_>) -> Step {
        match &mut self.clients {
            Clients::Http1(_) => self.step(client, means, |client, line| client.ask(task, line)),
            Clients::Http2(_) => {
                self.with_streams(means, |clients, io| clients.ask(client, task, io));
                Step::Pending
            }
        }
    }

    /// Something happened to a descriptor. Over HTTP/2 `next_step` says what became of it.
    #[inline]
    pub fn look(&mut self, token: u32, means: Means<'_>) -> Step {
        match &mut self.clients {
            Clients::Http1(_) => self.step(token, means, Client::look),
            Clients::Http2(_) => {
                self.with_streams(means, |clients, io| clients.look(token, io));
                Step::Pending
            }
        }
    }

    /// Sends what streams have to send. Whether there are steps.
    #[inline]
    pub fn flush(&mut self, means: Means<'_>) -> bool {
        match &mut self.clients {
            Clients::Http1(_) => false,
            Clients::Http2(_) => self.with_streams(means, http2::Clients::flush),
        }
    }

    /// What became of a request over HTTP/2 since the last call.
    #[inline]
    pub fn next_step(&mut self) -> Option<(u32, Step)> {
        match &mut self.clients {
            Clients::Http1(_) => None,
            Clients::Http2(clients) => clients.next_step(),
        }
    }

    /// Gives up the client's request if it began before this moment.
    pub fn give_up(&mut self, client: u32, moment: u64) -> Option<Step> {
        if !self.is_busy(client) || self.task(client).begun >= moment {
            return None;
        }
        Some(match &mut self.clients {
            Clients::Http1(clients) => clients[client as usize].give_up(),
            Clients::Http2(clients) => clients.give_up(client),
        })
    }

    #[inline]
    fn step(
        &mut self,
        client: u32,
        Means { poller, clock, requests }: Means<'_>,
        work: impl FnOnce(&mut Client, &mut Line<'_>) -> Step,
    ) -> Step {
        let Clients::Http1(clients) = &mut self.clients else { return Step::Pending };
        let place = client as usize;
        let client = &mut clients[place];
        let mut line = Line {
            poller,
            clock,
            token: place,
            origin: &requests.origins[self.origins[place] as usize],
            prepared: &self.prepared,
            buffer: &mut self.buffer,
            keeps_alive: self.keeps_alive,
            moved: &mut self.moved,
        };
        work(client, &mut line)
    }

    fn with_streams<T: Default>(
        &mut self,
        Means { poller, clock, requests }: Means<'_>,
        work: impl FnOnce(&mut http2::Clients, &mut http2::Io<'_>) -> T,
    ) -> T {
        let Clients::Http2(clients) = &mut self.clients else { return T::default() };
        let mut io = http2::Io {
            poller,
            clock,
            origins: &requests.origins,
            prepared: &self.prepared,
            buffer: &mut self.buffer,
            moved: &mut self.moved,
        };
        work(clients, &mut io)
    }
}

const READ: usize = 64 * 1024;
/// Records, and the plaintext of them.
const READ_TLS: usize = 160 * 1024;
