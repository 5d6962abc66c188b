//! Settings, as the Python side resolved and validated them, into the core's configuration.
use crate::buffer::BytesBuffer;
use crate::doors;
use crate::given::Options;
use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::sync::Arc;
use tricorn_io::clock::MILLI;
use tricorn_io::{
    Compressors, Config, Failpoint, Http2, Mapping, MaxConcurrency, Named, Place, QueueOrder, StaticMap, WaitSite,
};
use tricorn_proto::http1::limits::MAX_HEAD;
use tricorn_proto::http1::{HeadPolicy, HeaderMap, Leniency, Limits};
use tricorn_proto::http2::{Rate, Settings};
use tricorn_proto::message::FieldList;
use tricorn_proto::message::coding::Coding;
use tricorn_proto::message::grammar::{is_field_value, is_token};
use tricorn_proto::peer::{ProxyPolicy, Trust};
use tricorn_proto::response::compression::{self, MediaRange};

/// What `Core` needs to be made.
pub struct CoreOptions {
    pub config: Config,
    pub sendfile: bool,
}

pub fn read(options: &Bound<'_, PyDict>) -> PyResult<CoreOptions> {
    let options = Options(options);
    let max_connections: usize = options.get("max_connections")?;
    let config = Config {
        threads: options.get("threads")?,
        hub: options.optional("hub")?,
        streaming: options.optional("streaming")?,
        siblings: options.get("siblings")?,
        worker_connections: options.get::<usize>("worker_connections")?.max(1),
        max_connections: if max_connections == 0 { descriptors() } else { max_connections },
        max_descriptors: descriptors(),
        keepalive: options.seconds("keepalive")?,
        connection_max_requests: options.optional("connection_max_requests")?,
        connection_max_age: options.optional_seconds("connection_max_age")?,
        closes_idle: options.optional("closes_idle")?,
        header_timeout: options.seconds("header_timeout")?,
        head_buffer_total: options.get("head_buffer_total")?,
        body_timeout: options.seconds("body_timeout")?,
        body_min_rate: options.get("body_min_rate")?,
        write_timeout: options.seconds("write_timeout")?,
        sse_ping: options.optional_seconds("sse_ping")?,
        sse_retry: options.optional("sse_retry")?,
        body_buffer_size: options.get("body_buffer_size")?,
        body_buffer_total: options.get("body_buffer_total")?,
        response_buffering: options.optional("response_buffering")?,
        response_buffer_size: options.get("response_buffer_size")?,
        response_buffer_total: options.get("response_buffer_total")?,
        response_disk_size: options.get("response_disk_size")?,
        response_disk_total: options.get("response_disk_total")?,
        body_disk_total: options.optional("body_disk_total")?,
        upload_dir: upload_dir(&options)?,
        policy: head_policy(&options)?,
        proxy_protocol: doors::proxy_protocol(&options)?,
        doors: doors::doors(&options)?,
        tls: None,
        http2: http2(&options)?,
        request_id: options.optional("request_id")?,
        static_map: static_map(&options)?,
        admin: Box::new(admin_paths(&options)?),
        server: options.get::<String>("server")?.into_bytes(),
        date: options.get("date")?,
        standing_fields: standing_fields(&options)?,
        compress: compress(&options)?,
        load_report: options.optional::<Option<String>>("load_report")?.as_deref() == Some("orca"),
        allocate: Some(BytesBuffer::make),
        timeout: options.optional_seconds("timeout")?,
        doctor_threshold: options.optional_seconds("doctor_threshold")?,
        doctor_slow_request: options.optional_seconds("doctor_slow_request")?,
        wait_sites: wait_sites(&options)?,
        call_file: options.pipe("call_file")?,
        doctor_deep: options.optional("doctor_deep")?,
        development: options.optional("development")?,
        profile_after: options.optional_seconds("profile_after")?,
        profile: options.pipe("profile")?,
        profile_bell: options.pipe("profile_bell")?,
        request_timeout: options.optional_seconds("request_timeout")?,
        max_requests: options.optional("max_requests")?,
        queue_limit: options.optional("queue_limit")?,
        queue_timeout: options.optional_seconds("queue_timeout")?,
        queue_order: queue_order(&options)?,
        max_concurrency: match options.optional::<i64>("max_concurrency")? {
            0 => MaxConcurrency::Unlimited,
            ..0 => MaxConcurrency::Auto,
            most => MaxConcurrency::Fixed(most as usize),
        },
        fault: fault(&options)?,
        messages: options.pipe("messages")?,
        life: options.pipe("life")?,
        graceful_timeout: options.optional_seconds("graceful_timeout")?,
    };
    Ok(CoreOptions { config, sendfile: options.get("sendfile")? })
}

