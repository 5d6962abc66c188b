//! Several engines in one process that share a listener, a channel and their pages, as workers do.
use super::*;
use rustix::event::{EventfdFlags, eventfd};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair, sockopt};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use tricorn_io::{Channel, Group};

/// Words of the group page.
#[derive(Debug, Clone, Copy)]
pub enum Shared {
    Sent = 0,
    Taken = 1,
    Pages = 2,
    Nudged = 7,
}

/// How a group is made.
pub struct Plan {
    pub workers: usize,
    pub config: Config,
    /// SO_SNDBUF of the channel.
    pub buffer: Option<usize>,
    /// Pages of workers that are not there.
    pub spare_pages: usize,
    pub hands_over: bool,
    /// A worker whose thread is the test's.
    pub by_hand: Option<usize>,
    /// The test's thread is a hub.
    pub hub: bool,
}

/// One thread each, and a queue that is not limited.
pub fn plan(workers: usize) -> Plan {
    Plan {
        workers,
        config: Config { siblings: true, ..config() },
        buffer: None,
        spare_pages: 0,
        hands_over: true,
        by_hand: None,
        hub: false,
    }
}

pub struct Workers {
    /// Each listens at its own `address`, too.
    pub servers: Vec<Server>,
    /// All listen here.
    pub address: SocketAddr,
    pub path: PathBuf,
    /// What `/block/N` waits for, one for each worker.
    pub gates: Vec<Gate>,
    pub pages: Vec<&'static [AtomicU64]>,
    group: &'static [AtomicU64],
    channel: Channel,
    blocked: Mutex<Vec<(usize, Client)>>,
}

/// What a request was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    pub status: u16,
    pub worker: Option<usize>,
    pub path: String,
    pub body: Vec<u8>,
    pub closes: bool,
}

impl Workers {
    /// `/block/N` waits for the gate of worker N; every request gets the number of its worker, its path and its body back.
    pub fn echo(plan: Plan) -> Workers {
        Workers::start(plan, |_, _| {})
    }

    /// `see` looks at each exchange first.
    pub fn start(plan: Plan, see: impl Fn(usize, &mut Exchange) + Send + Sync + 'static) -> Workers {
        let gates: Vec<Gate> = (0..plan.workers).map(|_| Gate::default()).collect();
        let held = gates.clone();
        let handler = move |index: usize, engine: &Engine, exchange: &mut Exchange| {
            see(index, exchange);
            let path = path(exchange);
            if path == format!("/block/{index}") {
                held[index].pass();
            }
            let mut text = format!("{index} {path}\n").into_bytes();
            text.extend(body_of(exchange).0);
            answer(engine, exchange, &text);
        };
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let path = std::env::temp_dir().join(format!("tricorn-group-{}-{}", std::process::id(), address.port()));
        let unix = UnixListener::bind(&path).expect("a socket");
        let threads = plan.config.threads;
        let (words, boards): (Vec<_>, Vec<_>) = (0..plan.workers + plan.spare_pages).map(|_| page(threads)).unzip();
        let (group, shared) = group_page();
        let channel = channel(plan.buffer);
        let handler = Arc::new(handler);
        let servers = (0..plan.workers)
            .map(|index| {
                let own = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
                let address = own.local_addr().expect("an address");
                let common: TcpListener = listener.try_clone().expect("a descriptor");
                let unix = unix.try_clone().expect("a descriptor");
                let siblings = Siblings::new(shared, plan.hands_over.then(|| again(&channel)), boards.clone(), index);
                let handler = handler.clone();
                let handler =
                    Arc::new(move |engine: &Engine, exchange: &mut Exchange| handler(index, engine, exchange));
                let listeners = vec![common.into(), unix.into(), own.into()];
                let (words, board) = (words[index], boards[index]);
                let config = Config { hub: plan.hub && plan.by_hand == Some(index), ..plan.config.clone() };
                let engine = engine(config, listeners, board, Some(siblings));
                let count = if plan.by_hand == Some(index) { 0 } else { threads };
                Server::with(engine, count, address, words, handler)
            })
            .collect();
        Workers { servers, address, path, gates, pages: words, group, channel, blocked: Mutex::default() }
    }

    /// Keeps the first free thread of a worker busy until `unblock`.
    #[track_caller]
    pub fn block(&self, index: usize) {
        let mut blocked = self.blocked();
        let wanted = blocked.iter().filter(|(of, _)| *of == index).count() + 1;
        loop {
            let mut client = self.servers[index].connect();
            client.ask(&format!("/block/{index}"));
            until("a thread is held, or another worker answered", || {
                self.gates[index].held() == wanted || client.has_something()
            });
            if self.gates[index].held() == wanted {
                blocked.push((index, client));
                return;
            }
            // The thread had no processor for so long that a sibling came before it.
        }
    }

    /// Lets all threads of a worker go that `block` holds.
    #[track_caller]
    pub fn unblock(&self, index: usize) {
        let of_this = |(of, _): &mut (usize, Client)| *of == index;
        let mut blocked: Vec<(usize, Client)> = self.blocked().extract_if(.., of_this).collect();
        self.gates[index].open(blocked.len());
        for (_, client) in &mut blocked {
            assert_eq!(client.response().answer().worker, Some(index));
        }
    }

