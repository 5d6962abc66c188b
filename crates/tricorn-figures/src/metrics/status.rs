//! What the server and its workers are at, as JSON: what `ctl status` and `ctl workers` say.
//!
//! What the arbiter knows stands in its bulletin, with moments in place of ages. The rest is read from the pages, so that the answer
//! is true at this moment though the arbiter and every Python are stopped.
use super::Sources;
use crate::scoreboard::{Scoreboard, Word};
use serde_json::{Map, Value, json};
use tricorn_sys::clock::SECOND;

/// Keys of moments in the bulletin, in monotonic nanoseconds, and those of the ages that are told.
const BEGAN: (&str, &str) = ("began", "uptime");
const STARTED: (&str, &str) = ("started", "age");

/// Of a page, under the names that `ctl workers` has for them.
static FIGURES: [(&str, Word); 12] = [
    ("running", Word::InFlight),
    ("waiting", Word::Queued),
    ("connections", Word::Connections),
    ("requests", Word::Requests),
    ("app_errors", Word::AppErrors),
    ("handed_over", Word::HandedOver),
    ("taken_over", Word::TakenOver),
    ("queue_full", Word::QueueFull),
    ("queue_late", Word::QueueLate),
    ("late", Word::Late),
    ("cpu_nanoseconds", Word::Cpu),
    ("resident_bytes", Word::Resident),
];

pub fn render(sources: &Sources<'_>) -> String {
    let posted = sources.ledger.and_then(|ledger| ledger.bulletin().read());
    // A worker may have written rubbish there: then it is as if nothing was said.
    let posted: Value = posted.and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
    let mut status = object(posted.get("status"));
    tell_age(&mut status, BEGAN, sources.now);
    let pages: Vec<_> = sources.pages.iter().filter(|page| page.is_begun() == Ok(true)).copied().collect();
    let workers: Vec<Value> = match posted.get("workers") {
        Some(Value::Array(rows)) => rows.iter().map(|row| worker(object(Some(row)), &pages, sources.now)).collect(),
        _ => Vec::new(),
    };
    let mut sums = [0u64; 3];
    for worker in &workers {
        for (sum, name) in sums.iter_mut().zip(["running", "waiting", "connections"]) {
            *sum = sum.wrapping_add(worker["figures"][name].as_u64().unwrap_or(0));
        }
    }
    status.insert("requests".into(), json!({"running": sums[0], "waiting": sums[1]}));
    status.insert("connections".into(), sums[2].into());
    let mut text = json!({"version": 1, "status": status, "workers": workers}).to_string();
    text.push('\n');
    text
}

fn object(value: Option<&Value>) -> Map<String, Value> {
    value.and_then(Value::as_object).cloned().unwrap_or_default()
}

/// Puts an age in the place of a moment.
fn tell_age(row: &mut Map<String, Value>, (moment, age): (&str, &str), now: u64) {
    if let Some(since) = row.remove(moment).and_then(|since| since.as_u64()) {
        row.insert(age.into(), seconds(now.saturating_sub(since)).into());
    }
}

/// To the millisecond.
fn seconds(nanos: u64) -> f64 {
    (nanos as f64 / SECOND as f64 * 1000.0).round() / 1000.0
}

/// What the arbiter says of a worker, and its page if it has begun one.
fn worker(mut row: Map<String, Value>, pages: &[Scoreboard], now: u64) -> Value {
    tell_age(&mut row, STARTED, now);
    let pid = row.get("pid").and_then(Value::as_u64);
    let Some(page) = pages.iter().find(|page| Some(page.pid()) == pid) else { return row.into() };
    let classes = ["1xx", "2xx", "3xx", "4xx", "5xx"].into_iter().zip(page.statuses());
    let age = |since: Option<u64>| since.map_or(Value::Null, |since| seconds(now.saturating_sub(since)).into());
    row.insert("threads".into(), page.threads().into());
    row.insert("oldest_request".into(), age(page.oldest_call()));
    row.insert("oldest_wait".into(), age(page.oldest()));
    // While nothing is in flight it rests.
    row.insert("heartbeat".into(), age((page.get(Word::InFlight) > 0).then(|| page.heartbeat())));
    row.insert("statuses".into(), classes.map(|(name, count)| (name.to_string(), Value::from(count))).collect());
    let figures = FIGURES.iter().map(|(name, word)| (name.to_string(), Value::from(page.get(*word))));
    row.insert("figures".into(), figures.collect());
    row.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoreboard::State;
    use crate::scoreboard::ledger::Ledger;

    fn parsed(pages: &[Scoreboard], ledger: Option<Ledger>) -> Value {
        let sources = Sources { now: 9 * SECOND, ..Sources::of(pages, ledger) };
        serde_json::from_str(&render(&sources)).expect("JSON")
    }

    fn busy() -> Scoreboard {
        let page = Scoreboard::private(2);
        page.begin(2);
        page.state(State::Serving);
        page.set(Word::InFlight, 1);
        page.set(Word::Connections, 4);
        page.set(Word::Heartbeat, 8 * SECOND);
        page.status(503);
        page.call_begins(0, 7_500_000_000, [b"GET /secret?token=1", b"", b""]);
        page
    }

    #[test]
    fn moments_become_ages_and_pages_are_found_by_their_pids() {
        let (ledger, page) = (Ledger::private(), busy());
        let row = json!({"pid": page.pid(), "slot": 3, "state": "serving", "started": 2 * SECOND});
        let other = json!({"pid": null, "slot": null, "state": "booting", "started": 8 * SECOND});
        let text = json!({"status": {"app": "shop", "began": SECOND}, "workers": [row, other]}).to_string();
        assert!(ledger.bulletin().write(text.as_bytes()));
        let value = parsed(&[page], Some(ledger));
        assert_eq!((&value["status"]["uptime"], &value["status"]["app"]), (&json!(8.0), &json!("shop")));
        assert_eq!(value["status"]["began"], Value::Null);
        assert_eq!(value["status"]["requests"], json!({"running": 1, "waiting": 0}));
        assert_eq!(value["status"]["connections"], 4);
        let worker = &value["workers"][0];
        assert_eq!(
            (&worker["age"], &worker["oldest_request"], &worker["heartbeat"]),
            (&json!(7.0), &json!(1.5), &json!(1.0))
        );
        assert_eq!((&worker["statuses"]["5xx"], &worker["oldest_wait"]), (&json!(1), &Value::Null));
        assert_eq!(value["workers"][1], json!({"pid": null, "slot": null, "state": "booting", "age": 1.0}));
        assert!(!value.to_string().contains("secret"), "no request is told");
    }

    #[test]
    fn a_bulletin_that_is_none_leaves_an_answer_without_it() {
        for text in [
            "",
            "{",
            "7",
            "[]",
            "{\"status\":7,\"workers\":{}}",
            "{\"status\":{\"began\":\"x\"},\"workers\":[7,{\"pid\":-1}]}",
        ] {
            let ledger = Ledger::private();
            assert!(ledger.bulletin().write(text.as_bytes()));
            let value = parsed(&[busy(), Scoreboard::filled(u64::MAX)], Some(ledger));
            assert_eq!((&value["version"], &value["status"]["connections"]), (&json!(1), &json!(0)), "{text}");
        }
        assert_eq!(parsed(&[], None)["workers"], json!([]));
    }
}
