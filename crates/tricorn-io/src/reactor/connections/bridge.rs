//! A connection over TLS whose socket the application has taken: what the worker carries between the two.
//!
//! ```text
//!             stream               Bridge                     the application
//!   client ═══ TLS ═══▶ ──up────▶ [held] ──▶ near ┄ pair ┄ far ──▶ recv
//!          ◀══════════ ◀── [held] ◀────down─ near ┄┄┄┄┄┄┄┄ far ◀── send
//! ```
//!
//! The session stays with the server: the application gets one end of a socket pair (socketpair(2)), and finds there what a plain
//! socket would show. Bytes pass as they come. The end of a direction (close_notify, FIN, shutdown(2)) is passed on behind them. A side
//! that is gone ends the other.
//!
//! What a side does not take is held, and until it is taken the other side is not read: at most [`MARK`] bytes for each direction. A
//! bridge on which nothing waits holds no buffer.
use crate::exchange::outbox::{Flush, Outbox, SharedBytes};
use crate::reactor::edges::Edges;
use crate::stream::Stream;
use rustix::fd::RawFd;
use rustix::io::Errno;

/// Bytes that are read at a time, and held at most, of each direction.
pub(super) const MARK: usize = 64 * 1024;

/// Bytes of the application's that are still sent when it has closed its end, beside those that are held: more than a socket holds by
/// the limits that Linux comes with (net.core.wmem_max, unix(7)).
const LAST: usize = 1 << 20;

/// One direction.
#[derive(Debug, Default)]
struct Way {
    /// What its target has not taken.
    held: Outbox,
    stage: Stage,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Open,
    /// Its source has ended, and its target has been told so.
    Ended,
    /// Its target takes nothing more: what comes is thrown away.
    Unwanted,
}

/// What a step has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// So many bytes went on.
    Moved(usize),
    /// An event will tell when there is more to do.
    Waits,
    SourceBroken,
    TargetGone,
}

impl Way {
    /// Passes on what is there, at most once [`MARK`]. `edges` are those of the source.
    fn step(
        &mut self,
        (source, edges): (&Stream, &mut Edges),
        target: &Stream,
        scratch: &mut Vec<u8>,
        spent: &mut Vec<SharedBytes>,
    ) -> Step {
        if !self.held.is_empty() {
            let before = self.held.sent();
            match self.held.flush_some(target, spent, MARK) {
                None => return Step::Moved((self.held.sent() - before) as usize),
                Some(Flush::Empty) => {}
                Some(Flush::Blocked) => return Step::Waits,
                // Nothing of a file is held here (`Lane::redirect`).
                Some(Flush::Gone | Flush::Truncated | Flush::Disk) => return Step::TargetGone,
            }
        }
        match self.stage {
            Stage::Open | Stage::Unwanted if edges.is_readable() => self.read((source, edges), target, scratch),
            Stage::Open | Stage::Unwanted | Stage::Ended => Step::Waits,
        }
    }

    /// Nothing is held.
    fn read(&mut self, (source, edges): (&Stream, &mut Edges), target: &Stream, scratch: &mut Vec<u8>) -> Step {
        scratch.clear();
        let count = match source.read(scratch, MARK) {
            Ok(0) if self.stage == Stage::Unwanted => {
                self.stage = Stage::Ended;
                return Step::Waits;
            }
            Ok(0) => return self.end(target),
            Ok(count) => count,
            Err(Errno::AGAIN) => {
                edges.is_drained();
                return Step::Waits;
            }
            Err(Errno::INTR) => return Step::Moved(0),
            Err(_) => return Step::SourceBroken,
        };
        edges.was_read(count == MARK || source.holds());
        if self.stage == Stage::Unwanted {
            return Step::Moved(count);
        }
        match target.send(scratch) {
            Ok(sent) => self.held.push(&scratch[sent..]),
            Err(Errno::AGAIN) => self.held.push(scratch),
            Err(_) => return Step::TargetGone,
        }
        Step::Moved(count)
    }

    fn end(&mut self, target: &Stream) -> Step {
        self.stage = Stage::Ended;
        match target.end_sending() {
            Ok(()) => Step::Waits,
            Err(_) => Step::TargetGone,
        }
    }

    /// The target takes nothing more.
    fn refuse(&mut self, spent: &mut Vec<SharedBytes>) {
        self.held.clear(spent);
        self.stage = Stage::Unwanted;
    }
}

/// What came of carrying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Carried {
    /// So many bytes in either direction; there may be more.
    Bytes(usize),
    /// An event will tell when there is more to do.
    All,
    /// The client has left.
    ClientGone,
}

#[derive(Debug)]
pub(super) struct Bridge {
    /// Our end of the pair, until the client has left.
    near: Option<Stream>,
    /// What the poller has told of it.
    pub edges: Edges,
    up: Way,
    down: Way,
    /// The number of the exchange's descriptor of the far end, until the call is over.
    far: Option<RawFd>,
}

