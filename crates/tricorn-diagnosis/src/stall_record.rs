//! One time that an event loop was held up, as a line of JSON for the arbiter: facts, and no advice.
//!
//! The line fits into what a pipe takes whole (PIPE_BUF). Where its texts are too long for that they are cut, all at the same length.
use super::examiner::Finding;
use crate::wait_sites::PoolWait;
use serde_json::{Map, Value, json};
use tricorn_doctor::{Thread, Verdict};
use tricorn_sys::clock::SECOND;

/// Most bytes of a line: less than PIPE_BUF, which the arbiter takes for a line's greatest length, too.
const LINE: usize = 4000;
/// Most bytes of a text, from attempt to attempt. With the last one the line is short enough, whatever stands in it.
const TEXTS: [usize; 4] = [700, 300, 120, 30];
/// The share of processor time, wanted time included, of a thread that waits.
const RESTS: f64 = 0.1;
/// From this share of wanted time on a look that found the thread computing is overruled.
const MOSTLY: f64 = 0.75;

/// Of an episode's time.
#[derive(Debug, Clone, Copy)]
pub struct Shares {
    pub computed: f64,
    /// Wanted a processor, and got none.
    pub queued: f64,
}

impl Shares {
    pub fn new(computed: f64, queued: f64) -> Shares {
        let computed = computed.clamp(0.0, 1.0);
        Shares { computed, queued: queued.clamp(0.0, 1.0 - computed) }
    }

    pub fn of_look(thread: &Thread) -> Shares {
        Shares::new(thread.cpu, thread.queued)
    }
}

/// What the monitor knows of it.
#[derive(Debug, Clone, Copy)]
pub struct Held<'e> {
    /// Nanoseconds until now, and how many of them were told before.
    pub length: u64,
    pub told: u64,
    pub ongoing: bool,
    /// The request that had begun last, and whether it is the one that holds up the loop.
    pub request: (&'e str, bool),
    /// Most requests that were there besides.
    pub delayed: u64,
    pub shares: Shares,
}

pub fn line(held: Held<'_>, finding: &Finding) -> Vec<u8> {
    shortened(|most| record(held, finding, most))
}

/// A record whose texts have at most so many bytes that its line fits.
pub fn shortened(record: impl Fn(usize) -> Map<String, Value>) -> Vec<u8> {
    let mut line = Vec::new();
    for most in TEXTS {
        line = format!("stall {}\n", Value::Object(record(most))).into_bytes();
        if line.len() < LINE {
            break;
        }
    }
    line
}

/// Nanoseconds as seconds, and shares, with four digits.
pub fn seconds(nanos: u64) -> f64 {
    rounded(nanos as f64 / SECOND as f64)
}

pub fn rounded(value: f64) -> f64 {
    (value * 1e4).round() / 1e4
}

