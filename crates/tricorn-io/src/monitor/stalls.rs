//! What holds up an event loop for longer than `doctor_threshold`: one report for each time, and few of what comes again.
//!
//! ```text
//!   at the same for the threshold ──▶ the examiner looks ──▶ the loop goes on ──▶ report: how long, what, where, what waited
//! ```
//!
//! A report is a notice for the error log. What comes again within [`PAUSE`] is summed up in the next one.
use super::examiner::{Examiner, Finding};
use crate::clock::{MILLI, SECOND};
use crate::sys::signals::ThreadId;
use std::fmt::Write;
use tricorn_doctor::{Thread, Verdict};

/// How long what comes again is only counted.
const PAUSE: u64 = 10 * SECOND;
/// A stall that lasts for so long is told before it is over.
const LASTING: u64 = 5 * SECOND;
/// How long a report waits for the look that was asked for.
const PATIENCE: u64 = SECOND;
/// Different stalls that are told apart.
const KINDS: usize = 64;
/// The share of processor time, wanted time included, of a thread that waits.
const RESTS: f64 = 0.1;
/// Most bytes of a notice and of what it is about: both are in one line of a pipe.
const TEXT: usize = 1800;
const KEY: usize = 400;

/// What the monitor sees at a moment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scene {
    pub now: u64,
    /// Since when the loop is at the same, and its thread. `None`: it is not at anything.
    pub held_up: Option<(u64, ThreadId)>,
    /// Requests that are under way, or wait.
    pub requests: u64,
}

#[derive(Debug)]
pub(super) struct Stalls {
    /// 0: nothing is looked for.
    threshold: u64,
    examiner: Examiner,
    number: u64,
    episode: Option<Episode>,
    /// Over, and not told yet.
    waiting: Option<Episode>,
    kinds: Vec<Kind>,
}

/// One time that the loop was held up.
#[derive(Debug)]
struct Episode {
    number: u64,
    since: u64,
    /// `None`: it goes on.
    end: Option<u64>,
    /// Most requests that were there besides the one that held up the loop.
    delayed: u64,
    /// The request that had begun last.
    name: String,
    finding: Option<Finding>,
    told: bool,
}

/// The same again and again.
#[derive(Debug)]
struct Kind {
    key: String,
    told: u64,
    /// Since then: how often, for how long, and that times the requests that waited.
    count: u64,
    length: u64,
    waited: u64,
}

impl Stalls {
    pub fn new(threshold: u64) -> Stalls {
        Stalls::with(threshold, Examiner::default())
    }

    fn with(threshold: u64, examiner: Examiner) -> Stalls {
        Stalls { threshold, examiner, number: 0, episode: None, waiting: None, kinds: Vec::new() }
    }

    /// Looks at the loop. `end_of`: when what it was at at a moment was over; `name`: of the request that began last. A notice
    /// for the log, and what it is about in a word.
    pub fn look(
        &mut self,
        scene: Scene,
        end_of: impl Fn(u64) -> Option<u64>,
        name: impl Fn() -> String,
    ) -> Option<(String, String)> {
        if self.threshold == 0 {
            return None;
        }
        while let Some(finding) = self.examiner.take() {
            self.found(finding);
        }
        self.follow(scene, end_of, name);
        self.tell(scene.now)
    }

    fn found(&mut self, finding: Finding) {
        // What was seen when the loop had gone on says nothing of what had held it up.
        let is_of = |episode: &&mut Episode| {
            episode.number == finding.number && episode.end.is_none_or(|end| finding.at <= end)
        };
        if let Some(episode) = self.episode.iter_mut().chain(self.waiting.iter_mut()).find(is_of) {
            episode.finding = Some(finding);
        }
    }

