//! A place for one value that threads take and put back. It costs an atomic exchange each, where a mutex costs two.
use std::marker::PhantomData;
use std::ptr::null_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicPtr, Ordering};

/// All of its operations are in one order for all threads, as those of other atomics that are `SeqCst`.
#[derive(Debug)]
pub struct Seat<T> {
    /// Null while it is empty, else of a `Box`.
    value: AtomicPtr<T>,
    /// What threads may do with it is what they may do with that: a value goes from one to another as a whole.
    like: PhantomData<Mutex<T>>,
}

impl<T> Default for Seat<T> {
    fn default() -> Seat<T> {
        Seat { value: AtomicPtr::new(null_mut()), like: PhantomData }
    }
}

impl<T> Seat<T> {
    /// What was there before is dropped.
    #[inline]
    pub fn put(&self, value: Box<T>) {
        drop(self.exchange(Box::into_raw(value)));
    }

    #[inline]
    pub fn take(&self) -> Option<Box<T>> {
        self.exchange(null_mut())
    }

    #[inline]
    fn exchange(&self, value: *mut T) -> Option<Box<T>> {
        let before = self.value.swap(value, Ordering::SeqCst);
        // SAFETY: what is there came of a `Box`, and only this call has it from now on.
        (!before.is_null()).then(|| unsafe { Box::from_raw(before) })
    }
}

impl<T> Drop for Seat<T> {
    fn drop(&mut self) {
        self.take();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::thread;

    #[test]
    fn one_value_at_a_time_and_none_is_lost() {
        let (seat, first, second) = (Seat::default(), Arc::new(1), Arc::new(2));
        assert!(seat.take().is_none());
        seat.put(Box::new(first.clone()));
        seat.put(Box::new(second.clone()));
        assert_eq!((Arc::strong_count(&first), seat.take().as_deref()), (1, Some(&second)));
        assert!(seat.take().is_none());
        seat.put(Box::new(second.clone()));
        drop(seat);
        assert_eq!(Arc::strong_count(&second), 1);
    }

    #[test]
    fn threads_never_have_it_both() {
        let (seat, times) = (Seat::default(), if cfg!(miri) { 20 } else { 10_000 });
        seat.put(Box::new(0));
        let add = || {
            for _ in 0..times {
                let mut count = loop {
                    match seat.take() {
                        Some(count) => break count,
                        None => thread::yield_now(),
                    }
                };
                *count += 1;
                seat.put(count);
            }
        };
        thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(add))));
        assert_eq!(seat.take().as_deref(), Some(&(3 * times)));
    }
}
