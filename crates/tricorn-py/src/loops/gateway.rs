//! What stands between a loop's server and its applications.
use crate::report::Reporter;
use pyo3::prelude::*;
use tricorn_io::{Chores, Exchange, SlotReadiness};

/// What a request is called with, and what happens to it. An error is a defect of ours, or there is no memory.
pub trait Gateway {
    /// A request begins. Its exchange, if it has ended already.
    fn begin(&self, py: Python<'_>, exchange: Box<Exchange>) -> PyResult<Option<Box<Exchange>>>;
    /// Something happened to a connection that is attended.
    fn on_readiness(&self, py: Python<'_>, ready: SlotReadiness) -> PyResult<()>;
    /// The request in this slot is over `request_timeout`.
    fn is_late(&self, py: Python<'_>, slot: usize) -> PyResult<()>;
    /// The slot of the call that the loop is at, if it is at one.
    fn current(&self, py: Python<'_>) -> PyResult<Option<usize>>;
    fn reporter(&self) -> &Reporter;
    /// How many calls may be under way at once; the core may have room for fewer.
    fn most(&self) -> usize {
        usize::MAX
    }
    /// Drops and logs what other threads could not.
    fn do_chores(&self, py: Python<'_>, chores: Chores) {
        self.reporter().do_chores(py, chores);
    }
    /// Calls that have not ended, answered or not.
    fn running(&self, py: Python<'_>) -> usize;
    /// What those are known by that are told of their connections, with their slots.
    fn calls(&self, py: Python<'_>) -> Vec<(usize, Py<PyAny>)>;
    fn cancel_all(&self, py: Python<'_>) -> PyResult<()>;
    /// The worker leaves. Connections that would stay for ever, WebSockets and event streams, are to be told so (WebSockets with
    /// this code): those that begin from now on at once, the others by `dismiss`. How many of these there are.
    fn leave(&self, py: Python<'_>, code: u16) -> PyResult<usize>;
    /// Tells so many of those that were there, the oldest first.
    fn dismiss(&self, _py: Python<'_>, _most: usize) -> PyResult<()> {
        Ok(())
    }
    /// Tells all responses to end that are under way and have no length.
    fn last_call(&self, _py: Python<'_>) -> PyResult<()> {
        Ok(())
    }
    /// Ends responses that were told to end and have had their time, or that have none.
    fn enforce(&self, _py: Python<'_>, _at_once: bool) -> PyResult<()> {
        Ok(())
    }
    /// How many responses were told to end, and how many of them did not in time.
    fn closed(&self) -> (usize, usize) {
        (0, 0)
    }
}
