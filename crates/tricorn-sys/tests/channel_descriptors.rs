//! A message between workers is not lost when descriptors run out. (Alone in its process: the limit is the process's.)
#![allow(clippy::expect_used, reason = "a test may panic")]
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{self, Errno, IoSlice};
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tricorn_sys::channel::Channel;

fn channel() -> Channel {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (receive, send) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).expect("socket pair");
    Channel { receive, send, wakeup: eventfd(0, EventfdFlags::NONBLOCK).expect("eventfd") }
}

/// Takes all descriptors that this process may have.
fn take_all() -> Vec<OwnedFd> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    setrlimit(Resource::Nofile, Rlimit { current: Some(128), maximum }).expect("a limit");
    std::iter::from_fn(|| eventfd(0, EventfdFlags::CLOEXEC).ok()).collect()
}

#[test]
fn a_message_keeps_its_descriptors_when_the_last_ones_are_used_up_while_it_is_taken() {
    let before = getrlimit(Resource::Nofile);
    let channel = channel();
    let (reader, writer) = rustix::pipe::pipe().expect("pipe");
    for text in ["first", "second"] {
        let parts = [IoSlice::new(text.as_bytes())];
        channel.post(&parts, &[writer.as_fd(), writer.as_fd(), writer.as_fd()]).expect("room");
    }
    let take = || -> Result<(Vec<u8>, Vec<OwnedFd>), Errno> {
        let mut buffer = vec![0; 64];
        let descriptors = channel.take(&mut buffer)?.expect("a message");
        Ok((buffer, descriptors))
    };
    let mut all = take_all();
    all.truncate(all.len() - 2);
    assert_eq!(take().map(drop), Err(Errno::MFILE), "there is no room for it: it stays where it is");
    // The look at it takes the last ones, so that none is left when it is taken.
    all.pop();
    for text in ["first", "second"] {
        let (bytes, descriptors) = take().expect("room enough");
        assert_eq!((bytes.as_slice(), descriptors.len()), (text.as_bytes(), 3));
        for descriptor in &descriptors {
            io::write(descriptor, b"x").expect("the pipe's end");
            io::read(&reader, &mut [0u8; 1]).expect("the pipe");
        }
    }
    setrlimit(Resource::Nofile, before).expect("a limit");
}
