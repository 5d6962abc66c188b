//! What is told of a client's connection to a worker that answers a request in another worker's place (`reactor/connections/lend.rs`).
use crate::tls::Facts;
use std::net::SocketAddr;
use std::sync::Arc;

/// Of the connection that stays with the lender.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Borrowed {
    /// The address that the client has connected to.
    pub local: Option<SocketAddr>,
    /// The same, where it is a unix socket with a name.
    pub path: Option<Vec<u8>>,
    /// The client's session, if it speaks TLS.
    pub facts: Option<Arc<Facts>>,
}

impl Borrowed {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let local = self.local.map(|address| address.to_string());
        text(&mut out, local.as_deref().map(str::as_bytes));
        text(&mut out, self.path.as_deref());
        let Some(facts) = &self.facts else { return out };
        out.extend_from_slice(&facts.version.to_ne_bytes());
        out.extend_from_slice(&facts.suite.to_ne_bytes());
        out.push(u8::from(facts.is_resumed));
        text(&mut out, facts.name.as_deref().map(str::as_bytes));
        text(&mut out, facts.alpn.as_deref());
        text(&mut out, facts.own.as_deref());
        facts.chain.iter().for_each(|certificate| text(&mut out, Some(certificate)));
        out
    }

    /// `None` for anything that `encode` has not written.
    pub fn decode(bytes: &[u8]) -> Option<Borrowed> {
        let mut input = bytes;
        let local = match take_text(&mut input)? {
            Some(text) => Some(std::str::from_utf8(text).ok()?.parse().ok()?),
            None => None,
        };
        let path = take_text(&mut input)?.map(<[u8]>::to_vec);
        let facts = if input.is_empty() { None } else { Some(Arc::new(take_facts(&mut input)?)) };
        Some(Borrowed { local, path, facts })
    }
}

fn take_facts(input: &mut &[u8]) -> Option<Facts> {
    let version = u16::from_ne_bytes(take(input)?);
    let suite = u16::from_ne_bytes(take(input)?);
    let [is_resumed] = take(input)?;
    let name = match take_text(input)? {
        Some(name) => Some(std::str::from_utf8(name).ok()?.into()),
        None => None,
    };
    let alpn = take_text(input)?.map(Into::into);
    let own = take_text(input)?.map(Arc::from);
    let mut chain = Vec::new();
    while !input.is_empty() {
        chain.push(take_text(input)??.into());
    }
    Some(Facts { version, suite, name, alpn, own, chain, is_resumed: is_resumed != 0 })
}

/// A length and so many bytes; the length of what is not there is more than any.
fn text(out: &mut Vec<u8>, text: Option<&[u8]>) {
    let length = text.map_or(NONE, |text| text.len() as u32);
    out.extend_from_slice(&length.to_ne_bytes());
    out.extend_from_slice(text.unwrap_or_default());
}

fn take_text<'b>(input: &mut &'b [u8]) -> Option<Option<&'b [u8]>> {
    let length = u32::from_ne_bytes(take(input)?);
    if length == NONE {
        return Some(None);
    }
    let (text, rest) = input.split_at_checked(length as usize)?;
    *input = rest;
    Some(Some(text))
}

fn take<const N: usize>(input: &mut &[u8]) -> Option<[u8; N]> {
    let (part, rest) = input.split_first_chunk::<N>()?;
    *input = rest;
    Some(*part)
}

const NONE: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> Facts {
        Facts {
            version: 0x0304,
            suite: 0x1301,
            name: Some("example.com".into()),
            alpn: Some(b"h2".as_slice().into()),
            own: Some(Arc::from(b"own".as_slice())),
            chain: vec![b"leaf".as_slice().into(), b"".as_slice().into()],
            is_resumed: true,
        }
    }

    #[test]
    fn what_is_told_is_understood() {
        let bare = Facts { name: None, alpn: None, own: None, chain: Vec::new(), is_resumed: false, ..facts() };
        for facts in [None, Some(facts()), Some(bare)] {
            for local in [None, "192.0.2.1:80".parse().ok(), "[2001:db8::1]:443".parse().ok()] {
                for path in [None, Some(b"/run/\xff.sock".to_vec())] {
                    let told = Borrowed { local, path, facts: facts.clone().map(Arc::new) };
                    assert_eq!(Borrowed::decode(&told.encode()), Some(told));
                }
            }
        }
    }

    #[test]
    fn what_was_not_told_is_not_understood() {
        let good = Borrowed { facts: Some(Arc::new(facts())), ..Borrowed::default() }.encode();
        // A piece that ends where the facts begin, or a certificate ends, tells less, and nothing wrong.
        let whole: Vec<_> = (0..good.len()).filter(|end| Borrowed::decode(&good[..*end]).is_some()).collect();
        assert_eq!(whole.len(), 3, "{whole:?}");
        assert_eq!(Borrowed::decode(&[0, 0, 0, 0, 255, 255, 255, 255]), None, "no address");
    }
}
