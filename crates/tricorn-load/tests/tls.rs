//! Over TLS, against servers of rustls: what is agreed and counted, and how each failure is named.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)]
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, Stream};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;
use tricorn_load::{Outcome, Plan, run};

const HELLO: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello\n";

/// An authority, and files of what it signed.
struct House {
    authority: CertifiedIssuer<'static, KeyPair>,
    folder: PathBuf,
}

struct Pair {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
}

impl House {
    fn new(name: &str) -> House {
        let folder = std::env::temp_dir().join(format!("tricorn-load-{}-{name}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        std::fs::write(folder.join("ca.pem"), authority.pem()).unwrap();
        House { authority, folder }
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).to_str().unwrap().into()
    }

    /// A certificate for a name, and NAME.pem with its key.
    fn pair(&self, name: &str) -> Pair {
        let key = KeyPair::generate().unwrap();
        let signed = CertificateParams::new(vec![name.to_string()]).unwrap().signed_by(&key, &self.authority).unwrap();
        std::fs::write(self.folder.join(format!("{name}.pem")), signed.pem() + &key.serialize_pem()).unwrap();
        Pair { chain: vec![signed.der().clone()], key: PrivatePkcs8KeyDer::from(key.serialize_der()).into() }
    }

    fn config(&self, name: &str, asks: bool) -> ServerConfig {
        let Pair { chain, key } = self.pair(name);
        let builder = ServerConfig::builder();
        let builder = if asks {
            let mut roots = RootCertStore::empty();
            roots.add(self.authority.der().clone()).unwrap();
            builder.with_client_cert_verifier(WebPkiClientVerifier::builder(roots.into()).build().unwrap())
        } else {
            builder.with_no_client_auth()
        };
        let mut config = builder.with_single_cert(chain, key).unwrap();
        config.ticketer = rustls::crypto::aws_lc_rs::Ticketer::new().unwrap();
        config
    }
}

impl Drop for House {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// A thread for each connection; `serve` is given its number, from 0 on. The first one is that of the trial.
fn listen(serve: impl Fn(TcpStream, u64) + Clone + Send + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().map(Result::unwrap).enumerate() {
            let serve = serve.clone();
            thread::spawn(move || serve(stream, number as u64));
        }
    });
    port
}

fn answering(config: ServerConfig, answer: Vec<u8>) -> u16 {
    let config = Arc::new(config);
    listen(move |socket, _| converse(&config, socket, &answer))
}

/// Until the client leaves, or asks for the end of the connection.
fn converse(config: &Arc<ServerConfig>, mut socket: TcpStream, answer: &[u8]) {
    let mut tls = ServerConnection::new(Arc::clone(config)).unwrap();
    let mut stream = Stream::new(&mut tls, &mut socket);
    let (mut head, mut byte) = (Vec::new(), [0]);
    while let Ok(1) = stream.read(&mut byte) {
        head.push(byte[0]);
        if head.ends_with(b"\r\n\r\n") {
            let ends = head.windows(17).any(|some| some == b"Connection: close");
            head.clear();
            if stream.write_all(answer).is_err() || ends {
                break;
            }
        }
    }
    stream.conn.send_close_notify();
    let _ = stream.flush();
}

fn go(port: u16, tls: &str, requests: u64, more: &str) -> Result<Outcome, String> {
    go_as(port, tls, requests, "{\"closed\": {\"connections\": 5}}", more)
}

fn go_as(port: u16, tls: &str, requests: u64, model: &str, more: &str) -> Result<Outcome, String> {
    let target = format!(
        "{{\"address\": {{\"tcp\": [\"127.0.0.1\", {port}]}}, \"host\": \"localhost\", \"path\": \"/\", \
         \"server_name\": \"localhost\"}}"
    );
    let text = format!(
        "{{\"targets\": [{target}], \"model\": {model}, \"bounds\": {{\"requests\": {requests}}}, \"tls\": {tls}{more}}}"
    );
    run(&Plan::from_json(text.as_bytes()).unwrap(), &mut ())
}

const CLOSING: &str = ", \"connection\": {\"keep_alive\": false}";

fn trusting(house: &House) -> String {
    format!("{{\"ca_file\": {:?}}}", house.file("ca.pem"))
}

