//! The engine: what a worker holds. App threads take requests from it and give them back; one of those that have none
//! waits for events, the others are parked.

mod attend;
pub mod baton;
pub mod buffering;
mod calls;
mod fork;
#[cfg(any(test, feature = "baton-tracking"))]
pub(crate) mod holds;
pub mod hub;
mod jobs;
mod lateness;
pub mod lifecycle;
mod one_queue;
mod pace;
pub mod shared;
mod streams;
pub mod taken;

use crate::clock::{self, WallText};
use crate::config::{Config, Failpoint, MaxConcurrency};
use crate::disk::Pool;
use crate::exchange::lost::{Leases, Lost};
use crate::exchange::outbox::SharedBytes;
use crate::exchange::output::Disks;
use crate::exchange::responses::Responses;
use crate::exchange::{Exchange, Sent};
use crate::logs::Logs;
use crate::one_queue::company::Company;
use crate::one_queue::siblings::Siblings;
use crate::reactor::{Chores, DISK_NEWS, Listener, Reactor, Runner, SlotReadiness, Surroundings, WAKE};
use crate::scoreboard::group::GroupWord;
use crate::scoreboard::{Phase, Scoreboard, Word};
use crate::sys::fork::is_child;
use crate::sys::poll::Poller;
use crate::sys::random_seed;
use crate::waiting::Waiting;
use baton::{Baton, Core};
use lifecycle::{Lifecycle, Stage};
use rustix::fd::{AsRawFd, OwnedFd, RawFd};
use rustix::io;
use shared::Shared;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use tricorn_proto::message::FieldList;
use tricorn_proto::peer::request_id;
use tricorn_proto::peer::session::Naming;
use tricorn_proto::response::HeadInputs;

/// Chores that pile up while requests never pause are handed out at this number.
const CHORES: usize = 128;

/// What an app thread should do next.
pub enum Wake {
    /// Answer this request. The thread counts as inside the application from now on.
    Request(Box<Exchange>),
    /// Something happened to the connection of a request that is under way and attended to (`Engine::attend`).
    Ready(SlotReadiness),
    /// Take the chores (`Engine::take_chores`), then ask again.
    Chores,
    /// A signal may have come: let its handlers run, then ask again.
    Signal,
    /// Nothing to do: `Engine::wait`, without the GIL.
    Nothing,
    /// The engine has ended: leave.
    Ended,
}

pub struct Engine {
    pub(crate) shared: Arc<Shared>,
    pub(crate) monitor: Mutex<Option<JoinHandle<()>>>,
}

/// When an exchange was handed in: how many calls had begun by then.
#[derive(Debug, Clone, Copy)]
pub struct HandedIn {
    begun: u64,
}

impl Engine {
    pub fn new(config: Config, listeners: Vec<OwnedFd>, board: Scoreboard, logs: Logs) -> io::Result<Engine> {
        let config = Arc::new(config);
        let poller = Arc::new(Poller::new()?);
        let logs = Arc::new(logs);
        let mut sockets = Vec::with_capacity(listeners.len());
        for socket in listeners {
            sockets.push(Listener::new(socket)?);
        }
        let addresses = sockets.iter().map(|listener| listener.address).collect();
        let waiting = Waiting::new(config.clone(), board, poller.clone())?;
        poller.add_wake(waiting.kick.as_fd(), WAKE)?;
        board.begin(config.threads);
        let stalls = config.upload_dir.clone().filter(|_| config.fault == Some(Failpoint::StallDisk));
        let (disks, returned) = Disks::new(Pool::new(stalls)?);
        let disks = Arc::new(disks);
        poller.add_edge(disks.pool().news(), DISK_NEWS)?;
        let responses = Responses::new(board, disks.clone());
        let lost = Arc::new(Lost::new(waiting.alarm.clone()));
        let reactor = Reactor::new(Surroundings {
            config: config.clone(),
            board,
            poller: poller.clone(),
            entrance: waiting.entrance.clone(),
            logs: logs.clone(),
            listeners: sockets,
            sleeper: waiting.sleeper.clone(),
            callers: waiting.callers(),
            load: responses.load.clone(),
            disks,
            returned,
        });
        let ids = config.request_id.then(|| request_id::Maker::new(random_seed()));
        let shared = Shared {
            waiting,
            responses,
            config,
            board,
            baton: Baton::new(Core::new(reactor, Leases::of(lost.clone()), ids)),
            lost,
            poller,
            logs,
            has_admin: AtomicBool::new(false),
            siblings: OnceLock::new(),
            queued: AtomicUsize::new(0),
            running: AtomicUsize::new(0),
            life: Lifecycle::new(board),
            listeners: addresses,
            memory: OnceLock::new(),
        };
        Ok(Engine { shared: Arc::new(shared), monitor: Mutex::new(None) })
    }

