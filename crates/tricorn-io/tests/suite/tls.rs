//! TLS over real sockets: what is served over plain ones is served, and what is wrong is told.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::hub::HubServer;
use harness::tls::*;
use harness::*;
use rustls::version::{TLS12, TLS13};
use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use tricorn_io::tls::{ClientCertificates, Reason};
use tricorn_io::{Config, Engine, Exchange, IsLast, Sent};
use tricorn_proto::message::Scheme;

/// More than the sockets of the loopback hold.
const BIG: usize = 8 << 20;

fn echo(engine: &Engine, exchange: &mut Exchange) {
    let (body, _) = body_of(exchange);
    let path = path(exchange);
    let body = if body.is_empty() { path.into_bytes() } else { body };
    answer(engine, exchange, &body);
}

#[test]
fn requests_follow_one_another_by_each_version() {
    for version in [&TLS12, &TLS13] {
        let world = World::new();
        let server = Server::start(world.secure(config()), |engine, exchange| {
            assert_eq!(exchange.request.head.scheme, Scheme::Https);
            let facts = exchange.facts().expect("it came by TLS").clone();
            let text = format!("{} {} {:?} {:?}", facts.version_name(), facts.cipher(), facts.name, facts.alpn);
            answer(engine, exchange, text.as_bytes());
        });
        let mut client = connect(server.address, Arc::new(world.of_version(version)), "localhost");
        let expected = match version.version == TLS12.version {
            true => "TLSv1.2 ECDHE-ECDSA-AES256-GCM-SHA384 Some(\"localhost\") None",
            false => "TLSv1.3 TLS_AES_256_GCM_SHA384 Some(\"localhost\") None",
        };
        for _ in 0..3 {
            assert_eq!(String::from_utf8_lossy(&client.get("/").body), expected);
        }
        client.send(&[request("/a"), request("/b"), request("/c")].concat().into_bytes());
        (0..3).for_each(|_| assert_eq!(client.response().status, 200));
        assert_eq!((server.get(Word::Accepted), server.get(Word::TlsFull), server.get(Word::TlsHandshakes)), (1, 1, 0));
    }
}

#[test]
fn bodies_pass_both_ways_whole() {
    for streaming in [false, true] {
        let world = World::new();
        let server = Server::start(
            world.secure(Config { body_buffer_size: 1 << 20, streaming, ..config() }),
            move |engine, exchange| {
                let mut body = body_of(exchange).0;
                while exchange.is_partial() {
                    match exchange.receive(engine.config(), &mut body) {
                        tricorn_io::Incoming::Bytes { .. } => {}
                        tricorn_io::Incoming::Wait => {
                            engine.wait_for_bytes(exchange.slot(), socket(exchange), SECOND);
                        }
                        other => panic!("{other:?}"),
                    }
                }
                answer(engine, exchange, &body);
            },
        );
        let mut client = world.connect(&server);
        for length in [1, 16_383, 16_385, 100_000, BIG] {
            let body = noise(length);
            client.post("/", &body);
            assert!(client.response().body == body, "{length} bytes, streaming: {streaming}");
        }
    }
}

#[test]
fn a_piece_of_a_body_joins_records() {
    let world = World::new();
    let (sent, is_sent) = std::sync::mpsc::channel();
    let (called, is_called) = std::sync::mpsc::channel();
    let is_sent = std::sync::Mutex::new(is_sent);
    let server = Server::start(world.secure(Config { streaming: true, ..config() }), move |engine, exchange| {
        called.send(()).expect("a test");
        let count = is_sent.lock().expect("a test").recv().expect("a client");
        until_unread(exchange, count);
        let mut piece = Vec::new();
        let incoming = exchange.receive(engine.config(), &mut piece);
        assert!(matches!(incoming, tricorn_io::Incoming::Bytes { last: true }), "{incoming:?}");
        answer(engine, exchange, &piece);
    });
    let mut client = world.connect(&server);
    for chunked in [false, true] {
        let (framing, body) = match chunked {
            true => ("Transfer-Encoding: chunked", [b"4e20\r\n", noise(20_000).as_slice(), b"\r\n0\r\n\r\n"].concat()),
            false => ("Content-Length: 20000", noise(20_000)),
        };
        client.send(format!("POST / HTTP/1.1\r\nHost: h\r\n{framing}\r\n\r\n").as_bytes());
        is_called.recv().expect("a server");
        body.chunks(7_000).for_each(|record| client.send(record));
        sent.send(body.len()).expect("a server");
        assert!(client.response().body == noise(20_000), "chunked: {chunked}");
    }
}

#[test]
fn what_comes_byte_by_byte_is_read() {
    let world = World::new();
    let server = Server::start(world.secure(config()), echo);
    let mut client = world.connect(&server);
    let stream = &mut client.stream;
    let trickle = |stream: &mut rustls::StreamOwned<rustls::ClientConnection, TcpStream>| {
        let mut records = Vec::new();
        while stream.conn.wants_write() {
            stream.conn.write_tls(&mut records).expect("memory");
        }
        records.iter().for_each(|byte| stream.sock.write_all(&[*byte]).expect("a server that reads"));
    };
    while stream.conn.is_handshaking() {
        trickle(stream);
        while stream.conn.is_handshaking() && !stream.conn.wants_write() {
            stream.conn.read_tls(&mut stream.sock).expect("an answer");
            stream.conn.process_new_packets().expect("a handshake");
        }
    }
    stream.conn.writer().write_all(request("/slow").as_bytes()).expect("memory");
    trickle(stream);
    assert_eq!(client.response().body, b"/slow");
}

