//! RFC 9112 sections 2, 6 and 7: where the response ends that an application's own protocol writes.
#![allow(clippy::unwrap_used)] // A test may panic.
use tricorn_proto::http1::response_parser::MAX_HEAD;
use tricorn_proto::http1::{Left, NoResponse, Part, ResponseParser};
use tricorn_proto::message::Method;

/// What came of a response, written in pieces of this size.
#[derive(Debug, Default, PartialEq, Eq)]
struct Read {
    interim: Vec<u16>,
    status: String,
    fields: Vec<(String, String)>,
    body: String,
    tunnel: String,
    ended: bool,
}

fn read_in(parser: &mut ResponseParser, text: &[u8], piece: usize) -> Result<Read, NoResponse> {
    let mut read = Read::default();
    for mut rest in text.chunks(piece) {
        loop {
            let (taken, part) = parser.advance(rest)?;
            let string = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
            match part {
                Part::More => {
                    assert_eq!(taken, rest.len());
                    break;
                }
                Part::Interim(status) => read.interim.push(status),
                Part::Head => {
                    read.status = string(parser.status_line());
                    read.fields = parser.fields().map(|(name, value)| (string(name), string(value))).collect();
                }
                Part::Body(range) => read.body.push_str(&string(&rest[range])),
                Part::Tunnel(range) => read.tunnel.push_str(&string(&rest[range])),
                Part::End => read.ended = true,
            }
            rest = &rest[taken..];
        }
    }
    Ok(read)
}

/// However it is split, the same is read.
fn read(method: Method, text: &str) -> Result<Read, NoResponse> {
    let mut parser = ResponseParser::default();
    parser.begin(method);
    let whole = read_in(&mut parser, text.as_bytes(), text.len());
    for piece in 1..text.len() {
        parser.begin(method);
        assert_eq!(read_in(&mut parser, text.as_bytes(), piece), whole, "in pieces of {piece}");
    }
    whole
}

#[test]
fn a_length_tells_the_end() {
    let found =
        read(Method::Get, "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 5\r\n\r\nhello").unwrap();
    assert_eq!((found.status.as_str(), found.body.as_str(), found.ended), ("200 OK", "hello", true));
    assert_eq!(found.fields[0], ("Content-Type".to_owned(), "text/plain".to_owned()));
    assert!(!read(Method::Get, "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello").unwrap().ended);
}

#[test]
fn chunks_tell_the_end() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    let found =
        read(Method::Get, &format!("{head}5\r\nhello\r\nA;x=1\r\n, world!!!\r\n0\r\nTrailer: x\r\n\r\n")).unwrap();
    assert_eq!((found.body.as_str(), found.ended), ("hello, world!!!", true));
    for (bad, why) in [
        ("5\r\nhello!\r\n", "a chunk that is longer than its size"),
        ("x\r\n", "a chunk without a size"),
        ("\r\n", "a chunk without a size"),
        ("11111111111111111\r\n", "a chunk without a size"),
    ] {
        assert_eq!(read(Method::Get, &format!("{head}{bad}")), Err(NoResponse(why)), "{bad:?}");
    }
}

#[test]
fn the_end_of_the_connection_tells_the_end_where_nothing_else_does() {
    let mut parser = ResponseParser::default();
    parser.begin(Method::Get);
    let found = read_in(&mut parser, b"HTTP/1.0 200 OK\r\n\r\nall that comes", 7).unwrap();
    assert_eq!((found.body.as_str(), found.ended), ("all that comes", false));
    assert_eq!(parser.close(), Left::Complete);
}

