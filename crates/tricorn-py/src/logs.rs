//! Where requests are told of, as settings have it: the access log, syslog, statsd.
use crate::collector::Collector;
use crate::given::Options;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use tricorn_io::clock::MILLI;
use tricorn_io::{AccessLog, Failpoint, Logs, Policy, Relay};
use tricorn_proto::access_log::Format;
use tricorn_proto::statsd::Metrics;
use tricorn_proto::syslog::Frame;

/// How long metrics wait for more, to share a datagram.
const GATHER: u64 = 100 * MILLI;

pub fn open(options: &Bound<'_, PyDict>, fault: Option<Failpoint>) -> PyResult<Logs> {
    let options = Options(options);
    let target: Option<String> = options.get("access_log")?;
    let access = target.map(|target| match AccessLog::open(&target) {
        Ok(log) => Ok(log.with_stalls(fault == Some(Failpoint::StallLog)).into()),
        Err(error) => Err(PyOSError::new_err(format!("the access log {target:?} cannot be opened: {error}"))),
    });
    let (access, syslog, statsd) = (access.transpose()?, syslog(&options)?, statsd(&options)?);
    let has_lines = access.is_some() || syslog.is_some();
    let format = has_lines.then(|| access_format(&options)).transpose()?;
    Ok(Logs { format, access, syslog, statsd, ..Logs::default() })
}

/// The option `syslog`: a collector, what stands before a message, before and behind which a time stands if there is something
/// behind it, what stands at its end, and whether its length stands before it all.
fn syslog(options: &Options<'_, '_>) -> PyResult<Option<(Frame, Relay)>> {
    type Given = (Py<Collector>, Vec<u8>, Option<Vec<u8>>, Vec<u8>, bool);
    let Some((collector, head, timed, tail, counted)) = options.optional::<Option<Given>>("syslog")? else {
        return Ok(None);
    };
    let frame = match timed {
        Some(rest) => Frame::Timed { head, rest, counted },
        None => Frame::Plain { head, tail },
    };
    let policy = Policy { name: "syslog", most: 0, gather: 0, keeps: true };
    Ok(Some((frame, Relay::new(policy, collector.get().copy_socket()?))))
}

/// The option `statsd`: a collector, the prefix, tags, most bytes of a datagram, whether there are more metrics than gunicorn's.
fn statsd(options: &Options<'_, '_>) -> PyResult<Option<(Metrics, Relay)>> {
    type Given = (Py<Collector>, String, String, usize, bool);
    let Some((collector, prefix, tags, most, extended)) = options.optional::<Option<Given>>("statsd")? else {
        return Ok(None);
    };
    let policy = Policy { name: "statsd", most, gather: if most == 0 { 0 } else { GATHER }, keeps: false };
    Ok(Some((Metrics::new(&prefix, &tags, extended), Relay::new(policy, collector.get().copy_socket()?))))
}

/// Raises `ValueError` if it is no format. Returns a sentence with the known atoms if it has another one.
#[pyfunction]
pub fn check_access_log_format(text: &str) -> PyResult<Option<String>> {
    Format::parse(text).map(|format| format.complaint()).map_err(PyValueError::new_err)
}

fn access_format(options: &Options<'_, '_>) -> PyResult<Format> {
    let text = || -> PyResult<Format> {
        let format: String = options.get("access_log_format")?;
        let format = Format::parse(&format).map_err(PyValueError::new_err)?;
        Ok(if options.optional("access_log_painted")? { format.painted() } else { format })
    };
    match options.optional::<Option<String>>("log_format")?.as_deref() {
        None | Some("text") => text(),
        Some("json") => Ok(Format::json(options.optional("request_id")?)),
        Some(other) => Err(PyValueError::new_err(format!("core option log_format: {other}; expected text or json"))),
    }
}
