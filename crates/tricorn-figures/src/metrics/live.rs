//! What the page of the admin listener shows, as JSON: samples of the last ten minutes, the workers, and who the server is.
//!
//! Counters are told as they are. The page makes rates and percentiles of the differences.
use super::Sources;
use super::totals::Totals;
use crate::scoreboard::buckets::{COARSE, EXPORTED};
use crate::scoreboard::history::{INTERVAL, SAMPLE, Sample};
use crate::scoreboard::ledger::LedgerWord;
use crate::scoreboard::{APP_TIME, QUEUE_TIME, Scoreboard, State, TOTAL_TIME, Word};
use std::fmt::{self, Write};
use tricorn_sys::clock::{MILLI, wall_micros};

/// A word of a sample: its name, and how it is worked out.
type Column = (&'static str, fn(&Moment<'_>) -> u64);

/// The first words of a sample; two histograms follow.
static COLUMNS: [Column; 22] = [
    ("time", |_| wall_micros() / 1000),
    ("requests", |moment| moment.totals.word(Word::Requests)),
    ("status_1xx", |moment| moment.totals.classes()[0]),
    ("status_2xx", |moment| moment.totals.classes()[1]),
    ("status_3xx", |moment| moment.totals.classes()[2]),
    ("status_4xx", |moment| moment.totals.classes()[3]),
    ("status_5xx", |moment| moment.totals.classes()[4]),
    ("errors", |moment| moment.totals.word(Word::AppErrors)),
    ("shed", |moment| moment.totals.metric("shed")),
    ("accepted", |moment| moment.totals.word(Word::Accepted)),
    ("bytes_in", |moment| moment.totals.word(Word::BytesIn)),
    ("bytes_out", |moment| moment.totals.word(Word::BytesOut)),
    ("cpu", |moment| moment.totals.word(Word::Cpu) / MILLI),
    ("connections", |moment| moment.totals.word(Word::Connections)),
    ("running", |moment| moment.totals.word(Word::InFlight)),
    ("waiting", |moment| moment.totals.word(Word::Queued)),
    ("capacity", |moment| moment.totals.capacity),
    ("resident", |moment| moment.totals.word(Word::Resident)),
    ("serving", |moment| moment.totals.states[State::Serving as usize]),
    ("target", |moment| moment.of_arbiter(LedgerWord::Target)),
    ("oldest", |moment| moment.totals.oldest_wait(moment.sources.now) / MILLI),
    ("generation", |moment| moment.of_arbiter(LedgerWord::Generation)),
];
const QUEUE: usize = COLUMNS.len();
const REQUEST: usize = QUEUE + COARSE;
const USED: usize = REQUEST + COARSE;
const _: () = assert!(USED <= SAMPLE);

/// The page, which asks for this once in a while.
pub static PAGE: &str = include_str!("page.html");

/// All workers at this moment.
struct Moment<'a> {
    sources: &'a Sources<'a>,
    totals: Totals,
}

impl Moment<'_> {
    fn of_arbiter(&self, word: LedgerWord) -> u64 {
        self.sources.ledger.map_or(0, |ledger| ledger.get(word))
    }
}

/// A sample of this moment, which the arbiter notes.
pub fn sample(sources: &Sources<'_>) -> Sample {
    let totals = Totals::read(sources.pages, sources.ledger, &[QUEUE_TIME, TOTAL_TIME]);
    let moment = Moment { sources, totals };
    let mut sample = [0; SAMPLE];
    for (word, (_, column)) in sample.iter_mut().zip(&COLUMNS) {
        *word = column(&moment);
    }
    for (start, histogram) in [(QUEUE, QUEUE_TIME), (REQUEST, TOTAL_TIME)] {
        if let Some((counts, _)) = moment.totals.durations(histogram) {
            sample[start..start + COARSE].copy_from_slice(counts);
        }
    }
    sample
}

/// The samples after `since` (milliseconds since 1970), and one of this moment as the last one.
pub fn render(sources: &Sources<'_>, since: u64) -> String {
    let mut out = String::with_capacity(ROOM);
    // A `String` takes everything.
    let _ = write_all(sources, since, &mut out);
    out
}

const ROOM: usize = 64 << 10;

fn write_all(sources: &Sources<'_>, since: u64, out: &mut String) -> fmt::Result {
    write!(out, "{{\"version\":1,\"interval\":{INTERVAL},\"columns\":")?;
    list(out, COLUMNS.iter().map(|(name, _)| Text(name)))?;
    out.push_str(",\"edges\":");
    list(out, EXPORTED.iter().map(|(_, text)| *text))?;
    write!(out, ",\"queue\":{QUEUE},\"request\":{REQUEST},\"started\":")?;
    let started = sources.ledger.map_or(0, |ledger| ledger.get(LedgerWord::Started)) / 1000;
    write!(out, "{started},\"info\":{{")?;
    for (index, (name, value)) in sources.info.iter().enumerate() {
        write!(out, "{}{}:{}", if index == 0 { "" } else { "," }, Text(name), Text(value))?;
    }
    out.push_str("},\"workers\":[");
    let mut workers: Vec<_> = sources.pages.iter().filter(|page| lives(page)).collect();
    workers.sort_unstable_by_key(|page| page.get(Word::Slot));
    for (index, page) in workers.into_iter().enumerate() {
        out.push_str(if index == 0 { "" } else { "," });
        worker(page, sources.now, out)?;
    }
    out.push_str("],\"samples\":[");
    let history = sources.ledger.map(|ledger| ledger.history());
    for sample in history.iter().flat_map(|history| history.samples()).filter(|sample| sample[0] > since) {
        list(out, sample[..USED].iter())?;
        out.push(',');
    }
    list(out, sample(sources)[..USED].iter())?;
    out.push_str("]}\n");
    Ok(())
}