/// The worker's slot and generation.
pub fn identity(options: &Bound<'_, PyDict>) -> PyResult<(u64, u64)> {
    let options = Options(options);
    Ok((options.optional("slot")?, options.optional("generation")?))
}

/// Descriptors of the listeners for questions about the worker; the core owns them.
pub fn admin_listeners(options: &Bound<'_, PyDict>) -> PyResult<Vec<std::os::fd::RawFd>> {
    Options(options).optional("admin_listeners")
}

/// Raises `OSError` if bodies of requests cannot be kept in this directory.
#[pyfunction(name = "check_upload_dir")]
pub fn upload_dir_is_usable(path: std::path::PathBuf) -> PyResult<()> {
    tricorn_io::can_spool_to(&path).map_err(|error| {
        let path = path.display();
        PyOSError::new_err(format!(
            "tmp_upload_dir: no file can be made in {path}: {error}; expected a directory this user may write to"
        ))
    })
}

/// The directory for bodies of requests, if it is memory; `None` as the path: the system's for temporary files.
#[pyfunction]
pub fn upload_dir_in_memory(path: Option<std::path::PathBuf>) -> Option<std::path::PathBuf> {
    tricorn_io::spools_to_memory(path.as_deref())
}

fn upload_dir(options: &Options<'_, '_>) -> PyResult<Option<std::path::PathBuf>> {
    let directory: Option<std::path::PathBuf> = options.optional("upload_dir")?;
    if let Some(directory) = &directory {
        upload_dir_is_usable(directory.clone())?;
    }
    Ok(directory)
}

/// A pool, the file and the function of its frame, and those of the next frame further in, which may be empty.
type Site = (String, String, String, String, String);

fn wait_sites(options: &Options<'_, '_>) -> PyResult<Arc<[WaitSite]>> {
    let site = |(pool, file, function, inner_file, inner_function): Site| {
        let inner = (!inner_file.is_empty()).then_some(Place { file: inner_file, function: inner_function });
        WaitSite { pool, outer: Place { file, function }, inner }
    };
    Ok(options.optional::<Vec<Site>>("wait_sites")?.into_iter().map(site).collect())
}

/// Prefix, directory, Cache-Control, index, and whether what is missing is the application's.
type Files = (String, std::path::PathBuf, String, String, bool);

fn static_map(options: &Options<'_, '_>) -> PyResult<StaticMap> {
    let mapping = |(prefix, directory, cache_control, index, falls_through): Files| {
        let segments = prefix.split('/').filter(|segment| !segment.is_empty());
        Mapping {
            prefix: segments.map(|segment| segment.as_bytes().to_vec()).collect(),
            directory,
            cache_control: cache_control.into_bytes(),
            index: index.into_bytes(),
            falls_through,
        }
    };
    let named = |(prefix, directory): (Option<String>, std::path::PathBuf)| Named {
        prefix: prefix.map(String::into_bytes),
        mapping: Mapping { directory, ..Mapping::default() },
    };
    let named = options.optional::<Vec<_>>("x_sendfile")?.into_iter().map(named).collect();
    let mappings = options.optional::<Vec<Files>>("static_map")?.into_iter().map(mapping).collect();
    Ok(StaticMap::new(mappings).with_named(named))
}

fn queue_order(options: &Options<'_, '_>) -> PyResult<QueueOrder> {
    match options.optional::<Option<String>>("queue_order")?.as_deref() {
        None | Some("fifo") => Ok(QueueOrder::Fifo),
        Some("adaptive") => Ok(QueueOrder::Adaptive),
        Some(other) => {
            Err(PyValueError::new_err(format!("core option queue_order: {other}; expected fifo or adaptive")))
        }
    }
}