#[test]
fn a_slow_reader_gets_all_of_a_stream_of_pieces() {
    let world = World::new();
    let server = Server::start(world.secure(config()), |engine, exchange| {
        for piece in noise(BIG).chunks(50_000) {
            assert_ne!(write(engine, exchange, piece), Sent::Gone);
        }
        exchange.end();
    });
    let mut client = world.connect(&server);
    client.ask("/");
    server.until(Word::InFlight, 1);
    assert!(client.response().body == noise(BIG));
    assert_eq!(client.get("/").status, 200, "the connection is kept");
}

#[test]
fn a_reply_that_the_client_does_not_take_is_sent_by_the_reactor() {
    let world = World::new();
    let body = Arc::new(noise(BIG));
    let kept = body.clone();
    let server = Server::start(world.secure(config()), move |engine, exchange| {
        let bytes = if path(exchange) == "/big" { &kept[..] } else { b"small" };
        answer(engine, exchange, bytes);
    });
    let mut client = world.connect(&server);
    client.ask("/big");
    server.until(Word::Requests, 1);
    assert_eq!(world.connect(&server).get("/").body, b"small");
    assert!(client.response().body == *body);
    assert_eq!(client.get("/").body, b"small");
    until("the memory is given back", || server.spent() == 1);
}

#[test]
fn a_file_is_sent_whole() {
    let world = World::new();
    let server = Server::start(world.secure(config()), |engine, exchange| {
        let file = rustix::fs::memfd_create("test", rustix::fs::MemfdFlags::CLOEXEC).expect("memory");
        let mut file = std::fs::File::from(file);
        file.write_all(&noise(BIG)).expect("memory");
        exchange.request.reply.status(b"200 OK").expect("a status");
        let wall = exchange.wall.clone();
        let inputs = tricorn_proto::response::HeadInputs { date: wall.date(), server: b"", ..Default::default() };
        engine.write_file(exchange, &inputs, file.into(), (0, BIG as u64), IsLast::Yes);
        exchange.end();
    });
    let mut client = world.connect(&server);
    for _ in 0..2 {
        assert!(client.get("/").body == noise(BIG));
    }
}

#[test]
fn a_client_that_has_said_goodbye_gets_its_answer_and_the_connection_ends() {
    let world = World::new();
    let server = Server::start(world.secure(config()), echo);
    let mut client = world.connect(&server);
    client.stream.write_all(request("/last").as_bytes()).expect("a server that reads");
    client.stream.conn.send_close_notify();
    client.stream.flush().expect("a server that reads");
    assert_eq!(client.response().body, b"/last");
    client.is_closed();
}

#[test]
fn the_end_of_a_connection_is_said() {
    let world = World::new();
    let server = Server::start(world.secure(Config { keepalive: 0, ..config() }), echo);
    let mut client = world.connect(&server);
    assert!(client.get("/").closes());
    client.is_closed(); // rustls makes an error of an end without close_notify
    let config = world.secure(Config { keepalive: 100 * MILLI, ..config() });
    let server = Server::start(config, echo);
    let mut client = world.connect(&server);
    assert!(!client.get("/").closes());
    client.is_closed();
    assert_eq!(server.get(Word::IdleCloses), 1);
}

#[test]
fn a_silent_client_has_the_time_of_a_handshake() {
    let world = World::new();
    let mut config = world.secure(config());
    config.tls.as_mut().expect("it has TLS").handshake_timeout = 200 * MILLI;
    let server = Server::start(config, echo);
    server.connect().is_closed();
    server.until_failed(Reason::Timeout, 1);
    server.until(Word::TlsHandshakes, 0);
    server.until(Word::Connections, 0);
    let mut slow = world.connect(&server);
    slow.stream.conn.write_tls(&mut slow.stream.sock).expect("a server that reads");
    let mut rest = Vec::new();
    let _ = slow.stream.sock.read_to_end(&mut rest);
    assert_eq!(
        (server.failed(Reason::Timeout), server.get(Word::TlsFull)),
        (2, 0),
        "the deadline is one for all of it"
    );
}

#[test]
fn a_late_request_is_answered_by_the_monitor() {
    let gate = Gate::default();
    let held = gate.clone();
    let world = World::new();
    let config = Config { request_timeout: 100 * MILLI, ..config() };
    let server = Server::start(world.secure(config), move |engine, exchange| {
        held.pass();
        answer(engine, exchange, b"too late");
    });
    let mut client = world.connect(&server);
    let late = client.get("/");
    assert_eq!((late.status, late.closes()), (504, true));
    gate.open(1);
    client.is_closed();
}

