//! Files that the server sends itself: what is asked for, and what a disk has still to say. Requests go past the queue and the
//! application (`serve_file.rs`).
use crate::config::{Config, Failpoint};
use crate::disk::{Job, Place, Pool};
use crate::exchange::Exchange;
use crate::exchange::buffers::Request;
use crate::exchange::coder::NamedFile;
use crate::exchange::id::RequestId;
use crate::files::{Found, How, Lookup, Mapping, Match, NamedBy, StaticMap, Wanted, look_up};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use tricorn_proto::message::coding::{Accepted, Coding};
use tricorn_proto::message::{FieldList, Method};
use tricorn_proto::peer::request_id;
use tricorn_proto::representation::imf_fixdate;

/// Most files that are looked for at a time; requests beyond are answered 503. Each may hold a few descriptors.
const MOST: usize = 256;

pub(super) struct Files {
    config: Arc<Config>,
    pool: Pool,
    answers: Sender<LookedUp>,
    inbox: Receiver<LookedUp>,
    /// Jobs that have not come back.
    out: usize,
    /// Exchanges whose applications have named files, while jobs look for those.
    parked: Vec<Parked>,
    /// With ids of requests.
    pub ids: Option<request_id::Maker>,
}

/// What a request asks of the files.
pub(super) enum Asked {
    /// Nothing: it is the application's.
    Nothing,
    File(Wanted, Accepted),
    /// A file that is never sent.
    Refused,
    /// Something else than to be sent a file, where nothing but files is.
    NotAllowed,
}

/// A job's end.
pub(super) struct LookedUp {
    pub id: RequestId,
    pub wanted: Wanted,
    pub lookup: Lookup,
}

/// An exchange whose file is looked for.
pub(super) struct Parked {
    pub exchange: Box<Exchange>,
    pub named: Box<NamedFile>,
    /// When its client is told that the disk hangs.
    pub until: u64,
}

/// The pool takes no job now.
#[derive(Debug)]
pub(super) struct Busy;

impl Files {
    /// `None`: no path means a file.
    pub fn new(config: &Arc<Config>, pool: Pool, ids: Option<request_id::Maker>) -> Option<Box<Files>> {
        let (answers, inbox) = channel();
        let files =
            || Box::new(Files { config: config.clone(), pool, answers, inbox, out: 0, parked: Vec::new(), ids });
        (!config.static_map.is_empty()).then(files)
    }

    fn map(&self) -> &StaticMap {
        &self.config.static_map
    }

    pub fn mapping(&self, index: usize) -> Option<&Mapping> {
        self.map().mapping(index)
    }

    /// What a request asks for. One that comes from another worker was asked about there.
    pub fn ask(&self, request: &Request) -> Asked {
        let (head, bytes) = (&request.head, request.head_bytes());
        if request.travel.hops > 0 || head.framing.has_body() {
            return Asked::Nothing;
        }
        let found = self.map().find(head.path.of(bytes));
        let (Match::File(Wanted { mapping: index, .. }) | Match::Refused(index)) = found else { return Asked::Nothing };
        match (head.kind, found) {
            (Method::Get | Method::Head, Match::File(wanted)) => {
                let fields = head.fields.iter().filter(|field| {
                    let name = field.name.of(bytes);
                    name.len() == 15 && name.eq_ignore_ascii_case(b"accept-encoding")
                });
                Asked::File(wanted, Accepted::of(fields.map(|field| field.value.of(bytes))))
            }
            (Method::Get | Method::Head, _) if self.is_overlay(index) => Asked::Nothing,
            (Method::Get | Method::Head, _) => Asked::Refused,
            _ if self.mapping(index).is_some_and(|mapping| mapping.falls_through) => Asked::Nothing,
            _ => Asked::NotAllowed,
        }
    }

    /// Whether a mapping lies over all paths of the application, some of which are none of a file.
    pub fn is_overlay(&self, index: usize) -> bool {
        self.mapping(index).is_some_and(|mapping| mapping.falls_through && mapping.prefix.is_empty())
    }

    /// Looks up as far as no disk is asked.
    pub fn look_up_cached(&self, wanted: &Wanted, accepted: &Accepted) -> Lookup {
        // Of a disk that hangs nothing is in the caches.
        let hangs = self.config.fault == Some(Failpoint::StallDisk);
        match self.mapping(wanted.mapping) {
            Some(_) if hangs => Lookup::Unknown,
            Some(mapping) => look_up(mapping, wanted, accepted, How::Cached),
            None => Lookup::Missing,
        }
    }