/// For tests: what is to go wrong.
fn fault(options: &Options<'_, '_>) -> PyResult<Option<Failpoint>> {
    Ok(match options.optional::<Option<String>>("fault_point")?.as_deref() {
        None => None,
        Some("before_send") => Some(Failpoint::BeforeSend),
        Some("after_send") => Some(Failpoint::AfterSend),
        Some("before_take") => Some(Failpoint::BeforeTake),
        Some("after_take") => Some(Failpoint::AfterTake),
        Some("before_start") => Some(Failpoint::BeforeStart),
        Some("monitor_panics") => Some(Failpoint::MonitorPanics),
        Some("stall_disk") => Some(Failpoint::StallDisk),
        Some("stall_log") => Some(Failpoint::StallLog),
        Some("long_hold") => Some(Failpoint::LongHold),
        Some(other) => match other.split_once(':').and_then(|(kind, most)| Some((kind, most.parse().ok()?))) {
            Some(("panics", most)) => Some(Failpoint::Panics(most, "a test asked for it")),
            Some(("no_object", most)) => Some(Failpoint::Panics(most, crate::panics::NO_OBJECT)),
            _ => return Err(PyValueError::new_err(format!("core option fault_point: {other}"))),
        },
    })
}

/// What a worker has in common with its siblings.
pub struct GroupOptions {
    pub pages: PyBuffer<u8>,
    pub group: PyBuffer<u8>,
    /// What workers that are gone have counted.
    pub ledger: Option<PyBuffer<u8>>,
    /// What routes cost.
    pub routes: Option<PyBuffer<u8>>,
    /// The receiving end, the sending end, the group's wake-up.
    pub channel: Option<(RawFd, RawFd, RawFd)>,
    /// Which worker has which session.
    pub sessions: Option<PyBuffer<u8>>,
    /// The receiving end of this worker's own mailbox, its number, and the sending ends of all.
    pub mailboxes: Option<(RawFd, u16, Vec<RawFd>)>,
}

/// `None`: the worker is alone.
pub fn group(options: &Bound<'_, PyDict>) -> PyResult<Option<GroupOptions>> {
    let options = Options(options);
    let given = |name: &str| -> PyResult<Option<PyBuffer<u8>>> {
        match options.0.get_item(name)? {
            Some(value) if !value.is_none() => Ok(Some(PyBuffer::get(&value)?)),
            _ => Ok(None),
        }
    };
    let (Some(pages), Some(group)) = (given("pages")?, given("group")?) else { return Ok(None) };
    Ok(Some(GroupOptions {
        pages,
        group,
        ledger: given("ledger")?,
        routes: given("routes")?,
        channel: options.optional("channel")?,
        sessions: given("sessions")?,
        mailboxes: options.optional("mailboxes")?,
    }))
}

/// The caller has checked them; but what ends a line would begin a response of its own.
fn standing_fields(options: &Options<'_, '_>) -> PyResult<FieldList> {
    let mut fields = FieldList::new();
    for (name, value) in options.get::<Vec<(String, String)>>("standing_fields")? {
        if !is_token(name.as_bytes()) || !is_field_value(value.as_bytes()) {
            return Err(PyValueError::new_err(format!("core option standing_fields: {name}: {value}")));
        }
        fields.push(name.as_bytes(), value.as_bytes());
    }
    Ok(fields)
}

/// Which responses are compressed; `None`: none is.
fn compress(options: &Options<'_, '_>) -> PyResult<Option<Arc<Compressors>>> {
    let unknown = |name: &str, value: &str| PyValueError::new_err(format!("core option {name}: {value}"));
    let codings = options.optional::<Vec<String>>("compress")?;
    let types = options.optional::<Vec<String>>("compress_types")?;
    let coding = |name: &String| Coding::of(name.as_bytes()).ok_or_else(|| unknown("compress", name));
    let range = |text: &String| MediaRange::parse(text).ok_or_else(|| unknown("compress_types", text));
    Ok(Compressors::of(compression::Policy {
        codings: codings.iter().map(coding).collect::<PyResult<_>>()?,
        types: types.iter().map(range).collect::<PyResult<_>>()?,
        private: options.optional("compress_private")?,
    }))
}

