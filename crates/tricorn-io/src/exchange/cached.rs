//! Files of responses: what the page cache has is sent at once, by a thread with other things to do; the rest by jobs (`output/files.rs`).
use super::encoding;
use super::lane::Lane;
use super::outbox::SharedBytes;
use super::output::Disks;
use super::{Exchange, Sent};
use crate::disk::DiskFile;
use crate::sys::files;
use rustix::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use tricorn_proto::response::HeadInputs;

/// Most bytes of a file that are sent by a thread with other things to do.
pub(super) const CACHED: u64 = 1 << 20;
/// From this length on bytes cost more to be copied than sendfile(2) and the question whether it would wait.
const COPIED: u64 = 8 << 10;

impl Exchange {
    /// Sends `length` bytes of a file from `offset` as one piece of the body: a small part that the page cache has as bytes, a large one by
    /// sendfile(2), and the rest by a job ([`Lane::send_file`]). The calling thread waits for no disk.
    pub(crate) fn write_file(
        &mut self,
        disks: &Disks,
        inputs: &HeadInputs<'_>,
        file: OwnedFd,
        offset: u64,
        length: u64,
    ) -> Sent {
        self.write_cached_file(disks, inputs, (file, offset, length), CACHED)
    }

    /// Whether a file that it gives itself can be answered with, in parts: no other is named, and nothing was sent.
    pub(crate) fn may_answer_file(&mut self, inputs: &HeadInputs<'_>) -> bool {
        !self.request.reply.head_sent() && !self.names_file(inputs) && !self.encodes_file()
    }

    /// [`Exchange::write_file`] with at most `most_cached` bytes by sendfile(2).
    pub(super) fn write_cached_file(
        &mut self,
        disks: &Disks,
        inputs: &HeadInputs<'_>,
        (file, offset, length): (OwnedFd, u64, u64),
        most_cached: u64,
    ) -> Sent {
        self.learn_session(b"");
        if self.names_file(inputs) {
            return self.drop_piece(length);
        }
        if self.encodes_file() {
            return self.encode_file(file, offset, length);
        }
        let request = &mut *self.request;
        request.out.clear();
        if !request.reply.head_sent() {
            encoding::head(&mut request.reply, &mut request.out, inputs);
        }
        let most = encoding::most_of_piece(&request.reply) as u64;
        if length > most {
            let file = Arc::new(DiskFile::new(file, disks.pool()));
            return self.write_file_in_parts(file, offset, length, most);
        }
        let (count, after) = encoding::piece(&mut request.reply, &mut request.out, length);
        let lane = &mut self.lane;
        let (mut offset, mut left) = (offset, count);
        if count > COPIED
            && let Some(Sent::Gone) = lane.send_cached(&mut request.out, &file, (&mut offset, &mut left), most_cached)
        {
            return Sent::Gone;
        }
        if left == 0 {
            return lane.send(&mut request.out, after, b"", || Box::new(after.to_vec()));
        }
        if let Some(bytes) = files::cached_part(&file, offset, left) {
            let keep = || Box::new(bytes.clone()) as SharedBytes;
            return lane.send(&mut request.out, &bytes, after, keep);
        }
        let file = Arc::new(DiskFile::new(file, disks.pool()));
        lane.send_file(&request.out, (file, offset, left), after)
    }

    /// Sends a part of a file that has others behind it, or before it, by a job.
    pub(super) fn write_shared_file(
        &mut self,
        inputs: &HeadInputs<'_>,
        file: &Arc<DiskFile>,
        (offset, length): (u64, u64),
    ) -> Sent {
        let request = &mut *self.request;
        request.out.clear();
        if !request.reply.head_sent() {
            encoding::head(&mut request.reply, &mut request.out, inputs);
        }
        let most = encoding::most_of_piece(&request.reply) as u64;
        self.write_file_in_parts(file.clone(), offset, length, most)
    }

    /// The same of a part that is too long for one piece, behind the head.
    #[cold]
    fn write_file_in_parts(&mut self, file: Arc<DiskFile>, offset: u64, length: u64, most: u64) -> Sent {
        let (mut at, end, mut sent) = (offset, offset + length, Sent::Accepted);
        while at < end {
            let request = &mut *self.request;
            let (count, after) = encoding::piece(&mut request.reply, &mut request.out, most.min(end - at));
            if count == 0 {
                // The response may have no more. To HEAD its head alone is due, which is still in `out`.
                return self.send_out();
            }
            sent = self.lane.send_file(&request.out, (file.clone(), at, count), after);
            request.out.clear();
            at += count;
        }
        sent
    }
}

impl Lane {
    /// Sends `out`, and of a part of a file (from an offset, so many bytes) what the page cache has: what is left of that is to be sent by
    /// [`Lane::send_file`]. `None`: nothing is sent in this way.
    pub(crate) fn send_cached(
        &mut self,
        out: &mut Vec<u8>,
        file: &OwnedFd,
        (offset, left): (&mut u64, &mut u64),
        most: u64,
    ) -> Option<Sent> {
        let most = (*left).min(most);
        if !self.stream().sends_files() || !self.output.is_clear() || !files::is_cached(file, *offset, most) {
            return None;
        }
        if self.link().is_lost() {
            return Some(Sent::Gone);
        }
        let progress = self.output.send_cached(out, file.as_fd(), (offset, left), most);
        let sent = self.note(progress);
        out.clear();
        Some(sent)
    }
}