    fn follow(&mut self, scene: Scene, end_of: impl Fn(u64) -> Option<u64>, name: impl Fn() -> String) {
        let Scene { now, held_up, requests } = scene;
        let delayed = requests.saturating_sub(1);
        if let Some(mut episode) = self.episode.take() {
            if held_up.is_some_and(|(since, _)| since == episode.since) {
                episode.delayed = episode.delayed.max(delayed);
                self.episode = Some(episode);
                return;
            }
            episode.end = Some(end_of(episode.since).unwrap_or(now));
            if episode.finding.as_ref().is_some_and(|finding| episode.end < Some(finding.at)) {
                episode.finding = None;
            }
            if !episode.told {
                self.waiting = Some(episode);
            }
        }
        if let Some((since, thread)) = held_up
            && now.saturating_sub(since) >= self.threshold
        {
            self.number += 1;
            self.examiner.ask(self.number, thread);
            let (number, name) = (self.number, name());
            self.episode = Some(Episode { number, since, end: None, delayed, name, finding: None, told: false });
        }
    }

    fn tell(&mut self, now: u64) -> Option<(String, String)> {
        let lasts = |episode: &&mut Episode| !episode.told && now.saturating_sub(episode.since) >= LASTING;
        if let Some(episode) = self.episode.as_mut().filter(lasts)
            && episode.finding.is_some()
        {
            episode.told = true;
            return note(&mut self.kinds, episode, now);
        }
        let episode = self.waiting.as_ref()?;
        let late = episode.end.is_some_and(|end| now.saturating_sub(end) >= PATIENCE);
        if episode.finding.is_none() && !late {
            return None;
        }
        // Without a finding it was over before it could be looked at.
        let episode = self.waiting.take()?;
        note(&mut self.kinds, &episode, now)
    }

    /// In how many nanoseconds there may be something to do.
    pub fn due(&self, scene: Scene) -> Option<u64> {
        if self.threshold == 0 {
            return None;
        }
        if self.episode.is_some() || self.waiting.is_some() {
            return Some((self.threshold / 2).max(MILLI));
        }
        let (since, _) = scene.held_up?;
        Some(since.saturating_add(self.threshold).saturating_sub(scene.now).max(MILLI))
    }
}

/// Counts it, and makes a notice of it unless the same was told a moment ago.
fn note(kinds: &mut Vec<Kind>, episode: &Episode, now: u64) -> Option<(String, String)> {
    let finding = episode.finding.as_ref()?;
    let key = key_of(finding);
    let length = episode.end.unwrap_or(now).saturating_sub(episode.since);
    let known = kinds.iter().position(|kind| kind.key == key);
    let before = match known {
        Some(index) if now.saturating_sub(kinds[index].told) < PAUSE => {
            let kind = &mut kinds[index];
            kind.count += 1;
            kind.length = kind.length.saturating_add(length);
            kind.waited = kind.waited.saturating_add(length.saturating_mul(episode.delayed));
            return None;
        }
        Some(index) => Some(kinds.remove(index)),
        None if kinds.len() >= KINDS => {
            kinds.remove(0);
            None
        }
        None => None,
    };
    let text = text(episode, finding, length, before.as_ref());
    kinds.push(Kind { key: key.clone(), told: now, count: 0, length: 0, waited: 0 });
    Some((key, text))
}

/// Where the application is, and in which library: what makes two stalls the same.
fn key_of(finding: &Finding) -> String {
    let place = finding.thread.application.as_ref().map(|frame| format!("{}:{}", frame.file, frame.line));
    let library = finding.thread.native.library.as_ref().map(|library| library.name.as_str()).unwrap_or_default();
    let key = format!("stall:{}:{library}", place.unwrap_or_default());
    cut(key.chars().map(|each| if each.is_whitespace() || each.is_control() { '_' } else { each }), KEY)
}