#[test]
fn connections_are_kept_and_everything_is_counted() {
    let house = House::new("kept");
    let port = answering(house.config("localhost", false), HELLO.into());
    let outcome = go(port, &trusting(&house), 500, "").unwrap();
    assert_eq!((outcome.sent, outcome.answered, outcome.errors.len()), (500, 500, 0));
    assert_eq!((outcome.bytes.received, outcome.bytes.body), (500 * HELLO.len() as u64, 500 * 6));
    let tls = outcome.tls.unwrap();
    assert_eq!((outcome.rest.opened, tls.full.count + tls.resumed.count), (5, 5));
    assert_eq!(
        (tls.versions["TLSv1.3"], tls.suites["TLS_AES_256_GCM_SHA384"], tls.groups["X25519MLKEM768"]),
        (5, 5, 5)
    );
    assert!(tls.full.latency["p50"] > 0.0 && tls.full.latency["p50"] <= tls.full.latency["p99"]);
}

#[test]
fn a_connection_for_each_request_resumes() {
    let house = House::new("resumed");
    let port = answering(house.config("localhost", false), HELLO.into());
    for (more, version) in [("", "TLSv1.3"), (", \"max\": \"1.2\"", "TLSv1.2")] {
        let tls = format!("{{\"ca_file\": {:?}{more}}}", house.file("ca.pem"));
        let outcome = go(port, &tls, 400, CLOSING).unwrap();
        assert_eq!((outcome.answered, outcome.rest.opened, outcome.errors.len()), (400, 400, 0));
        let tls = outcome.tls.unwrap();
        assert_eq!(tls.full.count + tls.resumed.count, 400);
        assert!((1..=10).contains(&tls.full.count), "{tls:?}");
        assert_eq!(tls.versions[version], 400);
        assert!(tls.resumed.latency["p50"] > 0.0);
    }
    let tls = format!("{{\"ca_file\": {:?}, \"resumes\": false}}", house.file("ca.pem"));
    assert_eq!(go(port, &tls, 50, CLOSING).unwrap().tls.unwrap().full.count, 50);
}

#[test]
fn the_ends_of_answers_are_those_of_http_and_of_tls() {
    let house = House::new("ends");
    let long = vec![b'x'; 3_000_000];
    let mut answer = b"HTTP/1.1 200 OK\r\nContent-Length: 3000000\r\n\r\n".to_vec();
    answer.extend_from_slice(&long);
    let outcome = go(answering(house.config("localhost", false), answer), &trusting(&house), 20, "").unwrap();
    assert_eq!((outcome.answered, outcome.bytes.body, outcome.rest.opened), (20, 60_000_000, 5));
    let mut until_close = b"HTTP/1.1 200 OK\r\n\r\n".to_vec();
    until_close.extend_from_slice(&long);
    let outcome = go(answering(house.config("localhost", false), until_close), &trusting(&house), 20, CLOSING).unwrap();
    assert_eq!((outcome.answered, outcome.bytes.body, outcome.errors.len()), (20, 60_000_000, 0));
}

#[test]
fn an_end_that_tls_tells_needs_none_of_tcp() {
    let house = House::new("notified");
    let config = Arc::new(house.config("localhost", false));
    let port = listen(move |mut socket, _| {
        converse(&config, socket.try_clone().unwrap(), b"HTTP/1.1 200 OK\r\n\r\nuntil the end");
        while let Ok(1..) = socket.read(&mut [0; 4096]) {}
    });
    let outcome = go(port, &trusting(&house), 10, CLOSING).unwrap();
    assert_eq!((outcome.answered, outcome.bytes.body, outcome.errors.len()), (10, 130, 0));
}

#[test]
fn what_tls_says_between_requests_ends_no_connection() {
    let house = House::new("resting");
    let config = Arc::new(house.config("localhost", false));
    let port = listen(move |mut socket, _| {
        let mut tls = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut stream = Stream::new(&mut tls, &mut socket);
        let mut byte = [0];
        let mut head = Vec::new();
        while let Ok(1) = stream.read(&mut byte) {
            head.push(byte[0]);
            if head.ends_with(b"\r\n\r\n") {
                head.clear();
                stream.write_all(HELLO).unwrap();
                // Apart from the answer, while the client rests.
                thread::sleep(Duration::from_millis(20));
                stream.conn.refresh_traffic_keys().unwrap();
                stream.flush().unwrap();
            }
        }
    });
    let outcome = go_as(port, &trusting(&house), 6, "{\"closed\": {\"connections\": 2, \"pace\": 10}}", "").unwrap();
    assert_eq!((outcome.answered, outcome.rest.opened, outcome.rest.retried), (6, 2, 0));
}

