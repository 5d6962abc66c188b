//! How admin connections come in, when descriptors are short too.
use super::super::listener::Accepted;
use super::super::warnings::Incident;
use super::conn::AdminConn;
use super::{Admin, View};
use crate::clock;
use crate::config;
use crate::stream::Stream;

impl Admin {
    /// Takes connections that wait, up to `most`, and answers what they ask: the listener is level-triggered, so that more make another
    /// event. When the application has used up the descriptors, one at a time is taken with those in reserve. How many steps it took.
    pub fn accept(&mut self, listener: u16, most: u32, view: &View<'_>) -> u32 {
        let (mut borrowed, mut steps) = (false, 0);
        for _ in 0..most {
            let (socket, peer) = match self.gate.accept(listener) {
                Accepted::Connection(socket, peer) => (socket, peer),
                Accepted::Nothing => break,
                Accepted::NoDescriptor if !borrowed && self.gate.lend_descriptor() => {
                    borrowed = true;
                    continue;
                }
                Accepted::NoDescriptor if self.drop_idle() => continue,
                Accepted::NoDescriptor => {
                    self.pause();
                    return steps;
                }
            };
            if self.conns.len() >= config::ADMIN_CONNECTIONS && !self.drop_idle() {
                continue; // dropped, and thereby closed
            }
            let token = self.conns.insert(AdminConn::new(Stream::new(socket), peer, borrowed));
            let patience = if borrowed { config::ADMIN_HASTE } else { config::ADMIN_IDLE };
            self.set_deadline(token, clock::now() + patience);
            borrowed = false;
            steps += self.read(token, view);
        }
        self.descriptors_are_free();
        steps
    }

    /// Others serve on, and answer from now on. Those that have connected are answered here: perhaps no other worker
    /// was woken for them.
    pub fn leave(&mut self, view: &View<'_>) {
        for index in self.gate.leave() {
            self.accept(index, config::ACCEPT_BURST, view);
        }
        self.gate.close();
    }

    /// There is no descriptor for those that wait, and none in reserve.
    #[cold]
    fn pause(&mut self) {
        let end = self.gate.pause(clock::now());
        self.sleeper.wake_by(end);
        self.incident = Some(Incident::NoDescriptor);
    }

    /// Closes a connection that asks nothing, going round the table; whether there was one.
    fn drop_idle(&mut self) -> bool {
        let positions = self.conns.positions();
        for _ in 0..positions {
            self.position = (self.position + 1) % positions;
            let idle = self.conns.at(self.position).filter(|(_, conn)| conn.may_be_dropped());
            if let Some((token, _)) = idle {
                self.close(token);
                return true;
            }
        }
        false
    }
}
