//! Messages in the order in which they were added, cut into what is sent in one piece.

/// One datagram, or one message of a stream.
#[derive(Debug, Clone, Copy)]
struct Piece {
    /// Where it ends.
    end: usize,
    /// How many messages it has.
    messages: u64,
}

#[derive(Debug, Default)]
pub struct Batch {
    bytes: Vec<u8>,
    pieces: Vec<Piece>,
}

impl Batch {
    /// Adds a message as a piece of its own; or to the last piece, behind a newline, if that has then at most `most` bytes.
    /// Whether a piece began.
    pub fn push(&mut self, message: &[u8], most: usize) -> bool {
        let start = self.start_of_last();
        let joined = self.bytes.len() - start + 1 + message.len();
        if joined <= most
            && let Some(last) = self.pieces.last_mut()
        {
            self.bytes.push(b'\n');
            self.bytes.extend_from_slice(message);
            *last = Piece { end: self.bytes.len(), messages: last.messages + 1 };
            return false;
        }
        self.bytes.extend_from_slice(message);
        self.pieces.push(Piece { end: self.bytes.len(), messages: 1 });
        true
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    pub fn pieces(&self) -> usize {
        self.pieces.len()
    }

    /// A piece, and how many messages it has.
    pub fn piece(&self, index: usize) -> Option<(&[u8], u64)> {
        let piece = self.pieces.get(index)?;
        let start = index.checked_sub(1).map_or(0, |before| self.pieces[before].end);
        Some((&self.bytes[start..piece.end], piece.messages))
    }

    /// How many bytes there are from this piece on.
    pub fn bytes_from(&self, index: usize) -> usize {
        let start = index.checked_sub(1).and_then(|before| self.pieces.get(before)).map_or(0, |piece| piece.end);
        self.bytes.len() - start
    }

    /// How many messages there are from this piece on.
    pub fn messages_from(&self, index: usize) -> u64 {
        self.pieces.iter().skip(index).map(|piece| piece.messages).sum()
    }

    /// Moves the last piece, to which more may be added, to another batch, which is empty.
    pub fn move_last(&mut self, to: &mut Batch) {
        let start = self.start_of_last();
        if let Some(last) = self.pieces.pop() {
            to.bytes.extend_from_slice(&self.bytes[start..]);
            to.pieces.push(Piece { end: last.end - start, messages: last.messages });
            self.bytes.truncate(start);
        }
    }

    /// Forgets everything, and gives back memory beyond `kept` bytes.
    pub fn clear(&mut self, kept: usize) {
        self.pieces.clear();
        self.bytes.clear();
        if self.bytes.capacity() > kept {
            *self = Batch::default();
        }
    }

    fn start_of_last(&self) -> usize {
        self.pieces.len().checked_sub(2).map_or(0, |before| self.pieces[before].end)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(batch: &Batch) -> Vec<(String, u64)> {
        let shown = |(bytes, messages): (&[u8], u64)| (String::from_utf8_lossy(bytes).into_owned(), messages);
        (0..batch.pieces()).filter_map(|index| batch.piece(index)).map(shown).collect()
    }

    fn filled(messages: &[&str], most: usize) -> Batch {
        let mut batch = Batch::default();
        for message in messages {
            batch.push(message.as_bytes(), most);
        }
        batch
    }

    #[test]
    fn messages_share_a_piece_as_long_as_they_fit_newlines_included() {
        let batch = filled(&["aaaa", "bbbb", "cc", "dddd"], 9);
        assert_eq!(pieces(&batch), [("aaaa\nbbbb".into(), 2), ("cc\ndddd".into(), 2)]);
        assert_eq!((batch.len(), batch.messages_from(0), batch.messages_from(1)), (16, 4, 2));
    }

    #[test]
    fn a_message_longer_than_a_piece_goes_alone() {
        let batch = filled(&["aa", "a long message", "bb"], 8);
        assert_eq!(pieces(&batch), [("aa".into(), 1), ("a long message".into(), 1), ("bb".into(), 1)]);
    }

    #[test]
    fn with_no_room_at_all_every_message_is_a_piece() {
        assert_eq!(pieces(&filled(&["a", "b"], 0)), [("a".into(), 1), ("b".into(), 1)]);
    }

    #[test]
    fn the_last_piece_may_be_left_for_what_is_to_come() {
        let (mut batch, mut rest) = (filled(&["aaaa", "bbbb", "cc"], 9), Batch::default());
        batch.move_last(&mut rest);
        assert_eq!((pieces(&batch), pieces(&rest)), (vec![("aaaa\nbbbb".into(), 2)], vec![("cc".into(), 1)]));
        assert!(!rest.push(b"dd", 9));
        assert_eq!(pieces(&rest), [("cc\ndd".into(), 2)]);
        batch.clear(0);
        batch.move_last(&mut rest);
        assert_eq!((batch.pieces(), batch.len(), rest.pieces()), (0, 0, 1));
    }
}
