//! Tickets: what a client keeps of its session, sealed with keys that all workers have.
//!
//! A client gets two with a full handshake: one may be used while the other is on its way. With a resumed one, for which it has spent one,
//! it gets one. rustls has one number for both, and asks here for each ticket: so the session says before how many it may have.
//!
//! A ticket is the name of its key (16 bytes), a nonce (12), and the session, sealed with AES-256-GCM. The key is made from one of
//! the page's by HKDF, with a digest of what clients are verified by: a session that was let in by other rules is not resumed.
use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::hkdf::{HKDF_SHA256, KeyType, Salt};
use aws_lc_rs::rand;
use rustls::server::ProducesTickets;
use std::cell::Cell;

/// Most that a client gets with a handshake.
pub const TICKETS: usize = 2;
const AFTER_RESUMPTION: usize = 1;

thread_local! {
    /// How many the session that this thread goes on with may have.
    static ALLOWED: Cell<usize> = const { Cell::new(TICKETS) };
}

/// To be said before a session goes on with its handshake.
pub fn allow_tickets(is_resumed: bool) {
    ALLOWED.set(if is_resumed { AFTER_RESUMPTION } else { TICKETS });
}

const NAME: usize = 16;
const KEY: usize = 32;

#[derive(Debug)]
pub struct Tickets {
    keys: Vec<TicketKey>,
    lifetime: u32,
}

struct TicketKey {
    name: [u8; NAME],
    key: LessSafeKey,
}

/// Keys are not shown.
impl std::fmt::Debug for TicketKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TicketKey({:02x?})", self.name)
    }
}

struct Length;

impl KeyType for Length {
    fn len(&self) -> usize {
        NAME + KEY
    }
}

impl Tickets {
    /// `rules`: a digest of what clients are verified by. `None`: there are no keys.
    pub fn new(keys: &[[u8; 32]], lifetime: u32, rules: &[u8]) -> Option<Tickets> {
        let keys: Vec<TicketKey> = keys.iter().filter_map(|key| TicketKey::new(key, rules)).collect();
        (!keys.is_empty()).then_some(Tickets { keys, lifetime })
    }
}

impl TicketKey {
    fn new(key: &[u8], rules: &[u8]) -> Option<TicketKey> {
        let mut bytes = [0; NAME + KEY];
        let secret = Salt::new(HKDF_SHA256, rules).extract(key);
        secret.expand(&[b"tricorn tls ticket"], Length).ok()?.fill(&mut bytes).ok()?;
        let (name, key) = bytes.split_first_chunk()?;
        Some(TicketKey { name: *name, key: LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).ok()?) })
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        self.lifetime
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        let allowed = ALLOWED.get().checked_sub(1)?;
        ALLOWED.set(allowed);
        let TicketKey { name, key } = self.keys.first()?;
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).ok()?;
        let mut ticket = Vec::with_capacity(NAME + NONCE_LEN + plain.len() + AES_256_GCM.tag_len());
        ticket.extend_from_slice(name);
        ticket.extend_from_slice(&nonce);
        ticket.extend_from_slice(plain);
        let nonce = Nonce::assume_unique_for_key(nonce);
        let sealed = ticket.get_mut(NAME + NONCE_LEN..)?;
        let tag = key.seal_in_place_separate_tag(nonce, Aad::from(name), sealed).ok()?;
        ticket.extend_from_slice(tag.as_ref());
        Some(ticket)
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        let (name, rest) = ticket.split_first_chunk::<NAME>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        let TicketKey { key, .. } = self.keys.iter().find(|key| key.name == *name)?;
        let mut plain = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let length = key.open_in_place(nonce, Aad::from(name), &mut plain).ok()?.len();
        plain.truncate(length);
        Some(plain)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tickets(keys: &[u8], rules: &[u8]) -> Tickets {
        let keys: Vec<[u8; 32]> = keys.iter().map(|byte| [*byte; 32]).collect();
        Tickets::new(&keys, 60, rules).expect("keys")
    }

    #[test]
    fn a_session_that_is_resumed_gets_one_and_another_one_two() {
        let tickets = tickets(&[1], b"rules");
        for (is_resumed, most) in [(false, 2), (true, 1), (false, 2)] {
            allow_tickets(is_resumed);
            let made = (0..3).filter(|_| tickets.encrypt(b"session").is_some()).count();
            assert_eq!(made, most, "resumed: {is_resumed}");
        }
    }

    #[test]
    fn a_ticket_is_opened_by_whichever_worker_has_its_key() {
        allow_tickets(false);
        let ticket = tickets(&[1], b"rules").encrypt(b"session").expect("a ticket");
        assert_eq!(tickets(&[2, 1], b"rules").decrypt(&ticket).as_deref(), Some(b"session".as_slice()));
        assert_eq!(tickets(&[2], b"rules").decrypt(&ticket), None, "its key is gone");
        assert_eq!(tickets(&[1], b"others").decrypt(&ticket), None, "it was let in by other rules");
        assert!(Tickets::new(&[], 60, b"rules").is_none());
    }

    #[test]
    fn a_ticket_that_was_changed_or_cut_is_none() {
        allow_tickets(false);
        let tickets = tickets(&[1], b"rules");
        let whole = tickets.encrypt(b"session").expect("a ticket");
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 1;
            assert_eq!((tickets.decrypt(&changed), tickets.decrypt(&whole[..at])), (None, None), "{at}");
        }
        assert_ne!(tickets.encrypt(b"session"), Some(whole), "each has a nonce of its own");
    }
}
