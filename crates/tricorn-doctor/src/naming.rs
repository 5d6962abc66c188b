//! Classifies names of files and functions: libraries, locks, event loops, the application. Pure.
use crate::maps::base_name;
use crate::python::frames::PyFrame;

/// Whether a file is the interpreter or a library that every program has, so that no call is attributed to it.
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

/// Returns the plain name of a library: `librdkafka` of `librdkafka-2f5a.so.1`, `_zlib` of `_zlib.cpython-311-x86_64-linux-gnu.so`.
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

/// Whether a function waits for a Python lock: `threading.Lock`, or another one made of it.
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

/// Whether a function waits for the GIL.
pub fn takes_gil(function: &str) -> bool {
    ["take_gil", "PyEval_RestoreThread", "PyEval_AcquireThread", "_PyEval_AcquireLock"].contains(&function)
}

/// Whether a function is the interpreter loop that runs Python code.
pub fn is_evaluation(function: &str) -> bool {
    function.starts_with("_PyEval_EvalFrame") || function.starts_with("_PyEval_Vector")
}

/// Whether a function belongs to the interpreter's calling convention, between Python code and the C function it calls.
pub fn is_plumbing(function: &str) -> bool {
    let plain = function.to_ascii_lowercase();
    plain.contains("vectorcall")
        || plain.contains("object_call")
        || plain.starts_with("cfunction_")
        || plain.starts_with("method_")
}

/// The line to show of a stack, innermost frame first: the innermost one of the program's own code. An installed application has
/// none: then it is the innermost line of an installed package, or of the standard library. `None`: only the server is on the stack.
pub fn application(frames: &[PyFrame]) -> Option<&PyFrame> {
    let inside = inside_server(frames);
    let innermost = |is: fn(&PyFrame) -> bool| inside.iter().find(|frame| is(frame));
    innermost(is_own)
        .or_else(|| innermost(|frame| is_package(&frame.file) && !is_loop(&frame.file)))
        .or(inside.first().filter(|frame| !of_server(&frame.file)))
}

/// Without the frames that started the server: a console script, `__main__`, a program that calls `tricorn.run`. All frames where no
/// server was started on this stack.
pub fn inside_server(frames: &[PyFrame]) -> &[PyFrame] {
    let start = frames.iter().position(|frame| STARTS.iter().any(|part| frame.file.contains(part)));
    &frames[..start.unwrap_or(frames.len())]
}

/// Where the server starts: what calls these is not the application, which never calls them itself.
const STARTS: [&str; 2] = ["/tricorn/cli/", "/tricorn/arbiter/"];

/// Neither the standard library nor an installed package: a line of the program itself.
fn is_own(frame: &PyFrame) -> bool {
    let file = &frame.file;
    let is_installed = file.contains("/lib/python3.") || file.contains("/lib64/python3.") || is_package(file);
    !is_installed && !file.starts_with('<') && !of_server(file) && !is_console_script(frame)
}

fn is_package(file: &str) -> bool {
    file.contains("-packages/") && !of_server(file)
}

/// A script as installers make it for an entry point of a package: `bin/uvicorn`.
fn is_console_script(frame: &PyFrame) -> bool {
    let mut parts = frame.file.rsplit('/');
    let (name, folder) = (parts.next().unwrap_or_default(), parts.next());
    frame.function == "<module>" && folder == Some("bin") && !name.contains('.')
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

/// Whether a file runs callbacks, greenlets or requests one after another, so that its callee differs each time.
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

const SERVER: [&str; 8] = [
    "/tricorn/workers/",
    "/tricorn/arbiter/",
    "/tricorn/gateway/",
    "/tricorn/cli/",
    "/tricorn/compat/",
    "/tricorn/contrib/",
    "/tricorn/testing/",
    "/tricorn_green/",
];

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

    /// The file of the line that is shown of a stack; empty: none is.
    fn shown<'f>(list: &[(&'f str, &str)]) -> &'f str {
        let shown = application(&frames(list)).map(|frame| frame.file.clone());
        list.iter().map(|(file, _)| *file).find(|file| Some(*file) == shown.as_deref()).unwrap_or_default()
    }

    #[test]
    fn lines_of_the_application_are_neither_installed_nor_the_servers() {
        let others = [
            ("<frozen runpy>", "run"),
            ("/usr/lib/python3.11/threading.py", "run"),
            ("/v/lib/python3.12/site-packages/flask/app.py", "run"),
            ("/usr/lib/python3/dist-packages/x.py", "run"),
            ("/src/tricorn/python/tricorn/workers/base.py", "run"),
        ];
        for own in ["/srv/shop/views.py", "views.py", "/srv/bin/views.py"] {
            assert_eq!(shown(&[&others[..], &[(own, "<module>")], &others[..]].concat()), own);
        }
    }

    #[test]
    fn what_starts_the_server_is_never_the_application() {
        let server = [
            ("/l/lib/python3.11/asyncio/events.py", "Handle._run"),
            ("/v/site-packages/tricorn/workers/event_loop.py", "run"),
            ("/v/site-packages/tricorn/arbiter/effects.py", "fork"),
        ];
        let cli = ("/v/site-packages/tricorn/cli/__init__.py", "main");
        let starts: [&[(&str, &str)]; 6] = [
            &[cli, ("/v/bin/tricorn", "<module>")],
            &[cli, ("/src/python/tricorn/__main__.py", "<module>"), ("<frozen runpy>", "_run_code")],
            &[cli, ("/srv/serve.py", "<module>")],
            &[("/v/site-packages/tricorn/compat/gunicorn/app/base.py", "run"), ("/srv/serve.py", "main")],
            &[cli, ("/srv/manage.py", "main"), ("/srv/manage.py", "<module>")],
            &[("/srv/conftest.py", "start")],
        ];
        for start in starts {
            let stack = [&server[..], start].concat();
            assert_eq!(shown(&stack), server[0].0, "nothing else is there: {stack:?}");
            assert_eq!(shown(&stack[1..]), "", "only the server is there");
            let package = ("/v/lib/python3.11/site-packages/litellm/proxy.py", "answer");
            let library = ("/usr/lib/python3.11/json/encoder.py", "iterencode");
            assert_eq!(shown(&[&[library, package], &stack[..]].concat()), package.0, "an installed application");
            assert_eq!(shown(&[&[library], &stack[..]].concat()), library.0);
            assert_eq!(shown(&[&[library, package, ("/srv/a.py", "view")], &stack[..]].concat()), "/srv/a.py");
        }
    }

    #[test]
    fn calls_that_come_back_to_the_server_do_not_hide_the_application() {
        // A greenlet of the application whose driver waits by way of the server has no frame of its start.
        let stack = [("/v/site-packages/tricorn_green/drivers/x.py", "wait"), ("/srv/a.py", "view")];
        assert_eq!(shown(&stack), "/srv/a.py");
    }

    #[test]
    fn of_another_program_the_console_script_is_shown_only_if_nothing_else_is_there() {
        let script = ("/v/bin/uvicorn", "<module>");
        assert_eq!(
            shown(&[("/v/lib/python3.11/site-packages/uvicorn/main.py", "main"), script]).rsplit('/').next(),
            Some("main.py")
        );
        assert_eq!(shown(&[script]), script.0);
        assert_eq!(
            shown(&[("/srv/bin/worker", "work"), script]),
            "/srv/bin/worker",
            "a function of a program of one's own"
        );
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