    /// Answers questions about this worker on these listeners, before it starts.
    pub fn open_admin(&self, listeners: Vec<OwnedFd>) -> io::Result<()> {
        let listeners = listeners.into_iter().map(Listener::new);
        let listeners = listeners.collect::<io::Result<Vec<_>>>()?;
        self.shared.has_admin.store(!listeners.is_empty(), Ordering::Relaxed);
        self.shared.baton.take().reactor.open_admin(listeners)
    }

    /// Says which worker this is, of which generation.
    pub fn identify(&self, slot: u64, generation: u64) {
        self.shared.board.set(Word::Slot, slot);
        self.shared.board.set(Word::Generation, generation);
    }

    /// Works together with these siblings, before it starts.
    ///
    /// # Errors
    /// The kernel has no memory to watch the mailbox.
    pub fn open_group(&self, mut siblings: Siblings) -> io::Result<()> {
        let group = siblings.group;
        let mut core = self.shared.baton.take();
        if let Some((affinity, mailbox)) = siblings.affinity.take() {
            core.reactor.open_mailbox(affinity, mailbox)?;
        }
        core.reactor.join_group(siblings.all_pages());
        if siblings.channel.is_some() {
            core.reactor.may_hand_over();
        }
        if self.shared.siblings.set(siblings).is_ok()
            && let MaxConcurrency::Fixed(most) = self.shared.config.max_concurrency
        {
            group.set(GroupWord::Limit, most as u64);
        }
        Ok(())
    }

    /// From now on sessions that have these names stay with their workers. Without effect where there is no table of them.
    pub fn follow_sessions(&self, namings: Vec<Naming>) {
        self.shared.baton.take().reactor.follow_sessions(namings);
    }

    pub fn config(&self) -> &Config {
        &self.shared.config
    }

    pub fn logs(&self) -> &Logs {
        &self.shared.logs
    }

    /// The address a listener is bound to; `None` for unix sockets.
    pub fn listener_address(&self, listener: u16) -> Option<SocketAddr> {
        self.shared.listeners.get(listener as usize).copied().flatten()
    }

    /// The write end of the pipe that wakes the main thread; for `signal.set_wakeup_fd`.
    pub fn wakeup_fd(&self) -> RawFd {
        self.shared.waiting.signals.writer().as_raw_fd()
    }

    /// Connections should be closed after the reply that is being given: the worker is leaving, or is to be sent no more (so
    /// that pools of clients that never ask for readiness move as well), clients are to be shared with new workers, or requests wait
    /// here that a sibling could take if their clients came anew.
    pub fn closes_connections(&self) -> bool {
        let shared = &*self.shared;
        shared.life.is_draining()
            || shared.board.orders_close()
            || shared.config.keepalive == 0
            || (shared.company() == Company::Siblings && shared.has_queued())
    }

    /// The fields that replies to this client have which tell the load; `None`: those that all replies have.
    #[inline]
    pub fn told_load(&self, exchange: &Exchange) -> Option<Arc<FieldList>> {
        let shared = &*self.shared;
        if shared.config.load_report && exchange.client.trusted { shared.responses.load.fields() } else { None }
    }

