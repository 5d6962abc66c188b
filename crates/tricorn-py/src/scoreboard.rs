//! The pages of the scoreboard for Python: read by the arbiter and by hooks, and the few words that Python writes.
use crate::memory::{ledger_of, memory};
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyKeyError, PyValueError};
use pyo3::prelude::*;
use std::collections::BTreeMap;
use tricorn_io::clock::{SECOND, now, wall_micros};
use tricorn_io::metrics::{FAMILIES, Sources, live};
use tricorn_io::{
    ARBITER, Call, CancelOrder, DRAIN, GROUP_BYTES, Group, GroupWord, LedgerWord, MOLD, NOT_READY, RECONNECT, REPLACED,
    WORDS, YIELD, outside,
};

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
    started: u64,
    age: f64,
    phase: &'static str,
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
        snapshot(self.page.into())
    }

    fn requests(&self) -> Vec<RunningRequest> {
        running(self.page.into())
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

    fn set_memory(&self, pss: u64, uss: u64, shared: u64) {
        self.page.set_memory([pss, uss, shared]);
    }

    fn offload_waits(&self, change: i64) {
        self.page.offload_waits(change);
    }

    fn offload_begins(&self) {
        self.page.offload_begins();
    }

    fn offload_ends(&self, nanoseconds: u64) {
        self.page.offload_ends(nanoseconds);
    }

    fn offload_abandoned(&self) {
        self.page.offload_abandoned();
    }

    fn offload_threads(&self, change: i64) {
        self.page.offload_threads(change);
    }

    #[pyo3(signature = (*, not_ready = false, drain = false, yields = false, replaced = false, reconnect = false))]
    fn order(&self, not_ready: bool, drain: bool, yields: bool, replaced: bool, reconnect: bool) {
        let orders =
            [(not_ready, NOT_READY), (drain, DRAIN), (yields, YIELD), (replaced, REPLACED), (reconnect, RECONNECT)];
        self.page.order(orders.iter().filter(|(given, _)| *given).map(|(_, order)| order).sum());
    }

    fn order_log_level(&self, level: u64) {
        self.page.order_log_level(level);
    }

    #[getter]
    fn log_level(&self) -> u64 {
        self.page.log_level()
    }

    fn order_cancel(&self, slot: usize, started: u64) {
        self.page.order_cancel(CancelOrder { slot, started });
    }

    fn take_cancelled(&self) -> Option<&'static str> {
        self.page.take_cancelled().map(|cancelled| cancelled.name())
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

    /// Adds a sample of this moment to the history. Each of the pages has `size` bytes.
    fn note(&self, pages: PyBuffer<u8>, size: usize, group: PyBuffer<u8>) -> PyResult<()> {
        let first = memory(&pages, size, "pages")?;
        // SAFETY: checked in `memory`; the buffer is exported until the end of the call.
        let group = unsafe { Group::at(memory(&group, GROUP_BYTES, "group")?) };
        if size == 0 || !size.is_multiple_of(8) {
            return Err(PyValueError::new_err(format!("no page has {size} bytes")));
        }
        let used = (group.get(GroupWord::Pages) as usize).min(pages.len_bytes() / size);
        // SAFETY: so many pages of this size lie there, aligned; the buffer is exported until the end of the call.
        let page = |index: usize| unsafe { tricorn_io::Scoreboard::over(first.add(index * size), size) };
        let all: Vec<_> = (0..used).filter_map(page).collect();
        self.page.history().note(&live::sample(&Sources::of(&all, Some(self.page))));
        Ok(())
    }

    /// What the arbiter says of the server; whether there is room for it.
    fn post(&self, text: &[u8]) -> bool {
        self.page.bulletin().write(text)
    }

    fn publish(&self, target: u64, generation: u64) {
        self.page.set(LedgerWord::Target, target);
        self.page.set(LedgerWord::Generation, generation);
    }

    fn set_arbiter_memory(&self, pss: u64, uss: u64, shared: u64) {
        self.page.set_memory(ARBITER, [pss, uss, shared]);
    }

    fn set_mold_memory(&self, pss: u64, uss: u64, shared: u64) {
        self.page.set_memory(MOLD, [pss, uss, shared]);
    }

    fn certificates_end(&self, seconds: u64) {
        self.page.set(LedgerWord::CertificateEnds, seconds);
    }
}

/// How many pages cores have ever used.
#[pyfunction]
pub fn pages_in_use(group: PyBuffer<u8>) -> PyResult<u64> {
    let address = readable(&group, "group")?;
    // SAFETY: checked in `readable`; the buffer is exported until the end of the call.
    let pages = unsafe { outside::pages_in_use(address, group.len_bytes()) };
    pages.ok_or_else(|| PyValueError::new_err("no page of the group is that short"))
}

/// A worker's page, which may be mapped read-only. It keeps the buffer exported.
#[pyclass(frozen, module = "tricorn._core")]
pub struct PageReader {
    page: outside::PageReader,
    _buffer: PyBuffer<u8>,
}

