//! Whether the client spoke TLS to a front end, as a trusted front end tells (gunicorn's `secure_scheme_headers`).
use super::HeadPolicy;
use crate::message::grammar::trim_ows;
use crate::message::{Refusal, RefusalKind, Scheme};

/// What the scheme headers seen so far say; `None`: nothing.
#[derive(Debug, Default)]
pub(crate) struct SchemeClaim(pub Option<Scheme>);

impl SchemeClaim {
    /// A bit for the length (modulo 64) of each scheme header's name: a field whose length has none is no scheme header.
    #[inline]
    pub(crate) fn lengths(policy: &HeadPolicy) -> u64 {
        let names = policy.secure_scheme_headers.iter();
        names.fold(0, |lengths, (name, _)| lengths | 1 << (name.len() & 63))
    }

    /// Looks at one field of a trusted peer.
    #[inline]
    pub(crate) fn note(&mut self, policy: &HeadPolicy, name: &[u8], value: &[u8]) -> Result<(), Box<Refusal>> {
        for (scheme_name, secure) in &policy.secure_scheme_headers {
            // The last letter first: `X-Forwarded-For` begins like the names that are looked for.
            let last = |name: &[u8]| name.last().map(u8::to_ascii_lowercase);
            let ends_alike = last(name) == last(scheme_name);
            if ends_alike && name.eq_ignore_ascii_case(scheme_name) {
                self.told(if means(value, secure) { Scheme::Https } else { Scheme::Http })?;
            }
        }
        Ok(())
    }

    fn told(&mut self, scheme: Scheme) -> Result<(), Box<Refusal>> {
        match self.0.replace(scheme) {
            Some(before) if before != scheme => Err(Refusal::from_bytes(RefusalKind::SchemeHeaders, b"")),
            _ => Ok(()),
        }
    }
}

/// Whether a value says what the value for https says. Schemes compare without case (RFC 3986 section 3.1); the scheme of a
/// WebSocket says the same (Traefik sends `wss`). Of a list the last element counts: those before it may be the client's.
#[inline]
fn means(value: &[u8], secure: &[u8]) -> bool {
    let last = memchr::memrchr(b',', value).map_or(value, |comma| trim_ows(&value[comma + 1..]));
    last.eq_ignore_ascii_case(secure) || secure.eq_ignore_ascii_case(b"https") && last.eq_ignore_ascii_case(b"wss")
}
