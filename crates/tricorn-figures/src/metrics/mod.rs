//! The metrics of all workers as text for Prometheus: OpenMetrics 1.0, or its text format 0.0.4.
//!
//! Rendered from shared memory without Python, by the thread that runs the reactor. Any worker tells those of all.

mod accept;
mod application;
mod exposition;
pub mod families;
pub mod live;
pub mod load;
pub mod status;
mod totals;

pub use accept::negotiated;
pub use application::{Merged, Reading, is_whole, read_all};
pub use exposition::Exposition;
pub use families::{FAMILIES, Family, Kind};

use crate::scoreboard::Scoreboard;
use crate::scoreboard::buckets::EXPORTED;
use crate::scoreboard::group::Group;
use crate::scoreboard::ledger::{Ledger, LedgerWord};
use crate::scoreboard::routes::{RouteCounts, Routes};
use crate::scoreboard::{APP_TIME, QUEUE_TIME, TOTAL_TIME, Word, samples_of};
use families::{Number, Source};
use std::fmt::{self, Write};
use totals::{Durations, Totals};
use tricorn_proto::message::RefusalKind;
use tricorn_sys::clock::{self, SECOND};

/// What the metrics are made of.
#[derive(Debug, Clone, Copy)]
pub struct Sources<'a> {
    /// The pages that workers use or have used.
    pub pages: &'a [Scoreboard],
    pub ledger: Option<Ledger>,
    pub group: Option<Group>,
    pub routes: Option<Routes>,
    /// Labels of `tricorn_info` and their values.
    pub info: &'a [(String, String)],
    /// Monotonic nanoseconds.
    pub now: u64,
    /// What the application counts.
    pub application: Option<&'a Reading>,
    pub backlogs: &'a [Backlog],
    pub load: Option<load::Report>,
}

/// Connections that wait at a listener to be accepted.
#[derive(Debug)]
pub struct Backlog {
    /// Its address.
    pub listener: String,
    pub waiting: u32,
    pub limit: u32,
}

impl<'a> Sources<'a> {
    /// Pages and a ledger, and nothing else.
    pub fn of(pages: &'a [Scoreboard], ledger: Option<Ledger>) -> Sources<'a> {
        Sources {
            pages,
            ledger,
            group: None,
            routes: None,
            info: &[],
            now: clock::now(),
            application: None,
            backlogs: &[],
            load: None,
        }
    }
}

/// All metrics there are. A family without a number is left out.
pub fn render(sources: &Sources<'_>, exposition: Exposition) -> String {
    let mut text = String::with_capacity(ROOM);
    let totals = Totals::read(sources.pages, sources.ledger, &[QUEUE_TIME, APP_TIME, TOTAL_TIME]);
    let mut routes = sources.routes.map(|routes| routes.read()).unwrap_or_default();
    routes.retain(|route| route.requests > 0);
    let renderer = Renderer { sources, totals, routes, exposition };
    for family in &FAMILIES {
        // A `String` takes everything.
        let _ = renderer.family(family, &mut text);
    }
    text.push_str(sources.application.map_or("", |reading| reading.text(exposition)));
    if exposition == Exposition::OpenMetrics {
        text.push_str("# EOF\n");
    }
    text
}

/// Room for the metrics of some workers.
const ROOM: usize = 24 << 10;

struct Renderer<'a> {
    sources: &'a Sources<'a>,
    totals: Totals,
    routes: Vec<RouteCounts>,
    exposition: Exposition,
}