#[test]
fn plain_http_is_refused_in_words() {
    let world = World::new();
    let server = Server::start(world.secure(config()), echo);
    let mut client = server.connect();
    let refused = client.get("/path");
    assert_eq!(refused.status, 400);
    assert!(String::from_utf8_lossy(&refused.body).contains("The plain HTTP request was sent to HTTPS port"));
    client.stream.shutdown(Shutdown::Write).expect("a socket");
    client.is_closed();
    server.until_failed(Reason::Plain, 1);
    let mut config = world.secure(harness::config());
    config.tls.as_mut().expect("it has TLS").redirect = true;
    let server = Server::start(config, echo);
    for target in ["/path?q=1", "http://localhost/path?q=1"] {
        let moved = server.connect().get(target);
        assert_eq!(moved.status, 308);
        assert!(moved.head.contains("\r\nLocation: https://localhost/path?q=1\r\n"), "{}", moved.head);
    }
}

#[test]
fn what_is_neither_is_closed() {
    let world = World::new();
    let server = Server::start(world.secure(config()), echo);
    for bytes in [&b"\x80\x2e\x01\x00\x02"[..], b"\0\0\0\0", b"\xff"] {
        let mut client = server.connect();
        client.send(bytes);
        client.is_closed();
    }
    server.until(Word::Connections, 0);
    server.until_failed(Reason::Garbage, 3);
    let mut client = server.connect();
    client.send(b"\x16\x03\x01\x00\x05\x01\0\0\x01\xff");
    assert_eq!(client.rest().first(), Some(&21), "an alert");
    assert_eq!(world.connect(&server).get("/").status, 200);
}

/// What the server shows to a client that asks for this name, and signs with.
fn shown(server: &Server, config: rustls::ClientConfig, name: &str) -> Result<String, String> {
    let mut config = config;
    config.enable_sni = !name.is_empty();
    let name = if name.is_empty() { "localhost" } else { name };
    let mut client = connect(server.address, Arc::new(config), name);
    shake(&mut client)?;
    Ok(String::from_utf8_lossy(&client.get("/").body).into_owned())
}

/// Tells the name that was asked for, and the common name of what was shown.
fn tell_shown(engine: &Engine, exchange: &mut Exchange) {
    let facts = exchange.facts().expect("it came by TLS").clone();
    let own = facts.own.as_deref().expect("it is a full handshake");
    let own = tricorn_proto::peer::x509::Certificate::parse(own).expect("a certificate");
    let name = own.subject.common_name().expect("a name");
    answer(engine, exchange, format!("{name} {}", facts.name.as_deref().unwrap_or("-")).as_bytes());
}

#[test]
fn the_certificate_is_that_of_the_name_and_of_what_the_client_can_verify() {
    let world = World::with(|authority, bundle| {
        bundle.certificates = vec![
            authority.server(&["localhost"]),
            authority.rsa(&["a.example", "*.b.example"]),
            tricorn_io::tls::Identity { label: "ec".into(), ..authority.client("ec") },
        ];
        bundle.certificates[2] = authority.server(&["a.example"]);
    });
    let server = Server::start(world.secure(config()), tell_shown);
    assert_eq!(shown(&server, world.client(), "localhost").as_deref(), Ok("server localhost"));
    assert_eq!(shown(&server, world.client(), "").as_deref(), Ok("server -"), "the first");
    assert_eq!(shown(&server, world.client(), "a.example").as_deref(), Ok("server a.example"), "ECDSA before RSA");
    assert_eq!(shown(&server, world.client(), "x.b.example").as_deref(), Ok("rsa x.b.example"));
    assert!(shown(&server, world.client(), "x.y.b.example").is_err(), "a wildcard is one label: it is shown the first");
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.cipher_suites.retain(|suite| suite.suite().as_str().is_some_and(|name| name.contains("_RSA_")));
    let rsa_only = rustls::ClientConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(&[&TLS12])
        .expect("a version")
        .with_root_certificates(world.roots())
        .with_no_client_auth();
    assert_eq!(shown(&server, rsa_only, "a.example").as_deref(), Ok("rsa a.example"));
}

#[test]
fn a_client_without_a_known_name_is_refused_where_names_are_required() {
    let world = World::with(|_, bundle| bundle.require_sni = true);
    let server = Server::start(world.secure(config()), tell_shown);
    for name in ["", "unknown.test"] {
        let error = shown(&server, world.client(), name).expect_err("it is refused");
        assert!(error.contains("UnrecognisedName"), "{error}");
    }
    server.until_failed(Reason::Name, 2);
    assert_eq!(shown(&server, world.client(), "x.site.example").as_deref(), Ok("server x.site.example"));
}

#[test]
fn a_protocol_is_agreed_or_refused() {
    let world = World::new();
    let server = Server::start(world.secure(config()), echo);
    let of = |protocols: &[&str]| {
        let mut config = world.client();
        config.alpn_protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        let mut client = connect(server.address, Arc::new(config), "localhost");
        shake(&mut client).map(|()| client.stream.conn.alpn_protocol().map(<[u8]>::to_vec))
    };
    assert_eq!(of(&["h2", "http/1.1"]), Ok(Some(b"http/1.1".to_vec())));
    assert_eq!(of(&[]), Ok(None), "HTTP/1.1 by default");
    assert!(of(&["h2"]).is_err_and(|error| error.contains("NoApplicationProtocol")));
    server.until_failed(Reason::Protocol, 1);
}

