//! Who is told what happens to a connection: a table by the places of the calls under way.
use crate::sync::lock;
use pyo3::prelude::*;
use std::sync::Mutex;

/// Everything happens on the loop's thread; the lock is for Python code that lets go of an object elsewhere. No Python runs
/// while it is held: nothing is dropped, and the closures only look.
pub struct Places<T>(Mutex<Vec<Option<T>>>);

impl<T> Default for Places<T> {
    fn default() -> Places<T> {
        Places(Mutex::default())
    }
}

impl<T> Places<T> {
    pub fn put(&self, place: usize, call: T) {
        let before = {
            let mut places = lock(&self.0);
            if places.len() <= place {
                places.resize_with(place + 1, || None);
            }
            places[place].replace(call)
        };
        drop(before);
    }

    pub fn take(&self, place: usize) -> Option<T> {
        lock(&self.0).get_mut(place).and_then(Option::take)
    }

    /// What `look` makes of the one at this place.
    pub fn at<R>(&self, place: usize, look: impl FnOnce(&T) -> R) -> Option<R> {
        lock(&self.0).get(place).and_then(Option::as_ref).map(look)
    }

    /// The place of the first that `is_it` takes for the one.
    pub fn find(&self, is_it: impl Fn(&T) -> bool) -> Option<usize> {
        lock(&self.0).iter().position(|call| call.as_ref().is_some_and(&is_it))
    }

    /// What `look` makes of each.
    pub fn each<R>(&self, look: impl FnMut(&T) -> Option<R>) -> Vec<R> {
        lock(&self.0).iter().flatten().filter_map(look).collect()
    }
}

impl<T> Places<Py<T>> {
    pub fn get(&self, py: Python<'_>, place: usize) -> Option<Py<T>> {
        self.at(place, |call| call.clone_ref(py))
    }

    pub fn all(&self, py: Python<'_>) -> Vec<Py<T>> {
        self.each(|call| Some(call.clone_ref(py)))
    }
}