#[pymethods]
impl PageReader {
    #[new]
    fn new(page: PyBuffer<u8>) -> PyResult<PageReader> {
        let address = readable(&page, "scoreboard")?;
        // SAFETY: checked in `readable`; an exported buffer cannot be unmapped, and it is exported as long as this object lives.
        let reader = unsafe { outside::PageReader::over(address, page.len_bytes()) };
        let reader = reader.ok_or_else(|| PyValueError::new_err("no page of the scoreboard is that short"))?;
        Ok(PageReader { page: reader, _buffer: page })
    }

    fn read(&self) -> PyResult<Option<Snapshot>> {
        snapshot(self.page)
    }

    fn requests(&self) -> Vec<RunningRequest> {
        running(self.page)
    }

    fn counts(&self) -> Counts {
        self.page.counts().into()
    }
}

/// The ledger, which may be mapped read-only. It keeps the buffer exported.
#[pyclass(frozen, module = "tricorn._core")]
pub struct LedgerReader {
    ledger: outside::LedgerReader,
    _buffer: PyBuffer<u8>,
}

#[pymethods]
impl LedgerReader {
    #[new]
    fn new(page: PyBuffer<u8>) -> PyResult<LedgerReader> {
        let address = readable(&page, "ledger")?;
        // SAFETY: checked in `readable`; an exported buffer cannot be unmapped, and it is exported as long as this object lives.
        let ledger = unsafe { outside::LedgerReader::over(address, page.len_bytes()) };
        let ledger = ledger.ok_or_else(|| PyValueError::new_err("no ledger is that short"))?;
        Ok(LedgerReader { ledger, _buffer: page })
    }

    fn totals(&self, pages: Vec<PyRef<'_, PageReader>>) -> Counts {
        let pages: Vec<_> = pages.iter().map(|page| page.page).collect();
        self.ledger.totals(&pages).into()
    }

    #[getter]
    fn target(&self) -> u64 {
        self.ledger.get(LedgerWord::Target)
    }

    #[getter]
    fn generation(&self) -> u64 {
        self.ledger.get(LedgerWord::Generation)
    }

    #[getter]
    fn started(&self) -> u64 {
        self.ledger.get(LedgerWord::Started)
    }

    #[getter]
    fn spawned(&self) -> u64 {
        self.ledger.get(LedgerWord::Spawned)
    }

    fn exits(&self) -> BTreeMap<&'static str, u64> {
        self.ledger.exits().collect()
    }

    fn reloads(&self) -> BTreeMap<&'static str, u64> {
        self.ledger.reloads().collect()
    }
}

/// What a worker has counted, or all have together.
#[pyclass(frozen, get_all, module = "tricorn._core")]
pub struct Counts {
    figures: BTreeMap<&'static str, u64>,
    statuses: (u64, u64, u64, u64, u64),
    histograms: BTreeMap<&'static str, Vec<u64>>,
}

impl From<outside::Counts> for Counts {
    fn from(counts: outside::Counts) -> Counts {
        let durations = counts.durations.iter().map(|buckets| buckets.to_vec());
        let mut histograms: BTreeMap<_, _> = ["queue", "application", "total"].into_iter().zip(durations).collect();
        histograms.insert("gil", counts.gil.to_vec());
        Counts { figures: counts.figures.into_iter().collect(), statuses: counts.statuses.into(), histograms }
    }
}

/// The edges of the buckets in nanoseconds: those of durations, and those of waits for the GIL.
#[pyfunction]
pub fn histogram_edges() -> (Vec<u64>, Vec<u64>) {
    (outside::edges().collect(), outside::exported_edges().collect())
}

fn snapshot(page: outside::PageReader) -> PyResult<Option<Snapshot>> {
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

fn running(page: outside::PageReader) -> Vec<RunningRequest> {
    let told = |Call { slot, started, phase, text }| {
        let text = String::from_utf8_lossy(&text).into_owned();
        RunningRequest { slot, started, age: seconds_since(started), phase: phase.name(), text }
    };
    page.calls().map(told).collect()
}

/// The first byte of a buffer that may be mapped read-only.
fn readable(buffer: &PyBuffer<u8>, name: &str) -> PyResult<*mut u8> {
    let address = buffer.buf_ptr().cast::<u8>();
    if !buffer.is_c_contiguous() || address.align_offset(8) != 0 {
        return Err(PyValueError::new_err(format!("the {name} must be contiguous and aligned to 8 bytes")));
    }
    Ok(address)
}

/// The metrics there are: name, kind, label, help.
#[pyfunction]
pub fn metric_families() -> Vec<(&'static str, &'static str, &'static str, &'static str)> {
    FAMILIES.iter().map(|family| (family.name, family.kind.name(), family.label, family.help)).collect()
}

/// The single words of a page: index, how many words, role, name among the figures, text.
#[pyfunction]
pub fn scoreboard_words() -> Vec<(usize, usize, &'static str, &'static str, &'static str)> {
    let rows = WORDS.iter();
    rows.map(|row| (row.word as usize, row.count, row.role.name(), row.figure, row.text.trim())).collect()
}

/// Whether prometheus_client can open a file of this content again.
#[pyfunction]
pub fn is_metric_file(content: &[u8]) -> bool {
    tricorn_io::metrics::is_whole(content)
}

fn seconds_since(moment: u64) -> f64 {
    now().saturating_sub(moment) as f64 / SECOND as f64
}