impl Renderer<'_> {
    fn family(&self, family: &Family, out: &mut String) -> fmt::Result {
        let start = out.len();
        self.describe(family, out)?;
        let described = out.len();
        self.samples(family, out)?;
        if out.len() == described {
            out.truncate(start);
        }
        Ok(())
    }

    fn describe(&self, family: &Family, out: &mut String) -> fmt::Result {
        let Family { name, kind, help, .. } = family;
        let is_open = self.exposition == Exposition::OpenMetrics;
        let (name, kind_name) = match kind {
            // In text 0.0.4 the suffix belongs to the name, and there is no type for facts.
            Kind::Counter if !is_open => (format!("{PREFIX}_{name}_total"), kind.name()),
            Kind::Info if !is_open => (format!("{PREFIX}_info"), "gauge"),
            Kind::Info => (PREFIX.to_string(), kind.name()),
            _ => (format!("{PREFIX}_{name}"), kind.name()),
        };
        writeln!(out, "# HELP {name} {}", escaped(help))?;
        writeln!(out, "# TYPE {name} {kind_name}")?;
        let unit = ["seconds", "bytes"].into_iter().find(|unit| name.ends_with(&format!("_{unit}")));
        match unit.filter(|_| is_open) {
            Some(unit) => writeln!(out, "# UNIT {name} {unit}"),
            None => Ok(()),
        }
    }

    fn samples(&self, family: &Family, out: &mut String) -> fmt::Result {
        let totals = &self.totals;
        let ledger = self.sources.ledger;
        let is_time = family.name.ends_with("_seconds");
        let mut put = |label: &str, value: &dyn fmt::Display| sample(out, family, label, value);
        match &family.source {
            Source::SomeWords if samples_of(family.name).all(|row| totals.word(row.word) == 0) => Ok(()),
            Source::Words | Source::SomeWords => samples_of(family.name).try_for_each(|row| {
                let value = totals.word(row.word);
                if is_time { put(row.label, &Seconds(value)) } else { put(row.label, &value) }
            }),
            Source::Durations(start) => match totals.durations(*start) {
                Some(durations) => histogram(out, family, "", durations),
                None => Ok(()),
            },
            Source::GilWaits if totals.gil.0.iter().all(|count| *count == 0) => Ok(()),
            Source::GilWaits => histogram(out, family, "", &totals.gil),
            Source::Codes => totals.codes.iter().try_for_each(|(code, count)| match code {
                0 => put("other", count),
                code => put(&code.to_string(), count),
            }),
            Source::Refusals => {
                let refusals = RefusalKind::ALL.into_iter().zip(totals.refusals).filter(|(_, count)| *count > 0);
                refusals.into_iter().try_for_each(|(kind, count)| put(kind.name(), &count))
            }
            Source::ByRoute(_) | Source::SecondsByRoute(_) | Source::RouteDurations => self.routes(family, out),
            Source::Arbiter(word) | Source::SomeArbiter(word) => self.of_arbiter(family, *word, out),
            Source::Named(first, names) => ledger
                .into_iter()
                .flat_map(|ledger| ledger.counts(*first, names))
                .try_for_each(|(name, count)| put(name, &count)),
            Source::States(states) => {
                states.iter().try_for_each(|(name, state)| put(name, &totals.states[*state as usize]))
            }
            Source::ByWorker(word) => {
                totals.by_slot.iter().try_for_each(|(slot, page)| put(&slot.to_string(), &page.get(*word)))
            }
            Source::SecondsByWorker(word) => {
                totals.by_slot.iter().try_for_each(|(slot, page)| put(&slot.to_string(), &Seconds(page.get(*word))))
            }
            Source::Memory(word, arbiter, mold) => {
                let mut known = self.memory(*word, *arbiter, *mold);
                known.try_for_each(|(process, bytes)| put(&process, &bytes))
            }
            Source::Backlog => self.sources.backlogs.iter().try_for_each(|each| put(&each.listener, &each.waiting)),
            Source::BacklogLimit => self.sources.backlogs.iter().try_for_each(|each| put(&each.listener, &each.limit)),
            Source::Capacity => put("", &totals.capacity),
            Source::Load(number) => self.sources.load.map_or(Ok(()), |report| put("", &number(&report))),
            Source::OldestWait => put("", &Seconds(totals.oldest_wait(self.sources.now))),
            Source::BusyRatio if totals.capacity == 0 => Ok(()),
            Source::BusyRatio => {
                let ratio = totals.word(Word::InFlight) as f64 / totals.capacity as f64;
                put("", &format_args!("{ratio:.4}"))
            }
            Source::ConcurrencyLimit => match self.sources.group.and_then(|group| group.limit()) {
                Some(limit) => put("", &limit),
                None => Ok(()),
            },
            Source::StartTime => match ledger.map_or(0, |ledger| ledger.get(LedgerWord::Started)) {
                0 => Ok(()),
                micros => put("", &Seconds(micros.saturating_mul(1000))),
            },
            Source::Files => self.sources.application.map_or(Ok(()), |reading| {
                put("merged", &reading.merged)?;
                put("broken", &reading.broken)
            }),
            Source::LeftOut => self.sources.application.map_or(Ok(()), |reading| put("", &reading.left_out)),
            Source::Info => info(out, self.sources.info),
        }
    }

    /// A size of each process of which it is known.
    fn memory(&self, word: Word, arbiter: LedgerWord, mold: LedgerWord) -> impl Iterator<Item = (String, u64)> {
        let told = |word: LedgerWord| self.sources.ledger.map_or(0, |ledger| ledger.get(word));
        let others = [("arbiter".to_owned(), told(arbiter)), ("mold".to_owned(), told(mold))];
        let workers = self.totals.by_slot.iter().map(move |(slot, page)| (slot.to_string(), page.get(word)));
        others.into_iter().chain(workers).filter(|(_, bytes)| *bytes > 0)
    }

    fn of_arbiter(&self, family: &Family, word: LedgerWord, out: &mut String) -> fmt::Result {
        match self.sources.ledger.map(|ledger| ledger.get(word)) {
            Some(0) if matches!(family.source, Source::SomeArbiter(_)) => Ok(()),
            Some(value) => sample(out, family, "", &value),
            None => Ok(()),
        }
    }

    fn routes(&self, family: &Family, out: &mut String) -> fmt::Result {
        self.routes.iter().try_for_each(|route| {
            let name = escaped(&route.name);
            match &family.source {
                Source::ByRoute(count) => sample(out, family, &name, &count(route)),
                Source::SecondsByRoute(nanos) => sample(out, family, &name, &Seconds(nanos(route))),
                _ => histogram(out, family, &format!("route=\"{name}\""), &(route.buckets, route.time)),
            }
        })
    }
}

