//! Random bytes of the system.
use rustix::rand::{GetRandomFlags, getrandom};

/// 32 bytes. Where the system has none to give (an ancient kernel, a strict sandbox), what differs between two calls.
pub fn random_seed() -> [u8; 32] {
    let mut seed = [0u8; 32];
    if !matches!(getrandom(&mut seed[..], GetRandomFlags::NONBLOCK), Ok(32)) {
        let mark = 0u8;
        let place = std::ptr::from_ref(&mark).addr() as u64;
        let parts = [crate::clock::now(), crate::clock::wall_micros(), u64::from(std::process::id()), place];
        for (bytes, part) in seed.chunks_exact_mut(8).zip(parts) {
            bytes.copy_from_slice(&part.to_ne_bytes());
        }
    }
    seed
}