    /// What the head of a reply needs besides the application's fields. `wall` is the exchange's, `load` from
    /// [`Engine::told_load`].
    pub fn head_inputs<'a>(
        &'a self,
        wall: &'a WallText,
        load: Option<&'a FieldList>,
        body_length: Option<u64>,
    ) -> HeadInputs<'a> {
        if let Some(Failpoint::Panics(most, words)) = self.shared.config.fault {
            self.panic_for_test(most, words);
        }
        let config = &self.shared.config;
        HeadInputs {
            date: if config.date { wall.date() } else { b"" },
            server: &config.server,
            standing: load.unwrap_or(&config.standing_fields),
            body_length,
            close: self.closes_connections(),
        }
    }

    /// Gives back an exchange that is done and looks for the next one, without waiting.
    ///
    /// Under a hub the slot is of no matter: each call gets one of its own.
    #[inline]
    pub fn next(&self, slot: usize, done: Option<Box<Exchange>>) -> Wake {
        if is_child() {
            return Wake::Ended;
        }
        let shared = &*self.shared;
        let mut guard = shared.baton.take();
        let core = &mut *guard;
        core.rounds = core.rounds.wrapping_add(1);
        shared.reclaim(core);
        if let Some(exchange) = done {
            shared.end_and_observe(core, exchange);
        }
        shared.stop_covering(core);
        if self.has_ended(core) {
            return Wake::Ended;
        }
        if core.reactor.take_woken() {
            shared.take_wakeups(core);
            shared.obey(core);
            return Wake::Signal;
        }
        if core.reactor.chores_weight() > CHORES {
            return Wake::Chores;
        }
        if shared.config.max_concurrency != MaxConcurrency::Unlimited {
            shared.keep_share(core);
        }
        if let Some(ready) = core.reactor.next_readiness() {
            return Wake::Ready(ready);
        }
        shared.look_before_stream(core);
        let next = shared.take_front(core).or_else(|| core.reactor.pump(Runner::AppThread));
        if core.reactor.is_over_limit() {
            shared.look_after_queue(core);
        }
        let Some(mut exchange) = next else {
            return if let Some(ready) = core.reactor.next_readiness() {
                Wake::Ready(ready)
            } else if core.reactor.is_woken() {
                Wake::Signal // seen at the next call
            } else if core.reactor.chores_weight() > 0 {
                Wake::Chores
            } else {
                Wake::Nothing
            };
        };
        shared.queued.store(core.reactor.queued(), Ordering::Relaxed);
        let slot = shared.waiting.take_slot(&mut core.free_slots, slot);
        shared.begin_call(core, slot, &mut exchange);
        let may_hold = core.gathers_answers(&exchange);
        exchange.lane.may_hold(may_hold);
        if shared.waiting.calls_hold_threads() && core.is_blocking() && core.polling.is_none() {
            shared.leave_watch(core);
        }
        drop(guard);
        shared.publish_call(&exchange);
        shared.waiting.call_began(slot, exchange.timing.started);
        Wake::Request(exchange)
    }

    /// Whether calls are under way on other threads, besides the caller's own, that may wait for the GIL.
    #[inline]
    pub fn others_run(&self) -> bool {
        self.shared.running.load(Ordering::Relaxed) > 1
    }

    /// Gives back an exchange that is done, for [`Engine::stand_by`].
    pub fn hand_in(&self, done: Box<Exchange>) -> HandedIn {
        if is_child() {
            return HandedIn { begun: 0 };
        }
        let shared = &*self.shared;
        let mut core = shared.baton.take();
        shared.end_and_observe(&mut core, done);
        HandedIn { begun: core.calls.begun }
    }

    /// To be called without the GIL, when others have had a chance to take it since an exchange was handed in. If one of them has
    /// begun a call, it is the GIL that calls wait for, and one thread fewer should want it: this one parks, as those do that
    /// wait while another leads.
    pub fn stand_by(&self, slot: usize, handed_in: HandedIn) {
        if is_child() {
            return;
        }
        let shared = &*self.shared;
        let mut core = shared.baton.take();
        let goes_on = core.calls.begun == handed_in.begun || core.calls.running == 0 || core.is_blocking();
        if goes_on || core.reactor.is_woken() || core.reactor.chores_weight() > 0 || self.has_ended(&mut core) {
            return;
        }
        core.followers.push(slot);
        drop(core);
        shared.waiting.slots[slot].park();
    }

    /// Lets others know what the call is at.
    pub fn note_phase(&self, exchange: &Exchange, phase: Phase) {
        self.shared.board.call_is_at(exchange.slot, phase);
    }

    /// Sends a piece of a body of which more is to come (see `Exchange::write`). What the client does not take at once goes
    /// on while the application is busy, and pieces that follow one another closely travel together.
    pub fn write(
        &self,
        exchange: &mut Exchange,
        inputs: &HeadInputs<'_>,
        piece: &[u8],
        keep: impl FnOnce() -> SharedBytes,
    ) -> Sent {
        if !exchange.request.reply.head_sent() {
            self.note_phase(exchange, Phase::Sending);
        }
        let sent = exchange.write(inputs, piece, keep);
        self.shared.waiting.slots[exchange.slot].progress.made(exchange.lane.last_piece());
        self.tell_of_rest(exchange);
        sent
    }

    /// Tells the monitor that bytes were left to it, if it does not know. To be called after whatever may leave some.
    #[inline]
    pub(crate) fn tell_of_rest(&self, exchange: &mut Exchange) {
        if exchange.lane.take_news() {
            self.shared.waiting.bytes_wait(exchange.lane.watched());
        }
    }

    /// Waits until `next` may have something: as the one who polls, or parked. Without the GIL.
    pub fn wait(&self, slot: usize) {
        let shared = &*self.shared;
        let mut core = shared.baton.take();
        if self.has_ended(&mut core) || core.reactor.has_work() || core.reactor.is_woken() {
            return;
        }
        let now = clock::now();
        shared.stop_covering(&mut core);
        shared.open_gate(&mut core);
        let look = shared.before_wait(&mut core, now);
        if core.reactor.has_work() {
            return;
        }
        if core.reactor.has_job() {
            shared.work_off_while_idle(core);
            return;
        }
        if shared.logs.need_a_look() {
            shared.waiting.wake_monitor(); // lines of refused requests, which began no call
        }
        if core.polling.is_some() {
            if let Some(look) = look {
                shared.waiting.sleeper.wake_by(now.saturating_add(look));
            }
            if core.reactor.has_leftovers() {
                shared.waiting.kick.ring(); // they make no event that ends the other's wait
            }
            core.followers.push(slot);
            drop(core);
            shared.waiting.slots[slot].park();
            return;
        }
        core.polling = Some(slot);
        let mut events = std::mem::take(&mut core.spare);
        let timeout = [core.reactor.timeout(now), look].into_iter().flatten().min();
        shared.waiting.sleeper.sleep_until(timeout.map(|timeout| now.saturating_add(timeout)));
        drop(core);
        let result = shared.poller.wait(&mut events, timeout);
        let mut core = shared.baton.take();
        core.polling = None;
        shared.waiting.sleeper.get_up();
        core.reactor.arrived(&mut events, clock::now());
        core.spare = events;
        // If the GIL does not let this thread go on, the monitor has to, which sleeps while calls are merely waited for.
        let takes_work = shared.hands_over() && core.reactor.has_work();
        if takes_work {
            shared.waiting.watch.app_thread_comes();
        }
        if takes_work || core.calls.running > 0 {
            shared.waiting.wake_monitor();
        }
        if result.is_err() {
            shared.end_now();
        }
    }

    /// Looks for events without waiting; worth it under load, while the GIL is held anyway. Whether there were any.
    pub fn poll_now(&self) -> bool {
        let shared = &*self.shared;
        let mut guard = shared.baton.take();
        let core = &mut *guard;
        if core.polling.is_some() || core.reactor.has_work() || !core.reactor.events().was_batch() {
            return core.reactor.has_work();
        }
        // As in `wait`: a worker that never gets round to waiting must not stay closed to newcomers.
        shared.open_gate(core);
        if shared.poller.wait(&mut core.spare, Some(0)).is_err() {
            return false;
        }
        core.reactor.arrived(&mut core.spare, clock::now());
        core.reactor.has_work()
    }

    /// Blocks the main thread until a signal may have come or the engine has ended. Whether it goes on.
    pub fn wait_for_signal(&self) -> bool {
        self.shared.waiting.signals.wait();
        self.shared.waiting.signals.drain();
        let mut core = self.shared.baton.take();
        self.shared.obey(&mut core);
        !self.has_ended(&mut core)
    }

    pub(crate) fn has_ended(&self, core: &mut Core) -> bool {
        let shared = &*self.shared;
        let ended = shared.life.is_stopping()
            || core.reactor.is_drained() && !shared.takes_leftovers(core)
            || shared.baton.is_broken();
        if ended {
            core.reactor.send_held();
            let all = core.followers.len();
            shared.wake_followers(core, all);
            shared.waiting.signals.kick();
            if core.polling.is_some() {
                shared.waiting.kick.ring();
            }
            shared.waiting.ring_hub();
        }
        ended
    }

    /// Accepts nothing more; `Wake::Ended` comes when every connection is done with.
    pub fn drain(&self) {
        if is_child() {
            return;
        }
        self.shared.drain(&mut self.shared.baton.take());
    }

    /// Ends at once: app threads leave as soon as they are out of the application.
    pub fn stop(&self) {
        if is_child() {
            return;
        }
        self.shared.life.reach(Stage::Stopping);
        self.shared.wake_all(&mut self.shared.baton.take());
    }

    /// What only a thread with the GIL may drop or log.
    pub fn take_chores(&self) -> Chores {
        self.shared.baton.take().reactor.take_chores()
    }

    /// Something panicked in the core; the worker should be replaced.
    pub fn is_broken(&self) -> bool {
        self.shared.baton.is_broken()
    }

    /// Panics `most` times with these words: a test asked for it.
    #[cold]
    fn panic_for_test(&self, most: usize, words: &'static str) {
        static PANICS: AtomicUsize = AtomicUsize::new(0);
        if PANICS.fetch_add(1, Ordering::Relaxed) < most {
            std::panic::panic_any(words);
        }
    }
}