/// One line.
fn sample(out: &mut String, family: &Family, label: &str, value: &dyn fmt::Display) -> fmt::Result {
    let suffix = if family.kind == Kind::Counter { "_total" } else { "" };
    write!(out, "{PREFIX}_{}{suffix}", family.name)?;
    if !family.label.is_empty() {
        write!(out, "{{{}=\"{label}\"}}", family.label)?;
    }
    writeln!(out, " {value}")
}

/// `label`: name and value, or nothing.
fn histogram(out: &mut String, family: &Family, label: &str, (counts, sum): &Durations) -> fmt::Result {
    let name = family.name;
    let (comma, braced) = if label.is_empty() { ("", String::new()) } else { (",", format!("{{{label}}}")) };
    let mut below = 0u64;
    let edges = EXPORTED.iter().map(|(_, text)| *text).chain(["+Inf"]);
    for (edge, count) in edges.zip(counts) {
        below = below.wrapping_add(*count);
        writeln!(out, "{PREFIX}_{name}_bucket{{{label}{comma}le=\"{edge}\"}} {below}")?;
    }
    writeln!(out, "{PREFIX}_{name}_count{braced} {below}")?;
    writeln!(out, "{PREFIX}_{name}_sum{braced} {}", Seconds(*sum))
}

fn info(out: &mut String, labels: &[(String, String)]) -> fmt::Result {
    if labels.is_empty() {
        return Ok(());
    }
    write!(out, "{PREFIX}_info{{")?;
    for (index, (name, value)) in labels.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(out, "{comma}{name}=\"{}\"", escaped(value))?;
    }
    writeln!(out, "}} 1")
}

/// As the value of a label or a help text: a backslash, a double quote and a line feed are escaped in both formats.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Number::Count(count) => write!(f, "{count}"),
            Number::Nanoseconds(nanos) => write!(f, "{}", Seconds(nanos)),
            Number::Ratio(ratio) => write!(f, "{ratio:.4}"),
        }
    }
}

/// Nanoseconds as seconds, exactly.
struct Seconds(u64);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.0 / SECOND, self.0 % SECOND)
    }
}

