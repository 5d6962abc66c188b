//! What is sent to statsd and syslog, whatever becomes of the collector.
#![allow(clippy::expect_used, reason = "a test may panic")]
use std::fs::File;
use std::io::{Read, Seek, Write};
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tricorn_figures::collectors::{Address, Policy, Relay, Socket};
use tricorn_sys::clock::{self, MILLI, SECOND};

const DEADLINE: Duration = Duration::from_secs(60);

const STATSD: Policy = Policy { name: "statsd", most: 30, gather: 100 * MILLI, keeps: false };
const SYSLOG: Policy = Policy { name: "syslog", most: 0, gather: 0, keeps: true };

/// A path of its own, gone with the test.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        Place(std::env::temp_dir().join(format!("tricorn-collector-{name}-{}", std::process::id())))
    }

    fn unix(&self) -> Socket {
        Socket::new(Address::Unix { path: self.0.clone(), kind: None }, None)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// Asks until there is an answer, or the deadline has passed.
fn until_some<T>(mut ask: impl FnMut() -> Option<T>) -> Option<T> {
    let end = Instant::now() + DEADLINE;
    loop {
        if let Some(answer) = ask() {
            return Some(answer);
        }
        if Instant::now() >= end {
            return None;
        }
        std::thread::sleep(Duration::from_millis(1)); // between two looks, not in place of one
    }
}

#[track_caller]
fn until(what: &str, mut holds: impl FnMut() -> bool) {
    assert!(until_some(|| holds().then_some(())).is_some(), "never: {what}");
}

fn udp() -> (UdpSocket, Socket) {
    let server = UdpSocket::bind(("127.0.0.1", 0)).expect("a free port");
    server.set_read_timeout(Some(Duration::from_secs(20))).expect("a deadline");
    let address = Address::Udp(server.local_addr().expect("an address"));
    (server, Socket::new(address, None))
}

fn received(server: &UdpSocket) -> String {
    let mut bytes = [0; 2048];
    let length = server.recv(&mut bytes).expect("a datagram");
    String::from_utf8_lossy(&bytes[..length]).into_owned()
}

fn add(relay: &Relay, message: &str) {
    relay.add(std::iter::once(message.as_bytes()));
}

#[test]
fn metrics_share_a_datagram_which_is_sent_when_it_is_full_or_has_waited_for_a_tenth_of_a_second() {
    let (server, socket) = udp();
    let relay = Relay::new(STATSD, socket);
    let begin = clock::now();
    (0..4).for_each(|number| add(&relay, &format!("metric-{number}:1|c")));
    assert!(relay.is_unseen());
    assert_eq!(relay.tend(begin + MILLI * 50), None);
    assert!(!relay.is_unseen());
    assert_eq!(received(&server), "metric-0:1|c\nmetric-1:1|c");
    let due = relay.due_in(begin + MILLI * 50).expect("the second one waits");
    assert!((MILLI..=100 * MILLI).contains(&due), "{due}");
    relay.tend(begin + MILLI * 50 + due - 1);
    assert_eq!(relay.due_in(begin + MILLI * 50 + due - 1), Some(1));
    relay.tend(begin + MILLI * 50 + due);
    assert_eq!(received(&server), "metric-2:1|c\nmetric-3:1|c");
    assert_eq!((relay.due_in(clock::now()), relay.lost()), (None, 0));
}

#[test]
fn without_packing_each_metric_is_a_datagram_at_once() {
    let (server, socket) = udp();
    let relay = Relay::new(Policy { most: 0, gather: 0, ..STATSD }, socket);
    relay.add([b"a:1|c".as_slice(), b"b:1|c"].into_iter());
    relay.tend(clock::now());
    assert_eq!((received(&server), received(&server)), ("a:1|c".into(), "b:1|c".into()));
}

#[test]
fn a_statsd_that_comes_late_gets_what_is_sent_from_then_on_and_the_rest_is_counted() {
    let free = UdpSocket::bind(("127.0.0.1", 0)).expect("a free port").local_addr().expect("an address");
    let relay = Relay::new(Policy { gather: 0, most: 0, ..STATSD }, Socket::new(Address::Udp(free), None));
    for _ in 0..3 {
        add(&relay, "early:1|c");
        assert_eq!(relay.tend(clock::now()), None);
    }
    assert!((1..=2).contains(&relay.lost()), "{}", relay.lost());
    let server = UdpSocket::bind(free).expect("the port");
    server.set_read_timeout(Some(Duration::from_secs(20))).expect("a deadline");
    add(&relay, "late:1|c");
    relay.tend(clock::now());
    assert_eq!(received(&server), "late:1|c");
}

#[test]
fn a_socket_that_is_full_costs_metrics_and_no_time() {
    let place = Place::new("full");
    let server = UnixDatagram::bind(&place.0).expect("a socket");
    let relay = Relay::new(Policy { gather: 0, most: 0, ..STATSD }, place.unix());
    let begin = Instant::now();
    for _ in 0..10_000 {
        add(&relay, "metric:1|c");
        relay.tend(clock::now());
    }
    assert!(begin.elapsed() < DEADLINE, "{:?}", begin.elapsed());
    server.set_nonblocking(true).expect("a socket");
    let taken = std::iter::repeat_with(|| server.recv(&mut [0; 64])).take_while(Result::is_ok).count() as u64;
    assert!(taken > 0);
    assert_eq!((taken + relay.lost(), relay.due_in(clock::now())), (10_000, None));
}

#[test]
fn a_syslog_that_is_full_gets_every_line_later_and_in_order() {
    let place = Place::new("later");
    let server = UnixDatagram::bind(&place.0).expect("a socket");
    let relay = Relay::new(SYSLOG, place.unix());
    (0..5000).for_each(|number| add(&relay, &number.to_string()));
    relay.tend(clock::now());
    assert!(relay.due_in(clock::now()).is_some_and(|due| due <= 100 * MILLI));
    server.set_nonblocking(true).expect("a socket");
    let (mut bytes, mut next) = ([0; 64], 0);
    until("all lines came", || {
        while let Ok(length) = server.recv(&mut bytes) {
            assert_eq!(&bytes[..length], next.to_string().as_bytes());
            next += 1;
        }
        relay.tend(clock::now());
        next == 5000
    });
    assert_eq!(relay.lost(), 0);
}

#[test]
fn a_syslog_that_is_away_costs_no_line_until_memory_for_them_is_full() {
    let place = Place::new("away");
    let relay = Relay::new(SYSLOG, place.unix());
    let line = "x".repeat(1 << 20);
    (0..4).for_each(|_| add(&relay, &line));
    let told = relay.tend(clock::now()).expect("a notice");
    assert!(told.starts_with("Cannot reach syslog at ") && told.contains("up to 4 MiB"), "{told}");
    (0..2).for_each(|_| add(&relay, &line));
    assert_eq!((relay.lost(), relay.tend(clock::now() + 10 * SECOND)), (2, None));
    let server = UnixListener::bind(&place.0).expect("a stream socket");
    relay.tend(clock::now() + 60 * SECOND);
    let mut stream = server.accept().expect("a connection").0;
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || {
            let mut bytes = vec![0; 4 << 20];
            stream.read_exact(&mut bytes).expect("all lines");
            bytes
        });
        let mut told = None;
        until("all lines are sent", || {
            told = relay.tend(clock::now() + 60 * SECOND).or_else(|| told.take());
            relay.due_in(clock::now()).is_none()
        });
        assert!(reader.join().expect("a reader").iter().all(|byte| *byte == b'x'));
        assert_eq!(told.as_deref(), Some("Connected to syslog again; 2 messages were lost"));
    });
}

