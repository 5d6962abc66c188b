//! The clients of a thread, and what their steps use.
use crate::client::{Client, Line, Moved, Step};
use crate::clock::Clock;
use crate::poller::Poller;
use crate::request::{Prepared, Requests};

pub struct Pool {
    pub clients: Vec<Client>,
    /// For each client the address that it connects to.
    pub origins: Vec<u32>,
    pub prepared: Vec<Prepared>,
    pub moved: Moved,
    buffer: Vec<u8>,
    keeps_alive: bool,
    /// Clients note what a sample has of their requests.
    takes_notes: bool,
}

impl Pool {
    pub fn new(requests: &Requests, keeps_alive: bool, takes_notes: bool) -> Pool {
        let has_tls = requests.origins.iter().any(|origin| origin.tls.is_some());
        Pool {
            clients: Vec::new(),
            origins: Vec::new(),
            prepared: requests.prepared.clone(),
            moved: Moved::default(),
            buffer: vec![0; if has_tls { READ_TLS } else { READ }],
            keeps_alive,
            takes_notes,
        }
    }

    /// `number`: which of all threads' clients it is.
    pub fn add(&mut self, origin: u32, number: usize) -> u32 {
        self.clients.push(Client::new(number, self.takes_notes));
        self.origins.push(origin);
        self.clients.len() as u32 - 1
    }

    pub fn count_connected(&self) -> usize {
        self.clients.iter().filter(|client| client.is_connected()).count()
    }

    #[inline]
    pub fn step(
        &mut self,
        client: u32,
        (poller, clock): (&Poller, &Clock),
        requests: &Requests,
        work: impl FnOnce(&mut Client, &mut Line<'_>) -> Step,
    ) -> Step {
        let place = client as usize;
        let client = &mut self.clients[place];
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
}

const READ: usize = 64 * 1024;
/// Records, and the plaintext of them.
const READ_TLS: usize = 160 * 1024;
