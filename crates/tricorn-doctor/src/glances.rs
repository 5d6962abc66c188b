//! What short looks at a thread, one after another, have in common.
use crate::python::frames::PlaceNow;
use crate::verdict::{Held, PositionEvidence};

/// What one thread did at each glance.
#[derive(Default)]
pub(crate) struct Glances {
    pub places: Vec<Option<PlaceNow>>,
    /// How often the GIL was looked at, and how often this thread had it.
    pub gil_seen: usize,
    pub gil_held: usize,
    /// How often this thread had the GIL while garbage was collected.
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

    /// In most glances; a collection that begins within the look counts.
    pub fn collects(&self) -> bool {
        self.gil_seen > 0 && self.collected * 4 >= self.gil_seen * 3
    }

    pub fn position(&self) -> PositionEvidence {
        let Some(Some(first)) = self.places.first() else { return PositionEvidence::Unknown };
        let still = |place: &Option<PlaceNow>| place.is_some_and(|place| place == *first && !place.jumps);
        if self.places.iter().all(still) { PositionEvidence::Still } else { PositionEvidence::Moved }
    }

    /// It had the GIL at each glance, in one call or one collection: no other thread of the interpreter could run.
    pub fn keeps_gil(&self) -> bool {
        self.held() == Held::Always && (self.position() == PositionEvidence::Still || self.collects())
    }

    /// It had the GIL at each glance, and was always at the same call.
    pub fn keeps_still(&self) -> bool {
        self.held() == Held::Always && self.position() == PositionEvidence::Still
    }
}
