//! RFC 7541 by its own examples (appendix C), and by the blocks of other encoders.
#![allow(clippy::unwrap_used)] // A test may panic.
use tricorn_proto::http2::hpack::{Decoder, Encoder};

type Fields = Vec<(String, String)>;

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn decode(decoder: &mut Decoder, block: &[u8]) -> Fields {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let mut fields = Vec::new();
    decoder.decode(block, |name, value| fields.push((text(name), text(value)))).unwrap();
    fields
}

fn fields(lines: &[&str]) -> Fields {
    let field =
        |line: &&str| line[1..].split_once(": ").map(|(name, value)| (line[..1].to_string() + name, value.to_string()));
    lines.iter().map(|line| field(line).unwrap()).collect()
}

const FIRST: [&str; 4] = [":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"];
const SECOND: [&str; 5] =
    [":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com", "cache-control: no-cache"];
const THIRD: [&str; 5] =
    [":method: GET", ":scheme: https", ":path: /index.html", ":authority: www.example.com", "custom-key: custom-value"];

#[test]
fn rfc_7541_c_2_representations() {
    for (block, line) in [
        ("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572", "custom-key: custom-header"),
        ("040c 2f73 616d 706c 652f 7061 7468", ":path: /sample/path"),
        ("1008 7061 7373 776f 7264 0673 6563 7265 74", "password: secret"),
        ("82", ":method: GET"),
    ] {
        assert_eq!(decode(&mut Decoder::default(), &unhex(block)), fields(&[line]));
    }
}

#[test]
fn rfc_7541_c_3_and_c_4_requests_of_one_connection() {
    let plain = [
        "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "8286 84be 5808 6e6f 2d63 6163 6865",
        "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
    ];
    let coded = [
        "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff",
        "8286 84be 5886 a8eb 1064 9cbf",
        "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
    ];
    for blocks in [plain, coded] {
        let mut decoder = Decoder::default();
        let decoded = blocks.map(|block| decode(&mut decoder, &unhex(block)));
        assert_eq!(decoded, [fields(&FIRST), fields(&SECOND), fields(&THIRD)]);
    }
}

/// The table has 256 octets there, which a size update can say, too.
#[test]
fn rfc_7541_c_5_and_c_6_responses_with_evictions() {
    let plain = [
        "4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3120 474d \
         546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
        "4803 3330 37c1 c0bf",
    ];
    let coded = [
        "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6 2d1b ff6e 919d 29ad 1718 63c7 \
         8f0b 97c8 e9ae 82ae 43d3",
        "4883 640e ffc1 c0bf",
    ];
    let rest = ["cache-control: private", "date: Mon, 21 Oct 2013 20:13:21 GMT", "location: https://www.example.com"];
    for [first, second] in [plain, coded] {
        let mut decoder = Decoder::default();
        let resized = [&[0x3f, 0xe1, 0x01][..], &unhex(first)].concat();
        assert_eq!(decode(&mut decoder, &resized), fields(&[&[":status: 302"], &rest[..]].concat()));
        assert_eq!(decode(&mut decoder, &unhex(second)), fields(&[&[":status: 307"], &rest[..]].concat()));
        // C.5.2: ":status: 302" was evicted to make room, so there are four entries.
        assert!(decoder.decode(&[0xc2], |_, _| {}).is_err());
    }
}

#[test]
fn blocks_of_other_encoders_are_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpora/hpack");
    let mut blocks = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let story = std::fs::read_to_string(&path).unwrap();
        let (mut decoder, mut encoder, mut second) = (Decoder::default(), Encoder::default(), Decoder::default());
        for case in story.split("block ").skip(1) {
            let (wire, lines) = case.split_once('\n').unwrap();
            let expected = fields(&lines.lines().collect::<Vec<_>>());
            assert_eq!(decode(&mut decoder, &unhex(wire)), expected, "{}", path.display());
            // The same fields through our own encoder.
            let mut block = Vec::new();
            encoder.begin(&mut block);
            expected.iter().for_each(|(name, value)| encoder.field(name.as_bytes(), value.as_bytes(), &mut block));
            assert_eq!(decode(&mut second, &block), expected);
            blocks += 1;
        }
    }
    assert!(blocks > 80, "{blocks}");
}
