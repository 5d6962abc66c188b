//! Requests that a front end brings as vars go from worker to worker, and what they say goes along.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::group::*;
use harness::*;
use tricorn_io::{Config, Door, FrontEnd};
use tricorn_proto::cgi::Protocol;
use tricorn_proto::peer::Trust;

const VARS: [(&str, &str); 7] = [
    ("CONTENT_LENGTH", "4"),
    ("SCGI", "1"),
    ("REQUEST_METHOD", "POST"),
    ("REQUEST_URI", "/next"),
    ("REMOTE_ADDR", "203.0.113.9"),
    ("REMOTE_USER", "joe"),
    ("HTTPS", "on"),
];
/// A request of the front end's own, as one for its health is.
const OWN: [(&str, &str); 4] =
    [("CONTENT_LENGTH", "4"), ("SCGI", "1"), ("REQUEST_METHOD", "POST"), ("REQUEST_URI", "/own")];
const BODY: &[u8] = b"body";

/// Two workers, whose common listener is a front end's.
fn workers(protocol: Protocol) -> Workers {
    started(protocol, plan(2))
}

fn started(protocol: Protocol, mut plan: Plan) -> Workers {
    let front_end = FrontEnd { protocol, allow: Trust::parse("127.0.0.0/8").expect("a network") };
    let door = Door { front_end: Some(Box::new(front_end)), ..Door::default() };
    plan.config.policy.trust = Trust::parse("127.0.0.0/8").expect("a network");
    plan.config.doors = vec![door, Door::default(), Door::default()];
    Workers::start(plan, |_, exchange| {
        if path(exchange) == "/next" {
            let vars = exchange.request.vars().expect("they have come along");
            assert_eq!(vars.get(b"REMOTE_USER"), Some(b"joe".as_slice()));
            assert_eq!(exchange.client.peer.to_string(), "203.0.113.9");
            assert!(vars.is_secure() && !exchange.client.trusted);
        }
        if path(exchange) == "/own" {
            let vars = exchange.request.vars().expect("they have come");
            assert_eq!(vars.get(b"REMOTE_USER"), None);
            assert_eq!(exchange.client.peer.to_string(), "127.0.0.1");
            assert!(!vars.is_secure() && exchange.client.trusted);
        }
    })
}

fn record(kind: u8, content: &[u8]) -> Vec<u8> {
    [&[1, kind, 0, 7, 0, content.len() as u8, 0, 0], content].concat()
}

fn request(protocol: Protocol) -> Vec<u8> {
    request_of(protocol, &VARS)
}

fn request_of(protocol: Protocol, vars: &[(&str, &str)]) -> Vec<u8> {
    let each = |write: &dyn Fn(&str, &str) -> Vec<u8>| -> Vec<u8> {
        vars.iter().flat_map(|(key, value)| write(key, value)).collect()
    };
    match protocol {
        Protocol::Uwsgi => {
            let text = |text: &str| [&(text.len() as u16).to_le_bytes(), text.as_bytes()].concat();
            let pairs = each(&|key, value| [text(key), text(value)].concat());
            [&[0, pairs.len() as u8, 0, 0], pairs.as_slice(), BODY].concat()
        }
        Protocol::Scgi => {
            let pairs = each(&|key, value| format!("{key}\0{value}\0").into_bytes());
            [format!("{}:", pairs.len()).as_bytes(), &pairs, b",", BODY].concat()
        }
        Protocol::FastCgi => {
            let pairs =
                each(&|key, value| [&[key.len() as u8, value.len() as u8], key.as_bytes(), value.as_bytes()].concat());
            let content = [record(4, &pairs), record(4, b""), record(5, BODY), record(5, b"")].concat();
            [record(1, &[0, 1, 1, 0, 0, 0, 0, 0]), content].concat()
        }
    }
}

