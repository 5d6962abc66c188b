//! What client and server agree on (RFC 7692 section 7.1).
//!
//! The library cannot deflate with a window of 2^8 bytes: an offer with `server_max_window_bits=8` is declined, and
//! the client's next one looked at. It can inflate what was deflated with any window, since a larger one does.
use crate::message::grammar::decimal;
use std::fmt;

/// What the server wants. The default: both may keep contexts, in windows of full size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    pub enabled: bool,
    /// Whether we keep a context for each connection. Costs memory, and makes similar messages much smaller.
    pub server_context_takeover: bool,
    /// Whether the client may.
    pub client_context_takeover: bool,
    /// Largest window we deflate with: 9 to 15.
    pub server_max_window_bits: u8,
    /// Largest window the client may deflate with, if it says that it can be told: 8 to 15.
    pub client_max_window_bits: u8,
    /// 1 (fast) to 9 (small).
    pub level: u8,
    /// Messages shorter than this, in bytes, are sent as they are.
    pub threshold: usize,
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            enabled: true,
            server_context_takeover: true,
            client_context_takeover: true,
            server_max_window_bits: MAX_BITS,
            client_max_window_bits: MAX_BITS,
            level: 1,
            threshold: 64,
        }
    }
}

/// One of the client's offers, in its words.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Offer {
    pub server_no_context_takeover: bool,
    pub client_no_context_takeover: bool,
    pub server_max_window_bits: Option<u8>,
    /// `Some(None)`: "may be told", without a value.
    pub client_max_window_bits: Option<Option<u8>>,
}

/// What holds for a connection. `Display` is the element of the response's Sec-WebSocket-Extensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Agreed {
    pub server_context_takeover: bool,
    pub client_context_takeover: bool,
    /// 9 to 15: what we deflate with (client's side: inflate).
    pub server_bits: u8,
    /// 8 to 15: what the client deflates with.
    pub client_bits: u8,
    /// The client asked for a limit of the server's window, so that it is told.
    tell_server_bits: bool,
    tell_client_bits: bool,
    pub level: u8,
    pub threshold: usize,
}

impl Offer {
    /// Reads the parameters (name, value) of one offer. `None`: they mean nothing, and the offer is to be declined
    /// (section 7.1: unknown or invalid ones, or one that comes twice).
    pub fn read<'a>(parameters: impl Iterator<Item = (&'a [u8], Option<&'a [u8]>)>) -> Option<Offer> {
        let mut offer = Offer::default();
        for (name, value) in parameters {
            let is_new = match (name, value) {
                (b"server_no_context_takeover", None) => {
                    !std::mem::replace(&mut offer.server_no_context_takeover, true)
                }
                (b"client_no_context_takeover", None) => {
                    !std::mem::replace(&mut offer.client_no_context_takeover, true)
                }
                (b"server_max_window_bits", Some(value)) => {
                    offer.server_max_window_bits.replace(window_bits(value)?).is_none()
                }
                (b"client_max_window_bits", value) => {
                    let bits = match value {
                        Some(value) => Some(window_bits(value)?),
                        None => None,
                    };
                    offer.client_max_window_bits.replace(bits).is_none()
                }
                _ => return None,
            };
            if !is_new {
                return None;
            }
        }
        Some(offer)
    }
}

/// "a decimal integer value without leading zeroes between 8 to 15, inclusive".
fn window_bits(value: &[u8]) -> Option<u8> {
    let bits = decimal(value).filter(|bits| (8..=15).contains(bits) && value.first() != Some(&b'0'))?;
    u8::try_from(bits).ok()
}

impl Policy {
    /// The first offer that can be kept, "in order of preference" (RFC 6455 section 9.1).
    pub fn choose(&self, offers: impl IntoIterator<Item = Offer>) -> Option<Agreed> {
        if !self.enabled {
            return None;
        }
        offers.into_iter().find_map(|offer| self.accept(&offer))
    }

    fn accept(&self, offer: &Offer) -> Option<Agreed> {
        let wanted = self.server_max_window_bits.clamp(MIN_DEFLATE_BITS, MAX_BITS);
        let server_bits = wanted.min(offer.server_max_window_bits.unwrap_or(MAX_BITS));
        if server_bits < MIN_DEFLATE_BITS {
            return None;
        }
        // Section 7.1.2.2: only who sent the parameter can be told a limit; others use windows of any size.
        let client_bits = match offer.client_max_window_bits {
            None => MAX_BITS,
            Some(most) => self.client_max_window_bits.clamp(MIN_BITS, MAX_BITS).min(most.unwrap_or(MAX_BITS)),
        };
        Some(Agreed {
            server_context_takeover: self.server_context_takeover && !offer.server_no_context_takeover,
            client_context_takeover: self.client_context_takeover && !offer.client_no_context_takeover,
            server_bits,
            client_bits,
            tell_server_bits: offer.server_max_window_bits.is_some(),
            tell_client_bits: client_bits < MAX_BITS,
            level: self.level.clamp(1, 9),
            threshold: self.threshold.max(1),
        })
    }
}

impl fmt::Display for Agreed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("permessage-deflate")?;
        if !self.server_context_takeover {
            f.write_str("; server_no_context_takeover")?;
        }
        if !self.client_context_takeover {
            f.write_str("; client_no_context_takeover")?;
        }
        if self.tell_server_bits {
            write!(f, "; server_max_window_bits={}", self.server_bits)?;
        }
        if self.tell_client_bits {
            write!(f, "; client_max_window_bits={}", self.client_bits)?;
        }
        Ok(())
    }
}

const MIN_BITS: u8 = 8;
/// zlib, too, makes 9 of 8 here, which a peer with a window of 2^8 bytes could not read.
pub(super) const MIN_DEFLATE_BITS: u8 = 9;
pub(super) const MAX_BITS: u8 = 15;
