//! An engine under a hub: a thread that waits for the engine's descriptors, as gevent's or eventlet's hub does, and
//! whose calls wait as greenlets do: the exchange stays open, and the hub goes on.
use super::group::group_page;
use super::*;
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use std::convert::Infallible;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Receiver, Sender, channel};
use tricorn_io::{HubHandle, Readiness, Siblings, SlotReadiness, Turn};

/// What a test lets the hub do, in the hub's own thread.
type Task = Box<dyn FnOnce(&mut Loop) + Send>;

/// Calls wait until `finish`, but for those at `/now`, which are answered at once, and at `/block`, which hold up the hub
/// until `gate` is opened.
pub struct HubServer {
    server: Server,
    pub gate: Gate,
    tasks: Sender<Task>,
    wakeup: Arc<OwnedFd>,
    view: Arc<View>,
}

/// What the hub has seen.
#[derive(Default)]
struct View {
    /// The paths of the calls that wait, in the order in which they began.
    open: Mutex<Vec<String>>,
    /// Every path in the order in which the calls began.
    begun: Mutex<Vec<String>>,
    /// The paths of calls in which `RequestTimeout` would be raised.
    late: Mutex<Vec<String>>,
    /// What happened to connections that are attended.
    stirs: Mutex<Vec<SlotReadiness>>,
    /// Times that the engine's descriptors have woken the hub.
    turns: AtomicUsize,
    /// Jobs that it has done.
    jobs: AtomicUsize,
    /// The next time it is held up before it looks, until `gate` is opened.
    holds: AtomicBool,
}

/// The hub's own.
pub struct Loop {
    engine: HubHandle,
    open: Vec<Exchange>,
    gate: Gate,
    view: Arc<View>,
    tally: Arc<Tally>,
    ended: bool,
}

impl Deref for HubServer {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

impl HubServer {
    /// `config.threads` calls can be under way at once.
    pub fn start(config: Config) -> HubServer {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let config = Config { hub: true, ..config };
        let (words, board) = page(config.threads);
        HubServer::with(engine(config, vec![listener.into()], board, None), address, words, Way::Epoll)
    }

    /// Workers that share a listener; nothing is handed over.
    pub fn side_by_side(count: usize, config: &Config, way: Way) -> Vec<HubServer> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (words, boards): (Vec<_>, Vec<_>) = (0..count).map(|_| page(config.threads)).unzip();
        let (_, group) = group_page();
        let start = |index: usize| {
            let siblings = Siblings::new(group, None, boards.clone(), index);
            let common = listener.try_clone().expect("a descriptor");
            let config = Config { hub: true, ..config.clone() };
            let engine = engine(config, vec![common.into()], boards[index], Some(siblings));
            HubServer::with(engine, address, words[index], way)
        };
        (0..count).map(start).collect()
    }

    pub fn with(engine: Arc<Engine>, address: SocketAddr, words: &'static [AtomicU64], way: Way) -> HubServer {
        let (gate, tally, view) = (Gate::default(), Arc::new(Tally::default()), Arc::new(View::default()));
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let wakeup = Arc::new(eventfd(0, flags).expect("an eventfd"));
        let (tasks, to_do) = channel();
        let hub = Loop {
            engine: engine.hub().expect("an engine for a hub"),
            open: Vec::new(),
            gate: gate.clone(),
            view: view.clone(),
            tally: tally.clone(),
            ended: false,
        };
        let rung = wakeup.clone();
        let thread = std::thread::spawn(move || hub.run(way, &rung, &to_do));
        until("the hub has joined", || words[Word::Free as usize].load(Ordering::Relaxed) > 0);
        let server = Server { engine, address, words, threads: vec![thread], tally };
        HubServer { server, gate, tasks, wakeup, view }
    }

