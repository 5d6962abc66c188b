//! Masking (RFC 6455 section 5.3): XOR with a key of four bytes, repeated. Twice is not at all.

/// Masks or unmasks `data`, which begins `position` bytes after the payload's first byte.
///
/// Eight bytes at a time and several of these at once: the compiler makes vector instructions of it, for which it does
/// not matter where `data` begins.
#[inline]
pub fn apply(data: &mut [u8], key: [u8; 4], position: u64) {
    let key = rotated(key, position);
    let word = u64::from(u32::from_ne_bytes(key));
    let word = word << 32 | word;
    let (blocks, rest) = data.as_chunks_mut::<8>();
    for block in blocks {
        *block = (u64::from_ne_bytes(*block) ^ word).to_ne_bytes();
    }
    for (byte, key) in rest.iter_mut().zip(key.iter().cycle()) {
        *byte ^= key;
    }
}

/// The key as it applies to the byte at `position`.
fn rotated(mut key: [u8; 4], position: u64) -> [u8; 4] {
    key.rotate_left((position % 4) as usize);
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hello_of_section_5_7() {
        let mut text = [0x7f, 0x9f, 0x4d, 0x51, 0x58];
        apply(&mut text, [0x37, 0xfa, 0x21, 0x3d], 0);
        assert_eq!(&text, b"Hello");
    }

    #[test]
    fn any_start_any_length_any_split_is_byte_by_byte() {
        let key = [1, 20, 77, 255];
        let length = if cfg!(miri) { 26 } else { 100u8 };
        let plain: Vec<u8> = (0..length).map(|byte| byte.wrapping_mul(37)).collect();
        for start in (0..16).step_by(if cfg!(miri) { 7 } else { 1 }) {
            for end in start..plain.len() {
                for position in 0..5u64 {
                    let mut data = plain.clone();
                    let middle = (start + end) / 2;
                    apply(&mut data[start..middle], key, position);
                    apply(&mut data[middle..end], key, position + (middle - start) as u64);
                    for (index, (&masked, &byte)) in data.iter().zip(&plain).enumerate() {
                        let inside = (start..end).contains(&index);
                        let at = (index.wrapping_sub(start)).wrapping_add(position as usize) % 4;
                        assert_eq!(masked, if inside { byte ^ key[at] } else { byte });
                    }
                }
            }
        }
    }

    /// `cargo test --release -p tricorn-proto -- --ignored --nocapture masking_speed`
    #[test]
    #[ignore = "a measurement"]
    #[allow(clippy::disallowed_methods)] // A measurement looks at the clock.
    fn masking_speed() {
        for (bytes, start) in [(125, 0), (125, 6), (4096, 0), (4096, 6), (65_536, 6), (1 << 20, 6)] {
            let mut data = vec![7u8; bytes + start];
            let rounds = (1 << 30) / bytes;
            let mut best = f64::MAX;
            for _ in 0..5 {
                let begin = std::time::Instant::now();
                for _ in 0..rounds / 5 {
                    apply(std::hint::black_box(&mut data[start..]), std::hint::black_box([1, 2, 3, 4]), 0);
                }
                best = best.min(begin.elapsed().as_secs_f64());
            }
            let speed = (bytes * (rounds / 5)) as f64 / best / 1e9;
            println!("{bytes:>8} bytes from +{start}: {speed:6.1} GB/s");
        }
    }
}
