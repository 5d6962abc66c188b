//! A connection as its user sees it: bytes out and in, through TLS where there is a session.
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags, recv, send};

use crate::address::Address;
use crate::failure::Broken;
use crate::poller::{Interest, Poller};
use crate::tls::{Handshake, Session, Tls};

/// Where requests go to.
pub struct Origin {
    pub address: Address,
    pub tls: Option<Tls>,
}

pub struct Wire {
    socket: OwnedFd,
    session: Option<Box<Session>>,
    /// What the poller looks for.
    watched: Option<Interest>,
}

impl Origin {
    /// A connection that is there, or is being made. `number`: which of them all it is.
    pub fn open(&self, number: usize) -> Result<Wire, Broken> {
        let socket = self.address.open(number).map_err(Broken::System)?;
        Wire::new(socket, self.tls.as_ref())
    }
}

impl Wire {
    pub fn new(socket: OwnedFd, tls: Option<&Tls>) -> Result<Wire, Broken> {
        let session = tls.map(Session::new).transpose()?.map(Box::new);
        Ok(Wire { socket, session, watched: None })
    }

    /// How many of the bytes were taken. AGAIN: none, until something happens that is watched for.
    #[inline]
    pub fn send(&mut self, bytes: &[u8]) -> Result<usize, Broken> {
        match &mut self.session {
            None => send(&self.socket, bytes, SendFlags::NOSIGNAL).map_err(Broken::System),
            Some(session) => session.send(self.socket.as_fd(), bytes),
        }
    }

    /// Reads once. 0: the server sends nothing more.
    #[inline]
    pub fn recv(&mut self, buffer: &mut [u8]) -> Result<usize, Broken> {
        match &mut self.session {
            None => recv(&self.socket, buffer, RecvFlags::empty()).map(|(_, length)| length).map_err(Broken::System),
            Some(session) => session.recv(self.socket.as_fd(), buffer),
        }
    }

    /// Sends what was taken and is still here.
    #[inline]
    pub fn flush(&mut self) -> Result<(), Broken> {
        match &mut self.session {
            None => Ok(()),
            Some(session) => session.flush(self.socket.as_fd()),
        }
    }

    /// Something that was taken is still here.
    #[inline]
    pub fn owes(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.owes())
    }

    /// A handshake has begun, and is not complete.
    pub fn is_shaking(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.is_shaking())
    }

    /// There is a session, and its handshake is complete.
    pub fn is_secured(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.is_open())
    }

    /// The server agreed to the protocol that was offered; without TLS there is nothing to agree to.
    pub fn has_agreed(&self) -> bool {
        self.session.as_ref().is_none_or(|session| session.has_agreed())
    }

    /// The server said that it sends nothing more.
    pub fn is_over(&self) -> bool {
        self.session.as_ref().is_some_and(|session| session.is_over())
    }

    /// Something happened while nothing was asked. Whether the connection stays: TLS has messages of its own.
    pub fn stays(&mut self, buffer: &mut [u8]) -> bool {
        self.session.is_some() && matches!(self.recv(buffer), Err(Broken::System(Errno::AGAIN | Errno::INTR)))
    }

    /// Nothing is sent any more.
    pub fn leave(&mut self) {
        if let Some(session) = &mut self.session {
            session.leave(self.socket.as_fd());
        }
    }

    /// Of a handshake that is complete, once.
    pub fn take_handshake(&mut self) -> Option<Handshake> {
        self.session.as_mut()?.take_handshake()
    }

    pub fn take_reason(&mut self) -> Option<String> {
        self.session.as_mut()?.take_reason()
    }

    /// The poller is to look for what the wire needs. `is_sent`: its user has nothing more to send.
    #[inline]
    pub fn watch(&mut self, poller: &Poller, token: usize, is_sent: bool) -> Result<(), String> {
        let wants_room = match &self.session {
            None => !is_sent,
            Some(session) => session.owes(),
        };
        let interest = if wants_room { Interest::Both } else { Interest::Reading };
        let watched = match self.watched {
            Some(watched) if watched == interest => return Ok(()),
            Some(_) => poller.change(&self.socket, token, interest),
            None => poller.add(&self.socket, token, interest),
        };
        self.watched = Some(interest);
        watched
    }
}

impl AsFd for Wire {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
