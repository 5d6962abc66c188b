//! Lines of the access log, whatever becomes of their reader.
#![allow(clippy::expect_used)] // A test may panic, in its helpers and threads too.
use crate::harness;
use harness::{DEADLINE, Gate, MILLI, NEVER, Server, Word, answer, config, path, record, request, tell, until};
use rustix::fs::{CWD, FileType, Mode, mknodat};
use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tricorn_io::{AccessLog, Config, Failpoint, Logs, clock};
use tricorn_proto::access_log::Format;

/// A directory of its own, gone with the test.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let path = std::env::temp_dir().join(format!("tricorn-access-{name}-{}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Place(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }

    fn fifo(&self) -> PathBuf {
        self.fifo_at("fifo")
    }

    fn fifo_at(&self, name: &str) -> PathBuf {
        let path = self.path(name);
        mknodat(CWD, &path, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).expect("a fifo");
        path
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn open(path: &Path) -> Arc<AccessLog> {
    Arc::new(at(path))
}

fn at(path: &Path) -> AccessLog {
    AccessLog::open(path.to_str().expect("utf-8")).expect("a log")
}

/// A log on a disk that hangs until it is mended.
struct HungLog {
    place: Place,
    path: PathBuf,
}

impl HungLog {
    fn new(name: &str) -> HungLog {
        let place = Place::new(name);
        place.fifo_at("access.stall");
        let path = place.path("access.log");
        HungLog { place, path }
    }

    fn open(&self) -> AccessLog {
        at(&self.path).with_stalls(true)
    }

    /// Of an engine whose log this is.
    fn config(&self) -> Config {
        Config { fault: Some(Failpoint::StallLog), ..config() }
    }

    /// The disk works for as long as the value lives. Opened both ways a FIFO waits for no other end (fifo(7)).
    fn mend(&self) -> File {
        OpenOptions::new().read(true).write(true).open(self.place.path("access.stall")).expect("the FIFO")
    }

    fn text(&self) -> String {
        std::fs::read_to_string(&self.path).expect("lines")
    }
}

fn add(log: &AccessLog, line: &str) {
    log.add(line.as_bytes());
}

/// As the monitor does: writes when it is told that something waits, and only then.
fn monitor(log: &AccessLog, over: &AtomicBool) {
    while !over.load(Ordering::SeqCst) {
        if log.is_due() {
            log.write_some();
        } else {
            std::thread::yield_now();
        }
    }
}

/// As the monitor does with a file: leaves the writing to the thread.
fn tend(log: &Arc<AccessLog>, over: &AtomicBool) {
    while !over.load(Ordering::SeqCst) {
        log.tend(clock::now());
        std::thread::yield_now();
    }
}

/// A line of this many bytes that says which one it is.
fn numbered(writer: usize, number: usize, length: usize) -> String {
    let start = format!("{writer} {number} ");
    format!("{start}{}\n", "x".repeat(length - start.len() - 1))
}

/// Every line is one that was added, whole, and those of a writer are in order; how many there are of each.
fn check(text: &str, writers: usize, length: usize) -> Vec<usize> {
    let mut next = vec![0; writers];
    let mut counts = vec![0; writers];
    assert!(text.is_empty() || text.ends_with('\n'), "the last line is whole");
    for line in text.lines() {
        let mut words = line.split(' ').map(str::parse::<usize>);
        let (Some(Ok(writer)), Some(Ok(number))) = (words.next(), words.next()) else { panic!("torn: {line:?}") };
        assert_eq!(format!("{line}\n"), numbered(writer, number, length));
        assert!(number >= next[writer], "out of order");
        next[writer] = number + 1;
        counts[writer] += 1;
    }
    counts
}

#[test]
fn a_line_added_while_others_are_written_does_not_wait_for_the_next_request() {
    every_line_is_written("race", |log, over| monitor(log, over));
}

#[test]
fn a_line_added_while_the_thread_falls_asleep_does_not_wait_for_the_next_request() {
    every_line_is_written("sleepy", tend);
}

fn every_line_is_written(name: &str, write: fn(&Arc<AccessLog>, &AtomicBool)) {
    let place = Place::new(name);
    let path = place.path("log");
    let log = open(&path);
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| write(&log, &over));
        let written = || std::fs::metadata(&path).map_or(0, |file| file.len());
        for round in 1..=5000u64 {
            add(&log, "one\n");
            add(&log, "two\n");
            if round % 10 == 0 {
                let done = harness::until_some(|| (written() == 8 * round).then_some(()));
                if done.is_none() {
                    over.store(true, Ordering::SeqCst);
                }
                assert!(done.is_some(), "round {round}: a line waits, and no notice says so");
            }
        }
        over.store(true, Ordering::SeqCst);
    });
    log.flush();
}

