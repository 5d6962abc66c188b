//! Whether the client spoke TLS to a front end, as a trusted front end tells (gunicorn's `secure_scheme_headers`).
use super::HeadPolicy;
use crate::message::{Refusal, RefusalKind, Scheme};

/// What the scheme headers seen so far say; `None`: nothing.
#[derive(Debug, Default)]
pub(super) struct SchemeClaim(pub Option<Scheme>);

impl SchemeClaim {
    /// A bit for the length (modulo 64) of each scheme header's name: a field whose length has none is no scheme header.
    #[inline]
    pub(super) fn lengths(policy: &HeadPolicy) -> u64 {
        let names = policy.secure_scheme_headers.iter();
        names.fold(0, |lengths, (name, _)| lengths | 1 << (name.len() & 63))
    }

    /// Looks at one field of a trusted peer.
    #[inline]
    pub(super) fn note(&mut self, policy: &HeadPolicy, name: &[u8], value: &[u8]) -> Result<(), Box<Refusal>> {
        for (scheme_name, secure) in &policy.secure_scheme_headers {
            // The last letter first: `X-Forwarded-For` begins like the names that are looked for.
            let last = |name: &[u8]| name.last().map(u8::to_ascii_lowercase);
            let ends_alike = last(name) == last(scheme_name);
            if ends_alike && name.eq_ignore_ascii_case(scheme_name) {
                self.told(if value == secure.as_slice() { Scheme::Https } else { Scheme::Http })?;
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
