//! Against frames of a server, built by hand.
use super::*;
use tricorn_proto::message::Method;

const PUSH_PROMISE: u8 = 0x5;

/// A client, and the state that its server would have.
struct Pair {
    client: Connection,
    compression: Encoder,
    reader: Decoder,
}

impl Pair {
    /// The preface was sent, and the server's SETTINGS came.
    fn new(settings: &[(u16, u32)]) -> Pair {
        let mut pair = Pair { client: Connection::new(), compression: Encoder::default(), reader: Decoder::default() };
        let preface = pair.sent();
        assert_eq!(&preface[..24], PREFACE);
        assert_eq!(pair.give(|out| super::settings::write(settings, out)), Ok(vec![]));
        assert_eq!(pair.frames(), ["Settings 0 flags 1: []"], "the acknowledgement");
        pair
    }

    fn sent(&mut self) -> Vec<u8> {
        let bytes = self.client.output().to_vec();
        self.client.sent(bytes.len());
        bytes
    }

    /// The frames that were sent; fields of heads are decoded, content has its length.
    fn frames(&mut self) -> Vec<String> {
        let (sent, mut shown) = (self.sent(), Vec::new());
        let mut rest = &sent[..];
        while let Some((header, after)) = rest.split_first_chunk::<HEADER_BYTES>() {
            let FrameHeader { length, kind, flags, stream } = FrameHeader::parse(header);
            let (payload, after) = after.split_at(length);
            rest = after;
            let what = match kind {
                Kind::Headers => {
                    let mut fields = Vec::new();
                    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
                    self.reader.decode(payload, |name, value| fields.push(text(name) + "=" + &text(value))).unwrap();
                    fields.join(" ")
                }
                Kind::Data => length.to_string(),
                _ => format!("{payload:?}"),
            };
            shown.push(format!("{kind:?} {stream} flags {flags}: {what}"));
        }
        shown
    }