#[test]
fn an_old_version_and_a_foreign_suite_are_refused_with_an_alert() {
    let world = World::with(|_, bundle| {
        bundle.min_version = tricorn_io::tls::Version::Tls13;
        bundle.suites = Some(vec!["TLS_AES_128_GCM_SHA256".into()]);
    });
    let server = Server::start(world.secure(config()), echo);
    let mut old = connect(server.address, Arc::new(world.of_version(&TLS12)), "localhost");
    assert!(shake(&mut old).is_err_and(|error| error.contains("ProtocolVersion")));
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    provider.cipher_suites.retain(|suite| suite.suite() == rustls::CipherSuite::TLS13_CHACHA20_POLY1305_SHA256);
    let foreign = rustls::ClientConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(world.roots())
        .with_no_client_auth();
    assert!(shake(&mut connect(server.address, Arc::new(foreign), "localhost")).is_err());
    server.until_failed(Reason::Version, 1);
    server.until_failed(Reason::Cipher, 1);
    assert_eq!(world.connect(&server).get("/").status, 200);
}

#[test]
fn tls_on_a_plain_door_is_answered_with_an_alert() {
    let world = World::new();
    let server = Server::start(config(), echo);
    for _ in 0..2 {
        let error = shake(&mut world.connect(&server)).expect_err("there is no TLS");
        assert!(error.contains("ProtocolVersion"), "{error}");
    }
    assert_eq!(server.get(Word::Refused), 2);
    server.connect().get("/");
    let told = || server.notices().iter().filter(|notice| notice.text.contains("is certfile missing?")).count();
    until("it is told", || told() > 0);
    assert_eq!(told(), 1, "once a minute");
}

/// Tells who the client is.
fn tell_client(engine: &Engine, exchange: &mut Exchange) {
    let facts = exchange.facts().expect("it came by TLS").clone();
    let told = facts.chain.first().map(|der| {
        let client = tricorn_proto::peer::x509::Certificate::parse(der).expect("a certificate");
        format!("{} {} {}", client.subject.text(), client.issuer.text(), client.serial_text())
    });
    let resumed = if facts.is_resumed { " again" } else { "" };
    answer(engine, exchange, format!("{}{resumed}", told.as_deref().unwrap_or("-")).as_bytes());
}

fn with_clients(mode: ClientCertificates) -> World {
    World::with(|authority, bundle| {
        bundle.client_certificates = mode;
        bundle.ca = Some(authority.pem.clone().into_bytes());
    })
}

/// What a client is answered; the error is the server's alert.
fn asked(server: &Server, config: rustls::ClientConfig) -> Result<String, String> {
    let mut client = connect(server.address, Arc::new(config), "localhost");
    shake(&mut client)?;
    client.stream.write_all(request("/").as_bytes()).map_err(|error| error.to_string())?;
    // In TLS 1.3 a client is done before the server has seen its certificate.
    let mut first = [0];
    client.stream.conn.complete_io(&mut client.stream.sock).map_err(|error| error.to_string())?;
    match client.stream.read(&mut first) {
        Ok(1) => {}
        other => return Err(format!("{other:?}")),
    }
    let response = client.response_after(&first);
    Ok(String::from_utf8_lossy(&response.body).into_owned())
}

#[test]
fn a_client_shows_its_certificate_where_it_must() {
    let world = with_clients(ClientCertificates::Required);
    let server = Server::start(world.secure(config()), tell_client);
    let alice = world.authority.client("alice");
    assert_eq!(asked(&server, world.client_with(&alice)).as_deref(), Ok("CN=alice CN=Authority 4D"));
    let error = asked(&server, world.client()).expect_err("it shows none");
    assert!(error.contains("CertificateRequired"), "{error}");
    let stranger = Authority::new().client("mallory");
    let error = asked(&server, world.client_with(&stranger)).expect_err("its issuer is unknown");
    assert!(
        error.contains("UnknownCA") || error.contains("DecryptError") || error.contains("BadCertificate"),
        "{error}"
    );
    server.until_failed(Reason::Certificate, 2);
    asked(&server, world.client_with(&alice)).expect("it is let in");
    let told: Vec<_> = server.notices().into_iter().filter(|notice| notice.warning).map(|notice| notice.text).collect();
    assert!(told.iter().any(|text| text.ends_with("failed: it showed no certificate")), "{told:?}");
}

#[test]
fn a_client_may_show_a_certificate_but_no_wrong_one() {
    let world = with_clients(ClientCertificates::Optional);
    let server = Server::start(world.secure(config()), tell_client);
    assert_eq!(asked(&server, world.client()).as_deref(), Ok("-"));
    let alice = world.authority.client("alice");
    assert_eq!(asked(&server, world.client_with(&alice)).as_deref(), Ok("CN=alice CN=Authority 4D"));
    assert!(asked(&server, world.client_with(&Authority::new().client("mallory"))).is_err());
    server.until_failed(Reason::Certificate, 1);
}