/// Which worker has answered: its response has no more than a body of one line, and the body.
fn answered_by(protocol: Protocol, client: &mut Client) -> usize {
    let head = client.take_until(b"\r\n\r\n");
    let status = match protocol {
        Protocol::Uwsgi => b"HTTP/1.1 200 OK\r\n".as_slice(),
        Protocol::Scgi | Protocol::FastCgi => b"Status: 200 OK\r\n",
    };
    assert!(head.windows(status.len()).any(|part| part == status), "{}", String::from_utf8_lossy(&head));
    let body = client.take_until(BODY);
    if protocol == Protocol::FastCgi {
        client.take_until(&record(3, &[0; 8]));
    }
    let line = String::from_utf8_lossy(&body).into_owned();
    assert!(line.contains(" /next\n") || line.contains(" /own\n"), "{line}");
    let number = line.split(" /").next().and_then(|text| text.chars().last());
    number.and_then(|digit| digit.to_digit(10)).expect("a number") as usize
}

#[test]
fn a_kept_connection_goes_to_the_worker_that_is_free_and_stays_there() {
    let workers = workers(Protocol::FastCgi);
    let mut client = workers.connect_to_all();
    client.send(&request(Protocol::FastCgi));
    let first = answered_by(Protocol::FastCgi, &mut client);
    workers.block(first);
    client.send(&request(Protocol::FastCgi));
    assert_eq!(answered_by(Protocol::FastCgi, &mut client), 1 - first);
    workers.servers[first].until_at_least(Word::HandedOver, 1);
    workers.unblock_all();
    for _ in 0..3 {
        client.send(&request(Protocol::FastCgi));
        assert_eq!(answered_by(Protocol::FastCgi, &mut client), 1 - first);
    }
}

#[test]
fn a_connection_is_kept_whose_request_was_answered_before_the_mark_of_its_end_came() {
    let plan = plan(2);
    let workers = started(Protocol::FastCgi, Plan { config: Config { streaming: true, ..plan.config }, ..plan });
    let mut client = workers.connect_to_all();
    let (request, end) = (request(Protocol::FastCgi), record(5, b""));
    let unmarked = &request[..request.len() - end.len()];
    for _ in 0..5 {
        client.send(unmarked);
        answered_by(Protocol::FastCgi, &mut client);
        client.send(&end[..3]);
        client.send(&end[3..]);
        client.send(&request);
        answered_by(Protocol::FastCgi, &mut client);
    }
    client.send(&request);
    client.send(&record(5, b"more"));
    answered_by(Protocol::FastCgi, &mut client);
    client.send(&request);
    answered_by(Protocol::FastCgi, &mut client);
}

#[test]
fn a_kept_connection_is_the_front_ends_own_again_behind_a_clients_request() {
    let workers = workers(Protocol::FastCgi);
    let mut client = workers.connect_to_all();
    let (next, own) = (request(Protocol::FastCgi), request_of(Protocol::FastCgi, &OWN));
    let mut ask = |what: &[u8]| {
        client.send(what);
        answered_by(Protocol::FastCgi, &mut client)
    };
    assert_eq!(ask(&own), ask(&next), "the connection stays");
    let first = ask(&own);
    workers.block(first);
    assert_eq!(ask(&next), 1 - first);
    assert_eq!(ask(&own), 1 - first, "where it came with a client's request");
    workers.unblock_all();
    client.send(&[next, own].concat());
    assert_eq!([(); 2].map(|()| answered_by(Protocol::FastCgi, &mut client)), [1 - first; 2]);
}

#[test]
fn a_request_that_waits_takes_its_vars_along() {
    for protocol in [Protocol::Uwsgi, Protocol::Scgi, Protocol::FastCgi] {
        let workers = workers(protocol);
        let mut clients: Vec<Client> = (0..10).map(|_| workers.connect_to_all()).collect();
        // Half of each request: its connection is with whoever has accepted it.
        let whole = request(protocol);
        let cut = whole.len() / 2;
        clients.iter_mut().for_each(|client| client.send(&whole[..cut]));
        workers.until_sum(Word::Connections, 10);
        workers.block(0);
        for client in &mut clients {
            client.send(&whole[cut..]);
            assert_eq!(answered_by(protocol, client), 1, "{protocol:?}");
        }
        workers.unblock_all();
    }
}
