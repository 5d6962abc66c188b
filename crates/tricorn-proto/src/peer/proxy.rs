//! What trusted front ends say of a request, after Waitress's `trusted_proxy_headers`.
//!
//! ```text
//!   a request of a trusted peer:  the chosen fields ──> the last hops ──> of these the first ──> Claims
//!   any request:                  the other fields of `FIELDS` are taken out of the head
//! ```
//!
//! Each front end adds to the right of what came to it. So of a list only as many elements as there are front ends count,
//! from the right; what stands left of them is the client's invention.
use super::forwarded_field::{self, Element};
use super::node::Node;
use crate::message::grammar::{decimal, list};
use crate::message::host;
use crate::message::{Field, Known, Refusal, RefusalKind, RequestHead, Scheme, Span};

/// Which fields are believed. `Default` is none, and all are taken out.
#[derive(Debug, Clone, Default)]
pub struct ProxyPolicy {
    chosen: Vec<ProxyField>,
    hops: usize,
    keep_others: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProxyField {
    For,
    Proto,
    Host,
    Port,
    By,
    Forwarded,
}

const FIELDS: [(ProxyField, &str); 6] = [
    (ProxyField::For, "x-forwarded-for"),
    (ProxyField::Proto, "x-forwarded-proto"),
    (ProxyField::Host, "x-forwarded-host"),
    (ProxyField::Port, "x-forwarded-port"),
    (ProxyField::By, "x-forwarded-by"),
    (ProxyField::Forwarded, "forwarded"),
];

/// What the front ends claim. A claim that is not there leaves what the connection says.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claims {
    pub client: Option<Node>,
    /// Host without its port.
    pub server_name: Option<Vec<u8>>,
    pub server_port: Option<u16>,
    /// The value that `Host` is to have.
    pub host: Option<Vec<u8>>,
    scheme: Option<Scheme>,
    /// Fields that were taken out of the head.
    pub removed: Vec<Field>,
}

impl ProxyPolicy {
    /// `names`: of `FIELDS`, in lower case; `hops`: how many front ends there are; `clear`: fields that were not chosen, or are
    /// an untrusted peer's, are taken out.
    pub fn new(names: &[String], hops: usize, clear: bool) -> Result<ProxyPolicy, String> {
        let find = |name: &String| {
            let found = FIELDS.iter().find(|(_, text)| text == name).map(|(field, _)| *field);
            found.ok_or_else(|| format!("{name:?} is not a field that front ends are believed in"))
        };
        let chosen = names.iter().map(find).collect::<Result<Vec<_>, _>>()?;
        Ok(ProxyPolicy { chosen, hops: hops.max(1), keep_others: !clear })
    }

    fn has(&self, field: ProxyField) -> bool {
        self.chosen.contains(&field)
    }
}

/// Reads what is claimed and takes out what the application is not to see. The scheme is put into `head`; the rest is for who
/// makes scopes and environs.
pub fn believe(
    head: &mut RequestHead,
    bytes: &[u8],
    policy: &ProxyPolicy,
    trusted: bool,
) -> Result<Claims, Box<Refusal>> {
    let mut claims = if !trusted || policy.chosen.is_empty() {
        Claims::default()
    } else if policy.has(ProxyField::Forwarded) {
        of_forwarded(&values(head, bytes, "forwarded"), policy.hops)?
    } else {
        of_separate_fields(head, bytes, policy)?
    };
    if let Some(scheme) = claims.scheme {
        head.scheme = scheme;
    }
    claims.complete(head.scheme);
    if !policy.keep_others {
        head.fields.retain(|field| {
            let found = classify(field.name.of(bytes), field.known);
            let stays = found.is_none_or(|found| trusted && policy.has(found));
            if !stays {
                claims.removed.push(*field);
            }
            stays
        });
    }
    Ok(claims)
}

fn classify(name: &[u8], known: Known) -> Option<ProxyField> {
    if known != Known::Other {
        return None;
    }
    FIELDS.iter().find(|(_, text)| name.eq_ignore_ascii_case(text.as_bytes())).map(|(field, _)| *field)
}

impl Claims {
    /// A host without a port has that of its scheme, and is named with any other.
    fn complete(&mut self, scheme: Scheme) {
        let usual = if scheme == Scheme::Https { 443 } else { 80 };
        if self.server_port.is_none() && (self.scheme.is_some() || self.server_name.is_some()) {
            self.server_port = Some(usual);
        }
        if let (Some(name), Some(port)) = (&self.server_name, self.server_port) {
            let mut host = name.clone();
            if port != usual {
                host.extend_from_slice(format!(":{port}").as_bytes());
            }
            self.host = Some(host);
        }
    }

