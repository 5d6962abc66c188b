//! A run: threads that send, and one that watches them.
use rustix::thread::{CpuSet, sched_setaffinity, set_current_timer_slack};
use std::num::NonZeroU64;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{Builder, ScopedJoinHandle, scope};
use std::time::{Duration, Instant};

use crate::clock::{Clock, nanoseconds};
use crate::descriptors;
use crate::driver::{Done, Driver, Shared};
use crate::echoes;
use crate::outcome::{Outcome, Progress};
use crate::plan::Plan;
use crate::request::Requests;
use crate::tally::Tally;
use crate::watcher::Watcher;

/// Sends what is planned.
///
/// # Errors
/// A sentence: it cannot begin, or the system fails.
pub fn run(plan: &Plan, watcher: &mut dyn Watcher) -> Result<Outcome, String> {
    descriptors::make_room(plan.connections())?;
    if let Some(socket) = &plan.websocket {
        return echoes::run(plan, socket, watcher);
    }
    let requests = Requests::new(plan)?;
    let threads = plan.thread_count();
    let shared: Vec<Shared> = (0..threads).map(|_| Shared::new(plan.has_tls())).collect::<Result<_, _>>()?;
    let mut done = Vec::with_capacity(threads);
    let mut is_stopped = false;
    scope(|scope| {
        let of_thread = |(number, shared)| Driver::new(plan, &requests, shared, (number, threads));
        let drivers = shared.iter().enumerate().map(of_thread).collect::<Result<Vec<_>, _>>()?;
        let mut handles = Vec::with_capacity(threads);
        let clock = Clock::starting_in(HEAD_START);
        for (number, (driver, mine)) in drivers.into_iter().zip(&shared).enumerate() {
            let caller = std::thread::current();
            let cpu = plan.threads.cpus.get(number % plan.threads.cpus.len().max(1)).copied();
            let work = move || {
                prepare_thread(cpu)?;
                let done = driver.run(clock);
                mine.ended.store(true, Ordering::Release);
                caller.unpark();
                done
            };
            let spawned = Builder::new().name(format!("load-{number}")).spawn_scoped(scope, work);
            let started = spawned.inspect_err(|_| stop(&shared));
            handles.push(started.map_err(|error| format!("no thread could be started: {error}"))?);
        }
        is_stopped = watch(plan, &shared, &handles, clock, watcher);
        for handle in handles {
            done.push(handle.join().map_err(|_| "a thread of the generator panicked (a defect of tricorn-load)")??);
        }
        Ok::<_, String>(())
    })?;
    let tallies = shared.into_iter().filter_map(|shared| shared.tally.into_inner().ok());
    let tally = tallies.reduce(|mut all, one| {
        all.add(&one);
        all
    });
    Ok(Outcome::new(tally.map_or_else(|| Tally::new(plan.has_tls()), Ok)?, done, is_stopped))
}

fn stop(shared: &[Shared]) {
    shared.iter().for_each(|shared| shared.stop.store(true, Ordering::Relaxed));
}

/// Until all threads have ended. Whether they were stopped.
fn watch(
    plan: &Plan,
    shared: &[Shared],
    handles: &[ScopedJoinHandle<'_, Result<Done, String>>],
    clock: Clock,
    watcher: &mut dyn Watcher,
) -> bool {
    let mut is_stopped = false;
    let mut progress = Progress::default();
    let mut next_tick = Instant::now() + HEAD_START + TICK;
    let warmup = nanoseconds(plan.bounds.warmup);
    // One that panics says nothing.
    let has_ended = |(shared, handle): (&Shared, &ScopedJoinHandle<'_, _>)| {
        shared.ended.load(Ordering::Acquire) || handle.is_finished()
    };
    while !shared.iter().zip(handles).all(has_ended) {
        std::thread::park_timeout(LOOK);
        let mut goes_on = watcher.goes_on();
        if Instant::now() >= next_tick {
            next_tick += TICK;
            progress = Progress::next(&progress, shared, clock.now().saturating_sub(warmup));
            goes_on &= watcher.tick(&progress);
        }
        if !goes_on && !is_stopped {
            is_stopped = true;
            stop(shared);
        }
    }
    is_stopped
}

fn prepare_thread(cpu: Option<usize>) -> Result<(), String> {
    // The kernel may otherwise wake a thread 50 microseconds late, to save energy: prctl(2), PR_SET_TIMERSLACK.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let Some(cpu) = cpu else { return Ok(()) };
    let mut set = CpuSet::new();
    if cpu < CpuSet::MAX_CPU {
        set.set(cpu);
    }
    sched_setaffinity(None, &set).map_err(|error| format!("a thread cannot be pinned to processor {cpu}: {error}"))
}

impl Shared {
    fn new(has_tls: bool) -> Result<Shared, String> {
        let tally = Mutex::new(Tally::new(has_tls)?);
        let (stop, ended) = (AtomicBool::new(false), AtomicBool::new(false));
        Ok(Shared { stop, ended, tally, connections: AtomicUsize::new(0) })
    }
}

/// Until all threads have started.
const HEAD_START: Duration = Duration::from_millis(5);
const TICK: Duration = Duration::from_secs(1);
const LOOK: Duration = Duration::from_millis(50);