#[test]
fn a_line_that_takes_its_time_holds_up_neither_others_nor_the_monitor() {
    let place = Place::new("slow");
    let path = place.path("log");
    let log = open(&path);
    let format = Format::parse("outer %({key}e)s").ok();
    let logs = Logs { format, access: Some(log.clone()), ..Logs::default() };
    logs.tell(&record(&|_| {
        std::thread::scope(|scope| {
            scope.spawn(|| logs.tell(&record(&|_| Some(b"another thread's".into()))));
        });
        logs.tell(&record(&|_| Some(b"inner".into())));
        log.write_some();
        Some(b"line".into())
    }));
    log.write_some();
    assert_eq!(std::fs::read_to_string(&path).expect("a log"), "outer another thread's\nouter inner\nouter line\n");
}

#[test]
fn lines_that_are_handed_over_are_made_no_more_and_what_waits_is_written() {
    let place = Place::new("handed-over");
    let path = place.path("log");
    let log = open(&path);
    let logs = Logs { format: Format::parse("%({key}e)s").ok(), access: Some(log.clone()), ..Logs::default() };
    logs.tell(&record(&|_| Some(b"before".into())));
    logs.hand_over_lines();
    assert!(!logs.has_lines() && !logs.are_on());
    logs.tell(&record(&|_| Some(b"after".into())));
    log.flush();
    assert_eq!(std::fs::read_to_string(&path).expect("a log"), "before\n");
}

#[test]
fn lines_are_kept_whole_and_in_order_over_a_rotation() {
    let place = Place::new("rotation");
    let (path, rotated) = (place.path("access.log"), place.path("access.log.1"));
    let log = open(&path);
    add(&log, "one\n");
    log.write_some();
    std::fs::rename(&path, &rotated).expect("rename");
    add(&log, "two\n");
    log.reopen().expect("reopen");
    add(&log, "three\n");
    log.flush();
    assert_eq!(std::fs::read(&rotated).expect("read"), b"one\ntwo\n");
    assert_eq!(std::fs::read(&path).expect("read"), b"three\n");
    assert_eq!(log.lost(), 0);
}

#[test]
fn a_line_that_is_torn_by_a_rotation_is_whole_in_the_new_file() {
    let place = Place::new("torn");
    let path = place.fifo();
    let log = open(&path);
    let lines = [numbered(0, 0, 100), numbered(0, 1, 600_000), numbered(0, 2, 100)];
    lines.iter().for_each(|line| add(&log, line));
    log.write_some(); // the first line, and of the second what a pipe holds
    assert!(log.retry_in(0).is_some());
    std::fs::remove_file(&path).expect("a pipe");
    log.reopen().expect("reopen");
    log.write_some();
    assert_eq!(std::fs::read_to_string(&path).expect("lines"), lines[1..].concat());
    assert_eq!(log.lost(), 0);
}

#[test]
fn several_workers_append_to_one_file_and_rotations_lose_and_tear_nothing() {
    const WRITERS: usize = 3;
    const LINES: usize = 3000;
    const LENGTH: usize = 100;
    let place = Place::new("workers");
    let path = place.path("access.log");
    let logs: Vec<_> = (0..WRITERS).map(|_| open(&path)).collect();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for log in &logs {
            scope.spawn(|| monitor(log, &over));
        }
        let writers: Vec<_> = logs
            .iter()
            .enumerate()
            .map(|(writer, log)| {
                scope.spawn(move || {
                    for number in 0..LINES {
                        add(log, &numbered(writer, number, LENGTH));
                    }
                })
            })
            .collect();
        let mut rotation = 0;
        while writers.iter().any(|writer| !writer.is_finished()) || rotation < 5 {
            rotation += 1;
            std::fs::rename(&path, place.path(&format!("access.log.{rotation:03}"))).expect("rename");
            for log in &logs {
                log.reopen().expect("reopen");
            }
        }
        over.store(true, Ordering::SeqCst);
    });
    for log in &logs {
        log.flush();
        assert_eq!(log.lost(), 0);
    }
    let mut files: Vec<_> =
        std::fs::read_dir(&place.0).expect("files").map(|file| file.expect("a file").path()).collect();
    files.sort();
    files.rotate_left(1); // the one without a number is the last
    let mut counts = vec![0; WRITERS];
    for file in files {
        let more = check(&std::fs::read_to_string(file).expect("lines"), WRITERS, LENGTH);
        counts.iter_mut().zip(more).for_each(|(count, more)| *count += more);
    }
    assert_eq!(counts, [LINES; WRITERS]);
}

