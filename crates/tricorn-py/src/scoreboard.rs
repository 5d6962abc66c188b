//! The pages of the scoreboard for Python: read by the arbiter and by hooks, and the few words that Python writes.
use crate::core::{ledger_of, memory};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use tricorn_io::clock::{SECOND, now, wall_micros};
use tricorn_io::metrics::FAMILIES;
use tricorn_io::{DRAIN, GROUP_BYTES, Group, GroupWord, LedgerWord, NOT_READY, REPLACED, YIELD};

/// A worker's page. It keeps the buffer exported.
#[pyclass(frozen, module = "tricorn._core")]
pub struct Scoreboard {
    page: tricorn_io::Scoreboard,
    _buffer: PyBuffer<u8>,
}

/// One worker at one moment.
#[pyclass(frozen, get_all, module = "tricorn._core")]
pub struct Snapshot {
    pid: u64,
    state: &'static str,
    heartbeat: u64,
    threads: u64,
    statuses: (u64, u64, u64, u64, u64),
    oldest_wait: f64,
    figures: BTreeMap<&'static str, u64>,
}

/// A request that is with the application.
#[pyclass(frozen, get_all, module = "tricorn._core")]
pub struct RunningRequest {
    slot: usize,
    age: f64,
    text: String,
}

#[pymethods]
impl Scoreboard {
    #[new]
    fn new(page: PyBuffer<u8>) -> PyResult<Scoreboard> {
        let address = memory(&page, 0, "scoreboard")?;
        // SAFETY: checked in `memory`; an exported buffer cannot be unmapped, and it is exported as long as this object lives.
        let board = unsafe { tricorn_io::Scoreboard::over(address, page.len_bytes()) };
        let board = board.ok_or_else(|| PyValueError::new_err("no page of the scoreboard is that short"))?;
        Ok(Scoreboard { page: board, _buffer: page })
    }

    fn read(&self) -> PyResult<Option<Snapshot>> {
        let page = &self.page;
        if !page.is_begun().map_err(|layout| PyValueError::new_err(format!("a scoreboard of layout {layout}")))? {
            return Ok(None);
        }
        Ok(Some(Snapshot {
            pid: page.pid(),
            state: page.state_name(),
            heartbeat: page.heartbeat(),
            threads: page.threads(),
            statuses: page.statuses().into(),
            oldest_wait: page.oldest().map_or(0.0, seconds_since),
            figures: page.figures().collect(),
        }))
    }

    fn requests(&self) -> Vec<RunningRequest> {
        let told = |(slot, started, text): (usize, u64, Vec<u8>)| {
            let text = String::from_utf8_lossy(&text).into_owned();
            RunningRequest { slot, age: seconds_since(started), text }
        };
        self.page.calls().map(told).collect()
    }

    fn histogram(&self, name: &str) -> PyResult<BTreeMap<u64, u64>> {
        let buckets = self.page.histogram(name).ok_or_else(|| PyKeyError::new_err(name.to_string()))?;
        Ok(buckets.collect())
    }

    #[getter]
    fn begun(&self) -> u64 {
        self.page.begun()
    }

    #[getter]
    fn replaced(&self) -> bool {
        self.page.orders_replaced()
    }

    #[getter]
    fn databases(&self) -> u64 {
        self.page.databases()
    }

    fn count_databases(&self, count: u64) {
        self.page.count_databases(count);
    }

    #[pyo3(signature = (*, not_ready = false, drain = false, yields = false, replaced = false))]
    fn order(&self, not_ready: bool, drain: bool, yields: bool, replaced: bool) {
        let orders = [(not_ready, NOT_READY), (drain, DRAIN), (yields, YIELD), (replaced, REPLACED)];
        self.page.order(orders.iter().filter(|(given, _)| *given).map(|(_, order)| order).sum());
    }

    fn begin(&self, pid: u64) {
        self.page.begin_without_core(pid);
    }

    fn beat(&self) {
        self.page.beat();
    }

    fn clear(&self) {
        self.page.clear();
    }

    fn vacate(&self) {
        self.page.vacate();
    }
}

/// What workers that are gone have counted, and what the arbiter counts. It keeps the buffer exported.
#[pyclass(frozen, module = "tricorn._core")]
pub struct Ledger {
    page: tricorn_io::Ledger,
    _buffer: PyBuffer<u8>,
}

#[pymethods]
impl Ledger {
    #[new]
    fn new(page: PyBuffer<u8>) -> PyResult<Ledger> {
        Ok(Ledger { page: ledger_of(&page)?, _buffer: page })
    }

    /// The server begins.
    fn begin(&self) {
        self.page.set(LedgerWord::Started, wall_micros());
    }

    fn bury(&self, page: &Scoreboard) {
        self.page.bury(page.page);
    }

    fn spawned(&self) {
        self.page.add(LedgerWord::Spawned, 1);
    }

    fn exited(&self, reason: &str) -> PyResult<()> {
        if self.page.exited(reason) { Ok(()) } else { Err(PyKeyError::new_err(reason.to_string())) }
    }

    fn reloaded(&self, result: &str) -> PyResult<()> {
        if self.page.reloaded(result) { Ok(()) } else { Err(PyKeyError::new_err(result.to_string())) }
    }

    fn publish(&self, target: u64, generation: u64) {
        self.page.set(LedgerWord::Target, target);
        self.page.set(LedgerWord::Generation, generation);
    }
}

/// How many pages cores have ever used.
#[pyfunction]
pub fn pages_in_use(group: PyBuffer<u8>) -> PyResult<u64> {
    // SAFETY: checked in `memory`; the buffer is exported until the end of the call.
    let group = unsafe { Group::at(memory(&group, GROUP_BYTES, "group")?) };
    Ok(group.get(GroupWord::Pages))
}

/// The metrics there are: name, kind, label, help.
#[pyfunction]
pub fn metric_families() -> Vec<(&'static str, &'static str, &'static str, &'static str)> {
    FAMILIES.iter().map(|family| (family.name, family.kind.name(), family.label, family.help)).collect()
}

fn seconds_since(moment: u64) -> f64 {
    now().saturating_sub(moment) as f64 / SECOND as f64
}