#[test]
fn a_revoked_certificate_is_refused_as_soon_as_the_list_is_published() {
    let world = with_clients(ClientCertificates::Required);
    let server = Server::start(world.secure(config()), tell_client);
    let alice = world.authority.client("alice");
    assert!(asked(&server, world.client_with(&alice)).is_ok());
    let mut bundle = tricorn_io::tls::Bundle::decode(&world.page.read().expect("a bundle").1).expect("a bundle");
    bundle.crls = vec![world.authority.revoke(SERIAL).into_bytes()];
    tricorn_io::tls::publish(&world.page, &bundle).expect("it is right");
    let error = asked(&server, world.client_with(&alice)).expect_err("it was revoked");
    assert!(error.contains("CertificateRevoked"), "{error}");
    bundle.crls = vec![world.authority.revoke(SERIAL + 1).into_bytes()];
    tricorn_io::tls::publish(&world.page, &bundle).expect("it is right");
    assert!(asked(&server, world.client_with(&alice)).is_ok(), "another one was");
}

#[test]
fn a_session_is_resumed_by_any_worker_and_by_no_other_rules() {
    for version in [&TLS12, &TLS13] {
        let world = World::with(|_, bundle| {
            bundle.ticket_keys = vec![[7; 32]];
            bundle.ticket_lifetime = 3600;
        });
        let (first, second) =
            (Server::start(world.secure(config()), tell_client), Server::start(world.secure(config()), tell_client));
        let client = Arc::new(world.of_version(version));
        let ask = |server: &Server| {
            let mut client = connect(server.address, client.clone(), "localhost");
            String::from_utf8_lossy(&client.get("/").body).into_owned()
        };
        assert_eq!((ask(&first), ask(&second), ask(&first)), ("-".into(), "- again".into(), "- again".into()));
        assert_eq!((first.get(Word::TlsFull), first.get(Word::TlsResumed), second.get(Word::TlsResumed)), (1, 1, 1));
        let mut bundle = tricorn_io::tls::Bundle::decode(&world.page.read().expect("a bundle").1).expect("a bundle");
        bundle.ticket_keys.insert(0, [8; 32]);
        tricorn_io::tls::publish(&world.page, &bundle).expect("it is right");
        assert_eq!(ask(&second), "- again", "the key before opens still");
        bundle.ticket_keys = vec![[9; 32]];
        tricorn_io::tls::publish(&world.page, &bundle).expect("it is right");
        assert_eq!(ask(&second), "-", "its key is gone");
        bundle.client_certificates = ClientCertificates::Optional;
        bundle.ca = Some(world.authority.pem.clone().into_bytes());
        tricorn_io::tls::publish(&world.page, &bundle).expect("it is right");
        assert_eq!(ask(&second), "-", "clients are verified in another way by now");
    }
}

#[test]
fn new_certificates_are_shown_to_the_next_client_and_wrong_ones_change_nothing() {
    let world = World::new();
    let server = Server::start(world.secure(config()), tell_shown);
    let mut kept = world.connect(&server);
    assert_eq!(kept.get("/").body, b"server localhost");
    let bundle = tricorn_io::tls::Bundle {
        certificates: vec![world.authority.rsa(&["localhost"])],
        ..tricorn_io::tls::Bundle::default()
    };
    tricorn_io::tls::publish(&world.page, &bundle).expect("it is right");
    assert_eq!(shown(&server, world.client(), "localhost").as_deref(), Ok("rsa localhost"));
    assert_eq!(kept.get("/").body, b"server localhost", "a session keeps what it was shown");
    world.page.publish(b"nonsense").expect("there is room");
    assert_eq!(shown(&server, world.client(), "localhost").as_deref(), Ok("rsa localhost"));
    kept.get("/");
    until("the log is told", || {
        kept.get("/");
        server.notices().iter().any(|notice| notice.text.contains("Could not use the new certificates"))
    });
}

#[test]
fn secrets_are_written_for_tools_that_look_into_sessions() {
    let path = std::env::temp_dir().join(format!("tricorn-keys-{}", std::process::id()));
    let world = World::with(|_, bundle| bundle.key_log = Some(path.clone()));
    let server = Server::start(world.secure(config()), echo);
    world.connect(&server).get("/");
    let text = std::fs::read_to_string(&path).expect("a file");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).expect("a file").permissions());
    std::fs::remove_file(&path).expect("a file");
    assert!(text.lines().any(|line| line.starts_with("CLIENT_TRAFFIC_SECRET_0 ")), "{text}");
    assert_eq!(mode & 0o077, 0, "its owner alone reads it");
}

