//! One request and its response, and the streams of a connection.
use std::sync::Arc;
use tricorn_proto::http2::flow::{ReceiveWindow, SendWindow};

use crate::http2::response::Response;

#[derive(Debug)]
pub struct Stream {
    pub id: u32,
    /// Whose request it is.
    pub client: u32,
    pub send: SendWindow,
    pub receive: ReceiveWindow,
    /// The content of the request, and how much of it was written.
    body: Arc<[u8]>,
    written: usize,
    /// The request was not HEAD.
    pub has_content: bool,
    /// An interim response came, or more.
    pub is_begun: bool,
    pub response: Option<Response>,
}

impl Stream {
    pub fn new(id: u32, client: u32, (send, receive): (u32, u32), body: Arc<[u8]>, has_content: bool) -> Stream {
        Stream {
            id,
            client,
            send: SendWindow::new(send),
            receive: ReceiveWindow::new(receive, receive),
            body,
            written: 0,
            has_content,
            is_begun: false,
            response: None,
        }
    }

    /// All of the request was written.
    pub fn is_written(&self) -> bool {
        self.written == self.body.len()
    }

    /// The next piece of the request's content, as far as the window allows, and whether it is the last one.
    pub fn next_piece(&mut self, most: usize) -> (&[u8], bool) {
        let length = (self.body.len() - self.written).min(self.send.room()).min(most);
        self.send.spend(length);
        self.written += length;
        (&self.body[self.written - length..self.written], self.written == self.body.len())
    }
}

/// Sorted by their identifiers, which grow.
#[derive(Debug, Default)]
pub struct Streams(Vec<Stream>);

impl Streams {
    pub fn push(&mut self, stream: Stream) {
        self.0.push(stream);
    }

    pub fn get_mut(&mut self, id: u32) -> Option<&mut Stream> {
        let place = self.place(id)?;
        self.0.get_mut(place)
    }

    pub fn remove(&mut self, id: u32) -> Option<Stream> {
        self.place(id).map(|place| self.0.remove(place))
    }

    /// Takes those off whose identifiers are larger.
    pub fn split_after(&mut self, last: u32) -> Vec<Stream> {
        let place = self.0.partition_point(|stream| stream.id <= last);
        self.0.split_off(place)
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.0.iter()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream> {
        self.0.iter_mut()
    }

    fn place(&self, id: u32) -> Option<usize> {
        self.0.binary_search_by_key(&id, |stream| stream.id).ok()
    }
}
