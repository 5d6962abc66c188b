//! What names of files and functions mean: whose library a frame is of, which functions are locks, which loops wait. Pure.
use crate::maps::base_name;
use crate::python::frames::PyFrame;

/// Files that every program has, or that are the interpreter: none of them is whom a call is named by.
pub fn is_plain(path: &str, interpreter: &str) -> bool {
    let name = base_name(path);
    let stem = name.split(['.', '-']).next().unwrap_or(name);
    path.is_empty()
        || path == interpreter
        || path.starts_with('[')
        || name.starts_with("libpython")
        || name.starts_with("python3")
        || PLAIN.contains(&stem)
}

const PLAIN: [&str; 10] =
    ["libc", "libpthread", "ld", "libm", "librt", "libdl", "libgcc_s", "libstdc++", "libutil", "libc_malloc_debug"];

/// `librdkafka-2f5a.so.1` is librdkafka; `_zlib.cpython-311-x86_64-linux-gnu.so` is _zlib.
pub fn library(path: &str) -> String {
    let name = base_name(path);
    let stem = name.split(".so").next().unwrap_or(name);
    let stem = stem.split(".cpython-").next().unwrap_or(stem).trim_end_matches(".abi3");
    // auditwheel puts eight digits of a hash behind a name.
    match stem.rsplit_once('-') {
        Some((plain, hash)) if hash.len() >= 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'.') => {
            plain.to_owned()
        }
        _ => stem.to_owned(),
    }
}

/// Locks of Python: `threading.Lock`, and what others are made of.
pub fn is_lock(function: &str) -> bool {
    [
        "PyThread_acquire_lock",
        "PyThread_acquire_lock_timed",
        "_PyMutex_LockTimed",
        "PyMutex_Lock",
        "_PyRawMutex_LockSlow",
    ]
    .contains(&function)
}

/// What threads wait in that want the GIL.
pub fn takes_gil(function: &str) -> bool {
    ["take_gil", "PyEval_RestoreThread", "PyEval_AcquireThread", "_PyEval_AcquireLock"].contains(&function)
}

/// The loop that runs Python code.
pub fn is_evaluation(function: &str) -> bool {
    function.starts_with("_PyEval_EvalFrame") || function.starts_with("_PyEval_Vector")
}

/// What stands between Python code and the function that it calls.
pub fn is_plumbing(function: &str) -> bool {
    let plain = function.to_ascii_lowercase();
    plain.contains("vectorcall")
        || plain.contains("object_call")
        || plain.starts_with("cfunction_")
        || plain.starts_with("method_")
}

/// Neither the standard library nor an installed package: a line of the program itself.
pub fn is_application(file: &str) -> bool {
    let installed = file.contains("/lib/python3.") || file.contains("/lib64/python3.") || file.contains("-packages/");
    !installed && !file.starts_with('<') && !of_server(file)
}

/// Whether the innermost frames are those of an event loop in its own poll, or of a server that waits for requests.
///
/// A name alone is not enough: `subprocess.run` ends in `selectors.select`, too. The caller of that must be the loop.
pub fn waits_for_events(call: &str, frames: &[PyFrame]) -> bool {
    let is = |frame: Option<&PyFrame>, file: &str, functions: &[&str]| {
        frame.is_some_and(|frame| {
            let plain = frame.function.rsplit('.').next().unwrap_or_default();
            frame.file.ends_with(file) && functions.contains(&plain)
        })
    };
    let (first, second) = (frames.first(), frames.get(1));
    match call {
        "epoll_wait" | "epoll_pwait" | "epoll_pwait2" | "select" | "pselect6" | "poll" | "ppoll" => {
            let of_loop = is(second, "asyncio/base_events.py", &["_run_once"])
                || is(second, "eventlet/hubs/poll.py", &["wait", "do_poll"]);
            (is(first, "selectors.py", &["select"]) && of_loop)
                || is(first, "gevent/hub.py", &["run"])
                || is(first, "eventlet/hubs/poll.py", &["wait", "do_poll"])
                || is(first, "eventlet/hubs/epolls.py", &["wait", "do_poll"])
                // uvloop has no Python frame of its own.
                || (call.starts_with("epoll") && is(first, "asyncio/runners.py", &["run"]))
                || first.is_some_and(|frame| of_server(&frame.file))
        }
        // An app thread is parked on a condition until there is a request.
        "futex" | "read" | "nanosleep" | "clock_nanosleep" => first.is_some_and(|frame| of_server(&frame.file)),
        "accept" | "accept4" => true,
        _ => false,
    }
}

