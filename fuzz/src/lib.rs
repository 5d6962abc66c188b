//! What the fuzz targets share: a byte string read as choices, a connection's events, and frames of a client.
use tricorn_proto::http1::{HeadPolicy, HeaderMap, Receiver, Step};
use tricorn_proto::message::{RefusalKind, RequestHead};
use tricorn_proto::peer::Trust;
use tricorn_proto::websocket::deflate::{Agreed, Offer, Policy};

/// Takes choices off the front of a fuzzer's input.
pub struct Choices<'a>(pub &'a [u8]);

impl<'a> Choices<'a> {
    pub fn byte(&mut self) -> u8 {
        match self.0 {
            [first, rest @ ..] => {
                self.0 = rest;
                *first
            }
            [] => 0,
        }
    }

    pub fn flag(&mut self) -> bool {
        self.byte() & 1 == 1
    }

    /// Up to 255 bytes; their number comes first.
    pub fn bytes(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte()).min(self.0.len());
        let (taken, rest) = self.0.split_at(length);
        self.0 = rest;
        taken
    }

    pub fn policy(&mut self) -> HeadPolicy {
        let (flags, more) = (self.byte(), self.byte());
        let flag = |bit: u8| flags >> bit & 1 == 1;
        let mut policy = HeadPolicy::default();
        policy.leniency.obsolete_folding = flag(0);
        policy.leniency.strip_header_spaces = flag(1);
        policy.leniency.unconventional_method = flag(2);
        policy.leniency.unconventional_version = flag(3);
        policy.leniency.casefold_method = flag(4);
        policy.leniency.header_map = match more & 3 {
            0 | 1 => HeaderMap::Drop,
            2 => HeaderMap::Refuse,
            _ => HeaderMap::Dangerous,
        };
        if flag(5) {
            policy.trust = Trust::parse("*").expect("a valid list");
        }
        policy.limits.body = u64::from(more >> 2 & 15);
        if flag(6) {
            policy.limits.request_line = 40;
            policy.limits.fields = 4;
            policy.limits.field_size = 50;
        }
        policy
    }
}

/// What came out of a connection, wherever its bytes stood.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    Head(Vec<Vec<u8>>, String),
    Body(Vec<u8>),
    End(Vec<(Vec<u8>, Vec<u8>)>),
    Refused(u16, RefusalKind, String),
}

/// Feeds `pieces` to one receiver, request after request; adjacent pieces of body are joined.
pub fn events<'p>(policy: &HeadPolicy, pieces: impl IntoIterator<Item = &'p [u8]>) -> Vec<Event> {
    let trusted = policy.trust.allows(Some([127, 0, 0, 1].into()));
    let mut receiver = Receiver::default();
    let mut head = RequestHead::default();
    let (mut buffer, mut events) = (Vec::new(), Vec::new());
    for piece in pieces {
        buffer.extend_from_slice(piece);
        loop {
            let progress = match receiver.advance(&mut buffer, policy, trusted, &mut head) {
                Ok(progress) => progress,
                Err(refusal) => {
                    assert!(
                        refusal.status() != 500,
                        "a refusal without a reason: {refusal}"
                    );
                    let text = match refusal.kind {
                        // How long the line had grown when it was refused depends on the reads.
                        RefusalKind::RequestLineTooLong => String::new(),
                        _ => refusal.message(),
                    };
                    events.push(Event::Refused(refusal.status(), refusal.kind, text));
                    return events;
                }
            };
            assert!(progress.consumed <= buffer.len());
            match progress.step {
                Step::NeedMore => {
                    buffer.drain(..progress.consumed);
                    break;
                }
                Step::Head => events.push(head_event(&head, &buffer[..progress.consumed])),
                Step::Body(range) => {
                    assert!(!range.is_empty() && range.end <= progress.consumed);
                    match events.last_mut() {
                        Some(Event::Body(body)) => body.extend_from_slice(&buffer[range]),
                        _ => events.push(Event::Body(buffer[range].to_vec())),
                    }
                }
                Step::End => {
                    events.push(Event::End(head.trailers.clone()));
                    receiver.next_request();
                }
            }
            buffer.drain(..progress.consumed);
        }
    }
    events
}

fn head_event(head: &RequestHead, bytes: &[u8]) -> Event {
    let spans = [
        head.method,
        head.target,
        head.path,
        head.query,
        head.protocol,
    ];
    let fields = head
        .fields
        .iter()
        .flat_map(|field| [field.name, field.value]);
    let texts = spans.into_iter().chain(fields).map(|span| {
        assert!(span.start <= span.end && span.end as usize <= bytes.len());
        span.of(bytes).to_vec()
    });
    let known: Vec<_> = head.fields.iter().map(|field| field.known).collect();
    let rest = format!(
        "{:?} {:?} {:?} {:?} {} {} {known:?}",
        head.kind, head.version, head.framing, head.scheme, head.keep_alive, head.expect_continue
    );
    Event::Head(texts.collect(), rest)
}

/// Fuzzers do not mask: the frames of a client are made from those of a server.
pub fn masked(stream: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = stream;
    while let [first, length, after @ ..] = rest {
        let (payload, more) = after.split_at(usize::from(length % 126).min(after.len()));
        out.extend_from_slice(&[*first, 0x80 | payload.len() as u8, 1, 2, 3, 4]);
        out.extend(payload.iter().zip([1, 2, 3, 4].iter().cycle()).map(|(byte, key)| byte ^ key));
        rest = more;
    }
    out
}

/// What two sides agree on, or nothing.
pub fn agreed(choices: &mut Choices<'_>) -> Option<Agreed> {
    let flags = choices.byte();
    let policy = Policy { client_context_takeover: flags & 2 == 0, ..Policy::default() };
    if flags & 1 == 0 { None } else { policy.choose([Offer::default()]) }
}