    /// The host, which may name a port; that one is believed before a port of its own.
    fn set_host(&mut self, value: &[u8], wrong: impl Fn() -> Box<Refusal>) -> Result<(), Box<Refusal>> {
        if !host::is_host_port(value) {
            return Err(wrong());
        }
        let (name, port) = host::split_port(value);
        if name.is_empty() {
            return Err(wrong());
        }
        if !port.is_empty() {
            self.server_port = Some(port_of(port).ok_or_else(&wrong)?);
        }
        self.server_name = Some(name.to_vec());
        Ok(())
    }
}

fn values<'b>(head: &RequestHead, bytes: &'b [u8], name: &str) -> Vec<&'b [u8]> {
    let fields = head.fields.iter().filter(|field| field.name.of(bytes).eq_ignore_ascii_case(name.as_bytes()));
    fields.map(|field| field.value.of(bytes)).collect()
}

/// X-Forwarded-*, each a list with an element for each front end.
fn of_separate_fields(head: &RequestHead, bytes: &[u8], policy: &ProxyPolicy) -> Result<Claims, Box<Refusal>> {
    let told = |field: ProxyField| -> Option<&[u8]> {
        let name = FIELDS.iter().find(|(each, _)| *each == field && policy.has(field))?.1;
        let values = values(head, bytes, name);
        let elements: Vec<&[u8]> =
            values.iter().flat_map(|value| list(value)).filter(|each| !each.is_empty()).collect();
        elements.get(elements.len().saturating_sub(policy.hops)).copied()
    };
    let mut claims = Claims::default();
    if let Some(text) = told(ProxyField::For) {
        claims.client = Some(Node::lenient(unquoted(text)).ok_or_else(|| wrong("X-Forwarded-For", text))?);
    }
    if let Some(text) = told(ProxyField::Proto) {
        claims.scheme = Some(scheme_of(unquoted(text)).ok_or_else(|| wrong("X-Forwarded-Proto", text))?);
    }
    if let Some(text) = told(ProxyField::Port) {
        claims.server_port = Some(port_of(unquoted(text)).ok_or_else(|| wrong("X-Forwarded-Port", text))?);
    }
    if let Some(text) = told(ProxyField::Host) {
        claims.set_host(unquoted(text), || wrong("X-Forwarded-Host", text))?;
    }
    Ok(claims)
}

/// Waitress takes quotes off; several front ends write them.
fn unquoted(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(text)
}

/// RFC 7239. The client is the one that the outermost of our front ends names; host and scheme are the first that any names.
fn of_forwarded(values: &[&[u8]], hops: usize) -> Result<Claims, Box<Refusal>> {
    let mut elements: Vec<Element> = Vec::new();
    for value in values {
        forwarded_field::parse(value, &mut elements).ok_or_else(|| wrong("Forwarded", value))?;
    }
    let ours = &elements[elements.len().saturating_sub(hops)..];
    let mut claims = Claims { client: ours.first().and_then(|each| each.client.clone()), ..Claims::default() };
    if let Some(proto) = ours.iter().find_map(|each| each.proto.as_deref()) {
        claims.scheme = Some(scheme_of(proto).ok_or_else(|| wrong("Forwarded", proto))?);
    }
    if let Some(host) = ours.iter().find_map(|each| each.host.as_deref()) {
        claims.set_host(host, || wrong("Forwarded", host))?;
    }
    Ok(claims)
}

fn scheme_of(text: &[u8]) -> Option<Scheme> {
    match text {
        text if text.eq_ignore_ascii_case(b"http") || text.eq_ignore_ascii_case(b"ws") => Some(Scheme::Http),
        text if text.eq_ignore_ascii_case(b"https") || text.eq_ignore_ascii_case(b"wss") => Some(Scheme::Https),
        _ => None,
    }
}

fn port_of(text: &[u8]) -> Option<u16> {
    decimal(text).and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0)
}

fn wrong(name: &str, value: &[u8]) -> Box<Refusal> {
    Refusal::from_bytes(RefusalKind::Forwarded, &[name.as_bytes(), b": ", value].concat())
}

/// Gives the head another Host, whose bytes stand at `at`: `Host`, then the value.
pub fn set_host(head: &mut RequestHead, at: u32, value: usize) {
    let name = Span { start: at, end: at + NAME.len() as u32 };
    let value = Span { start: name.end, end: name.end + value as u32 };
    match head.fields.iter_mut().find(|field| field.known == Known::Host) {
        Some(field) => field.value = value,
        None => head.fields.push(crate::message::Field { name, value, known: Known::Host }),
    }
}

/// What stands before the value.
pub const NAME: &[u8] = b"Host";

#[cfg(test)]
#[path = "proxy_tests.rs"]
mod tests;