fn text(episode: &Episode, finding: &Finding, length: u64, before: Option<&Kind>) -> String {
    let seconds = |nanos: u64| nanos as f64 / SECOND as f64;
    let mut text = format!(
        "The event loop of worker (pid:{}) {} held up for {:.2} s by one call. {}",
        std::process::id(),
        if episode.end.is_some() { "was" } else { "is" },
        seconds(length),
        verdict(&finding.thread)
    );
    if !finding.source.is_empty() {
        let stop = if finding.source.ends_with('.') { "" } else { "." };
        let _ = write!(text, " The line: {}{stop}", finding.source);
    }
    if episode.delayed > 0 {
        let sum = seconds(length.saturating_mul(episode.delayed));
        let _ = write!(text, " Other requests at that time: {} ({sum:.1} request-seconds).", episode.delayed);
    }
    let _ = write!(text, " The last to begin: {}.", episode.name);
    if let Some(Kind { count, length, waited, .. }) = before.filter(|kind| kind.count > 0) {
        let (length, waited) = (seconds(*length), seconds(*waited));
        let _ = write!(text, " Since this was told last: {count} times, {length:.1} s, {waited:.1} request-seconds.");
    }
    cut(text.chars().map(|each| if each.is_control() { ' ' } else { each }), TEXT)
}

/// What the look says of the thread. It was at one thing all the time: where its system call changed from one reading to the
/// next (a library that waits in slices), and it used no processor, it waited.
fn verdict(thread: &Thread) -> String {
    if thread.verdict != Verdict::Undecided || thread.cpu + thread.queued > RESTS {
        return thread.sentence.clone();
    }
    let library = thread.native.library.as_ref().map(|library| format!(", in {}", library.name)).unwrap_or_default();
    let place = thread.application.as_ref();
    let place =
        place.map(|frame| format!(", at {}:{} in {}", frame.file, frame.line, frame.function)).unwrap_or_default();
    format!("Blocked: it waits, and not for a processor{library}{place}.")
}