#[test]
fn some_responses_have_no_body_whatever_their_fields_say() {
    for (method, status) in
        [(Method::Head, "200 OK"), (Method::Get, "204 No Content"), (Method::Get, "304 Not Modified")]
    {
        for fields in ["", "Content-Length: 5\r\n", "Transfer-Encoding: chunked\r\n"] {
            let found = read(method, &format!("HTTP/1.1 {status}\r\n{fields}\r\n")).unwrap();
            assert!(found.ended, "{status} {fields}");
            assert!(found.body.is_empty());
        }
    }
    assert!(read(Method::Get, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap().ended);
}

#[test]
fn interim_responses_come_before_the_final_one() {
    let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
    let found = read(Method::Get, text).unwrap();
    assert_eq!((found.interim.as_slice(), found.body.as_str(), found.ended), (&[100, 103][..], "ok", true));
}

#[test]
fn a_switch_of_protocols_is_followed_by_bytes_of_the_other() {
    let found =
        read(Method::Get, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n0\r\n\r\nframes").unwrap();
    assert_eq!((found.tunnel.as_str(), found.ended), ("0\r\n\r\nframes", false));
}

#[test]
fn nothing_follows_the_end() {
    for text in [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\nx",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nx",
    ] {
        assert_eq!(read(Method::Get, text), Err(NoResponse("bytes after the end of the response")), "{text:?}");
    }
}

#[test]
#[cfg_attr(miri, ignore = "many bytes: Miri takes minutes")]
fn what_is_no_response_is_told_so() {
    for (text, why) in [
        ("GET / HTTP/1.1\r\n\r\n", "no status line"),
        ("HTTP/2 200 OK\r\n\r\n", "no status line"),
        ("HTTP/1.1 20 OK\r\n\r\n", "no status line"),
        ("HTTP/1.1 2000 OK\r\n\r\n", "no status line"),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "two lengths"),
        ("HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", "a Content-Length that is no number"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", "a Transfer-Encoding other than chunked"),
    ] {
        assert_eq!(read(Method::Get, text), Err(NoResponse(why)), "{text:?}");
    }
    let mut parser = ResponseParser::default();
    parser.begin(Method::Get);
    assert_eq!(parser.advance(&vec![b'x'; MAX_HEAD + 1]), Err(NoResponse("a head without an end")));
}

#[test]
fn a_writer_that_stops_leaves_its_response_somewhere() {
    for (text, left) in [
        ("", Left::Unsaid),
        ("HTTP/1.1 100 Continue\r\n\r\n", Left::Unsaid),
        ("HTTP/1.1 200", Left::Cut),
        ("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\no", Left::Cut),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n", Left::Cut),
        ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx", Left::Complete),
    ] {
        let mut parser = ResponseParser::default();
        parser.begin(Method::Get);
        read_in(&mut parser, text.as_bytes(), 100).unwrap();
        assert_eq!(parser.close(), left, "{text:?}");
    }
}

#[test]
fn a_file_may_go_another_way() {
    let mut parser = ResponseParser::default();
    parser.begin(Method::Get);
    read_in(&mut parser, b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", 100).unwrap();
    assert!(!parser.skip(11));
    assert!(parser.skip(4) && parser.lacks_bytes());
    assert!(parser.skip(6) && !parser.lacks_bytes());
    assert_eq!(parser.advance(b""), Ok((0, Part::End)));
    parser.begin(Method::Get);
    read_in(&mut parser, b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 100).unwrap();
    assert!(!parser.skip(1));
}

#[test]
fn a_head_says_whether_the_connection_persists() {
    for (head, status, persists) in [
        ("HTTP/1.1 200 OK", 200, true),
        ("HTTP/1.1 404 Not Found\r\nConnection: x, Close", 404, false),
        ("HTTP/1.0 200 OK", 200, false),
        ("HTTP/1.0 200 OK\r\nconnection: Keep-Alive", 200, true),
        ("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nConnection: close", 200, false),
    ] {
        let mut parser = ResponseParser::default();
        parser.begin(Method::Get);
        let (_, part) = parser.advance(format!("{head}\r\nContent-Length: 1\r\n\r\n").as_bytes()).unwrap();
        assert_eq!((part, parser.status(), parser.persists()), (Part::Head, Some(status), persists), "{head}");
    }
}

/// All heads with five bytes that matter between the status line and the end, against what the lines say.
#[test]
fn fields_are_those_of_the_lines_whatever_is_between_them() {
    let letters = *b"A: \r\n";
    for number in 0..letters.len().pow(5) {
        let middle: String =
            (0..5).map(|place| letters[number / letters.len().pow(place) % letters.len()] as char).collect();
        let text = format!("HTTP/1.1 204 OK\r\n{middle}\r\n\r\n");
        let end = text.find("\r\n\r\n").unwrap() + 4;
        let lines = text[..end].split('\n').skip(1).map(|line| line.strip_suffix('\r').unwrap_or(line));
        let expected: Vec<_> = lines
            .take_while(|line| !line.is_empty())
            .map(|line| line.split_once(':').unwrap_or((line, "")))
            .map(|(name, value)| (name.to_owned(), value.trim_matches([' ', '\t']).to_owned()))
            .collect();
        let found = read(Method::Get, &text[..end]).unwrap();
        assert_eq!(found.fields, expected, "{text:?}");
        assert!(found.ended, "{text:?}");
    }
}
