//! What front ends send: however it is cut, the same vars are found, no more than there may be, and the head they make is read by the
//! rules of HTTP/1, as a whole and nothing behind it.
#![no_main]
use libfuzzer_sys::fuzz_target;
use tricorn_proto::cgi::{MAX_BYTES, MAX_VARS, Opening, Protocol, Scan, Vars, fastcgi::{Content, Stdin}, open};
use tricorn_proto::http1::{HeadPolicy, Receiver, Step};
use tricorn_proto::message::RequestHead;

/// The vars at the end of what stands aside, or why there are none; and what that was answered.
fn opened(protocol: Protocol, data: &[u8], piece: usize) -> (Option<Vec<u8>>, Option<u16>, Vec<u8>, usize) {
    let (mut input, mut scan, mut answers) = (Vec::new(), Scan::default(), Vec::new());
    for part in data.chunks(piece) {
        input.extend_from_slice(part);
        loop {
            let mut block = Vec::new();
            match open(protocol, &input, &mut scan, &mut block) {
                Ok(Opening::NeedMore) => break,
                Ok(Opening::Aside(count, answer)) => {
                    assert!(count > 0 || !answer.is_empty());
                    input.drain(..count);
                    answers.extend_from_slice(&answer);
                }
                Ok(Opening::Vars(count)) => {
                    assert!(count <= input.len() && count <= MAX_BYTES + 16);
                    return (Some(block), None, answers, count);
                }
                Err(refusal) => return (None, Some(refusal.status()), answers, 0),
            }
        }
    }
    (None, None, answers, 0)
}

/// Content behind the vars, and how it ended.
fn content(data: &[u8], piece: usize) -> (Vec<u8>, Option<bool>) {
    let (mut stdin, mut remaining) = (Stdin::new(1), 1 << 20);
    let (mut unread, mut content) = (Vec::new(), Vec::new());
    for part in data.chunks(piece) {
        unread.extend_from_slice(part);
        loop {
            match stdin.advance(&unread, &mut remaining) {
                Err(_) => return (content, Some(false)),
                Ok(Content::Bytes(range)) => {
                    content.extend_from_slice(&unread[range.clone()]);
                    unread.drain(..range.end);
                }
                Ok(Content::End(_)) => return (content, Some(true)),
                Ok(Content::NeedMore(count)) => {
                    unread.drain(..count);
                    break;
                }
            }
        }
    }
    (content, None)
}

fuzz_target!(|data: &[u8]| {
    for protocol in [Protocol::Uwsgi, Protocol::Scgi, Protocol::FastCgi] {
        let whole = opened(protocol, data, data.len().max(1));
        for piece in [1, 7] {
            assert_eq!(opened(protocol, data, piece), whole, "{protocol:?}, pieces of {piece} bytes");
        }
        let Some(block) = whole.0 else { continue };
        let vars = Vars::of(&block).expect("a block");
        assert!(vars.iter().count() <= MAX_VARS);
        let (_, _, _) = (vars.paths(), vars.client(), vars.is_secure());
        let mut text = Vec::new();
        if vars.write_head(&mut text).is_err() {
            continue;
        }
        let end = text.len();
        text.extend_from_slice(b"behind it");
        let mut head = RequestHead::default();
        match Receiver::default().advance(&mut text, &HeadPolicy::default(), false, &mut head) {
            Ok(progress) => assert_eq!((progress.step, progress.consumed), (Step::Head, end)),
            Err(refusal) => assert!((400..600).contains(&refusal.status()) && refusal.status() != 500),
        }
    }
    let whole = content(data, data.len().max(1));
    for piece in [1, 7] {
        assert_eq!(content(data, piece), whole);
    }
});