fn cut(characters: impl Iterator<Item = char>, bytes: usize) -> String {
    let mut text: String = characters.take(bytes).collect();
    while text.len() > bytes {
        text.pop();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use tricorn_doctor::{Library, Native, PyFrame, ThreadGil};

    const THREAD: ThreadId = 7;

    /// A loop, and what is told of it, in virtual time.
    struct Watched {
        stalls: Stalls,
        told: Vec<String>,
    }

    impl Watched {
        fn new() -> Watched {
            Watched { stalls: Stalls::with(100 * MILLI, Examiner::idle()), told: Vec::new() }
        }

        /// The monitor looks, at a millisecond.
        fn at(&mut self, now: u64, held_up: Option<u64>, requests: u64, end: Option<u64>) {
            let held_up = held_up.map(|since| (since * MILLI, THREAD));
            let scene = Scene { now: now * MILLI, held_up, requests };
            let end_of = |_| end.map(|end| end * MILLI);
            self.told.extend(self.stalls.look(scene, end_of, || "GET /pay".into()).map(|(_, text)| text));
        }

        fn finds(&mut self, line: i32, at: u64) {
            let number = self.stalls.number;
            self.stalls.found(Finding { number, thread: thread(line), source: "p.flush()".into(), at: at * MILLI });
        }

        /// From this millisecond on for a fifth of a second, with one other request.
        fn stall(&mut self, since: u64, line: i32) {
            self.at(since + 150, Some(since), 2, None);
            self.finds(line, since + 170);
            self.at(since + 200, None, 0, None);
        }
    }

    fn thread(line: i32) -> Thread {
        Thread {
            tid: THREAD as u32,
            name: "python".into(),
            main: true,
            state: 'S',
            cpu: 0.0,
            queued: 0.0,
            verdict: Verdict::BlockedSyscall,
            sentence: format!("Blocked at app.py:{line} in pay."),
            python: Vec::new(),
            application: Some(PyFrame { file: "my app.py".into(), function: "pay".into(), line }),
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
    fn what_is_over_before_the_threshold_is_not_looked_at() {
        let mut it = Watched::new();
        it.at(10, Some(1), 1, None);
        let scene = Scene { now: 10 * MILLI, held_up: Some((MILLI, THREAD)), requests: 1 };
        assert_eq!(it.stalls.due(scene), Some(91 * MILLI));
        it.at(90, Some(1), 1, None);
        it.at(101, Some(95), 1, None);
        it.at(190, None, 0, None);
        assert_eq!((it.stalls.number, it.told.len()), (0, 0));
    }

    #[test]
    fn a_stall_is_told_when_it_is_over_with_its_own_length() {
        let mut it = Watched::new();
        it.at(101, Some(1), 3, None);
        it.finds(14, 140);
        it.at(150, Some(1), 10, None);
        it.at(320, None, 0, Some(301));
        it.at(330, None, 0, None);
        let pid = std::process::id();
        let text = format!(
            "The event loop of worker (pid:{pid}) was held up for 0.30 s by one call. Blocked at app.py:14 in pay. The line: \
             p.flush(). Other requests at that time: 9 (2.7 request-seconds). The last to begin: GET /pay."
        );
        assert_eq!(it.told, [text]);
    }

    #[test]
    fn what_was_seen_afterwards_says_nothing() {
        for (found, over) in [(121, 130), (115, 112)] {
            let mut it = Watched::new();
            it.at(101, Some(1), 1, None);
            if found < over {
                it.at(112, Some(111), 1, Some(108));
                it.finds(14, found);
            } else {
                it.finds(14, found);
                it.at(120, Some(111), 1, Some(108));
            }
            it.at(130, None, 0, None);
            it.at(1200, None, 0, None);
            assert!(it.told.is_empty() && it.stalls.waiting.is_none());
        }
    }

    #[test]
    fn the_same_again_is_summed_up() {
        let mut it = Watched::new();
        it.stall(1000, 14);
        it.stall(2000, 14);
        it.stall(3000, 14);
        it.stall(4000, 15);
        assert_eq!(it.told.len(), 2, "another line is told at once: {:?}", it.told);
        it.stall(12_000, 14);
        let sum = "Since this was told last: 2 times, 0.4 s, 0.4 request-seconds.";
        assert!(it.told[2].ends_with(sum), "{:?}", it.told);
        it.stall(23_000, 14);
        assert!(it.told[3].ends_with("GET /pay."), "{:?}", it.told);
    }

    #[test]
    fn what_lasts_is_told_meanwhile_and_once() {
        let mut it = Watched::new();
        it.at(101, Some(1), 1, None);
        it.finds(14, 140);
        it.at(4000, Some(1), 1, None);
        assert!(it.told.is_empty());
        it.at(5001, Some(1), 1, None);
        it.at(9000, Some(1), 1, None);
        it.at(9500, None, 0, None);
        assert_eq!(it.told.len(), 1);
        assert!(it.told[0].contains(" is held up for 5.00 s"), "{:?}", it.told);
    }

    #[test]
    fn different_stalls_are_forgotten_in_their_order() {
        let mut it = Watched::new();
        for line in 0..KINDS as i32 + 5 {
            it.stall(1000 * (line as u64 + 1), line);
        }
        assert_eq!(it.stalls.kinds.len(), KINDS);
        assert!(it.stalls.kinds[0].key.contains(":5:"));
    }

    #[test]
    fn a_notice_is_one_line_that_a_pipe_takes_whole() {
        let mut finding = Finding { number: 1, thread: thread(3), source: "a\nb\u{1b}".into(), at: 0 };
        finding.thread.sentence = "ü".repeat(3000);
        let name = "GET /".into();
        let episode = Episode { number: 1, since: 0, end: None, delayed: 0, name, finding: None, told: false };
        let told = text(&episode, &finding, SECOND, None);
        assert!(told.len() <= TEXT && told.len() > TEXT - 2);
        finding.thread.sentence.clear();
        assert!(text(&episode, &finding, SECOND, None).contains("The line: a b ."));
    }

    #[test]
    fn a_thread_that_waits_in_slices_is_blocked() {
        let mut seen = Thread { verdict: Verdict::Undecided, ..thread(3) };
        let said = "Blocked: it waits, and not for a processor, in librdkafka, at my app.py:3 in pay.";
        assert_eq!(verdict(&seen), said);
        seen.queued = 0.4;
        assert_eq!(verdict(&seen), seen.sentence);
        assert_eq!(verdict(&thread(3)), thread(3).sentence);
    }

    #[test]
    fn subjects_are_single_words() {
        let finding = Finding { number: 1, thread: thread(3), source: String::new(), at: 0 };
        assert_eq!(key_of(&finding), "stall:my_app.py:3:librdkafka");
    }
}