#[test]
fn a_body_longer_than_the_sockets_buffers_goes_out() {
    let house = House::new("upload");
    let config = Arc::new(house.config("localhost", false));
    let received: Arc<AtomicU64> = Arc::default();
    let count = Arc::clone(&received);
    let port = listen(move |mut socket, _| {
        let mut tls = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut stream = Stream::new(&mut tls, &mut socket);
        let (mut all, mut buffer) = (Vec::new(), vec![0; 65536]);
        while let Ok(length @ 1..) = stream.read(&mut buffer) {
            all.extend_from_slice(&buffer[..length]);
            let head = all.windows(4).position(|four| four == b"\r\n\r\n").map_or(usize::MAX, |at| at + 4);
            if all.len() >= head.saturating_add(6_000_000) {
                count.fetch_add((all.len() - head) as u64, Ordering::SeqCst);
                all.clear();
                stream.write_all(HELLO).unwrap();
            }
        }
    });
    use base64::Engine as _;
    let body = base64::engine::general_purpose::STANDARD.encode(vec![b'u'; 6_000_000]);
    let more = format!(", \"request\": {{\"method\": \"POST\", \"body\": {body:?}}}");
    let outcome = go(port, &trusting(&house), 10, &more).unwrap();
    assert_eq!((outcome.answered, outcome.errors.len()), (10, 0));
    assert_eq!(received.load(Ordering::SeqCst), 60_000_000);
}

#[test]
fn whom_it_trusts() {
    let (house, other) = (House::new("trusted"), House::new("other"));
    let port = answering(house.config("localhost", false), HELLO.into());
    let refused = go(port, &trusting(&other), 5, "").unwrap_err();
    assert!(
        refused.starts_with(
            "https://localhost: the certificate of the server is refused: no authority that is trusted here has signed \
             it. Name the file of its authority (--cacert FILE)"
        ),
        "{refused}"
    );
    go(port, "{\"verify\": false}", 5, "").unwrap();
    let itself = format!("{{\"ca_file\": {:?}}}", house.file("localhost.pem"));
    go(port, &itself, 5, "").unwrap();
    let port = answering(house.config("elsewhere", false), HELLO.into());
    for file in ["ca.pem", "elsewhere.pem"] {
        let misnamed = go(port, &format!("{{\"ca_file\": {:?}}}", house.file(file)), 5, "").unwrap_err();
        assert!(misnamed.contains("certificate not valid for name \"localhost\""), "{misnamed}");
    }
}

#[test]
fn who_we_are() {
    let house = House::new("mutual");
    let port = answering(house.config("localhost", true), HELLO.into());
    house.pair("client");
    let ours = format!("{{\"ca_file\": {:?}, \"cert_file\": {:?}}}", house.file("ca.pem"), house.file("client.pem"));
    let outcome = go(port, &ours, 50, CLOSING).unwrap();
    assert_eq!((outcome.answered, outcome.errors.len()), (50, 0));
    // With TLS 1.3 the server refuses a client after the client has all of the handshake.
    let outcome = go(port, &trusting(&house), 10, CLOSING).unwrap();
    assert_eq!((outcome.answered, outcome.errors.get("alert")), (0, Some(&10)));
    assert_eq!(outcome.tls.unwrap().reasons.get("the alert CertificateRequired"), 10);
    let old = format!("{{\"ca_file\": {:?}, \"max\": \"1.2\"}}", house.file("ca.pem"));
    let refused = go(port, &old, 5, "").unwrap_err();
    assert!(refused.starts_with("https://localhost: the server refused the handshake with the alert"), "{refused}");
}