#[test]
fn a_stream_that_was_closed_is_opened_again_and_no_line_is_torn() {
    let server = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    let address = Address::Tcp(server.local_addr().expect("an address"));
    let relay = Relay::new(SYSLOG, Socket::new(address, None));
    let text = |stream: &mut std::net::TcpStream, length| {
        let mut bytes = vec![0; length];
        stream.read_exact(&mut bytes).expect("a line");
        String::from_utf8(bytes).expect("text")
    };
    add(&relay, "first\0");
    let mut first = accepted(&server, &relay);
    assert_eq!(text(&mut first, 6), "first\0");
    drop(first);
    // The first line after the end is taken by the kernel: the reset comes with it.
    until("the connection is opened again", || {
        add(&relay, "more\0");
        relay.tend(clock::now() + 60 * SECOND);
        server.set_nonblocking(true).expect("a listener");
        server.accept().is_ok_and(|(mut stream, _)| {
            stream.set_nonblocking(false).expect("a stream");
            text(&mut stream, 5) == "more\0"
        })
    });
    assert_eq!(relay.lost(), 0);
}

fn accepted(server: &TcpListener, relay: &Relay) -> std::net::TcpStream {
    relay.tend(clock::now());
    let stream = server.accept().expect("a connection").0;
    until("the line is sent", || {
        relay.tend(clock::now() + SECOND);
        relay.due_in(clock::now()).is_none()
    });
    stream
}

#[test]
fn a_message_that_is_too_long_for_a_datagram_is_counted_and_holds_up_no_other() {
    let (server, socket) = udp();
    let relay = Relay::new(SYSLOG, socket);
    add(&relay, &"x".repeat(70_000));
    add(&relay, "next");
    relay.tend(clock::now());
    assert_eq!((received(&server).as_str(), relay.lost()), ("next", 1));
}

