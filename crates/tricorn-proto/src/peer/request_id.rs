//! The id that names a request in every log it passes: a client's own (`X-Request-ID`), or one of ours.
use crate::message::{Known, RequestHead};

/// Letters of an id of ours: 128 bits as hexadecimal digits.
pub const LENGTH: usize = 32;
/// Longest id taken from a client.
pub const LONGEST: usize = 128;

/// The client's id, if it gave exactly one that can be copied into any log, header or URL without being escaped.
pub fn given<'b>(head: &RequestHead, bytes: &'b [u8]) -> Option<&'b [u8]> {
    let mut values = head.fields.iter().filter(|field| field.known == Known::RequestId);
    let value = values.next()?.value.of(bytes);
    (values.next().is_none() && is_valid(value)).then_some(value)
}

fn is_valid(id: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"._-+/=:@".contains(byte);
    (1..=LONGEST).contains(&id.len()) && id.iter().all(allowed)
}

/// Makes ids. Unpredictable enough not to collide, not meant to be secret (xoshiro256++ by Blackman and Vigna).
#[derive(Debug)]
pub struct Maker {
    state: [u64; 4],
}

impl Maker {
    /// From 32 random bytes of the system, drawn by the process that will use it: a copy would make the same ids again.
    pub fn new(seed: [u8; 32]) -> Maker {
        let mut state = [0u64; 4];
        for (word, bytes) in state.iter_mut().zip(seed.chunks_exact(8)) {
            *word = bytes.iter().fold(0, |word, &byte| word << 8 | u64::from(byte));
        }
        // The one state from which the generator does not move.
        state[3] |= u64::from(state == [0; 4]);
        Maker { state }
    }

    pub fn fresh(&mut self) -> [u8; LENGTH] {
        let mut id = [0u8; LENGTH];
        let (high, low) = id.split_at_mut(LENGTH / 2);
        for half in [high, low] {
            let mut bits = self.next();
            for digit in half {
                bits = bits.rotate_left(4);
                *digit = b"0123456789abcdef"[(bits & 15) as usize];
            }
        }
        id
    }

    fn next(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let result = a.wrapping_add(*d).rotate_left(23).wrapping_add(*a);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_differ_whatever_the_seed() {
        for seed in [[0u8; 32], [7; 32]] {
            let mut maker = Maker::new(seed);
            let count = if cfg!(miri) { 50 } else { 10_000 };
            let ids: std::collections::HashSet<_> = (0..count).map(|_| maker.fresh()).collect();
            assert_eq!(ids.len(), count);
            assert!(ids.iter().flatten().all(|digit| digit.is_ascii_hexdigit() && !digit.is_ascii_uppercase()));
        }
    }

    #[test]
    fn the_generator_is_the_published_one() {
        let mut seed = [0u8; 32];
        for (word, bytes) in seed.chunks_exact_mut(8).enumerate() {
            bytes[7] = word as u8 + 1;
        }
        let mut maker = Maker::new(seed);
        assert_eq!([maker.next(), maker.next(), maker.next()], [41943041, 58720359, 3588806011781223]);
    }

    #[test]
    fn an_id_is_made_of_letters_that_need_no_escape() {
        for good in ["a", "0123456789abcdef", "A.b_c-d+e/f=g:h@i", &"x".repeat(128)] {
            assert!(is_valid(good.as_bytes()), "{good}");
        }
        for bad in ["", " ", "a b", "a,b", "a\"b", "a%20", "\u{e9}", "a;b", "<a>", &"x".repeat(129)] {
            assert!(!is_valid(bad.as_bytes()), "{bad}");
        }
    }
}