impl Bridge {
    /// One whose client has left.
    #[cfg(test)]
    pub fn parted() -> Bridge {
        Bridge { near: None, edges: Edges::unknown(), up: Way::default(), down: Way::default(), far: Some(9) }
    }

    /// `unsent`: what the exchange has written, and the client not taken. `unread`: what was read behind the request.
    pub fn new((near, far): (Stream, RawFd), unsent: Outbox, unread: &[u8]) -> Bridge {
        let mut up = Way::default();
        up.held.push(unread);
        let down = Way { held: unsent, ..Way::default() };
        Bridge { near: Some(near), edges: Edges::unknown(), up, down, far: Some(far) }
    }

    pub fn near(&self) -> Option<&Stream> {
        self.near.as_ref()
    }

    /// The number of the exchange's descriptor, until the call is over.
    pub fn far(&self) -> Option<RawFd> {
        self.far
    }

    /// Carries what is there, in either direction once [`MARK`]. `edges` are those of the client.
    pub fn carry(
        &mut self,
        client: &Stream,
        edges: &mut Edges,
        scratch: &mut Vec<u8>,
        spent: &mut Vec<SharedBytes>,
    ) -> Carried {
        let Some(near) = &self.near else { return Carried::All };
        scratch.reserve(MARK);
        let down = match self.down.step((near, &mut self.edges), client, scratch, spent) {
            Step::SourceBroken => self.down.end(client), // the far end is closed, with bytes that were not read there
            step => step,
        };
        if down == Step::TargetGone {
            return Carried::ClientGone;
        }
        let up = match self.up.step((client, edges), near, scratch, spent) {
            Step::SourceBroken => return Carried::ClientGone,
            Step::TargetGone if self.up.stage == Stage::Ended => Step::Waits,
            Step::TargetGone => {
                self.up.refuse(spent);
                let _ = near.end_sending(); // what is lost is the end, and no gap
                Step::Moved(0)
            }
            step => step,
        };
        match (down, up) {
            (Step::Moved(down), Step::Moved(up)) => Carried::Bytes(down + up),
            (Step::Moved(count), _) | (_, Step::Moved(count)) => Carried::Bytes(count),
            _ => Carried::All,
        }
    }

    /// The call is over. A thread or a child of the application may still have the far end.
    pub fn call_ends(&mut self) {
        self.far = None;
    }

    pub fn is_over(&self) -> bool {
        self.far.is_none()
    }

    /// The call is over, and nothing more will be said at the far end.
    pub fn is_through(&self) -> bool {
        self.is_over() && (self.edges.is_hangup() || self.down.stage == Stage::Ended)
    }

    /// The client has left: the application finds the end, behind what was passed on. Whether that is new.
    pub fn part(&mut self) -> bool {
        self.near.take().is_some()
    }

    /// Nothing more is carried.
    pub fn clear(&mut self, spent: &mut Vec<SharedBytes>) {
        self.up.held.clear(spent);
        self.down.held.clear(spent);
    }

    /// What the application has said, as far as the client has not taken it.
    pub fn take_rest(&mut self, scratch: &mut Vec<u8>) -> Outbox {
        let mut rest = std::mem::take(&mut self.down.held);
        let Some(near) = self.near.as_ref().filter(|_| self.down.stage == Stage::Open) else { return rest };
        scratch.reserve(MARK);
        for _ in 0..LAST / MARK {
            scratch.clear();
            match near.read(scratch, MARK) {
                Ok(0) | Err(_) => break,
                Ok(_) => rest.push(scratch),
            }
        }
        rest
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{ErrorKind, Read, Write};
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;

    /// A bridge whose client speaks in the clear: what a stream does for TLS is no affair of it.
    struct World {
        bridge: Bridge,
        client: Stream,
        edges: Edges,
        /// The client's own end.
        peer: UnixStream,
        /// The application's.
        far: UnixStream,
    }

    impl World {
        fn new(unread: &[u8]) -> World {
            let pair = || UnixStream::pair().expect("sockets");
            let ((client, peer), (near, far)) = (pair(), pair());
            for socket in [&client, &near, &peer, &far] {
                socket.set_nonblocking(true).expect("a socket");
            }
            let bridge = Bridge::new((Stream::new(near.into()), 9), Outbox::default(), unread);
            World { bridge, client: Stream::new(client.into()), edges: Edges::unknown(), peer, far }
        }

        /// As after events of both sides, until there is nothing more to do: the second tells of an end.
        fn carry(&mut self) -> Carried {
            match self.carry_once() {
                Carried::All => self.carry_once(),
                carried => carried,
            }
        }

        fn carry_once(&mut self) -> Carried {
            self.edges.may_be_readable();
            self.bridge.edges.may_be_readable();
            let World { bridge, client, edges, .. } = self;
            let (mut scratch, mut spent) = (Vec::new(), Vec::new());
            loop {
                let carried = bridge.carry(client, edges, &mut scratch, &mut spent);
                for way in [&bridge.up, &bridge.down] {
                    assert!(way.held.in_memory() <= MARK, "{way:?}");
                }
                if !matches!(carried, Carried::Bytes(_)) {
                    return carried;
                }
            }
        }

        fn holds(&self) -> [usize; 2] {
            [&self.bridge.up, &self.bridge.down].map(|way| way.held.in_memory())
        }
    }

    /// What there is to be read, and whether the end has come.
    fn drain(socket: &mut UnixStream) -> (Vec<u8>, bool) {
        let mut got = Vec::new();
        match socket.read_to_end(&mut got) {
            Ok(_) => (got, true),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                (got, false)
            }
        }
    }

