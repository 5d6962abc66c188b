//! What is counted by a key: responses by status, refusals by kind, waits for the GIL by their length.
//!
//! A status has a word of its own, `status << 48 | count`, which it takes when it is first seen. The place is searched for
//! from the status on (open addressing, linear probing). When all are taken, or for what is no status, the first word counts.

use super::buckets::{COARSE, bucket, coarse};
use super::handshakes::Reason;
use super::{BUCKETS, CODES, DISTINCT, GIL_WAIT, REFUSALS, SUMS, Scoreboard, Word};
use tricorn_proto::message::RefusalKind;

const SHIFT: u32 = 48;
const COUNT: u64 = (1 << SHIFT) - 1;
/// Places that a status may have.
const PLACES: usize = DISTINCT - 1;

impl Scoreboard {
    /// A response with this status was sent.
    #[inline]
    pub fn status(&self, code: u16) {
        let class = (code / 100).clamp(1, 5) as usize;
        self.bump(Word::StatusClass as usize + class - 1, 1);
        self.count_code(code, 1);
    }

    #[inline]
    pub(super) fn count_code(&self, code: u16, count: u64) {
        let mut place = usize::from(code) % PLACES;
        for _ in 0..PLACES {
            let index = CODES + 1 + place;
            match self.word(index) >> SHIFT {
                taken if taken == u64::from(code) => return self.bump(index, count),
                0 if code != 0 => return self.put(index, u64::from(code) << SHIFT | count),
                _ => place = if place + 1 == PLACES { 0 } else { place + 1 },
            }
        }
        self.bump(CODES, count);
    }

    /// Responses by status; status 0: all those for which there was no word.
    pub fn codes(&self) -> impl Iterator<Item = (u16, u64)> {
        let words = (CODES..CODES + DISTINCT).map(|index| self.word(index));
        words.map(|word| ((word >> SHIFT) as u16, word & COUNT)).filter(|(_, count)| *count > 0)
    }

    /// A request was refused.
    pub fn refused(&self, kind: RefusalKind) {
        self.bump(REFUSALS + kind as usize, 1);
    }

    /// Refusals of a kind.
    pub fn refusals(&self, kind: RefusalKind) -> u64 {
        self.word(REFUSALS + kind as usize)
    }

    /// A handshake of TLS has failed.
    pub fn handshake_failed(&self, reason: Reason) {
        self.bump(Word::TlsFailedVersion as usize + reason as usize, 1);
    }

    /// Handshakes that failed for a reason.
    pub fn failed_handshakes(&self, reason: Reason) -> u64 {
        self.word(Word::TlsFailedVersion as usize + reason as usize)
    }

    /// A thread had a request at hand, and waited so long until it held the GIL.
    #[inline]
    pub fn observe_gil(&self, nanos: u64) {
        self.bump(GIL_WAIT, nanos);
        self.bump(GIL_WAIT + 1 + if nanos == 0 { 0 } else { coarse(bucket(nanos)) }, 1);
    }

    /// Waits for the GIL by exported bucket, and their sum.
    pub fn gil_waits(&self) -> ([u64; COARSE], u64) {
        (std::array::from_fn(|index| self.word(GIL_WAIT + 1 + index)), self.word(GIL_WAIT))
    }

    /// A histogram, given by where it begins, in the exported buckets, and its sum.
    pub fn exported(&self, histogram: usize) -> ([u64; COARSE], u64) {
        let mut counts = [0u64; COARSE];
        for index in 0..BUCKETS {
            let count = &mut counts[coarse(index)];
            *count = count.wrapping_add(self.word(histogram + index));
        }
        (counts, self.word(SUMS + (histogram - super::QUEUE_TIME) / BUCKETS))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scoreboard::{APP_TIME, QUEUE_TIME, TOTAL_TIME};

    fn codes(board: &Scoreboard) -> Vec<(u16, u64)> {
        let mut codes: Vec<_> = board.codes().collect();
        codes.sort_unstable();
        codes
    }

    #[test]
    fn a_status_has_a_count_of_its_own_as_long_as_there_are_words() {
        let board = Scoreboard::private(1);
        for code in 200..200 + PLACES as u16 {
            (0..code).for_each(|_| board.status(code));
        }
        let all = (200..200 + PLACES as u16).map(|code| (code, u64::from(code)));
        assert!(codes(&board).into_iter().eq(all));
        board.status(599);
        board.status(200);
        assert_eq!((codes(&board)[0], codes(&board)[1]), ((0, 1), (200, 201)));
        assert_eq!(board.statuses()[1], (200..200 + PLACES as u64).sum::<u64>() + 1);
    }

    #[test]
    fn what_is_no_status_is_among_the_others() {
        let board = Scoreboard::private(1);
        board.status(0);
        board.status(204);
        assert_eq!(codes(&board), [(0, 1), (204, 1)]);
    }

    #[test]
    fn every_reason_of_a_failed_handshake_has_its_own_word() {
        let board = Scoreboard::private(1);
        for (index, reason) in Reason::ALL.into_iter().enumerate() {
            (0..=index).for_each(|_| board.handshake_failed(reason));
        }
        for (index, reason) in Reason::ALL.into_iter().enumerate() {
            assert_eq!((reason as usize, board.failed_handshakes(reason)), (index, index as u64 + 1));
        }
        assert_eq!(board.get(Word::TlsFailedInternal), Reason::ALL.len() as u64);
        assert_eq!(board.get(Word::TlsHandshakes), 0);
    }

    #[test]
    fn every_kind_of_refusal_has_its_own_word() {
        let board = Scoreboard::private(1);
        for (index, kind) in RefusalKind::ALL.into_iter().enumerate() {
            (0..=index).for_each(|_| board.refused(kind));
        }
        for (index, kind) in RefusalKind::ALL.into_iter().enumerate() {
            assert_eq!((kind as usize, board.refusals(kind)), (index, index as u64 + 1));
        }
        assert_eq!(codes(&board), []);
    }

    #[test]
    fn what_is_exported_are_counts_up_to_a_boundary_and_the_exact_sum() {
        let board = Scoreboard::private(1);
        let nanos = [0, 500_000, 500_001, 99_999_999, 100_000_000, 100_000_001, 10_000_000_001];
        nanos.into_iter().for_each(|nanos| board.observe(APP_TIME, nanos));
        let (counts, sum) = board.exported(APP_TIME);
        assert_eq!((counts[0], counts[1], counts[8], counts[9], counts[COARSE - 1]), (2, 1, 2, 1, 1));
        assert_eq!((counts.iter().sum::<u64>(), sum), (7, nanos.iter().sum()));
        assert_eq!((board.exported(QUEUE_TIME).1, board.exported(TOTAL_TIME).1), (0, 0));
    }

    #[test]
    fn waits_for_the_gil_are_counted_by_their_length() {
        let board = Scoreboard::private(1);
        [0, 400_000, 5_000_000, 20_000_000_000].into_iter().for_each(|nanos| board.observe_gil(nanos));
        let (counts, sum) = board.gil_waits();
        assert_eq!((counts[0], counts[3], counts[COARSE - 1], sum), (2, 1, 1, 20_005_400_000));
    }
}