#[test]
fn beyond_so_many_handshakes_the_silent_give_way_and_then_newcomers_wait() {
    let world = World::new();
    let mut config = world.secure(config());
    config.tls.as_mut().expect("it has TLS").pending_handshakes = 2;
    let server = Server::start(config, echo);
    let mut silent: Vec<Client> = (0..2).map(|_| server.connect()).collect();
    server.until(Word::TlsHandshakes, 2);
    assert_eq!(world.connect(&server).get("/").status, 200);
    server.until_failed(Reason::Crowded, 1);
    silent.remove(0).is_closed();
    // Clients that have begun are not closed for others.
    let begun: Vec<TlsClient> = (0..2)
        .map(|_| {
            let mut client = world.connect(&server);
            let mut hello = Vec::new();
            client.stream.conn.write_tls(&mut hello).expect("memory");
            client.stream.sock.write_all(&hello[..100]).expect("a server that reads");
            client
        })
        .collect();
    server.until_failed(Reason::Crowded, 2);
    server.until(Word::TlsHandshakes, 2);
    let mut waits = world.connect(&server);
    waits.stream.conn.write_tls(&mut waits.stream.sock).expect("a server that reads");
    assert_eq!(server.get(Word::TlsFull), 1);
    drop(begun);
    assert_eq!(waits.get("/").status, 200, "the door is open again");
}

#[test]
fn a_balancer_announces_its_client_before_the_handshake() {
    let world = World::new();
    let proxy = tricorn_io::ProxyProtocol {
        accepts: tricorn_proto::peer::proxy_protocol::Accepts::Both,
        allow: tricorn_proto::peer::Trust::everybody(),
        required: true,
    };
    let config = Config { proxy_protocol: Some(Box::new(proxy)), ..config() };
    let server = Server::start(world.secure(config), |engine, exchange| {
        let peer = exchange.client.peer.to_string();
        answer(engine, exchange, peer.as_bytes());
    });
    let header = b"PROXY TCP4 192.0.2.1 192.0.2.2 7 8\r\n";
    for (apart, pause) in [(header.len(), false), (header.len(), true), (5, true)] {
        let mut client = world.connect(&server);
        client.stream.sock.write_all(&header[..apart]).expect("a server that reads");
        if pause {
            server.until(Word::TlsHandshakes, 1);
        }
        client.stream.sock.write_all(&header[apart..]).expect("a server that reads");
        assert!(String::from_utf8_lossy(&client.get("/").body).contains("192.0.2.1"));
    }
    // The header and the first flight in one write.
    let mut client = world.connect(&server);
    let mut first = header.to_vec();
    client.stream.conn.write_tls(&mut first).expect("memory");
    client.stream.sock.write_all(&first).expect("a server that reads");
    assert_eq!(client.get("/").status, 200);
    // Without it there is no handshake, and nothing is said.
    assert!(shake(&mut world.connect(&server)).is_err());
    server.until_failed(Reason::Garbage, 1);
    server.until(Word::TlsHandshakes, 0);
}

#[test]
fn handshakes_under_a_hub_are_done_while_it_is_held_up() {
    let world = World::new();
    let server = HubServer::start(world.secure(Config { threads: 10, ..config() }));
    let mut first = connect(server.address, Arc::new(world.client()), "localhost");
    assert_eq!(first.get("/now").status, 200);
    first.ask("/block");
    server.gate.until_held(1);
    let mut others: Vec<TlsClient> = (0..10).map(|_| world.connect(&server)).collect();
    others.iter_mut().for_each(|client| shake(client).expect("a handshake"));
    others.iter_mut().for_each(|client| client.ask("/now"));
    server.until(Word::TlsFull, 11);
    server.gate.open(1);
    others.iter_mut().for_each(|client| assert_eq!(client.response().status, 200));
    assert_eq!(first.response().status, 200);
}

#[test]
fn a_hub_that_is_idle_does_handshakes_itself() {
    let world = World::new();
    let server = HubServer::start(world.secure(Config { threads: 10, ..config() }));
    // The monitor may be awake, and faster.
    until("the hub has done one", || {
        let mut client = connect(server.address, Arc::new(world.client()), "localhost");
        assert_eq!(client.get("/now").status, 200);
        server.jobs() > 0
    });
}

#[test]
fn handshakes_are_done_while_every_thread_is_in_the_application() {
    let gate = Gate::default();
    let held = gate.clone();
    let world = World::new();
    let server = Server::start(world.secure(config()), move |engine, exchange| {
        if path(exchange) == "/block" {
            held.pass();
        }
        answer(engine, exchange, b"");
    });
    let mut first = world.connect(&server);
    first.ask("/block");
    gate.until_held(1);
    let mut others: Vec<TlsClient> = (0..10).map(|_| world.connect(&server)).collect();
    others.iter_mut().for_each(|client| shake(client).expect("a handshake"));
    others.iter_mut().for_each(|client| client.ask("/"));
    server.until(Word::Queued, 10);
    gate.open(1);
    others.iter_mut().for_each(|client| assert_eq!(client.response().status, 200));
    assert_eq!(first.response().status, 200);
}

#[test]
fn a_worker_that_leaves_ends_its_sessions_and_waits_for_no_silent_client() {
    let world = World::new();
    let server = Server::start(world.secure(config()), echo);
    let _silent = server.connect();
    let mut idle = world.connect(&server);
    idle.get("/");
    server.until(Word::TlsHandshakes, 1);
    server.engine.drain();
    idle.is_closed();
    server.until_ended();
}