#[test]
fn a_full_disk_keeps_lines_up_to_a_bound_and_then_loses_whole_ones() {
    const LENGTH: usize = 1000;
    const LINES: usize = 12_000;
    let log = open(Path::new("/dev/full"));
    let begin = Instant::now();
    for number in 0..LINES {
        add(&log, &numbered(0, number, LENGTH));
        if log.is_due() {
            log.write_some();
        }
    }
    assert!(begin.elapsed() < DEADLINE, "no thread waits for a full disk");
    let notice = log.take_notice().expect("a notice");
    assert!(notice.contains("No space left on device"), "{notice}");
    assert_eq!(log.take_notice(), None, "told once");
    let kept = LINES as u64 - log.lost();
    assert_eq!(kept, (8 << 20) / LENGTH as u64);
    let retry = log.retry_in(tricorn_io::clock::now()).expect("another try");
    assert!(retry <= harness::SECOND);
    let begin = Instant::now();
    log.flush();
    assert!(begin.elapsed() < Duration::from_secs(5), "a stop is not held up");
    assert_eq!(log.lost(), LINES as u64, "what was not written is counted");
}

#[test]
fn a_disk_that_has_room_again_gets_what_was_kept() {
    let place = Place::new("recovery");
    let path = place.path("log");
    std::os::unix::fs::symlink("/dev/full", &path).expect("a link");
    let log = open(&path);
    for number in 0..100 {
        add(&log, &numbered(0, number, 50));
        log.write_some();
    }
    std::fs::remove_file(&path).expect("a link");
    log.reopen().expect("reopen");
    log.write_some();
    assert_eq!(check(&std::fs::read_to_string(&path).expect("lines"), 1, 50), [100]);
    assert_eq!(log.lost(), 0);
    assert_eq!(log.retry_in(0), None);
    assert!(log.take_notice().expect("a notice").ends_with("0 lines were lost"));
}

#[test]
fn a_pipe_whose_reader_stops_holds_nobody_and_goes_on_where_it_was() {
    const LENGTH: usize = 200;
    let place = Place::new("slow");
    let path = place.fifo();
    let log = open(&path);
    let mut reader =
        std::fs::OpenOptions::new().read(true).custom_flags(0o4000).open(&path).expect("a reader, without waiting");
    let mut count = 0;
    while log.retry_in(0).is_none() {
        add(&log, &numbered(0, count, LENGTH));
        count += 1;
        if log.is_due() {
            log.write_some();
        }
    }
    for _ in 0..1000 {
        add(&log, &numbered(0, count, LENGTH));
        count += 1;
    }
    let mut text = String::new();
    let mut buffer = vec![0; 5000];
    until("everything is read", || {
        if let Ok(bytes) = reader.read(&mut buffer) {
            text.push_str(std::str::from_utf8(&buffer[..bytes]).expect("ASCII"));
        }
        if log.is_due() {
            log.write_some();
        }
        text.len() == count * LENGTH
    });
    assert_eq!(check(&text, 1, LENGTH), [count]);
    assert_eq!((log.lost(), log.take_notice()), (0, None));
}

#[test]
fn a_pipe_that_nobody_reads_holds_a_stop_for_a_while_only() {
    let place = Place::new("stuck");
    let log = open(&place.fifo());
    for number in 0..10_000 {
        add(&log, &numbered(0, number, 100));
    }
    log.write_some();
    let begin = Instant::now();
    log.flush();
    let took = begin.elapsed();
    assert!((Duration::from_secs(4)..DEADLINE).contains(&took), "{took:?}");
    assert!((9_000..10_000).contains(&log.lost()), "{}", log.lost());
}

#[test]
fn a_line_longer_than_a_pipe_takes_at_once_is_written_all_the_same() {
    let place = Place::new("long");
    let path = place.path("log");
    let log = open(&path);
    let long = numbered(0, 0, 600_000);
    add(&log, &long);
    add(&log, "short\n");
    log.write_some();
    assert_eq!(std::fs::read_to_string(&path).expect("lines"), format!("{long}short\n"));
}

