//! Exchanges that come back, and the files that their applications name (X-Sendfile, X-Accel-Redirect): sent now, in place of the body.
use super::Reactor;
use super::files::{LookedUp, Parked, fields_of_named};
use super::serve_file::Answer;
use crate::clock;
use crate::exchange::Exchange;
use crate::exchange::coder::NamedFile;
use crate::files::{Lookup, Wanted};
use rustix::io::Errno;
use tricorn_proto::message::coding::Accepted;

impl Reactor {
    /// Takes an exchange back: its socket, its buffers, and what is left to be sent.
    pub fn finish(&mut self, mut exchange: Box<Exchange>, now: u64) {
        self.dispatch.ended();
        if let Some(named) = exchange.take_named() {
            self.deliver_named(exchange, named);
            return;
        }
        self.connections.check_in(exchange, now);
        self.act_on_updates();
    }

    /// Acts on what a job has found, if one is back. Whether one was.
    pub(super) fn take_looked_up(&mut self) -> bool {
        let Some(LookedUp { id, wanted, lookup }) = self.files.as_mut().and_then(|files| files.take_looked_up()) else {
            return false;
        };
        if let Some(parked) = self.files.as_mut().and_then(|files| files.unpark(id)) {
            self.send_named(parked, lookup);
        } else if self.connections.awaits_file(id)
            && let Some(id) = self.serve(id, &wanted, lookup)
        {
            self.connections.let_begin(id);
            if let Some(id) = self.follow(id) {
                self.enqueue(id);
            }
        }
        true
    }

    /// The application is done with an exchange, and has named a file in place of its body.
    #[cold]
    fn deliver_named(&mut self, exchange: Box<Exchange>, named: Box<NamedFile>) {
        let answered = exchange.is_gone() || named.keep.is_none();
        let wanted = self.files.as_ref().and_then(|files| files.find_named(&named));
        match wanted {
            // The monitor has answered, or the application has failed behind its head.
            _ if answered => self.answer_exchange(exchange, Answer::Page(500)),
            None => {
                self.complain_of_named(&named, "it is not below x_sendfile");
                self.answer_exchange(exchange, Answer::Page(500));
            }
            Some(wanted) => {
                let until = clock::now().saturating_add(self.config.opening_timeout());
                self.look_for_named(Parked { exchange, named, until }, wanted);
            }
        }
    }

    fn look_for_named(&mut self, parked: Parked, wanted: Wanted) {
        let Some(files) = &mut self.files else { return };
        // What the application names it has chosen the form of.
        let accepted = Accepted::default();
        match files.look_up_cached(&wanted, &accepted) {
            Lookup::Unknown => {
                let (id, until) = (parked.exchange.lane.id(), parked.until);
                if files.submit(id, wanted, accepted).is_ok() {
                    files.park(parked);
                    self.connections.wake_by(until);
                    self.connections.detach(id);
                } else {
                    self.answer_exchange(parked.exchange, Answer::Page(503));
                }
            }
            lookup => self.send_named(parked, lookup),
        }
    }

    /// Answers exchanges whose files no disk has opened in time.
    #[inline]
    pub(super) fn expire_named(&mut self, now: u64) {
        while let Some(parked) = self.files.as_mut().and_then(|files| files.take_overdue(now)) {
            self.answer_exchange(parked.exchange, Answer::Page(504));
        }
    }

    /// Answers with what was found.
    fn send_named(&mut self, Parked { exchange, named, .. }: Parked, lookup: Lookup) {
        let (why, status) = match lookup {
            Lookup::File(found) => {
                let fields = fields_of_named(&found, named.fields);
                self.answer_exchange(exchange, Answer::File(found, fields, named.status));
                return;
            }
            Lookup::Missing | Lookup::Directory | Lookup::Unknown => ("there is no such file".to_owned(), 404),
            Lookup::Refused => ("it leads out of x_sendfile, or is no regular file".to_owned(), 500),
            Lookup::Failed(error @ (Errno::MFILE | Errno::NFILE | Errno::NOMEM)) => (text_of(error), 503),
            Lookup::Failed(error @ (Errno::ACCESS | Errno::PERM)) => (text_of(error), 403),
            Lookup::Failed(error) => (text_of(error), 500),
        };
        self.complain_of_named(&named, &why);
        self.answer_exchange(exchange, Answer::Page(status));
    }

    fn complain_of_named(&mut self, named: &NamedFile, why: &str) {
        let Some(files) = &self.files else { return };
        let below = files.named_by(named.by);
        self.connections.tell_of_named(named, why, &below);
    }
}

fn text_of(error: Errno) -> String {
    std::io::Error::from(error).to_string()
}