fn admin_paths(options: &Options<'_, '_>) -> PyResult<tricorn_io::reactor::AdminPaths> {
    let mut paths = tricorn_io::reactor::AdminPaths::default();
    let all = [
        ("health_path", &mut paths.health),
        ("ready_path", &mut paths.ready),
        ("metrics_path", &mut paths.metrics),
        ("admin_page", &mut paths.page),
    ];
    for (name, path) in all {
        if let Some(given) = options.optional::<Option<String>>(name)? {
            *path = given.into_bytes();
        }
    }
    if let Some(given) = options.optional::<Option<String>>("admin_allow")? {
        paths.allow =
            Trust::parse(&given).map_err(|error| PyValueError::new_err(format!("core option admin_allow: {error}")))?;
    }
    paths.status = options.optional("admin_status")?;
    paths.info = options.optional("info")?;
    paths.application = options.optional("app_metrics")?;
    Ok(paths)
}

fn head_policy(options: &Options<'_, '_>) -> PyResult<HeadPolicy> {
    let header_map: String = options.get("header_map")?;
    let header_map = match header_map.as_str() {
        "drop" => HeaderMap::Drop,
        "refuse" => HeaderMap::Refuse,
        "dangerous" => HeaderMap::Dangerous,
        other => return Err(PyValueError::new_err(format!("core option header_map: {other}"))),
    };
    let schemes: BTreeMap<String, String> = options.get("secure_scheme_headers")?;
    let forwarder_headers: Vec<String> = options.get("forwarder_headers")?;
    let trust: String = options.get("forwarded_allow_ips")?;
    let proxy_headers: Vec<String> = options.optional("trusted_proxy_headers")?;
    let proxy = if proxy_headers.is_empty() {
        None
    } else {
        let (count, clear) = (options.get("trusted_proxy_count")?, options.get("clear_untrusted_proxy_headers")?);
        Some(ProxyPolicy::new(&proxy_headers, count, clear).map_err(PyValueError::new_err)?)
    };
    Ok(HeadPolicy {
        limits: Limits {
            request_line: options.get("limit_request_line")?,
            fields: options.get("limit_request_fields")?,
            field_size: options.get("limit_request_field_size")?,
            body: options.optional("limit_request_body")?,
        },
        leniency: Leniency {
            obsolete_folding: options.get("permit_obsolete_folding")?,
            strip_header_spaces: options.get("strip_header_spaces")?,
            unconventional_method: options.get("permit_unconventional_http_method")?,
            unconventional_version: options.get("permit_unconventional_http_version")?,
            casefold_method: options.get("casefold_http_method")?,
            header_map,
        },
        trust: Trust::parse(&trust).map_err(PyValueError::new_err)?,
        secure_scheme_headers: schemes
            .into_iter()
            .map(|(name, value)| (name.to_ascii_lowercase().into_bytes(), value.into_bytes()))
            .collect(),
        forwarder_headers: forwarder_headers.into_iter().map(|name| name.to_ascii_uppercase().into_bytes()).collect(),
        proxy,
    })
}

/// How HTTP/2 is spoken; `None` unless it is among the protocols that are served.
fn http2(options: &Options<'_, '_>) -> PyResult<Option<Box<Http2>>> {
    if !options.optional::<Vec<String>>("http_protocols")?.iter().any(|name| name == "h2") {
        return Ok(None);
    }
    let defaults = Settings::default();
    let (initial_window, max_window) = (options.get("http2_initial_window_size")?, options.get("http2_max_window")?);
    let settings = Settings {
        max_concurrent_streams: options.get("http2_max_concurrent_streams")?,
        max_header_list_size: match options.get("http2_max_header_list_size")? {
            0 => MAX_HEAD as u32,
            size => size.min(MAX_HEAD as u32),
        },
        initial_window,
        max_window,
        connect_protocol: options.optional("websockets_over_http2")?,
        // One request alone may use its whole window.
        connection_window: defaults.connection_window.max(initial_window).max(max_window),
        resets: rate(options.get("http2_reset_limit")?),
        control_frames: rate(options.get("http2_control_limit")?),
        header_timeout: options.seconds("header_timeout")? / MILLI,
        ..defaults
    };
    let cleartext = options.get::<String>("http2_cleartext")? != "off";
    Ok(Some(Box::new(Http2 { cleartext, idle_timeout: options.seconds("http2_idle_timeout")?, settings })))
}

/// A limit that a tenth of it refills each second.
fn rate(burst: u32) -> Rate {
    Rate { burst, per_second: burst / 10 }
}

/// How many descriptors of this process clients may hold. The others are the application's and the server's own: 64, or
/// half of them where there are few.
fn descriptors() -> usize {
    let all = tricorn_io::descriptor_limit();
    all - (all / 2).min(64)
}