/// Code that runs callbacks, greenlets or requests one after another: what it has called is another thing each time.
pub fn is_loop(file: &str) -> bool {
    of_server(file) || LOOPS.iter().any(|part| file.contains(part))
}

const LOOPS: [&str; 6] = [
    "/asyncio/base_events.py",
    "/asyncio/events.py",
    "/asyncio/runners.py",
    "/gevent/",
    "/eventlet/hubs/",
    "/eventlet/greenthread.py",
];

/// tricorn's own code that serves: also in a checkout, where it is not installed.
fn of_server(file: &str) -> bool {
    SERVER.iter().any(|part| file.contains(part))
}

const SERVER: [&str; 5] =
    ["/tricorn/workers/", "/tricorn/arbiter/", "/tricorn/green/", "/tricorn/gateway/", "/tricorn/cli/"];

#[cfg(test)]
mod tests {
    use super::*;

    fn frames(list: &[(&str, &str)]) -> Vec<PyFrame> {
        list.iter().map(|&(file, function)| PyFrame { file: file.into(), function: function.into(), line: 1 }).collect()
    }

    #[test]
    fn an_event_loop_waits_in_its_own_poll_and_a_subprocess_does_not() {
        let rows = [
            (
                "epoll_wait",
                frames(&[
                    ("/l/selectors.py", "EpollSelector.select"),
                    ("/l/asyncio/base_events.py", "BaseEventLoop._run_once"),
                ]),
                true,
            ),
            (
                "poll",
                frames(&[("/l/selectors.py", "_PollLikeSelector.select"), ("/l/subprocess.py", "Popen._communicate")]),
                false,
            ),
            ("epoll_wait", frames(&[("/s/gevent/hub.py", "Hub.run")]), true),
            ("futex", frames(&[("/s/gevent/hub.py", "Hub.run")]), false),
            ("futex", frames(&[("/s/tricorn/workers/gthread.py", "serve")]), true),
            ("recvfrom", frames(&[("/s/tricorn/workers/gthread.py", "serve")]), false),
            ("epoll_wait", frames(&[]), false),
        ];
        for (call, frames, expected) in rows {
            assert_eq!(waits_for_events(call, &frames), expected, "{call} {frames:?}");
        }
    }

    #[test]
    fn lines_of_the_application_are_neither_installed_nor_the_servers() {
        assert!(is_application("/srv/shop/views.py") && is_application("views.py"));
        let others = [
            "/usr/lib/python3.11/threading.py",
            "/v/lib/python3.12/site-packages/flask/app.py",
            "/usr/lib/python3/dist-packages/x.py",
            "<frozen runpy>",
            "/src/tricorn/python/tricorn/workers/base.py",
        ];
        assert!(!others.into_iter().any(is_application));
    }

    #[test]
    fn libraries_have_their_plain_names() {
        let rows = [
            ("/v/psycopg2_binary.libs/libpq-8a7b1c2d.so.5.17", "libpq"),
            ("/v/lib-dynload/zlib.cpython-311-x86_64-linux-gnu.so", "zlib"),
            ("/usr/lib/libcurl.so.4", "libcurl"),
            ("/v/tricorn/_core.cpython-311-x86_64-linux-gnu.so", "_core"),
            ("/v/x.abi3.so", "x"),
        ];
        for (path, name) in rows {
            assert_eq!(library(path), name);
        }
    }

    #[test]
    fn the_interpreter_and_libc_are_not_to_blame() {
        for path in [
            "/lib/libc.so.6",
            "/lib/libpthread-2.31.so",
            "/l/libpython3.11.so.1.0",
            "/bin/python3.11",
            "[vdso]",
            "",
            "/lib64/ld-linux-x86-64.so.2",
        ] {
            assert!(is_plain(path, "/opt/app"), "{path}");
        }
        assert!(is_plain("/opt/app", "/opt/app"));
        assert!(!is_plain("/v/libcurl.so.4", "/opt/app") && !is_plain("/v/libcrypto.so", "/opt/app"));
    }
}