    #[track_caller]
    pub fn unblock_all(&self) {
        (0..self.servers.len()).for_each(|index| self.unblock(index));
    }

    fn blocked(&self) -> std::sync::MutexGuard<'_, Vec<(usize, Client)>> {
        self.blocked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn get(&self, index: usize, word: Word) -> u64 {
        self.pages[index][word as usize].load(Ordering::Relaxed)
    }

    pub fn sum(&self, word: Word) -> u64 {
        (0..self.servers.len()).map(|index| self.get(index, word)).sum()
    }

    #[track_caller]
    pub fn until_sum(&self, word: Word, value: u64) {
        let got = until_some(|| (self.sum(word) == value).then_some(()));
        assert!(got.is_some(), "{word:?} is {}, not {value}", self.sum(word));
    }

    pub fn shared(&self, word: Shared) -> u64 {
        self.group[word as usize].load(Ordering::SeqCst)
    }

    pub fn set_shared(&self, word: Shared, value: u64) {
        self.group[word as usize].store(value, Ordering::SeqCst);
    }

    /// Writes to a page in place of its worker.
    pub fn set_page(&self, index: usize, word: Word, value: u64) {
        self.pages[index][word as usize].store(value, Ordering::SeqCst);
    }

    /// Requests in the channel.
    pub fn in_channel(&self) -> u64 {
        // In this order there may be too few for a moment, but not too many.
        let sent = self.sum(Word::HandedOver);
        sent.saturating_sub(self.sum(Word::TakenOver))
    }

    /// Requests that wait, wherever.
    pub fn waiting(&self) -> u64 {
        let inside = self.in_channel();
        inside + self.sum(Word::Queued)
    }

    #[track_caller]
    pub fn until_waiting(&self, count: u64) {
        let got = until_some(|| (self.waiting() == count).then_some(()));
        let tell = |word| (0..self.servers.len()).map(|index| self.get(index, word)).collect::<Vec<u64>>();
        let words = [Word::Queued, Word::HandedOver, Word::TakenOver, Word::QueueFull, Word::LeftQueue, Word::InFlight];
        assert!(got.is_some(), "not {count} wait: {:?}", words.map(|word| (word, tell(word))));
    }

    /// Both workers are busy: four clients of the first wait, the front of them in the channel.
    #[track_caller]
    pub fn four_that_wait(&self) -> Vec<Client> {
        let mut clients: Vec<Client> = (0..4).map(|_| self.connect(0)).collect();
        self.block(0);
        self.block(1);
        for (place, client) in clients.iter_mut().enumerate() {
            client.ask("/");
            self.until_waiting(place as u64 + 1);
        }
        until("the front is in the channel", || self.in_channel() == 2);
        clients
    }

    /// A connection with a worker of our choice, on which it has answered one request.
    #[track_caller]
    pub fn connect(&self, index: usize) -> Client {
        let connect = || {
            let mut client = self.servers[index].connect();
            (client.get("/first").answer().worker == Some(index)).then_some(client)
        };
        // It goes elsewhere if the worker's thread gets no processor for too long.
        until_some(connect).expect("a connection with the worker")
    }

    pub fn connect_to_all(&self) -> Client {
        Client::new(TcpStream::connect(self.address).expect("a connection"))
    }

    pub fn connect_unix(&self) -> UnixStream {
        let stream = UnixStream::connect(&self.path).expect("a connection");
        stream.set_read_timeout(Some(DEADLINE)).expect("a timeout");
        stream
    }

    /// The test's own ends of the channel.
    pub fn channel(&self) -> &Channel {
        &self.channel
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

impl Response {
    #[track_caller]
    pub fn answer(&self) -> Answer {
        let (status, closes) = (self.status, self.closes());
        let mut answer = Answer { status, worker: None, path: String::new(), body: Vec::new(), closes };
        if status == 200 {
            let end = self.body.iter().position(|byte| *byte == b'\n').expect("a line");
            let line = std::str::from_utf8(&self.body[..end]).expect("text");
            let (worker, path) = line.split_once(' ').expect("two words");
            (answer.worker, answer.path) = (worker.parse().ok(), path.to_owned());
            answer.body = self.body[end + 1..].to_vec();
        }
        answer
    }
}

pub fn group_page() -> (&'static [AtomicU64], Group) {
    let words: &'static [AtomicU64] = Vec::leak((0..tricorn_io::GROUP_BYTES / 8).map(|_| AtomicU64::new(0)).collect());
    // SAFETY: the words are aligned, leaked (mapped for good), and only used as atomic words.
    (words, unsafe { Group::at(words.as_ptr().cast_mut().cast()) })
}

/// As the arbiter makes it.
fn channel(buffer: Option<usize>) -> Channel {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (receive, send) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).expect("socket pair");
    sockopt::set_socket_send_buffer_size(&send, buffer.unwrap_or(4 << 20)).expect("a size");
    Channel { receive, send, wakeup: eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("eventfd") }
}

/// The same channel, for one worker more.
fn again(channel: &Channel) -> Channel {
    let copy = |fd: &OwnedFd| fd.as_fd().try_clone_to_owned().expect("a descriptor");
    Channel { receive: copy(&channel.receive), send: copy(&channel.send), wakeup: copy(&channel.wakeup) }
}