#[test]
fn what_speaks_no_tls_and_what_says_nothing() {
    let port = listen(|mut socket, _| {
        let _ = socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n");
        let _ = socket.read(&mut [0; 4096]);
    });
    let refused = go(port, "{\"verify\": false}", 5, "").unwrap_err();
    assert!(refused.contains("what the server answers is no TLS") && refused.contains("plain HTTP"), "{refused}");
    let silent = listen(|mut socket, _| while let Ok(1..) = socket.read(&mut [0; 4096]) {});
    let outcome = go(silent, "{\"verify\": false}", 5, ", \"connection\": {\"timeout\": 0.3}").unwrap();
    assert_eq!((outcome.answered, outcome.errors.get("handshake")), (0, Some(&5)));
    let leaving = listen(|mut socket, _| drop(socket.read(&mut [0; 4096])));
    let refused = go(leaving, "{\"verify\": false}", 5, "").unwrap_err();
    assert_eq!(refused, "https://localhost: the server closed the connection during the handshake of TLS");
}

#[test]
fn failures_of_the_run_itself_are_counted_by_kind() {
    let (house, other) = (House::new("early"), House::new("late"));
    let (early, late) = (Arc::new(house.config("localhost", false)), Arc::new(other.config("localhost", false)));
    let port = listen(move |socket, number| converse(if number == 0 { &early } else { &late }, socket, HELLO));
    let outcome = go(port, &trusting(&house), 8, "").unwrap();
    assert_eq!((outcome.answered, outcome.errors.get("certificate")), (0, Some(&8)));
    assert_eq!(outcome.tls.unwrap().reasons.get("UnknownIssuer"), 8);
    let early = Arc::new(house.config("localhost", false));
    let port = listen(move |mut socket, number| match number {
        0 => converse(&early, socket, HELLO),
        _ => drop(socket.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").and_then(|()| socket.read(&mut [0; 4096]))),
    });
    let outcome = go(port, &trusting(&house), 8, "").unwrap();
    assert_eq!((outcome.answered, outcome.errors.get("tls")), (0, Some(&8)));
}

const HTTP2: &str = ", \"http2\": {\"streams\": 1}";

#[test]
fn http2_is_agreed_by_alpn() {
    let house = House::new("alpn");
    // SETTINGS, and `:status: 200` with END_STREAM for each of the streams.
    let answer = [
        &[0, 0, 0, 4, 0, 0, 0, 0, 0][..],
        &[0, 0, 1, 1, 5, 0, 0, 0, 1, 0x88],
        &[0, 0, 1, 1, 5, 0, 0, 0, 3, 0x88],
        &[0, 0, 1, 1, 5, 0, 0, 0, 5, 0x88],
    ];
    let mut config = house.config("localhost", false);
    config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let config = Arc::new(config);
    let port = listen(move |mut socket, _| {
        let mut tls = ServerConnection::new(Arc::clone(&config)).unwrap();
        let mut stream = Stream::new(&mut tls, &mut socket);
        let mut preface = [0; 24];
        let is_begun = stream.read_exact(&mut preface).is_ok();
        // The rest comes with the first request.
        if is_begun && stream.read(&mut [0; 4096]).is_ok() && stream.write_all(&answer[..1].concat()).is_ok() {
            for answer in &answer[1..] {
                let _ = stream.write_all(answer);
                let _ = stream.read(&mut [0; 4096]);
            }
        }
    });
    let model = "{\"closed\": {\"connections\": 1}}";
    let outcome = go_as(port, &trusting(&house), 3, model, HTTP2).unwrap();
    assert_eq!((outcome.answered, outcome.rest.opened, outcome.errors.len()), (3, 1, 0));
    assert_eq!(outcome.tls.unwrap().versions["TLSv1.3"], 1);
}

#[test]
fn a_server_without_http2_is_an_error() {
    let house = House::new("http1");
    for (protocols, selected) in [
        (vec![], "it selected no protocol by ALPN. Enable HTTP/2 there"),
        (
            vec![b"http/1.1".to_vec()],
            "it refused the handshake with the alert NoApplicationProtocol. Enable HTTP/2 there",
        ),
    ] {
        let mut config = house.config("localhost", false);
        config.alpn_protocols = protocols;
        let error = go(answering(config, HELLO.into()), &trusting(&house), 10, HTTP2).unwrap_err();
        let expected = format!("https://localhost: the server does not agree to HTTP/2: {selected}");
        assert!(error.starts_with(&expected), "{error}");
    }
}