#[test]
fn a_handshake_that_does_not_end_is_bounded() {
    let world = World::new();
    let server = Server::start(world.secure(config()), echo);
    // A ClientHello of 65,000 bytes, in records of one byte each: six times as long on the wire.
    let mut message = vec![1, 0, 0xfd, 0xe8];
    message.resize(65_000, 0);
    let records: Vec<u8> = message.iter().flat_map(|byte| [22, 3, 1, 0, 1, *byte]).collect();
    let mut client = server.connect();
    let _ = client.stream.write_all(&records); // the server does not read all of it
    let _ = client.rest();
    server.until_failed(Reason::Garbage, 1);
    assert_eq!(world.connect(&server).get("/").status, 200);
}

/// So many certificates behind a client's own, each with a name of so many bytes.
fn with_chain(authority: &Authority, count: usize, length: usize) -> tricorn_io::tls::Identity {
    let mut own = authority.client("alice");
    let common = "x".repeat(length);
    for _ in 0..count {
        own.chain.extend_from_slice(&authority.client(&common).chain);
    }
    own
}

#[test]
fn a_client_has_a_chain_of_ten_certificates_and_64_kib() {
    let world = with_clients(ClientCertificates::Required);
    let server = Server::start(world.secure(config()), tell_client);
    for version in [&TLS12, &TLS13] {
        let asked = |count, length| {
            let identity = with_chain(&world.authority, count, length);
            asked(&server, world.client_of_version(&identity, version))
        };
        assert_eq!(asked(9, 2_000).as_deref(), Ok("CN=alice CN=Authority 4D"), "more than a record");
        let error = asked(10, 8).expect_err("there are eleven");
        assert!(error.contains("CertificateUnknown"), "{error}");
        let error = asked(9, 8_000).expect_err("they are longer than a message may be");
        // Of TLS 1.3 they are encrypted, and rustls has no alert to answer with.
        assert!(error.contains("DecodeError") || version.version == TLS13.version, "{error}");
    }
    server.until_failed(Reason::Certificate, 2);
    server.until_failed(Reason::Garbage, 2);
    let told = server
        .notices()
        .iter()
        .any(|notice| notice.warning && notice.text.ends_with("failed: its chain has 11 certificates, more than 10"));
    assert!(told, "{:?}", server.notices());
}

#[test]
fn a_hello_that_is_too_long_gets_an_alert() {
    let world = World::new();
    let server = Server::start(world.secure(config()), echo);
    let mut client = server.connect();
    client.send(&[22, 3, 1, 0, 5, 1, 1, 0, 0, 3]);
    assert_eq!(client.rest(), [21, 3, 3, 0, 2, 2, 50], "decode_error");
    server.until_failed(Reason::Garbage, 1);
}

#[test]
fn a_session_that_is_resumed_has_the_certificates_of_both() {
    for version in [&TLS12, &TLS13] {
        let world = World::with(|authority, bundle| {
            bundle.client_certificates = ClientCertificates::Required;
            bundle.ca = Some(authority.pem.clone().into_bytes());
            bundle.ticket_keys = vec![[7; 32]];
            bundle.ticket_lifetime = 3600;
        });
        let server = Server::start(world.secure(config()), |engine, exchange| {
            let facts = exchange.facts().expect("it came by TLS").clone();
            let of = |der: Option<&[u8]>| {
                let parsed = der.and_then(tricorn_proto::peer::x509::Certificate::parse);
                parsed.and_then(|certificate| certificate.subject.common_name().map(|name| name.to_string()))
            };
            let (own, client) = (of(facts.own.as_deref()), of(facts.chain.first().map(|der| &**der)));
            let text = format!("{own:?} {client:?} {} of {}", facts.is_resumed, facts.chain.len());
            answer(engine, exchange, text.as_bytes());
        });
        let mut client = world.client_of_version(&with_chain(&world.authority, 1, 8), version);
        client.resumption = rustls::client::Resumption::in_memory_sessions(8);
        let client = Arc::new(client);
        for is_resumed in [false, true, true] {
            let mut client = connect(server.address, client.clone(), "localhost");
            let told = String::from_utf8_lossy(&client.get("/").body).into_owned();
            assert_eq!(told, format!("Some(\"server\") Some(\"alice\") {is_resumed} of 2"));
        }
    }
}

/// The beginning of a record that does not end, so many bytes of it.
fn unfinished(length: usize) -> Vec<u8> {
    let mut record = vec![23, 3, 3, 0x40, 0x11];
    record.resize(length, 0);
    record
}

const PIECE: usize = 16_000;

/// A server whose sessions may hold 20 of these pieces.
fn with_little_memory(world: &World) -> (Server, u64) {
    let most = 20 * PIECE;
    let mut config = world.secure(Config { body_timeout: NEVER, ..config() });
    config.tls.as_mut().expect("it has TLS").buffer_total = most;
    (Server::start(config, echo), most as u64)
}

