//! Responses whose application names a file (X-Sendfile, X-Accel-Redirect): their body is dropped, and the reactor sends the file once the
//! exchange is back (`reactor/finish.rs`).
//!
//! Until then the reply machine goes on as if the body were sent, so that no gateway sees a difference.
use super::coder::{Coder, NamedFile};
use super::encoding;
use super::{Exchange, Sent};
use crate::files::{NamedBy, Watched};
use tricorn_proto::message::FieldList;
use tricorn_proto::response::{End, HeadInputs};

impl Exchange {
    /// Its application may name a file by these fields.
    pub(crate) fn watch(&mut self, watched: Watched) {
        let compressors = match std::mem::take(&mut self.coder) {
            Coder::Ready(compressors) => Some(compressors),
            _ => None,
        };
        self.coder = Coder::Watching(compressors, watched);
    }

    /// A file is sent in place of the body, once the exchange is given back: its line in the log follows that.
    pub fn is_deferred(&self) -> bool {
        matches!(self.coder, Coder::Named(_))
    }

    /// Whether the body is dropped, since the head names a file. The first call decides.
    pub(super) fn names_file(&mut self, inputs: &HeadInputs<'_>) -> bool {
        let Coder::Watching(..) = self.coder else { return self.is_deferred() };
        let Coder::Watching(compressors, watched) = std::mem::take(&mut self.coder) else { return false };
        let request = &mut *self.request;
        let fields = request.reply.fields();
        let named = |by: &NamedBy| fields.iter().find(|(name, _)| by.is(name)).map(|(_, value)| (*by, value.to_vec()));
        let Some((by, name)) = NamedBy::ALL.iter().filter(|by| watched.includes(**by)).find_map(named) else {
            self.coder = Coder::of(compressors.as_ref());
            return false;
        };
        let is_kept =
            |name: &[u8]| !name.eq_ignore_ascii_case(b"content-length") && !NamedBy::ALL.iter().any(|by| by.is(name));
        let fields = FieldList::from_iter(fields.iter().filter(|(name, _)| is_kept(name)));
        let status = request.reply.status_code();
        request.out.clear();
        encoding::head(&mut request.reply, &mut request.out, inputs);
        request.out.clear();
        self.coder = Coder::Named(Box::new(NamedFile { by, name, status, fields, keep: None }));
        true
    }

    /// Drops a piece of the body.
    pub(super) fn drop_piece(&mut self, length: u64) -> Sent {
        let request = &mut *self.request;
        encoding::piece(&mut request.reply, &mut request.out, length);
        request.out.clear();
        Sent::Accepted
    }

    /// Ends a reply whose body is dropped. How long that was is of no matter.
    pub(super) fn end_named(&mut self) -> End {
        let request = &mut *self.request;
        let end = encoding::end(&mut request.reply, &mut request.out);
        request.out.clear();
        let keep = end != End::Close;
        if let Coder::Named(named) = &mut self.coder {
            named.keep = Some(keep);
        }
        self.lane.set_reuse(keep);
        if keep { End::Reuse } else { End::Close }
    }

    /// The file that the application has named, which is to be sent now, in place of what it has said.
    pub(crate) fn take_named(&mut self) -> Option<Box<NamedFile>> {
        let Coder::Named(_) = self.coder else { return None };
        let Coder::Named(named) = std::mem::take(&mut self.coder) else { return None };
        let request = &mut *self.request;
        if !self.lane.link().is_lost() {
            let head = &request.head;
            request.reply.begin(head.kind, head.version, named.keep.unwrap_or(false));
        }
        Some(named)
    }
}
