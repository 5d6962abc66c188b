//! The channel: a SOCK_SEQPACKET pair that all workers hold both ends of, and the group's wake-up beside it. What one sends is taken
//! by exactly one other; what was not taken survives its sender.
use super::fds;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::{self, Errno, IoSlice, IoSliceMut};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::mem::MaybeUninit;

/// Most descriptors of a message.
pub const DESCRIPTORS: usize = 3;

/// A message is known by so many of its first bytes: with the times of a request and the address of its client no two are alike.
const IDENTITY: usize = 128;

/// What recvmsg(2) has brought besides bytes.
struct Taken {
    descriptors: Vec<OwnedFd>,
    /// There was room for all of them.
    is_whole: bool,
}

fn descriptors_in(control: &mut RecvAncillaryBuffer<'_>) -> Vec<OwnedFd> {
    let mut descriptors = Vec::with_capacity(DESCRIPTORS);
    for part in control.drain() {
        if let RecvAncillaryMessage::ScmRights(received) = part {
            descriptors.extend(received);
        }
    }
    descriptors
}

/// Sends one message by this end of a pair, whole or not at all; never waits.
pub fn post(send: BorrowedFd<'_>, parts: &[IoSlice<'_>], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(Errno::MSGSIZE);
    }
    sendmsg(send, parts, &mut control, SendFlags::NOSIGNAL | SendFlags::DONTWAIT).map(drop)
}

#[derive(Debug)]
pub struct Channel {
    pub receive: OwnedFd,
    pub send: OwnedFd,
    /// An eventfd that is rung and never read: every ring is an edge to all that watch it.
    pub wakeup: OwnedFd,
}

impl Channel {
    /// Sends one message, whole or not at all; never waits.
    pub fn post(&self, parts: &[IoSlice<'_>], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        post(self.send.as_fd(), parts, descriptors)
    }

    /// Takes the first message: its bytes go to `buffer`, whose length is the most it may have. `None`: there is none. MFILE:
    /// there is no room for its descriptors, and it stays where it is.
    ///
    /// A message that is taken while the process runs out of descriptors has lost its own. So second ones, which a look at it
    /// has brought, are held until it is taken; if it lost any, and is the same one, they stand for them. Only a message that
    /// came in between, because a sibling took the first, can be lost (MSGSIZE).
    pub fn take(&self, buffer: &mut Vec<u8>) -> io::Result<Option<Vec<OwnedFd>>> {
        let mut front = [0; IDENTITY];
        let Some((length, seconds)) = self.look(&mut front)? else { return Ok(None) };
        match self.take_as_it_is(buffer)? {
            Some(Taken { descriptors, is_whole: true }) => Ok(Some(descriptors)),
            Some(_) if buffer.get(..length) == front.get(..length) => Ok(Some(seconds)),
            Some(_) => Err(Errno::MSGSIZE),
            None => Ok(None),
        }
    }

    fn take_as_it_is(&self, buffer: &mut Vec<u8>) -> io::Result<Option<Taken>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let message = loop {
            match recvmsg(&self.receive, &mut [IoSliceMut::new(buffer)], &mut control, flags) {
                Ok(message) => break message,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(None),
                Err(error) => return Err(error),
            }
        };
        let descriptors = descriptors_in(&mut control);
        if message.flags.contains(ReturnFlags::TRUNC) {
            return Err(Errno::MSGSIZE);
        }
        buffer.truncate(message.bytes);
        Ok(Some(Taken { descriptors, is_whole: !message.flags.contains(ReturnFlags::CTRUNC) }))
    }

    /// How much of the first message fits into `buffer`, and a second descriptor for the first of those in it. The message
    /// stays where it is. `None`: there is none.
    pub fn peek(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, Option<OwnedFd>)>> {
        Ok(self.look(buffer)?.map(|(count, descriptors)| (count, descriptors.into_iter().next())))
    }

    /// The same, with second descriptors for all in it.
    fn look(&self, buffer: &mut [u8]) -> io::Result<Option<(usize, Vec<OwnedFd>)>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC | RecvFlags::PEEK;
        let bytes = match recvmsg(&self.receive, &mut [IoSliceMut::new(buffer)], &mut control, flags) {
            // There is no room for its descriptors among ours: who has room may take it.
            Ok(message) if message.flags.contains(ReturnFlags::CTRUNC) => return Err(Errno::MFILE),
            Ok(message) => message.bytes,
            Err(Errno::AGAIN) => return Ok(None),
            Err(error) => return Err(error),
        };
        Ok(Some((bytes, descriptors_in(&mut control))))
    }

    /// Whether there are messages that were not taken.
    pub fn holds_any(&self) -> bool {
        fds::unacknowledged(self.send.as_fd()).is_none_or(|bytes| bytes > 0)
    }

    /// Tells everybody who has requests waiting to look at the scoreboards again.
    pub fn ring(&self) {
        let _ = io::write(&self.wakeup, &1u64.to_ne_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn channel() -> Channel {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (receive, send) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).expect("socket pair");
        Channel { receive, send, wakeup: eventfd(0, EventfdFlags::NONBLOCK).expect("eventfd") }
    }

    #[test]
    fn messages_come_whole_in_order_with_their_descriptors() {
        let channel = channel();
        let (reader, writer) = rustix::pipe::pipe().expect("pipe");
        assert!(!channel.holds_any());
        channel.post(&[IoSlice::new(b"one"), IoSlice::new(b" two")], &[writer.as_fd()]).expect("room");
        channel.post(&[IoSlice::new(b"three")], &[]).expect("room");
        drop(writer);
        assert!(channel.holds_any());
        let mut beginning = [0; 4];
        let (count, descriptor) = channel.peek(&mut beginning).expect("no error").expect("a message");
        assert_eq!((&beginning[..count], descriptor.is_some()), (b"one ".as_slice(), true));
        let mut buffer = vec![0; 64];
        let descriptors = channel.take(&mut buffer).expect("no error").expect("a message");
        assert_eq!((buffer.as_slice(), descriptors.len()), (b"one two".as_slice(), 1));
        io::write(&descriptors[0], b"x").expect("the pipe's end arrived");
        io::read(&reader, &mut [0u8; 1]).expect("and leads to the pipe");
        let mut buffer = vec![0; 64];
        assert_eq!(channel.take(&mut buffer).expect("no error").expect("a message").len(), 0);
        assert_eq!(buffer, b"three");
        assert!(channel.take(&mut vec![0; 8]).expect("no error").is_none());
        assert!(channel.peek(&mut [0; 8]).expect("no error").is_none());
        assert!(!channel.holds_any());
    }

    #[test]
    fn a_full_channel_says_so_at_once() {
        let channel = channel();
        let error = (0..100_000).find_map(|_| channel.post(&[IoSlice::new(&[0; 1024])], &[]).err());
        assert_eq!(error, Some(Errno::AGAIN));
    }
}