    /// Runs in the hub, and waits until it has.
    #[track_caller]
    fn run<T: Send + 'static>(&self, task: impl FnOnce(&mut Loop) -> T + Send + 'static) -> T {
        let (done, has_done) = channel();
        let task = move |hub: &mut Loop| done.send(task(hub)).expect("the test waits");
        self.tasks.send(Box::new(task)).expect("a hub");
        rustix::io::write(&self.wakeup, &1u64.to_ne_bytes()).expect("an eventfd");
        has_done.recv_timeout(DEADLINE).expect("a hub that comes")
    }

    /// Answers the call at this path with the path, and goes on with what waits, as a greenlet does.
    #[track_caller]
    pub fn finish(&self, path: &str) {
        let path = path.to_owned();
        self.run(move |hub| {
            let mut exchange = hub.take(&path);
            answer(&hub.engine, &mut exchange, path.as_bytes());
            hub.serve_one(Some(exchange));
        });
    }

    /// Ends the call at this path without a word more, and without going on, as a greenlet that was killed.
    #[track_caller]
    pub fn give_back(&self, path: &str) {
        let path = path.to_owned();
        self.run(move |hub| {
            let exchange = hub.take(&path);
            hub.engine.give_back(exchange);
        });
    }

    /// The call at this path sends pieces of its reply, one right after another.
    #[track_caller]
    pub fn write(&self, path: &str, pieces: &'static [&'static [u8]]) -> Vec<Sent> {
        let path = path.to_owned();
        self.run(move |hub| {
            let engine = hub.engine.clone();
            let exchange = hub.call(&path);
            pieces.iter().map(|piece| write(&engine, exchange, piece)).collect()
        })
    }

    /// The call at this path sends a piece of its reply, and does not care whether the client takes it.
    #[track_caller]
    pub fn push(&self, path: &str, piece: &'static [u8]) -> Sent {
        let path = path.to_owned();
        self.run(move |hub| {
            let engine = hub.engine.clone();
            push(&engine, hub.call(&path), piece)
        })
    }

    /// The call at this path ends the reply that it has written.
    #[track_caller]
    pub fn end(&self, path: &str) {
        let path = path.to_owned();
        self.run(move |hub| {
            let mut exchange = hub.take(&path);
            exchange.end();
            hub.serve_one(Some(exchange));
        });
    }

    /// Works on the exchange of the call at this path, in the hub.
    #[track_caller]
    pub fn at<T: Send + 'static>(
        &self,
        path: &str,
        work: impl FnOnce(&Engine, &mut Exchange) -> T + Send + 'static,
    ) -> T {
        let path = path.to_owned();
        self.run(move |hub| {
            let engine = hub.engine.clone();
            work(&engine, hub.call(&path))
        })
    }

    /// Takes the exchange of the call at this path out of the hub; it attends from now on.
    #[track_caller]
    pub fn take(&self, path: &str) -> Box<Exchange> {
        let path = path.to_owned();
        self.run(move |hub| {
            let exchange = hub.take(&path);
            hub.engine.attend(&exchange);
            exchange
        })
    }

    /// Ends an exchange that was taken: it is answered with its path, or given back as it is.
    #[track_caller]
    pub fn end_taken(&self, mut exchange: Box<Exchange>, is_answered: bool) {
        self.run(move |hub| {
            if is_answered {
                let path = path(&exchange);
                answer(&hub.engine, &mut exchange, path.as_bytes());
            }
            hub.serve_one(Some(exchange));
        });
    }

    /// Waits until something is told of an attended connection, and takes it.
    #[track_caller]
    pub fn stir(&self) -> Readiness {
        until_some(|| lock(&self.view.stirs).pop()).expect("nothing was told").readiness
    }

    /// What was told of attended connections and not taken.
    pub fn stirs(&self) -> Vec<SlotReadiness> {
        lock(&self.view.stirs).clone()
    }

    /// The application has returned from the call at this path.
    #[track_caller]
    pub fn conclude(&self, path: &str) {
        let path = path.to_owned();
        self.run(move |hub| {
            let slot = hub.call(&path).slot();
            hub.engine.conclude_call(slot);
        });
    }

    /// Keeps the hub from its descriptors for so long.
    #[track_caller]
    pub fn be_away(&self, time: Duration) {
        self.run(move |_| std::thread::sleep(time));
    }

    /// Sends a request to `/block`, which holds up the hub until `release`.
    #[track_caller]
    pub fn block(&self) -> Client {
        let mut client = self.connect();
        client.ask("/block");
        self.gate.until_held(1);
        client
    }

    /// Sends a request to `/block` to hubs that share a listener: which of them it holds up.
    #[track_caller]
    pub fn block_one(hubs: &[HubServer]) -> (usize, Client) {
        let mut client = hubs[0].connect();
        client.ask("/block");
        let held = until_some(|| hubs.iter().position(|hub| hub.gate.held() == 1));
        (held.expect("a hub takes it"), client)
    }

    #[track_caller]
    pub fn release(&self, mut client: Client) {
        self.gate.open(1);
        assert_eq!(client.response().status, 200);
    }

    /// The paths of the calls that wait, in the order in which they began.
    pub fn open(&self) -> Vec<String> {
        lock(&self.view.open).clone()
    }

    /// Waits until exactly these calls wait.
    #[track_caller]
    pub fn until_open(&self, paths: &[&str]) {
        let got = until_some(|| (self.open() == paths).then_some(()));
        assert!(got.is_some(), "open are {:?}, not {paths:?}", self.open());
    }

    pub fn begun(&self) -> Vec<String> {
        lock(&self.view.begun).clone()
    }

    /// The paths of the calls that were told that they are late.
    pub fn late(&self) -> Vec<String> {
        lock(&self.view.late).clone()
    }

    /// The loop calls without an event, as one does that was late for an earlier one. Whether there is something to do.
    #[track_caller]
    pub fn call_in_vain(&self) -> bool {
        self.run(|hub| {
            let found = hub.engine.look();
            hub.serve_one(None);
            hub.engine.rest();
            found
        })
    }

    /// A client that asks for something, and whether this hub was woken for it and is held up until `gate` is opened. On a busy
    /// machine another may be quicker: its monitor, or a sibling.
    pub fn is_held_up_by(&self, connect: impl FnOnce() -> Client, path: &str) -> (Client, bool) {
        self.view.holds.store(true, Ordering::SeqCst);
        let mut client = connect();
        client.ask(path);
        until("it is woken, or another is quicker", || self.gate.held() == 1 || client.has_something());
        if self.gate.held() == 0 && !self.view.holds.swap(false, Ordering::SeqCst) {
            self.gate.until_held(1); // it was woken just now
            self.gate.open(1);
            return (client, false);
        }
        (client, self.gate.held() == 1)
    }

    /// Jobs that the hub has done.
    pub fn jobs(&self) -> usize {
        self.view.jobs.load(Ordering::SeqCst)
    }

    /// Times that the engine has woken the hub.
    pub fn turns(&self) -> usize {
        self.view.turns.load(Ordering::SeqCst)
    }

    /// How often the engine had woken the hub when nothing had been left to do for a while.
    pub fn turns_when_quiet(&self) -> usize {
        let quiet = Duration::from_millis(20);
        let (mut seen, mut since) = (self.turns(), Instant::now());
        until("the hub rests", || {
            if std::mem::replace(&mut seen, self.turns()) != self.turns() {
                since = Instant::now();
            }
            since.elapsed() > quiet
        });
        seen
    }
}

