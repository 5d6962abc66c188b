//! What front ends send, changed at random: however it is cut it comes to the same, and its head passes the rules of HTTP/1.
#![allow(clippy::expect_used)] // A test may panic, in its helpers, too.
use proptest::prelude::*;
use tricorn_proto::cgi::fastcgi::{Content, Stdin};
use tricorn_proto::cgi::{MAX_VARS, Opening, Protocol, Scan, Vars, open};
use tricorn_proto::http1::{HeadPolicy, Receiver, Step};
use tricorn_proto::message::RequestHead;

const PROTOCOLS: [Protocol; 3] = [Protocol::Uwsgi, Protocol::Scgi, Protocol::FastCgi];
const SEEDS: [&[u8]; 4] = [
    include_bytes!("../../../../fuzz/seeds/front_end/uwsgi"),
    include_bytes!("../../../../fuzz/seeds/front_end/scgi"),
    include_bytes!("../../../../fuzz/seeds/front_end/fastcgi"),
    include_bytes!("../../../../fuzz/seeds/front_end/stdin"),
];

/// The vars or the status of a refusal, what was answered before, and how many bytes were theirs.
type Opened = (Option<Result<Vec<u8>, u16>>, Vec<u8>, usize);

fn opened(protocol: Protocol, data: &[u8], piece: usize) -> Opened {
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
                Ok(Opening::Vars(count)) => return (Some(Ok(block)), answers, count),
                Err(refusal) => return (Some(Err(refusal.status())), answers, 0),
            }
        }
    }
    (None, answers, 0)
}

/// The content of a request, and whether it ended well.
fn content(data: &[u8], piece: usize) -> (Vec<u8>, Option<bool>) {
    let (mut stdin, mut remaining) = (Stdin::new(1), 3);
    let (mut unread, mut content) = (Vec::new(), Vec::new());
    for part in data.chunks(piece) {
        unread.extend_from_slice(part);
        loop {
            match stdin.advance(&unread, &mut remaining) {
                Err(_) => return (Vec::new(), Some(false)),
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

/// Returns whether the vars make a head that is read.
fn check(data: &[u8]) -> bool {
    let mut is_read = false;
    for protocol in PROTOCOLS {
        let whole = opened(protocol, data, data.len().max(1));
        for piece in [1, 7] {
            assert_eq!(opened(protocol, data, piece), whole, "{protocol:?}, pieces of {piece} bytes");
        }
        let (Some(Ok(block)), _, _) = whole else { continue };
        let vars = Vars::of(&block).expect("a block");
        assert!(vars.iter().count() <= MAX_VARS);
        let _ = (vars.paths(), vars.client(), vars.server());
        let mut text = Vec::new();
        if vars.write_head(&mut text).is_err() {
            continue;
        }
        let end = text.len();
        text.extend_from_slice(b"behind it");
        let mut head = RequestHead::default();
        match Receiver::default().advance(&mut text, &HeadPolicy::default(), false, &mut head) {
            Ok(progress) => {
                assert_eq!((progress.step, progress.consumed), (Step::Head, end));
                is_read = true;
            }
            Err(refusal) => assert_ne!(refusal.status(), 500),
        }
    }
    let whole = content(data, data.len().max(1));
    for piece in [1, 7] {
        let (bytes, ended) = content(data, piece);
        assert_eq!(ended, whole.1);
        assert!(bytes == whole.0);
    }
    is_read
}

#[test]
fn what_is_right_is_read() {
    assert_eq!(SEEDS.map(check), [true, true, true, false]);
    assert_eq!(content(SEEDS[3], 1), (b"abc".to_vec(), Some(true)));
}

fn seed() -> impl Strategy<Value = Vec<u8>> {
    prop::sample::select(&SEEDS[..]).prop_map(<[u8]>::to_vec)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 5 } else { 2000 }, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn however_it_is_cut_it_comes_to_the_same(
        mut data in seed(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0..3u8), 0..4),
    ) {
        for (index, byte, how) in changes {
            let at = index.index(data.len().max(1)).min(data.len().saturating_sub(1));
            match how {
                0 if at < data.len() => data[at] = byte,
                1 => data.insert(at, byte),
                _ if at < data.len() => { data.remove(at); }
                _ => {}
            }
        }
        check(&data);
    }
}