    /// Has a job look it up.
    pub fn submit(&mut self, id: RequestId, wanted: Wanted, accepted: Accepted) -> Result<(), Busy> {
        if self.out >= MOST {
            return Err(Busy);
        }
        let directory = self.mapping(wanted.mapping).map(|mapping| mapping.directory.join("file"));
        let place = directory.map_or(Place::UNKNOWN, |path| Place::of_path(&path));
        let job = LookUp { config: self.config.clone(), id, wanted, accepted, answers: self.answers.clone() };
        self.pool.submit(place, Box::new(job)).map_err(|_| Busy)?;
        self.out += 1;
        Ok(())
    }

    /// The file that an application names. `None`: it lies in none of the directories.
    pub fn find_named(&self, named: &NamedFile) -> Option<Wanted> {
        self.map().find_named(named.by, &named.name)
    }

    /// Where files may lie that are named so, for the log.
    pub fn named_by(&self, by: NamedBy) -> String {
        self.map().named_by(by)
    }

    /// Keeps an exchange until its file is found.
    pub fn park(&mut self, parked: Parked) {
        self.parked.push(parked);
    }

    /// When the next of them has waited too long.
    pub fn next_due(&self) -> Option<u64> {
        self.parked.iter().map(|parked| parked.until).min()
    }

    /// One that has waited too long.
    pub fn take_overdue(&mut self, now: u64) -> Option<Parked> {
        let at = self.parked.iter().position(|parked| parked.until <= now)?;
        Some(self.parked.swap_remove(at))
    }

    /// The exchange of this request, if one is kept.
    pub fn unpark(&mut self, id: RequestId) -> Option<Parked> {
        let at = self.parked.iter().position(|parked| parked.exchange.lane.id() == id)?;
        Some(self.parked.swap_remove(at))
    }

    /// Takes what a job has found.
    pub fn take_looked_up(&mut self) -> Option<LookedUp> {
        let found = self.inbox.try_recv().ok()?;
        self.out -= 1;
        Some(found)
    }
}

struct LookUp {
    config: Arc<Config>,
    id: RequestId,
    wanted: Wanted,
    accepted: Accepted,
    answers: Sender<LookedUp>,
}

impl Job for LookUp {
    fn run(self: Box<Self>) -> bool {
        let LookUp { config, id, wanted, accepted, answers } = *self;
        let mapping = config.static_map.mapping(wanted.mapping);
        let lookup = mapping.map_or(Lookup::Missing, |mapping| look_up(mapping, &wanted, &accepted, How::Waiting));
        // The reactor may be gone.
        let _ = answers.send(LookedUp { id, wanted, lookup });
        true
    }

    /// Its connection is gone.
    fn give_up(self: Box<Self>) {}
}

/// What is told of a file: its type, its form, its validators, and for how long it may be kept.
pub(super) fn fields_of(found: &Found, mapping: &Mapping) -> FieldList {
    let mut fields = FieldList::default();
    fields.push(b"Content-Type", found.media.name.as_bytes());
    if let Some(coding) = found.coding {
        fields.push(b"Content-Encoding", coding.name().as_bytes());
    }
    add_validators(&mut fields, found);
    if found.varies {
        fields.push(b"Vary", b"Accept-Encoding");
    }
    if !mapping.cache_control.is_empty() {
        fields.push(b"Cache-Control", &mapping.cache_control);
    }
    fields
}

/// What is told of a file that an application has named: all that it says, and what it has left open.
pub(super) fn fields_of_named(found: &Found, mut fields: FieldList) -> FieldList {
    if fields.last(b"content-type").is_none() {
        fields.push(b"Content-Type", found.media.name.as_bytes());
    }
    if fields.last(b"etag").is_none() && fields.last(b"last-modified").is_none() {
        add_validators(&mut fields, found);
    }
    fields
}

/// The length of the file and the time of its last change make its entity tag, as they do elsewhere; the form is part of it.
fn add_validators(fields: &mut FieldList, found: &Found) {
    let form = found.coding.map_or("", Coding::suffix).replace('.', "-");
    let tag = format!("\"{:x}-{:x}{form}\"", found.modified, found.length);
    let seconds = i64::try_from(found.modified.div_euclid(1_000_000_000)).unwrap_or(0);
    fields.push(b"ETag", tag.as_bytes());
    fields.push(b"Last-Modified", &imf_fixdate(seconds));
}