/// What a record says of a pool.
pub fn pool_fields(pool: &PoolWait, most: usize) -> [(&'static str, Value); 3] {
    let site = format!("{}:{}", pool.site.file, pool.site.function.rsplit('.').next().unwrap_or_default());
    [("pool", cut(&pool.pool, most).into()), ("size", cut(&pool.size, most).into()), ("site", cut(&site, most).into())]
}

pub fn record(held: Held<'_>, finding: &Finding, most: usize) -> Map<String, Value> {
    let (thread, blamed) = (&finding.thread, finding.blamed());
    let text = |text: &str| Value::from(cut(text, most));
    let (verdict, sentence) = judged(thread, held.shares);
    let pool = finding.pool.as_ref().filter(|_| WAITS.contains(&verdict));
    let verdict = if pool.is_some() { Value::from(POOL_WAIT) } else { json!(verdict) };
    let place = blamed.application.as_ref();
    let library = blamed.native.library.as_ref();
    let call = blamed.call.as_ref();
    let package = finding.origin.package.as_ref();
    let peer = call.and_then(|call| call.descriptors.first()).map_or("", |descriptor| &descriptor.what);
    let fields = [
        ("duration", seconds(held.length).into()),
        ("added", seconds(held.length.saturating_sub(held.told)).into()),
        ("again", (held.told > 0).into()),
        ("ongoing", held.ongoing.into()),
        ("verdict", verdict),
        ("sentence", text(&sentence)),
        ("computed", rounded(held.shares.computed).into()),
        ("queued", rounded(held.shares.queued).into()),
        ("file", place.map_or(Value::Null, |frame| text(&frame.file))),
        ("line", place.map_or(0, |frame| frame.line.max(0)).into()),
        ("function", text(place.map_or("", |frame| &frame.function))),
        ("source", text(&finding.source)),
        ("library", text(library.map_or("", |library| &library.name))),
        ("library_version", text(&finding.origin.version)),
        ("package", text(package.map_or("", |package| &package.name))),
        ("package_version", text(package.map_or("", |package| &package.version))),
        ("c_function", text(library.and_then(|library| library.function.as_deref()).unwrap_or_default())),
        ("call", text(call.map_or("", |call| &call.name))),
        ("peer", text(peer)),
        ("request", text(held.request.0)),
        ("sure", held.request.1.into()),
        ("delayed", held.delayed.into()),
        ("missing", text(&finding.missing)),
    ];
    let of_pool = pool.map(|pool| pool_fields(pool, most));
    fields.into_iter().chain(of_pool.into_iter().flatten()).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The verdict of a wait for room in a pool, and those that it is more exact than.
pub const POOL_WAIT: &str = "POOL_WAIT";
const WAITS: [Verdict; 2] = [Verdict::LockWait, Verdict::BlockedSyscall];

/// What the look says of the thread, and where it leaves that open, what the whole time says: a look is short, and the kernel counts
/// the wait for a processor when it is over. A thread that mostly wanted one may have had it just while it was looked at.
///
/// It was at one thing all the time: where its system call changed from one reading to the next (a library that waits in slices),
/// and it used no processor, it waited.
fn judged(thread: &Thread, shares: Shares) -> (Verdict, String) {
    let wanted = match thread.verdict {
        Verdict::Undecided => 0.5,
        Verdict::CpuPython | Verdict::CpuNative | Verdict::CpuNativeGil | Verdict::GcPause => MOSTLY,
        _ => return (thread.verdict, thread.sentence.clone()),
    };
    let place = thread.application.as_ref();
    let place = place.map(|frame| format!("{}:{} in {}", frame.file, frame.line, frame.function)).unwrap_or_default();
    if shares.queued >= wanted && shares.computed + shares.queued >= 1.0 - RESTS {
        return (Verdict::Starved, tricorn_doctor::starved(shares.queued, &place));
    }
    if thread.verdict != Verdict::Undecided {
        return (thread.verdict, thread.sentence.clone());
    }
    let rests = |computed: f64, queued: f64| computed + queued <= RESTS;
    if thread.call.is_none() && thread.native.library.is_none() && thread.python.is_empty()
        || !rests(thread.cpu, thread.queued)
        || !rests(shares.computed, shares.queued)
    {
        return (thread.verdict, thread.sentence.clone());
    }
    let library = thread.native.library.as_ref().map(|library| format!(", in {}", library.name)).unwrap_or_default();
    let place = if place.is_empty() { place } else { format!(", at {place}") };
    (Verdict::BlockedSyscall, format!("Blocked: waiting, but not for a CPU{library}{place}."))
}

/// At most so many bytes, and no control characters.
pub fn cut(text: &str, most: usize) -> String {
    let mut cut = String::new();
    for each in text.chars() {
        if cut.len() + each.len_utf8() > most {
            break;
        }
        cut.push(if each.is_control() { ' ' } else { each });
    }
    cut
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use tricorn_doctor::{Library, Native, PyFrame, ThreadGil};

    pub fn thread() -> Thread {
        Thread {
            tid: 7,
            name: "python".into(),
            main: true,
            state: 'S',
            cpu: 0.0,
            queued: 0.0,
            verdict: Verdict::Undecided,
            sentence: "Runs and waits by turns.".into(),
            python: Vec::new(),
            application: Some(PyFrame { file: "my app.py".into(), function: "pay".into(), line: 3 }),
            native: Native {
                library: Some(Library { name: "librdkafka".into(), path: "/l.so".into(), function: None }),
                ..Native::default()
            },
            call: None,
            wait_channel: String::new(),
            gil: ThreadGil::default(),
            moving: false,
        }
    }

    #[test]
    fn a_thread_that_waits_in_slices_is_blocked() {
        let mut seen = thread();
        let rests = Shares::new(0.01, 0.02);
        let said = "Blocked: waiting, but not for a CPU, in librdkafka, at my app.py:3 in pay.";
        assert_eq!(judged(&seen, rests), (Verdict::BlockedSyscall, said.to_owned()));
        assert_eq!(judged(&seen, Shares::new(0.3, 0.2)).0, Verdict::Undecided, "not all of the time");
        seen.queued = 0.4;
        assert_eq!(judged(&seen, rests), (Verdict::Undecided, seen.sentence.clone()));
    }

    #[test]
    fn a_thread_that_got_no_processor_most_of_the_time_is_starved_and_waits_for_nothing_else() {
        let mut seen = thread();
        let (verdict, said) = judged(&seen, Shares::new(0.14, 0.86));
        assert_eq!(verdict, Verdict::Starved);
        assert!(
            said.starts_with("Ready to run, but got no CPU for 86 % of the time, at my app.py:3 in pay:"),
            "{said}"
        );
        assert_eq!(
            judged(&seen, Shares::new(0.1, 0.6)).0,
            Verdict::Undecided,
            "for a third it waited for something else"
        );
        seen.verdict = Verdict::CpuPython;
        assert_eq!(judged(&seen, Shares::new(0.14, 0.86)).0, Verdict::Starved, "the look came in a rare moment");
        assert_eq!(judged(&seen, Shares::new(0.4, 0.6)).0, Verdict::CpuPython, "the look has seen what it does");
        seen.verdict = Verdict::LockWait;
        assert_eq!(judged(&seen, Shares::new(0.14, 0.86)).0, Verdict::LockWait);
    }

    #[test]
    fn of_a_thread_that_could_not_be_looked_at_nothing_is_concluded() {
        let unseen = Thread::unseen(7, "no proc(5) is mounted here.");
        let (verdict, said) = judged(&unseen, Shares::new(0.0, 0.0));
        assert_eq!((verdict, said), (Verdict::Undecided, unseen.sentence.clone()));
    }

    #[test]
    fn a_wait_for_a_pool_is_one_unless_something_else_was_seen() {
        let site = PyFrame { file: "/s/pool/impl.py".into(), function: "QueuePool._do_get".into(), line: 1 };
        let pool = Some(PoolWait { pool: "alchemy".into(), size: String::new(), site, line: None });
        for (verdict, told) in [(Verdict::LockWait, "POOL_WAIT"), (Verdict::GilVictim, "GIL_VICTIM")] {
            let thread = Thread { verdict, ..thread() };
            let finding = Finding { pool: pool.clone(), ..Finding::new(1, thread, 0) };
            let shares = Shares::new(0.0, 0.0);
            let held = Held { length: SECOND, told: 0, ongoing: false, request: ("", true), delayed: 0, shares };
            let record = record(held, &finding, 700);
            assert_eq!(record["verdict"], told);
            let site = (told == "POOL_WAIT").then_some("/s/pool/impl.py:_do_get");
            assert_eq!(record.get("site").and_then(Value::as_str), site);
        }
    }

    #[test]
    fn who_keeps_the_gil_is_told_in_the_place_of_its_victim() {
        let sentence =
            "Waiting for the GIL at my app.py:3 in pay; it is held by thread 8 (pool), at regex.py:9 in match.";
        let seen = Thread { verdict: Verdict::GilVictim, sentence: sentence.into(), ..thread() };
        let library = Library { name: "_regex".into(), path: "/r.abi3.so".into(), function: Some("match".into()) };
        let holder = Thread {
            tid: 8,
            application: Some(PyFrame { file: "regex.py".into(), function: "match".into(), line: 9 }),
            native: Native { library: Some(library), ..Native::default() },
            ..thread()
        };
        let (holder, source) = (Some(Box::new(holder)), "compiled.match(text)".to_owned());
        let finding = Finding { holder, source, ..Finding::new(1, seen, 0) };
        let shares = Shares::new(0.0, 0.0);
        let held = Held { length: SECOND, told: 0, ongoing: false, request: ("", true), delayed: 0, shares };
        let record = record(held, &finding, 700);
        let told = ["verdict", "sentence", "file", "line", "function", "source", "library", "c_function"];
        let told = told.map(|name| record[name].clone());
        let expected: [Value; 8] = [
            "GIL_VICTIM".into(),
            sentence.into(),
            "regex.py".into(),
            9.into(),
            "match".into(),
            "compiled.match(text)".into(),
            "_regex".into(),
            "match".into(),
        ];
        assert_eq!(told, expected);
    }

    #[test]
    fn a_line_fits_into_the_pipe_whatever_stands_in_it() {
        let long = "\"ü\\\n".repeat(900);
        let mut seen = thread();
        seen.sentence.clone_from(&long);
        seen.cpu = 1.0;
        seen.application = Some(PyFrame { file: long.clone(), function: long.clone(), line: -1 });
        seen.native.library = Some(Library { name: long.clone(), path: long.clone(), function: Some(long.clone()) });
        let site = PyFrame { file: long.clone(), function: long.clone(), line: 1 };
        let pool = Some(PoolWait { pool: long.clone(), size: long.clone(), site, line: None });
        let (source, missing) = (long.clone(), long.clone());
        let finding = Finding { source, missing, pool, ..Finding::new(1, seen, 0) };
        let (shares, request) = (Shares::new(1.0, 1.0), (long.as_str(), true));
        let held = Held { length: SECOND, told: 0, ongoing: false, request, delayed: 0, shares };
        let line = line(held, &finding);
        assert!(line.len() < LINE && line.len() > LINE / 4, "{}", line.len());
        assert_eq!(line.iter().filter(|&&byte| byte == b'\n').count(), 1);
        let record: Value = serde_json::from_slice(&line[b"stall ".len()..]).expect("JSON");
        assert_eq!((&record["line"], &record["queued"]), (&0.into(), &0.0.into()));
    }
}
