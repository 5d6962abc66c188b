//! Samples of a thread within one look, and what they have in common.
use crate::python::frames::PlaceNow;
use crate::verdict::{Held, PositionEvidence};

/// What one thread did at each glance.
#[derive(Default)]
pub(crate) struct Glances {
    pub places: Vec<Option<PlaceNow>>,
    /// Number of samples of the GIL, and of those in which this thread held it.
    pub gil_seen: usize,
    pub gil_held: usize,
    /// Number of samples in which this thread held the GIL during a garbage collection.
    pub collected: usize,
}

impl Glances {
    pub fn held(&self) -> Held {
        match (self.gil_seen, self.gil_held) {
            (0, _) => Held::Unknown,
            (_, 0) => Held::Never,
            (seen, held) if seen == held => Held::Always,
            _ => Held::Sometimes,
        }
    }

    /// Whether most samples were in a garbage collection. One that begins within the look counts.
    pub fn collects(&self) -> bool {
        self.gil_seen > 0 && self.collected * 4 >= self.gil_seen * 3
    }

    pub fn position(&self) -> PositionEvidence {
        let Some(Some(first)) = self.places.first() else { return PositionEvidence::Unknown };
        let still = |place: &Option<PlaceNow>| place.is_some_and(|place| place == *first && !place.jumps);
        if self.places.iter().all(still) { PositionEvidence::Still } else { PositionEvidence::Moved }
    }

    /// Whether it held the GIL in every sample, in one call or one collection, so that no other Python thread could run.
    pub fn keeps_gil(&self) -> bool {
        self.held() == Held::Always && (self.position() == PositionEvidence::Still || self.collects())
    }

    /// Whether it held the GIL in every sample, always at the same call.
    pub fn keeps_still(&self) -> bool {
        self.held() == Held::Always && self.position() == PositionEvidence::Still
    }
}