impl Drop for HubServer {
    fn drop(&mut self) {
        self.gate.open(1_000_000);
    }
}

/// How a hub waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// In an epoll of its own, as libev, libuv and asyncio do.
    Epoll,
    /// By poll(2): there is no epoll that the engine could find.
    Poll,
}

impl Way {
    /// What waits for the engine's descriptors and for the test's: whether each of the two has something.
    fn watch<'f>(self, engine: &HubHandle, wakeup: &'f OwnedFd) -> Box<dyn Fn() -> (bool, bool) + 'f> {
        let (poller, rung) = engine.descriptors();
        // SAFETY: both belong to the engine, which the hub's thread holds.
        let fds = unsafe { [BorrowedFd::borrow_raw(poller), BorrowedFd::borrow_raw(rung), wakeup.as_fd()] };
        match self {
            Way::Epoll => {
                let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll");
                for (name, fd) in fds.iter().enumerate() {
                    epoll::add(&epoll, fd, EventData::new_u64(name as u64), EventFlags::IN).expect("room");
                }
                Box::new(move || {
                    let mut events = Vec::with_capacity(8);
                    epoll::wait(&epoll, spare_capacity(&mut events), None).expect("descriptors to wait for");
                    let has =
                        |wanted: &[u64]| events.iter().any(|event: &epoll::Event| wanted.contains(&event.data.u64()));
                    (has(&[0, 1]), has(&[2]))
                })
            }
            Way::Poll => Box::new(move || {
                let mut fds = fds.map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN));
                poll(&mut fds, None).expect("descriptors to wait for");
                (fds[..2].iter().any(|fd| !fd.revents().is_empty()), !fds[2].revents().is_empty())
            }),
        }
    }
}

