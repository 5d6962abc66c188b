//! What concerns all responses of an engine: what those hold that wait for slow clients, and the load that they tell.
use super::closing::Closing;
use super::output::Disks;
use super::overflow::Held;
use crate::scoreboard::Scoreboard;
use std::sync::{Arc, Mutex, PoisonError};
use tricorn_proto::message::FieldList;

/// What an engine knows of its responses.
pub struct Responses {
    pub held: Arc<Held>,
    /// Who sends what lies in files.
    pub disks: Arc<Disks>,
    pub load: Arc<ToldLoad>,
    /// Which of them are to end, while the worker leaves.
    pub closing: Closing,
}

/// The fields that responses have which tell the load. The reactor makes them anew once a second.
#[derive(Debug, Default)]
pub struct ToldLoad(Mutex<Option<Arc<FieldList>>>);

impl ToldLoad {
    /// `None`: it is not told, so that responses have the fields that all have.
    pub fn fields(&self) -> Option<Arc<FieldList>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn tell(&self, fields: Option<Arc<FieldList>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = fields;
    }
}

impl Responses {
    pub fn new(board: Scoreboard, disks: Arc<Disks>) -> Responses {
        Responses { held: Arc::new(Held::new(board)), disks, load: Arc::default(), closing: Closing::default() }
    }
}