fn lives(page: &Scoreboard) -> bool {
    [State::Booting, State::Serving, State::Draining].iter().any(|state| *state as u64 == page.get(Word::State))
}

fn worker(page: &Scoreboard, now: u64, out: &mut String) -> fmt::Result {
    write!(out, "{{\"slot\":{},\"pid\":{},\"state\":{}", page.get(Word::Slot), page.pid(), Text(page.state_name()))?;
    let figures = [
        ("generation", page.get(Word::Generation)),
        ("running", page.get(Word::InFlight)),
        ("capacity", page.threads()),
        ("waiting", page.get(Word::Queued)),
        ("connections", page.get(Word::Connections)),
        ("requests", page.get(Word::Requests)),
        ("errors", page.get(Word::AppErrors)),
        ("cpu", page.get(Word::Cpu) / MILLI),
        ("resident", page.get(Word::Resident)),
        ("oldest", page.oldest_call().map_or(0, |started| now.saturating_sub(started) / MILLI)),
    ];
    for (name, value) in figures {
        write!(out, ",\"{name}\":{value}")?;
    }
    let (counts, sum) = page.exported(APP_TIME);
    let count = counts.iter().fold(0u64, |sum, count| sum.wrapping_add(*count));
    write!(out, ",\"mean\":{}}}", sum.checked_div(count).unwrap_or(0) / 1000)
}

fn list<T: fmt::Display>(out: &mut String, items: impl Iterator<Item = T>) -> fmt::Result {
    let mut before = '[';
    for item in items {
        write!(out, "{before}{item}")?;
        before = ',';
    }
    out.push_str(if before == '[' { "[]" } else { "]" });
    Ok(())
}

/// As a string of JSON.
struct Text<'t>(&'t str);

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string(self.0).map_err(|_| fmt::Error)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoreboard::ledger::Ledger;
    use serde_json::Value;

    fn parsed(pages: &[Scoreboard], ledger: Option<Ledger>, since: u64) -> Value {
        let info = [("class".to_string(), "a \"b\"".to_string())];
        let sources = Sources { info: &info, now: 5_000_000_000, ..Sources::of(pages, ledger) };
        serde_json::from_str(&render(&sources, since)).expect("JSON")
    }

    fn busy() -> Scoreboard {
        let page = Scoreboard::private(2);
        page.begin(2);
        page.state(State::Serving);
        page.set(Word::Slot, 3);
        page.set(Word::InFlight, 1);
        page.add(Word::Requests, 7);
        page.status(200);
        page.status(503);
        page.observe(TOTAL_TIME, 2_000_000);
        page.call_begins(0, 4_000_000_000, [b"GET /secret", b"", b""]);
        page
    }

    #[test]
    fn a_sample_has_a_word_for_each_column() {
        let value = parsed(&[busy()], None, 0);
        let samples = value["samples"].as_array().expect("samples");
        assert_eq!(samples.len(), 1);
        let of = |name: &str| {
            let column = COLUMNS.iter().position(|(column, _)| *column == name).expect("a column");
            samples[0][column].as_u64().expect("a number")
        };
        assert_eq!((of("requests"), of("status_2xx"), of("status_5xx"), of("running")), (7, 1, 1, 1));
        assert_eq!((of("capacity"), of("serving"), of("shed")), (2, 1, 0));
        assert_eq!(samples[0][REQUEST + 2], 1);
        assert_eq!(samples[0].as_array().map(Vec::len), Some(USED));
        assert_eq!(value["info"]["class"], "a \"b\"");
        let worker = &value["workers"][0];
        assert_eq!(
            (&worker["slot"], &worker["state"], &worker["oldest"]),
            (&3.into(), &"serving".into(), &1000.into())
        );
        assert!(!value.to_string().contains("secret"), "paths are not told");
    }

    #[test]
    fn only_newer_samples_are_told() {
        let ledger = Ledger::private();
        for time in [10, 20, 30] {
            let mut sample = [0; SAMPLE];
            sample[0] = time;
            ledger.history().note(&sample);
        }
        let times = |since| {
            let value = parsed(&[], Some(ledger), since);
            let samples = value["samples"].as_array().expect("samples").clone();
            samples.into_iter().filter_map(|sample| sample[0].as_u64()).collect::<Vec<_>>()
        };
        assert_eq!(times(0)[..3], [10, 20, 30]);
        assert_eq!((times(20)[0], times(20).len()), (30, 2));
    }

    #[test]
    fn the_page_asks_nothing_of_other_servers() {
        let page = PAGE.replace("\"http://www.w3.org/2000/svg\"", "a name");
        assert!(!["http:", "https:", "//cdn", "@import", "url(", " src="].iter().any(|other| page.contains(other)));
    }
}
