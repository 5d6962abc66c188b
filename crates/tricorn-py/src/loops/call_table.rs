//! The calls under way that are told what happens to their connections, by their slots.
use crate::sync::lock;
use pyo3::PyClass;
use pyo3::prelude::*;
use std::sync::Mutex;

/// A table of calls: objects of the gateway that this is a part of.
///
/// Everything happens on the loop's thread; the lock is for Python code that lets go of an object elsewhere. No Python runs
/// while it is held: nothing is dropped, and the closures only look.
#[derive(Default)]
pub struct CallTable(Mutex<Vec<Option<Py<PyAny>>>>);

impl CallTable {
    pub fn put(&self, slot: usize, call: Py<PyAny>) {
        let before = {
            let mut places = lock(&self.0);
            if places.len() <= slot {
                places.resize_with(slot + 1, || None);
            }
            places[slot].replace(call)
        };
        drop(before);
    }

    pub fn take(&self, slot: usize) -> Option<Py<PyAny>> {
        lock(&self.0).get_mut(slot).and_then(Option::take)
    }

    pub fn get<'py>(&self, py: Python<'py>, slot: usize) -> Option<Bound<'py, PyAny>> {
        let call = lock(&self.0).get(slot)?.as_ref()?.clone_ref(py);
        Some(call.into_bound(py))
    }

    pub fn all<'py>(&self, py: Python<'py>) -> Vec<Bound<'py, PyAny>> {
        lock(&self.0).iter().flatten().map(|call| call.clone_ref(py).into_bound(py)).collect()
    }

    /// Those that are objects of this class.
    pub fn of<T: PyClass>(&self, py: Python<'_>) -> impl Iterator<Item = Py<T>> {
        self.all(py).into_iter().filter_map(|call| Some(call.cast_into::<T>().ok()?.unbind()))
    }

    /// The same, with their slots.
    pub fn entries(&self, py: Python<'_>) -> Vec<(usize, Py<PyAny>)> {
        let places = lock(&self.0);
        let entry = |(slot, call): (usize, &Option<Py<PyAny>>)| Some((slot, call.as_ref()?.clone_ref(py)));
        places.iter().enumerate().filter_map(entry).collect()
    }

    /// The slot of the first that `is_it` takes for the one.
    pub fn find(&self, py: Python<'_>, is_it: impl Fn(&Bound<'_, PyAny>) -> bool) -> Option<usize> {
        lock(&self.0).iter().position(|call| call.as_ref().is_some_and(|call| is_it(call.bind(py))))
    }
}