    /// Gives the client frames. Returns what it tells, with the client that it is for.
    fn give(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<Vec<String>, Violation> {
        let (mut bytes, mut told) = (Vec::new(), Vec::new());
        write(&mut bytes);
        self.client.receive(&bytes, |client, event| told.push(format!("{client}: {event:?}")))?;
        Ok(told)
    }

    fn head(&mut self, stream: u32, fields: &[(&str, &str)], end: bool) -> Result<Vec<String>, Violation> {
        let block = self.block(fields);
        self.give(|out| headers::write(stream, &block, end, out))
    }

    fn block(&mut self, fields: &[(&str, &str)]) -> Vec<u8> {
        let mut block = Vec::new();
        self.compression.begin(&mut block);
        for (name, value) in fields {
            self.compression.field(name.as_bytes(), value.as_bytes(), &mut block);
        }
        block
    }

    fn begin(&mut self, client: u32, body: usize) -> u32 {
        let stream = self.client.begin(client, &request(body, Method::Get));
        self.client.write_bodies();
        stream
    }

    fn begin_all<const N: usize>(&mut self, clients: [u32; N]) {
        for client in clients {
            self.begin(client, 0);
        }
    }
}

fn request(body: usize, method: Method) -> Prepared {
    let fields = [(":method", "GET"), (":path", "/a"), ("x-token", "secret")];
    let fields = fields.map(|(name, value)| (name.as_bytes().to_vec(), value.as_bytes().to_vec()));
    Prepared::of_fields(fields.to_vec(), vec![b'x'; body], method)
}

const OK: &[(&str, &str)] = &[(":status", "200")];

#[test]
fn the_preface_and_a_large_window_come_first() {
    let mut client = Connection::new();
    let bytes = client.output().to_vec();
    client.sent(bytes.len());
    let settings = [[0, 2, 0, 0, 0, 0], [0, 4, 0x3f, 0xff, 0xff, 0xff]].concat();
    let expected = [
        &PREFACE[..],
        &[0, 0, 12, 4, 0, 0, 0, 0, 0],
        &settings,
        &[0, 0, 4, 8, 0, 0, 0, 0, 0],
        &(WINDOW - DEFAULT_WINDOW).to_be_bytes(),
    ];
    assert_eq!(bytes, expected.concat());
}

#[test]
fn a_request_and_its_response() {
    let mut pair = Pair::new(&[]);
    assert_eq!((pair.begin(7, 0), pair.begin(8, 0)), (1, 3));
    let head = ":method=GET :path=/a x-token=secret";
    assert_eq!(pair.frames(), [format!("Headers 1 flags 5: {head}"), format!("Headers 3 flags 5: {head}")]);
    assert_eq!(pair.head(3, &[(":status", "200"), ("content-length", "5")], false).unwrap(), ["8: Begun"]);
    let told = pair.give(|out| data::write(3, b"hello", true, out)).unwrap();
    let answered = "8: Answered(Response { status: 200, location: None, left: Some(0) })";
    assert_eq!(told, ["8: Body([104, 101, 108, 108, 111])", answered]);
    let told = pair.head(1, &[(":status", "404")], true).unwrap();
    assert_eq!(told, ["7: Begun", "7: Answered(Response { status: 404, location: None, left: None })"]);
    assert!(pair.client.is_idle());
}

#[test]
fn repeated_requests_are_compressed() {
    let mut pair = Pair::new(&[]);
    pair.begin(0, 0);
    let first = pair.sent().len();
    pair.begin(0, 0);
    assert!(pair.sent().len() < first, "fields are in the table");
}

#[test]
fn frames_may_come_in_pieces() {
    let mut pair = Pair::new(&[]);
    pair.begin(7, 0);
    let block = pair.block(OK);
    let mut bytes = Vec::new();
    headers::write(1, &block, false, &mut bytes);
    data::write(1, b"hello", true, &mut bytes);
    let mut told = Vec::new();
    for byte in bytes {
        pair.client.receive(&[byte], |_, event| told.push(format!("{event:?}"))).unwrap();
    }
    assert_eq!((told.len(), told[0].as_str(), &told[2][..8]), (3, "Begun", "Answered"));
}

#[test]
fn header_blocks_may_continue() {
    let mut pair = Pair::new(&[]);
    pair.begin(7, 0);
    let block = pair.block(&[(":status", "302"), ("location", "/b")]);
    let (first, last) = block.split_at(3);
    let header = |kind, length, flags, out: &mut Vec<u8>| FrameHeader { length, kind, flags, stream: 1 }.write(out);
    let told = pair.give(|out| {
        header(Kind::Headers, first.len(), headers::END_STREAM, out);
        out.extend_from_slice(first);
        header(Kind::Continuation, last.len(), headers::END_HEADERS, out);
        out.extend_from_slice(last);
    });
    assert!(told.unwrap()[1].contains("status: 302, location: Some(\"/b\")"));
}

#[test]
fn interim_responses_and_trailers() {
    let mut pair = Pair::new(&[]);
    pair.begin(7, 0);
    assert_eq!(pair.head(1, &[(":status", "103")], false).unwrap(), ["7: Begun"]);
    assert!(pair.head(1, OK, false).unwrap().is_empty());
    assert!(pair.head(1, &[("grpc-status", "0")], true).unwrap()[0].starts_with("7: Answered"));
}

#[test]
fn malformed_responses_end_their_stream_alone() {
    let shorter = [(":status", "200"), ("content-length", "5")];
    for (fields, content, end) in [
        (&[("server", "x")][..], None, true),
        (&[(":status", "103")], None, true),
        (&shorter, Some(4), true),
        (&shorter, Some(6), false),
        (OK, Some(0), false),
    ] {
        let mut pair = Pair::new(&[]);
        pair.begin(7, 0);
        pair.begin(8, 0);
        pair.frames();
        let mut told = pair.head(1, fields, content.is_none() && end).unwrap();
        match content {
            Some(0) => told.extend(pair.head(1, &[("x", "trailers that end nothing")], false).unwrap()),
            Some(length) => told.extend(pair.give(|out| data::write(1, &vec![0; length], end, out)).unwrap()),
            None => {}
        }
        assert_eq!(told.last().unwrap(), "7: Failed(Malformed)", "{fields:?} {content:?}");
        assert_eq!(pair.frames(), ["RstStream 1 flags 0: [0, 0, 0, 1]"]);
        assert_eq!(pair.head(3, OK, true).unwrap().len(), 2, "the other stream goes on");
    }
}

#[test]
fn responses_to_head_have_no_content() {
    let mut pair = Pair::new(&[]);
    pair.client.begin(7, &request(0, Method::Head));
    let told = pair.head(1, &[(":status", "200"), ("content-length", "5")], true).unwrap();
    assert!(told[1].starts_with("7: Answered"), "{told:?}");
}

#[test]
fn bodies_wait_for_windows() {
    let mut pair = Pair::new(&[(settings::INITIAL_WINDOW_SIZE, 20_000)]);
    pair.begin(7, 50_000);
    assert_eq!(pair.frames()[1..], ["Data 1 flags 0: 16384", "Data 1 flags 0: 3616"]);
    pair.give(|out| window_update::write(1, 1000, out)).unwrap();
    pair.client.write_bodies();
    assert_eq!(pair.frames(), ["Data 1 flags 0: 1000"]);
    // The initial window of streams that exist changes, too.
    pair.give(|out| settings::write(&[(settings::INITIAL_WINDOW_SIZE, 65_000)], out)).unwrap();
    pair.client.write_bodies();
    assert_eq!(pair.frames()[1..], ["Data 1 flags 0: 16384", "Data 1 flags 1: 12616"]);
}

#[test]
fn bodies_share_the_window_of_the_connection_in_turns() {
    let mut pair = Pair::new(&[(settings::INITIAL_WINDOW_SIZE, 1 << 20)]);
    for client in [7, 8] {
        pair.client.begin(client, &request(40_000, Method::Get));
    }
    pair.client.write_bodies();
    let full = 16_384;
    let expected = [(1, full), (3, full), (1, full), (3, 65_535 - 3 * full)];
    let expected = expected.map(|(stream, length)| format!("Data {stream} flags 0: {length}"));
    assert_eq!(pair.frames()[2..], expected);
    pair.give(|out| window_update::write(0, 1 << 20, out)).unwrap();
    pair.client.write_bodies();
    assert_eq!(pair.frames(), ["Data 1 flags 1: 7232", "Data 3 flags 1: 7233"]);
}

#[test]
fn an_answer_before_the_end_of_the_request_cancels_the_rest() {
    let mut pair = Pair::new(&[]);
    pair.begin(7, 100_000);
    pair.frames();
    assert!(pair.head(1, &[(":status", "413")], true).unwrap()[1].starts_with("7: Answered"));
    pair.client.write_bodies();
    assert_eq!(pair.frames(), ["RstStream 1 flags 0: [0, 0, 0, 8]"]);
}

#[test]
fn windows_are_given_back_as_they_are_consumed() {
    let mut pair = Pair::new(&[]);
    pair.begin(7, 0);
    pair.frames();
    pair.head(1, OK, false).unwrap();
    let mut frame = Vec::new();
    data::write(1, &[0; MAX_PAYLOAD], false, &mut frame);
    let some = WINDOW as usize / 8 / MAX_PAYLOAD;
    for _ in 0..some {
        pair.client.receive(&frame, |_, _| {}).unwrap();
    }
    assert!(pair.frames().is_empty(), "before an eighth of it");
    pair.client.receive(&frame, |_, _| {}).unwrap();
    let increment = ((some + 1) * MAX_PAYLOAD) as u32;
    let update = |stream| format!("WindowUpdate {stream} flags 0: {:?}", increment.to_be_bytes());
    assert_eq!(pair.frames(), [update(0), update(1)]);
}

#[test]
fn padding_counts_for_the_windows_and_not_as_content() {
    let mut pair = Pair::new(&[]);
    pair.begin(7, 0);
    pair.head(1, &[(":status", "200"), ("content-length", "2")], false).unwrap();
    let padded = [0, 0, 6, 0, 0x8 | data::END_STREAM, 0, 0, 0, 1, 3, b'h', b'i', 0, 0, 0];
    let told = pair.give(|out| out.extend_from_slice(&padded)).unwrap();
    assert_eq!((told.len(), told[0].as_str()), (2, "7: Body([104, 105])"));
}

#[test]
fn streams_are_limited_by_the_server() {
    let mut client = Connection::new();
    for number in 0..FIRST_STREAMS {
        assert!(client.may_begin(), "{number}");
        client.begin(number, &request(0, Method::Get));
    }
    assert!(!client.may_begin(), "before the SETTINGS of the server");
    let mut pair = Pair::new(&[(settings::MAX_CONCURRENT_STREAMS, 2)]);
    pair.begin_all([7, 8]);
    assert!(!pair.client.may_begin());
    pair.head(1, OK, true).unwrap();
    assert!(pair.client.may_begin());
}

#[test]
fn reset_streams_have_failed_and_refused_ones_are_unprocessed() {
    let mut pair = Pair::new(&[]);
    pair.begin_all([7, 8]);
    let told = pair.give(|out| rst_stream::write(1, ErrorCode::InternalError.number(), out)).unwrap();
    assert_eq!(told, ["7: Failed(Reset)"]);
    assert_eq!(pair.client.take_errors(), ["RST_STREAM: INTERNAL_ERROR"]);
    let told = pair.give(|out| rst_stream::write(3, ErrorCode::RefusedStream.number(), out)).unwrap();
    assert_eq!(told, ["8: Unprocessed"]);
    let late = pair.give(|out| rst_stream::write(3, ErrorCode::NoError.number(), out)).unwrap();
    assert!(late.is_empty() && pair.client.may_begin());
}

#[test]
fn goaway_names_the_last_stream_that_is_processed() {
    let mut pair = Pair::new(&[]);
    pair.begin_all([7, 8, 9]);
    assert!(pair.give(|out| goaway::write(u32::MAX >> 1, 0, "", out)).unwrap().is_empty());
    assert!(pair.client.is_leaving() && !pair.client.may_begin());
    let told = pair.give(|out| goaway::write(1, 0, "", out)).unwrap();
    assert_eq!(told, ["8: Unprocessed", "9: Unprocessed"]);
    assert!(pair.client.take_errors().is_empty(), "leaving is no error");
    pair.give(|out| goaway::write(1, ErrorCode::EnhanceYourCalm.number(), "", out)).unwrap();
    pair.give(|out| goaway::write(1, 99, "", out)).unwrap();
    assert_eq!(pair.client.take_errors(), ["GOAWAY: ENHANCE_YOUR_CALM", "GOAWAY: code 99"]);
    assert_eq!(pair.head(1, OK, true).unwrap().len(), 2);
    assert!(pair.client.is_idle());
}

#[test]
fn a_cancelled_stream_is_reset_and_its_late_response_ignored() {
    let mut pair = Pair::new(&[]);
    pair.begin(7, 0);
    pair.frames();
    pair.client.cancel(1);
    assert_eq!(pair.frames(), ["RstStream 1 flags 0: [0, 0, 0, 8]"]);
    assert!(pair.head(1, &[(":status", "200"), ("x", "enters the table")], false).unwrap().is_empty());
    assert!(pair.give(|out| data::write(1, b"hello", true, out)).unwrap().is_empty());
    pair.begin(8, 0);
    assert_eq!(pair.head(3, &[(":status", "200"), ("x", "enters the table")], true).unwrap().len(), 2);
}

#[test]
fn pings_are_answered() {
    let mut pair = Pair::new(&[]);
    pair.give(|out| ping::write([1; 8], 0, out)).unwrap();
    assert_eq!(pair.frames(), ["Ping 0 flags 1: [1, 1, 1, 1, 1, 1, 1, 1]"]);
    pair.give(|out| ping::write([1; 8], ping::ACK, out)).unwrap();
    assert!(pair.frames().is_empty());
}

#[test]
fn the_table_of_the_server_may_be_smaller() {
    let mut pair = Pair::new(&[(settings::HEADER_TABLE_SIZE, 0)]);
    pair.begin_all([7, 8]);
    assert!(pair.frames()[1].ends_with("x-token=secret"));
}

#[test]
fn broken_rules_end_the_connection() {
    let raw = |kind, stream, payload: &[u8], out: &mut Vec<u8>| {
        out.extend_from_slice(&[0, 0, payload.len() as u8, kind, 0, 0, 0, 0, stream]);
        out.extend_from_slice(payload);
    };
    type Written = Box<dyn Fn(&mut Vec<u8>)>;
    let cases: [(Violation, Written); 9] = [
        (Violation::IdleStream, Box::new(|out| headers::write(3, &[0x88], true, out))),
        (Violation::IdleStream, Box::new(|out| headers::write(2, &[0x88], true, out))),
        (Violation::PushPromise, Box::new(move |out| raw(PUSH_PROMISE, 1, &[0, 0, 0, 2, 0x82], out))),
        (Violation::Compression, Box::new(|out| headers::write(1, &[0x80], true, out))),
        (Violation::ConnectionIncrement, Box::new(|out| window_update::write(0, 0, out))),
        (Violation::ConnectionWindow, Box::new(|out| window_update::write(0, u32::MAX >> 1, out))),
        (Violation::NothingToContinue, Box::new(move |out| raw(0x9, 1, &[0x88], out))),
        (
            Violation::Interleaved,
            Box::new(move |out| {
                raw(0x1, 1, &[0x88], out);
                ping::write([0; 8], 0, out);
            }),
        ),
        (Violation::FrameTooLarge, Box::new(|out| out.extend_from_slice(b"HTTP/1.1 400 Bad Request\r\n"))),
    ];
    for (violation, written) in cases {
        let mut pair = Pair::new(&[]);
        pair.begin(7, 0);
        assert_eq!(pair.give(written), Err(violation));
    }
    let mut fresh = Connection::new();
    let mut ping = Vec::new();
    ping::write([0; 8], 0, &mut ping);
    assert_eq!(fresh.receive(&ping, |_, _| {}), Err(Violation::SettingsExpected));
}
