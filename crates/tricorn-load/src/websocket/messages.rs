//! The messages that are sent: made once, as they go over the wire.
use tricorn_proto::websocket::deflate::Agreed;
use tricorn_proto::websocket::{ContextPool, Kind, Role, Sender, sender};

/// One of them: what its echo has to be, and the frame.
pub struct Message {
    pub plain: Vec<u8>,
    pub frame: Vec<u8>,
}

/// Some that differ, of `size` bytes each.
///
/// Each is masked with a key of its own that stays the same, and compressed without what went before, which a client may
/// do whatever was agreed on: the load generator is to be cheap. The server compresses its echoes as it likes.
pub fn make(size: usize, kind: Kind, deflate: Option<&Agreed>) -> Result<Vec<Message>, String> {
    let mut spare = ContextPool::default();
    let made = (0..COUNT).map(|number| {
        let plain = text(size, number);
        let settings = sender::Settings { role: Role::Client, fragment: 0, deflate, seed: number as u64 };
        let mut frame = Vec::new();
        Sender::new(&settings).message(&mut frame, kind, &plain, &mut spare).map_err(|error| error.to_string())?;
        Ok(Message { plain, frame })
    });
    made.collect()
}

/// JSON that differs from line to line, as applications send it.
fn text(size: usize, number: usize) -> Vec<u8> {
    let line = |item: usize| {
        let (price, stock) = (item * 7919 % 10_000, item * 31 % 977);
        format!(
            "{{\"id\":{item},\"name\":\"item {item}\",\"price\":{price},\"stock\":{stock},\"tags\":[\"red\",\"new\"]}},"
        )
    };
    (1 + number * 10_007..).flat_map(|item| line(item).into_bytes()).take(size).collect()
}

/// Enough for an echo of another connection's message, or of an earlier one, to be noticed.
const COUNT: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_differ_and_have_the_size() {
        let messages = make(125, Kind::Text, None).unwrap();
        assert!(messages.iter().all(|message| message.plain.len() == 125 && message.frame.len() == 125 + 6));
        assert!(messages.iter().zip(&messages[1..]).all(|(one, next)| one.plain != next.plain));
    }
}
