//! Which greenlet has which slot.
//!
//! Slots are small numbers: as few are used as calls were ever under way at once. A request costs two writes here, and no hash.
use pyo3::prelude::*;

#[derive(Default)]
pub(super) struct Running {
    greenlets: Vec<Option<Py<PyAny>>>,
    /// Those that wait are to end.
    pub(super) are_to_end: bool,
}

impl Running {
    /// This greenlet has the slot, which had none.
    #[inline]
    pub(super) fn insert(&mut self, slot: usize, greenlet: Py<PyAny>) {
        if slot >= self.greenlets.len() {
            self.grow(slot);
        }
        if let Some(place) = self.greenlets.get_mut(slot) {
            *place = Some(greenlet);
        }
    }

    #[cold]
    fn grow(&mut self, slot: usize) {
        self.greenlets.resize_with((slot + 1).next_power_of_two(), || None);
    }

    /// Takes out the greenlet that has the slot; to be dropped when nothing of this is borrowed.
    #[inline]
    pub(super) fn remove(&mut self, slot: usize) -> Option<Py<PyAny>> {
        self.greenlets.get_mut(slot)?.take()
    }

    pub(super) fn at(&self, py: Python<'_>, slot: usize) -> Option<Py<PyAny>> {
        self.greenlets.get(slot)?.as_ref().map(|greenlet| greenlet.clone_ref(py))
    }

    pub(super) fn slot_of(&self, greenlet: &Bound<'_, PyAny>) -> Option<usize> {
        self.greenlets.iter().position(|found| found.as_ref().is_some_and(|found| found.is(greenlet)))
    }

    /// Every slot that has one, and the greenlet.
    pub(super) fn all(&self, py: Python<'_>) -> Vec<(usize, Py<PyAny>)> {
        let has_one = |(slot, greenlet): (usize, &Option<Py<PyAny>>)| Some((slot, greenlet.as_ref()?.clone_ref(py)));
        self.greenlets.iter().enumerate().filter_map(has_one).collect()
    }
}