/// A connection, and a record that does not end; with `head` before it.
fn hold(world: &World, server: &Server, head: &str) -> TlsClient {
    let mut client = world.connect(server);
    assert_eq!(client.get("/").status, 200);
    client.send(head.as_bytes());
    let before = (server.get(Word::TlsBytes), server.get(Word::Evicted));
    client.stream.sock.write_all(&unfinished(PIECE)).expect("a server that reads");
    until("it is held", || (server.get(Word::TlsBytes), server.get(Word::Evicted)) != before);
    client
}

#[test]
fn beyond_the_memory_of_sessions_those_without_a_request_are_closed_first() {
    let world = World::new();
    let (server, most) = with_little_memory(&world);
    let mut served = world.connect(&server);
    assert_eq!(served.get("/").status, 200);
    server.until(Word::TlsBytes, 0);
    let upload = post("/", 100_000);
    let mut uploads: Vec<TlsClient> = (0..5).map(|_| hold(&world, &server, &upload)).collect();
    let mut idle: Vec<TlsClient> = (0..40).map(|_| hold(&world, &server, "")).collect();
    until("enough is given back", || server.get(Word::TlsBytes) <= most);
    until("it is told", || server.notices().iter().any(|notice| notice.text.contains("tls_buffer_total")));
    let evicted = server.get(Word::Evicted);
    assert!(evicted >= 25, "{evicted} were closed");
    let is_closed = |client: &mut TlsClient| {
        client.stream.sock.set_nonblocking(true).expect("a socket");
        let is_closed = client.stream.sock.peek(&mut [0]).is_ok();
        client.stream.sock.set_nonblocking(false).expect("a socket");
        is_closed
    };
    let closed = || idle.iter_mut().filter_map(|client| is_closed(client).then_some(())).count() as u64;
    let mut closed = closed;
    until("all that are counted are idle ones", || closed() == evicted);
    assert!(is_closed(&mut idle[0]) && !is_closed(&mut idle[39]), "the oldest of them");
    drop(idle);
    server.until(Word::TlsBytes, 5 * most / 20);
    assert_eq!(served.get("/").status, 200, "a session that holds nothing is left alone");
    // Bodies are next.
    uploads.extend((0..25).map(|_| hold(&world, &server, &upload)));
    until("enough is given back", || server.get(Word::TlsBytes) <= most);
    let response = uploads[0].response();
    assert!(response.status == 503 && response.head.contains("Tricorn-Refused: capacity"), "{}", response.head);
    drop(uploads);
    server.until(Word::TlsBytes, 0);
    assert_eq!(served.get("/").status, 200);
}

#[test]
fn beyond_the_memory_of_sessions_replies_go_on_a_record_at_a_time() {
    let world = World::new();
    let mut config = world.secure(config());
    let ahead = 64 * 1024;
    config.tls.as_mut().expect("it has TLS").buffer_total = 4 * ahead;
    let body = Arc::new(noise(BIG));
    let kept = body.clone();
    let server = Server::start(config, move |engine, exchange| {
        answer(engine, exchange, &kept);
    });
    let mut clients = Vec::new();
    for _ in 0..12 {
        let before = server.get(Word::TlsBytes);
        let mut client = world.connect(&server);
        client.ask("/");
        server.until_at_least(Word::TlsBytes, before + 1);
        clients.push(client);
    }
    server.until(Word::Requests, 12);
    let held = server.get(Word::TlsBytes) as usize;
    assert!(held > 4 * ahead && held < 6 * ahead + 8 * 17 * 1024, "{held}");
    for client in &mut clients {
        assert!(client.response().body == *body, "nothing is lost");
    }
    server.until(Word::TlsBytes, 0);
    assert_eq!(server.get(Word::Evicted), 0);
}

#[test]
fn handshakes_that_do_not_end_are_closed_beyond_the_memory_of_sessions() {
    let world = World::new();
    let (server, most) = with_little_memory(&world);
    // A ClientHello of 65,000 bytes, of which two records come.
    let mut hello = vec![22, 3, 1, 0x40, 0, 1, 0, 0xfd, 0xe8];
    hello.resize(5 + 16_384, 0);
    hello.extend_from_slice(&[22, 3, 1, 0x40, 0]);
    hello.resize(2 * (5 + 16_384), 0);
    let mut clients = Vec::new();
    for count in 1..=30u64 {
        let mut client = server.connect();
        client.send(&hello);
        until("it is held, or closed", || {
            server.get(Word::TlsHandshakes) + server.failed(Reason::Crowded) == count
                // How much each holds depends on how its records come: those that are left may hold less than the limit by one of them.
                && (server.get(Word::TlsBytes) >= count.min(9) * PIECE as u64)
        });
        clients.push(client);
    }
    until("enough is given back", || server.get(Word::TlsBytes) <= most);
    // One whose second record was late holds half as much, and then twice as many fit.
    assert!(server.failed(Reason::Crowded) >= 10);
    clients[0].is_closed();
    assert_eq!(world.connect(&server).get("/").status, 200);
    drop(clients);
    server.until(Word::TlsBytes, 0);
    server.until(Word::TlsHandshakes, 0);
}
