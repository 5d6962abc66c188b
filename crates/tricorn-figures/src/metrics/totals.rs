//! What the pages of all workers say together, at one moment.

use crate::scoreboard::buckets::COARSE;
use crate::scoreboard::ledger::Ledger;
use crate::scoreboard::{COUNTERS, GAUGES, Scoreboard, State, TABLE, Word, samples_of};
use tricorn_proto::message::RefusalKind;

/// A histogram in the exported buckets, and its sum in nanoseconds.
pub(super) type Durations = ([u64; COARSE], u64);

/// Most statuses that are told apart. There are no more than a page has words for, unless workers differ.
const STATUSES: usize = 64;

pub(super) struct Totals {
    /// Sums of the single words: of counters over all workers that ever were, of gauges over those there are.
    words: [u64; TABLE],
    /// By where they begin.
    durations: Vec<(usize, Durations)>,
    pub gil: Durations,
    /// By status; 0: others.
    pub codes: Vec<(u16, u64)>,
    pub refusals: [u64; RefusalKind::ALL.len()],
    /// Workers by state, as in [`State`].
    pub states: [u64; 5],
    /// The pages of workers that have a slot, in the order of these.
    pub by_slot: Vec<(u64, Scoreboard)>,
    /// What the request waits since that waits longest, in nanoseconds; 0: none waits.
    oldest: u64,
    /// Requests that can run at once in the workers that serve.
    pub capacity: u64,
}

impl Totals {
    /// `histograms`: where those that are wanted begin.
    pub fn read(pages: &[Scoreboard], ledger: Option<Ledger>, histograms: &[usize]) -> Totals {
        let all = |ledger: Option<Scoreboard>, buried: u64| {
            let mut totals = Totals::new(histograms);
            ledger.into_iter().for_each(|page| totals.add_counts(page));
            for page in pages {
                if buried == 0 || page.pid() != buried {
                    totals.add_counts(*page);
                }
                totals.add_gauges(*page);
            }
            totals
        };
        let mut totals = match ledger {
            Some(ledger) => ledger.read(|page, buried| all(Some(page), buried)),
            None => all(None, 0),
        };
        totals.codes.sort_unstable();
        totals.by_slot.sort_unstable_by_key(|(slot, _)| *slot);
        totals
    }

    fn new(histograms: &[usize]) -> Totals {
        Totals {
            words: [0; TABLE],
            durations: histograms.iter().map(|start| (*start, ([0; COARSE], 0))).collect(),
            gil: ([0; COARSE], 0),
            codes: Vec::new(),
            refusals: [0; RefusalKind::ALL.len()],
            states: [0; 5],
            by_slot: Vec::new(),
            oldest: 0,
            capacity: 0,
        }
    }

    pub fn word(&self, word: Word) -> u64 {
        self.words[word as usize]
    }

    /// The sum of all samples of a metric.
    pub fn metric(&self, name: &str) -> u64 {
        samples_of(name).fold(0, |sum, row| sum.wrapping_add(self.word(row.word)))
    }

    /// How long the request has waited that waits longest, in nanoseconds; 0: none waits.
    pub fn oldest_wait(&self, now: u64) -> u64 {
        if self.oldest == 0 { 0 } else { now.saturating_sub(self.oldest) }
    }

    /// Responses with status 1xx to 5xx.
    pub fn classes(&self) -> [u64; 5] {
        std::array::from_fn(|class| self.words[Word::StatusClass as usize + class])
    }

    pub fn durations(&self, start: usize) -> Option<&Durations> {
        self.durations.iter().find(|(known, _)| *known == start).map(|(_, durations)| durations)
    }

    fn add_counts(&mut self, page: Scoreboard) {
        self.add(&COUNTERS, page);
        for (start, durations) in &mut self.durations {
            merge(durations, page.exported(*start));
        }
        merge(&mut self.gil, page.gil_waits());
        for (code, count) in page.codes() {
            match self.codes.iter().position(|(known, _)| *known == code) {
                Some(index) => self.codes[index].1 = self.codes[index].1.wrapping_add(count),
                None if self.codes.len() < STATUSES => self.codes.push((code, count)),
                None => {}
            }
        }
        for (sum, kind) in self.refusals.iter_mut().zip(RefusalKind::ALL) {
            *sum = sum.wrapping_add(page.refusals(kind));
        }
    }

    fn add_gauges(&mut self, page: Scoreboard) {
        let state = page.get(Word::State);
        if ![State::Booting, State::Serving, State::Draining].iter().any(|known| *known as u64 == state) {
            return;
        }
        self.states[state as usize] += 1;
        self.add(&GAUGES, page);
        let slot = page.get(Word::Slot);
        if slot != 0 {
            self.by_slot.push((slot, page));
        }
        let oldest = page.get(Word::Oldest);
        if oldest != 0 && (self.oldest == 0 || oldest < self.oldest) {
            self.oldest = oldest;
        }
        if state == State::Serving as u64 {
            self.capacity = self.capacity.wrapping_add(page.get(Word::Threads));
        }
    }

    fn add(&mut self, words: &[usize], page: Scoreboard) {
        for &word in words {
            self.words[word] = self.words[word].wrapping_add(page.word(word));
        }
    }
}

fn merge(into: &mut Durations, (counts, sum): Durations) {
    into.0.iter_mut().zip(counts).for_each(|(total, count)| *total = total.wrapping_add(count));
    into.1 = into.1.wrapping_add(sum);
}