/// Of every name.
const PREFIX: &str = "tricorn";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoreboard::State;
    use crate::scoreboard::ledger::{ARBITER, MOLD};
    use crate::scoreboard::routes::{Cost, Split};
    use std::time::Instant;

    fn worker(slot: u64, state: State) -> Scoreboard {
        let page = Scoreboard::private(4);
        page.begin(4);
        page.state(state);
        page.set(Word::Slot, slot);
        page
    }

    fn report() -> load::Report {
        let group = Group::private();
        let rules = load::Rules { hub: false, queue_limit: 0, queue_timeout: 0 };
        let page = worker(1, State::Serving);
        let scene = load::Scene { pages: &[page], ledger: None, group, now: 5_000_000_000 };
        load::look(&scene, rules);
        page.add(Word::Requests, 30);
        page.observe(APP_TIME, 1_500_000_000);
        load::look(&load::Scene { now: 8_000_000_000, ..scene }, rules)
    }

    /// Two that were asked for, one that was not.
    fn counted_routes() -> Option<Routes> {
        let routes = Routes::private(3, 1)?;
        let (worker, place) = (routes.of_worker(1)?, routes.place("/orders/\"{id}\""));
        routes.place("/never");
        let split = Some(Split { computed: 10_000_000, blocked: 50_000_000, delayed: 1_000_000 });
        worker.count(place, Cost { failed: true, time: 100_000_000, split });
        worker.count(0, Cost { time: 400_000, ..Cost::default() });
        Some(routes)
    }

    fn text(pages: &[Scoreboard], ledger: Option<Ledger>, exposition: Exposition) -> String {
        let info = [("version".to_string(), "1.2".to_string()), ("python".to_string(), "\"3\"".to_string())];
        render(
            &Sources {
                group: Some(Group::private()),
                routes: counted_routes(),
                info: &info,
                now: 5_000_000_000,
                backlogs: &[Backlog { listener: "127.0.0.1:8000".into(), waiting: 3, limit: 2048 }],
                load: Some(report()),
                ..Sources::of(pages, ledger)
            },
            exposition,
        )
    }

    #[test]
    fn the_text_is_that_of_the_record() {
        let pages = [worker(1, State::Serving), worker(2, State::Draining), Scoreboard::private(1)];
        let ledger = Ledger::private();
        pages[0].status(200);
        pages[0].observe(TOTAL_TIME, 100_000_000);
        pages[1].status(503);
        pages[1].refused(RefusalKind::HeadTimeout);
        pages[0].set(Word::InFlight, 3);
        pages[0].set(Word::Oldest, 3_500_000_000);
        pages[0].observe_gil(2_000_000);
        pages[1].add(Word::Cpu, 1_500_000_000);
        pages[1].set_memory([30 << 20, 10 << 20, 40 << 20]);
        ledger.set_memory(ARBITER, [5 << 20, 1 << 20, 20 << 20]);
        ledger.exited("memory");
        ledger.set(LedgerWord::Started, 1_700_000_000_250_000);
        for (exposition, name) in [(Exposition::Text, "metrics.txt"), (Exposition::OpenMetrics, "openmetrics.txt")] {
            let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
            let text = text(&pages, Some(ledger), exposition);
            if std::env::var_os("TRICORN_WRITE_GOLDEN").is_some() {
                std::fs::write(&path, &text).expect("written");
            }
            assert_eq!(text, std::fs::read_to_string(&path).expect("a file"), "{name}");
        }
    }

    #[test]
    fn a_server_without_an_arbiter_tells_what_it_knows() {
        let text = text(&[worker(0, State::Serving)], None, Exposition::Text);
        assert!(text.contains("tricorn_workers{state=\"serving\"} 1\n") && text.contains("tricorn_requests_total 0\n"));
        for absent in [
            "websocket",
            "database",
            "reloads",
            "worker_exits",
            "workers_target",
            "gil_wait",
            "start_time",
            "concurrency",
            "pss",
            "uss",
        ] {
            assert!(!text.contains(absent), "{absent}: nothing feeds it");
        }
    }

    #[test]
    fn memory_that_was_not_measured_is_absent() {
        let pages = [worker(1, State::Serving), worker(2, State::Serving)];
        let ledger = Ledger::private();
        pages[1].set_memory([3, 1, 5]);
        ledger.set_memory(MOLD, [7, 0, 9]);
        let told = || {
            let text = text(&pages, Some(ledger), Exposition::Text);
            let lines = text.lines().filter_map(|line| line.strip_prefix("tricorn_process_"));
            lines.map(str::to_owned).collect::<Vec<_>>()
        };
        let expected = [
            "pss_bytes{process=\"mold\"} 7",
            "pss_bytes{process=\"2\"} 3",
            "uss_bytes{process=\"2\"} 1",
            "shared_bytes{process=\"mold\"} 9",
            "shared_bytes{process=\"2\"} 5",
        ];
        assert_eq!(told(), expected);
        pages[1].begin(1); // of the next worker
        pages[1].state(State::Serving);
        ledger.set_memory(MOLD, [0; 3]);
        assert_eq!(told(), [""; 0]);
    }

    #[test]
    fn every_metric_has_a_name_of_its_own_and_a_help() {
        let names: std::collections::BTreeSet<_> = FAMILIES.iter().map(|family| family.name).collect();
        assert_eq!(names.len(), FAMILIES.len());
        for Family { name, kind, help, .. } in &FAMILIES {
            assert!(help.ends_with('.') && !help.contains(['"', '\\', '\n']), "{name}: {help}");
            let is_of_a_name = |byte: u8| byte == b'_' || byte.is_ascii_lowercase() || byte.is_ascii_digit();
            assert!(!name.ends_with("_total") && name.bytes().all(is_of_a_name));
            assert!(*kind != Kind::Histogram || name.ends_with("_seconds"), "{name}");
        }
    }

    /// A hundred workers, whose figures are all as long as they can be.
    #[test]
    #[cfg_attr(miri, ignore = "it takes many minutes")]
    fn a_hundred_workers_are_told_in_64_kib_and_within_a_millisecond() {
        let pages: Vec<_> = (1..=100).map(|slot| worker(slot, State::Serving)).collect();
        let ledger = Ledger::private();
        for page in &pages {
            (200..300).for_each(|code| page.status(code));
            RefusalKind::ALL.into_iter().for_each(|kind| page.refused(kind));
            page.add(Word::Requests, 1 << 52);
            for histogram in [QUEUE_TIME, APP_TIME, TOTAL_TIME] {
                page.observe(histogram, 1 << 50);
            }
            page.observe_gil(1 << 50);
            page.set_memory([1 << 40; 3]);
        }
        let begun = Instant::now();
        let rounds = 100;
        let fastest = (0..rounds).map(|_| {
            let begun = Instant::now();
            assert!(text(&pages, Some(ledger), Exposition::OpenMetrics).len() <= 64 << 10);
            begun.elapsed()
        });
        let fastest = fastest.min().unwrap_or_default();
        println!("100 workers: {fastest:?} at best, {:?} on average", begun.elapsed() / rounds);
        // Compiled for tests, and on a loaded machine, it takes longer than in a release.
        assert!(cfg!(debug_assertions) || fastest.as_micros() <= 1000, "{fastest:?}");
    }

    /// All of them have a name, and each worker has counted each.
    #[test]
    #[cfg_attr(miri, ignore = "it takes many minutes")]
    fn routes_of_a_hundred_workers_are_read_soon() {
        let routes = Routes::private(64, 100).expect("pages");
        let places: Vec<_> =
            (0..64).map(|route| routes.place(&format!("/a/route/of/the/application/{route}"))).collect();
        for worker in (1..=100).filter_map(|slot| routes.of_worker(slot)) {
            places.iter().for_each(|place| worker.count(*place, Cost { time: 1 << 40, ..Cost::default() }));
        }
        let pages = [worker(1, State::Serving)];
        let times = (0..20).map(|_| {
            let begun = Instant::now();
            let sources = Sources { routes: Some(routes), ..Sources::of(&pages, None) };
            assert!(render(&sources, Exposition::OpenMetrics).contains("route=\"/a/route/of/the/application/63\""));
            begun.elapsed()
        });
        let fastest = times.min().unwrap_or_default();
        println!("64 routes of 100 workers: {fastest:?} at best");
        assert!(cfg!(debug_assertions) || fastest.as_millis() <= 5, "{fastest:?}");
    }

    #[test]
    fn a_page_of_nonsense_does_no_harm() {
        for nonsense in [u64::MAX, 1 << 63, 0x5555_5555_5555_5555] {
            let page = Scoreboard::filled(nonsense);
            page.set(Word::State, State::Serving as u64);
            text(&[page, page], Some(Ledger::private()), Exposition::Text);
            Ledger::private().bury(page);
        }
    }
}
