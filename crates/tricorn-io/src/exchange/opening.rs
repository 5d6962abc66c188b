//! A file that a reply is to be sent from, opened by a job: a path may lead to a disk that hangs.
use super::output::Disks;
use crate::disk::{Job, Place};
use crate::sys::files::{Opened, open_file};
use crate::sys::poll::Token;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

/// The file, once it is open.
#[derive(Clone)]
pub struct Opening(Arc<Mutex<Option<io::Result<Opened>>>>);

impl Opening {
    /// Has a file opened. The exchange on the connection is told when that is done.
    pub(crate) fn begin(disks: &Arc<Disks>, token: Token, path: PathBuf) -> Opening {
        let opening = Opening(Arc::default());
        let place = Place::of_path(&path);
        disks
            .pool()
            .submit_or_run(place, Box::new(Open { path, token, disks: disks.clone(), opening: opening.clone() }));
        opening
    }

    /// The file, or why it cannot be opened; `None`: that is not known yet.
    pub fn take(&self) -> Option<io::Result<Opened>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

struct Open {
    path: PathBuf,
    token: Token,
    disks: Arc<Disks>,
    opening: Opening,
}

impl Job for Open {
    fn run(self: Box<Self>) -> bool {
        let opened = open_file(&self.path);
        *self.opening.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(opened);
        self.disks.tell(self.token);
        true
    }

    fn give_up(self: Box<Self>) {}
}