#[test]
fn a_disk_that_hangs_stops_neither_requests_nor_deadlines_nor_the_heartbeat() {
    let disk = HungLog::new("hangs");
    let gate = Gate::default();
    let inside = gate.clone();
    let config = Config { threads: 2, header_timeout: 50 * MILLI, timeout: NEVER, ..disk.config() };
    let server = Server::logging(config, disk.open(), move |engine, exchange| {
        let path = path(exchange);
        if path == "/held" {
            inside.pass();
        }
        answer(engine, exchange, b"");
        tell(engine, &path);
    });
    let mut expected = String::new();
    let mut client = server.connect();
    let mut ask = |path: &str| {
        client.send(request(path).as_bytes());
        assert_eq!(client.response().status, 200);
        expected.push_str(&format!("{path}\n"));
    };
    ask("/first");
    let mut number = 0;
    until("the trouble is told", || {
        number += 1;
        ask(&format!("/{number}")); // what the monitor tells is logged by an app thread
        server.notices().iter().any(|notice| notice.text.contains("its disk does not answer"))
    });
    let mut held = server.connect();
    held.send(request("/held").as_bytes());
    gate.until_held(1);
    let beat = server.get(Word::Heartbeat);
    until("the heartbeat goes on", || server.get(Word::Heartbeat) > beat + 10 * MILLI);
    let mut slow = server.connect();
    slow.send(b"GET / HTT");
    assert_eq!(slow.response().status, 408);
    expected.push_str("-\n"); // it never met the handler
    let mut ask = |path: &str| {
        client.send(request(path).as_bytes());
        assert_eq!(client.response().status, 200);
        expected.push_str(&format!("{path}\n"));
    };
    let _mended = disk.mend();
    until("it is told that lines are written again", || {
        number += 1;
        ask(&format!("/{number}"));
        server.notices().iter().any(|notice| notice.text.ends_with("written again; 0 lines were lost"))
    });
    // A line is added after the answer: those of two threads come in any order.
    until("the lines so far are written", || disk.text().len() == expected.len());
    gate.open(1);
    assert_eq!(held.response().status, 200);
    expected.push_str("/held\n");
    until("all lines are written", || disk.text().len() == expected.len());
    assert_eq!(disk.text(), expected);
    assert_eq!(server.get(Word::LogLost), 0);
}

#[test]
fn a_disk_that_hangs_costs_lines_beyond_a_bound_only_and_none_is_out_of_order() {
    const LENGTH: usize = 1000;
    const LINES: usize = 12_000;
    let disk = HungLog::new("bound");
    let log = Arc::new(disk.open());
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| tend(&log, &over));
        for number in 0..LINES {
            add(&log, &numbered(0, number, LENGTH));
        }
        let kept = LINES - log.lost() as usize;
        assert_eq!(kept, (8 << 20) / LENGTH);
        let mended = disk.mend();
        until("what was kept is written", || disk.text().len() == kept * LENGTH);
        add(&log, &numbered(0, LINES, LENGTH));
        until("the log goes on", || disk.text().len() == (kept + 1) * LENGTH);
        assert_eq!(check(&disk.text(), 1, LENGTH), [kept + 1]);
        over.store(true, Ordering::SeqCst);
        log.flush();
        drop(mended);
    });
}

#[test]
fn a_disk_that_hangs_holds_the_end_for_a_while_only_and_the_losses_are_told() {
    const LINES: usize = 10;
    let disk = HungLog::new("end");
    let server = Server::logging(disk.config(), disk.open(), |engine, exchange| {
        answer(engine, exchange, b"");
        tell(engine, "line");
    });
    let mut client = server.connect();
    for _ in 0..LINES {
        client.send(request("/").as_bytes());
        assert_eq!(client.response().status, 200);
    }
    server.engine.stop();
    server.until_ended();
    let begin = Instant::now();
    let told = server.engine.close().expect("a last word");
    let took = begin.elapsed();
    assert!((Duration::from_secs(4)..DEADLINE).contains(&took), "{took:?}");
    assert!(told.contains("10 lines were lost"), "{told}");
    assert_eq!(server.get(Word::LogLost), LINES as u64);
    drop(disk.mend()); // the thread leaves
}

#[test]
fn a_line_that_no_thread_has_yet_does_not_hold_the_end_either() {
    let disk = HungLog::new("last");
    let log = Arc::new(disk.open());
    add(&log, "line\n");
    let begin = Instant::now();
    log.flush();
    assert!(begin.elapsed() < DEADLINE, "{:?}", begin.elapsed());
    assert_eq!(log.lost(), 1);
    drop(disk.mend());
}

#[test]
fn a_rotation_on_a_disk_that_hangs_is_done_when_it_goes_on() {
    let disk = HungLog::new("rotated");
    let rotated = disk.place.path("access.log.1");
    let log = Arc::new(disk.open());
    add(&log, "one\n");
    log.tend(clock::now());
    std::fs::rename(&disk.path, &rotated).expect("rename");
    let begin = Instant::now();
    let error = log.reopen().expect_err("the disk hangs");
    assert!(begin.elapsed() < DEADLINE, "{:?}", begin.elapsed());
    assert!(error.to_string().contains("opened anew when the disk answers"), "{error}");
    let mended = disk.mend();
    until("the file is opened anew", || disk.path.exists());
    add(&log, "two\n");
    log.flush();
    drop(mended);
    assert_eq!(std::fs::read_to_string(&rotated).expect("lines") + &disk.text(), "one\ntwo\n");
    assert_eq!(log.lost(), 0);
}