impl tricorn_io::HubServer for Loop {
    type Error = Infallible;

    fn end_late(&mut self, slot: usize) -> Result<(), Infallible> {
        let path = self.open.iter().find(|exchange| exchange.slot() == slot).map(path);
        lock(&self.view.late).push(path.expect("a call that is late waits"));
        Ok(())
    }

    fn serve(&mut self, _: Turn) -> Result<bool, Infallible> {
        while self.engine.has_more() && !self.ended {
            self.serve_one(None);
        }
        Ok(!self.ended)
    }

    fn run_job(&mut self, job: impl FnOnce() + Send) {
        job();
        self.view.jobs.fetch_add(1, Ordering::SeqCst);
    }
}

impl Loop {
    fn run(mut self, way: Way, wakeup: &OwnedFd, tasks: &Receiver<Task>) {
        self.engine.join(usize::MAX);
        let wait = way.watch(&self.engine, wakeup);
        while !self.ended {
            let (is_woken, has_tasks) = wait();
            if has_tasks {
                rustix::io::read(wakeup, &mut [0u8; 8]).expect("a count");
                tasks.try_iter().for_each(|task| task(&mut self));
            }
            if is_woken && !self.ended {
                self.view.turns.fetch_add(1, Ordering::SeqCst);
                if self.view.holds.swap(false, Ordering::SeqCst) {
                    self.gate.pass();
                }
                self.turn();
            }
        }
        for exchange in std::mem::take(&mut self.open) {
            self.engine.give_back(Box::new(exchange));
        }
        self.engine.leave();
        self.tally.keep(self.engine.take_chores());
        self.tally.ended.fetch_add(1, Ordering::SeqCst);
    }

    fn turn(&mut self) {
        let engine = self.engine.clone();
        let Ok(_) = engine.take_turn(self);
    }

    /// What one greenlet does until it waits, in a call or for one.
    fn serve_one(&mut self, mut done: Option<Box<Exchange>>) {
        loop {
            match self.engine.next(0, done.take()) {
                Wake::Request(mut exchange) => {
                    let path = path(&exchange);
                    lock(&self.view.begun).push(path.clone());
                    if path == "/block" {
                        self.gate.pass();
                    } else if path != "/now" {
                        lock(&self.view.open).push(path);
                        self.open.push(*exchange);
                        return;
                    }
                    answer(&self.engine, &mut exchange, path.as_bytes());
                    done = Some(exchange);
                }
                Wake::Ready(stir) => lock(&self.view.stirs).push(stir),
                Wake::Chores => self.tally.keep(self.engine.take_chores()),
                Wake::Signal => {}
                Wake::Nothing => return,
                Wake::Ended => {
                    self.ended = true;
                    return;
                }
            }
        }
    }

    fn position(&self, wanted: &str) -> usize {
        let found = self.open.iter().position(|exchange| path(exchange) == wanted);
        found.unwrap_or_else(|| panic!("no call waits at {wanted}"))
    }

    fn call(&mut self, path: &str) -> &mut Exchange {
        let position = self.position(path);
        &mut self.open[position]
    }

    fn take(&mut self, path: &str) -> Box<Exchange> {
        let position = self.position(path);
        lock(&self.view.open).remove(position);
        Box::new(self.open.remove(position))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