#[test]
fn what_is_left_at_the_end_is_sent_or_counted() {
    let (server, socket) = udp();
    let relay = Relay::new(STATSD, socket);
    add(&relay, "last:1|c");
    relay.flush();
    assert_eq!((received(&server).as_str(), relay.lost()), ("last:1|c", 0));
    let place = Place::new("end");
    let relay = Relay::new(SYSLOG, place.unix());
    (0..3).for_each(|_| add(&relay, "line"));
    relay.flush();
    assert_eq!((relay.lost(), relay.due_in(clock::now())), (3, None));
}

/// Of a message of which sockets take a part, the first and the next one.
const LONG: usize = 1 << 20;

/// Adds long messages until a socket has taken a part of one, and takes no more.
fn fill(relay: &Relay) {
    until("the buffers are full", || {
        if relay.due_in(clock::now()).is_none() {
            add(relay, &format!("{}\0", "x".repeat(LONG)));
        }
        relay.tend(clock::now());
        relay.due_in(clock::now()) > Some(0)
    });
}

#[test]
fn a_message_of_which_a_stream_had_taken_a_part_goes_whole_to_the_next_connection() {
    let server = listener();
    let relay = Relay::new(SYSLOG, Socket::new(Address::Tcp(server.local_addr().expect("an address")), None));
    add(&relay, "first\0");
    let first = accepted(&server, &relay);
    fill(&relay);
    drop(first);
    assert_eq!((first_message(&server, &relay), relay.lost()), (LONG, 0));
}

/// A relay with a message for a listener, and the file that tells it where the name leads by then.
fn following(here: &TcpListener) -> (Relay, File) {
    let told = tempfile();
    let address = Address::Tcp(here.local_addr().expect("an address"));
    let socket = Socket::new(address, None).following(told.try_clone().expect("a descriptor").into());
    let relay = Relay::new(SYSLOG, socket);
    add(&relay, "first\0");
    (relay, told)
}

#[test]
fn a_stream_is_opened_anew_where_the_name_leads_by_then() {
    let (here, there) = (listener(), listener());
    let (relay, mut told) = following(&here);
    let first = accepted(&here, &relay);
    for nonsense in ["", "nowhere\n", "127.0.0.1:1"] {
        told.rewind().expect("a file");
        told.write_all(nonsense.as_bytes()).expect("a file");
    }
    told.rewind().expect("a file");
    writeln!(told, "{}", there.local_addr().expect("an address")).expect("a file");
    drop((first, here));
    there.set_nonblocking(true).expect("a listener");
    until("the next connection is there", || {
        add(&relay, "more\0");
        relay.tend(clock::now() + 60 * SECOND);
        there.accept().is_ok()
    });
}

#[test]
fn a_stream_that_takes_nothing_is_left_when_the_name_leads_elsewhere() {
    let (here, there) = (listener(), listener());
    let (relay, mut told) = following(&here);
    let deaf = accepted(&here, &relay);
    fill(&relay);
    writeln!(told, "{}", there.local_addr().expect("an address")).expect("a file");
    assert_eq!(first_message(&there, &relay), LONG);
    drop(deaf);
}

/// Its connections take a long message in several parts.
fn listener() -> TcpListener {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    rustix::net::sockopt::set_socket_recv_buffer_size(&listener, 16 * 1024).expect("a buffer");
    listener
}

/// A file without a name.
fn tempfile() -> File {
    static NEXT: AtomicU64 = AtomicU64::new(0); // tests run side by side
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let path = Place::new("told").0.with_extension(number.to_string());
    let file = std::fs::File::options().read(true).write(true).create(true).truncate(true).open(&path).expect("a file");
    std::fs::remove_file(path).expect("its name");
    file
}

/// How long the first message of the next connection is.
fn first_message(server: &TcpListener, relay: &Relay) -> usize {
    server.set_nonblocking(true).expect("a listener");
    let (mut stream, mut whole, mut piece) = (None, Vec::new(), vec![0; 1 << 16]);
    let found = until_some(|| {
        relay.tend(clock::now() + SECOND);
        if stream.is_none() {
            stream = server.accept().ok().map(|(stream, _)| stream);
        }
        if let Some(stream) = &mut stream {
            stream.set_nonblocking(true).expect("a stream");
            while let Ok(read @ 1..) = stream.read(&mut piece) {
                whole.extend_from_slice(&piece[..read]);
            }
        }
        whole.iter().position(|byte| *byte == 0)
    });
    found.expect("a message")
}