    /// Writes as much as there is room for.
    fn fill(socket: &mut UnixStream) -> usize {
        let mut count = 0;
        loop {
            match socket.write(&[b'x'; 10_000]) {
                Ok(written) => count += written,
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::WouldBlock);
                    return count;
                }
            }
        }
    }

    #[test]
    fn a_side_that_does_not_read_stops_the_other_at_the_mark() {
        for up in [true, false] {
            let mut world = World::new(b"");
            let mut written = 0;
            loop {
                let count = fill(if up { &mut world.peer } else { &mut world.far });
                assert_eq!(world.carry(), Carried::All);
                written += count;
                if count == 0 {
                    break;
                }
            }
            let [held, nothing] = if up { world.holds() } else { [world.holds()[1], world.holds()[0]] };
            assert!(held > 0 && held <= MARK && nothing == 0, "{held} and {nothing} bytes");
            let mut got = 0;
            while got < written {
                let (bytes, has_ended) = drain(if up { &mut world.far } else { &mut world.peer });
                assert!(!has_ended && !bytes.is_empty(), "{got} of {written} bytes");
                got += bytes.len();
                world.carry();
            }
            assert_eq!(world.holds(), [0, 0], "what waits for nothing has no buffer");
        }
    }

    #[test]
    fn what_was_read_before_is_first_and_the_end_is_last() {
        let mut world = World::new(b"first ");
        world.peer.write_all(b"second").expect("a socket");
        world.peer.shutdown(Shutdown::Write).expect("a socket");
        world.far.write_all(b"answer").expect("a socket");
        assert_eq!(world.carry(), Carried::All);
        assert_eq!(drain(&mut world.far), (b"first second".to_vec(), true));
        assert_eq!(drain(&mut world.peer), (b"answer".to_vec(), false));
        world.far.shutdown(Shutdown::Write).expect("a socket");
        assert_eq!(world.carry(), Carried::All);
        assert_eq!(drain(&mut world.peer), (Vec::new(), true));
    }

    #[test]
    fn what_an_application_does_not_want_to_hear_is_thrown_away() {
        let mut world = World::new(b"");
        world.far.shutdown(Shutdown::Read).expect("a socket");
        for _ in 0..100 {
            fill(&mut world.peer);
            assert_eq!(world.carry(), Carried::All);
        }
        assert_eq!((world.holds(), world.bridge.up.stage), ([0, 0], Stage::Unwanted));
        world.far.write_all(b"still there").expect("a socket");
        world.peer.shutdown(Shutdown::Write).expect("a socket");
        assert_eq!(world.carry(), Carried::All);
        assert_eq!(drain(&mut world.peer), (b"still there".to_vec(), false));
    }

    #[test]
    fn a_client_that_has_left_ends_the_application_behind_what_it_had_said() {
        let mut world = World::new(b"");
        world.peer.write_all(b"last").expect("a socket");
        assert_eq!(world.carry(), Carried::All);
        drop(std::mem::replace(&mut world.peer, UnixStream::pair().expect("sockets").0));
        world.far.write_all(b"one more").expect("a socket");
        assert_eq!(world.carry(), Carried::ClientGone);
        assert!(world.bridge.part() && !world.bridge.part());
        assert_eq!(world.carry(), Carried::All, "there is nothing to carry any more");
        assert_eq!(drain(&mut world.far), (b"last".to_vec(), true));
        assert_eq!(world.far.write(b"?").map_err(|error| error.kind()), Err(ErrorKind::BrokenPipe));
    }

    #[test]
    fn the_rest_of_what_was_said_is_taken_over_in_order() {
        let mut world = World::new(b"");
        let mut written = 0;
        while let count @ 1.. = fill(&mut world.far) {
            written += count;
            world.carry();
        }
        let held = world.holds()[1];
        let rest = world.bridge.take_rest(&mut Vec::new()).in_memory();
        assert!(0 < held && held < rest, "{held} of {rest} bytes");
        assert_eq!(drain(&mut world.peer).0.len() + rest, written);
    }
}
