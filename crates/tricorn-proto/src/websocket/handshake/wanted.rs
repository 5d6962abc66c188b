//! What a client asks for besides a WebSocket: nothing here depends on the version of HTTP.
use super::{Wrong, extensions};
use crate::message::grammar::{is_token, list};
use crate::websocket::deflate::Offer;

/// Read field by field (`note`), judged at the end (`check`).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Subprotocols, the one liked best first. Tokens.
    pub protocols: Vec<String>,
    /// Offers of permessage-deflate, in the client's order.
    pub offers: Vec<Offer>,
    version: Option<bool>,
}

impl Wanted {
    /// Looks at one field; those that say nothing about WebSocket are passed over.
    pub fn note(&mut self, name: &[u8], value: &[u8]) -> Result<(), Wrong> {
        // "sec-websocket-" and what follows: told apart by length.
        match name.len() {
            21 if name.eq_ignore_ascii_case(b"sec-websocket-version") => self.version(value),
            22 if name.eq_ignore_ascii_case(b"sec-websocket-protocol") => self.protocols(value),
            24 if name.eq_ignore_ascii_case(b"sec-websocket-extensions") => extensions::read(value, &mut self.offers),
            _ => Ok(()),
        }
    }

    /// All fields were seen.
    pub fn check(&self) -> Result<(), Wrong> {
        if self.version == Some(true) { Ok(()) } else { Err(Wrong::Version) }
    }

    fn version(&mut self, value: &[u8]) -> Result<(), Wrong> {
        match self.version.replace(value == b"13") {
            None => Ok(()),
            Some(_) => Err(Wrong::VersionTwice),
        }
    }

    /// RFC 6455 section 4.1: "The elements that comprise this value MUST be non-empty strings with characters in the
    /// range U+0021 to U+007E not including separator characters … and MUST all be unique strings."
    fn protocols(&mut self, value: &[u8]) -> Result<(), Wrong> {
        for protocol in list(value).filter(|protocol| !protocol.is_empty()) {
            if !is_token(protocol) {
                return Err(Wrong::Protocol);
            }
            if self.protocols.len() == MAX_PROTOCOLS {
                return Err(Wrong::Protocols);
            }
            let protocol = String::from_utf8_lossy(protocol).into_owned();
            if self.protocols.contains(&protocol) {
                return Err(Wrong::ProtocolTwice);
            }
            self.protocols.push(protocol);
        }
        Ok(())
    }
}

/// Each is compared with all the others.
const MAX_PROTOCOLS: usize = 100;
