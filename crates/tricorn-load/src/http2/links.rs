//! Which client sends over which connection.
//!
//! A link is the place of a connection; when this ends, the next one takes its place. Clients that come get links of their
//! own first, as far as there may be connections. Further ones share the links of their origin in turns.
use std::collections::VecDeque;

pub struct Links {
    all: Vec<Link>,
    /// For each origin its links, and how many clients these have.
    origins: Vec<(Vec<u32>, usize)>,
    most: usize,
    /// Most clients of a link.
    shares: usize,
}

pub struct Link {
    pub origin: u32,
    /// Which of all threads' connections it is.
    pub number: usize,
    /// The channel that new requests take.
    pub channel: Option<u32>,
    /// Clients whose requests wait for a stream.
    pub waiting: VecDeque<u32>,
}

impl Links {
    pub fn new(origins: usize, most: usize, shares: usize) -> Links {
        Links { all: Vec::new(), origins: vec![(Vec::new(), 0); origins], most, shares }
    }

    /// The link of a client that comes. None: all are taken.
    pub fn assign(&mut self, origin: u32, number: usize) -> Option<u32> {
        let (links, clients) = self.origins.get_mut(origin as usize)?;
        let link = if self.all.len() < self.most {
            self.all.push(Link { origin, number, channel: None, waiting: VecDeque::new() });
            links.push(self.all.len() as u32 - 1);
            self.all.len() as u32 - 1
        } else if *clients < links.len() * self.shares {
            links[*clients % links.len()]
        } else {
            return None;
        };
        *clients += 1;
        Some(link)
    }

    pub fn get_mut(&mut self, link: u32) -> &mut Link {
        &mut self.all[link as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_come_before_streams() {
        let mut links = Links::new(1, 3, 2);
        let assigned: Vec<_> = (0..7).map(|number| links.assign(0, number)).collect();
        assert_eq!(assigned, [Some(0), Some(1), Some(2), Some(0), Some(1), Some(2), None]);
        assert_eq!(links.get_mut(2).number, 2);
    }

    #[test]
    fn links_belong_to_one_origin() {
        let mut links = Links::new(2, 3, 2);
        let assigned = [0, 1, 0, 1, 0, 0, 1, 0].map(|origin| links.assign(origin, 0));
        assert_eq!(assigned, [Some(0), Some(1), Some(2), Some(1), Some(0), Some(2), None, None]);
    }
}
