"""A configuration that writes down every hook call: which, in which process, with what.

Used as `exec(open(this file).read())` would be: its text is the configuration of the server under test.
"""

import json
import os


def _write(hook, **facts):
    line = json.dumps({"hook": hook, "pid": os.getpid(), **facts}) + "\n"
    fd = os.open(os.environ["HOOK_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(fd, line.encode())
    os.close(fd)


def _server(server):
    server.log.debug("a hook logs")
    return {
        "pid": server.pid,
        "num_workers": server.num_workers,
        "workers": sorted(server.WORKERS),
        "worker_objects": all(hasattr(worker, "age") for worker in server.WORKERS.values()),
        "address": [list(each) if isinstance(each, tuple) else each for each in server.address],
        "proc_name": server.proc_name,
        "app": hasattr(server.app, "wsgi"),
        "cfg": server.cfg.workers,
        "cfg_get": server.cfg.settings["workers"].get(),
    }


def _worker(worker):
    worker.log.debug("a hook logs")
    return {
        "pid": worker.pid,
        "age": worker.age,
        "ppid": worker.ppid,
        "cfg": worker.cfg.workers,
        "app": hasattr(worker.app, "wsgi"),
        "wsgi": callable(getattr(worker, "wsgi", None)),
        "sockets": len(worker.sockets),
        "tmp": worker.tmp is not None,
        "nr": worker.nr,
        "alive": worker.alive,
        "aborted": worker.aborted,
        "booted": worker.booted,
        "timeout": worker.timeout,
        "max_requests": worker.max_requests > 1 << 40,
        "str": str(worker),
    }


def on_starting(server):
    _write("on_starting", server=_server(server))


def mold_ready(server, mold):
    _write("mold_ready", server=_server(server), mold={"pid": mold.pid, "app": callable(mold.app.callable)})


def before_refork(server, worker):
    _write("before_refork", server=_server(server), worker=_worker(worker))


def on_reload(server):
    _write("on_reload", server=_server(server))


def when_ready(server):
    _write(
        "when_ready",
        server=_server(server),
        listeners=[str(listener) for listener in server.LISTENERS],
        fds=[listener.fileno() for listener in server.LISTENERS],
    )


def pre_fork(server, worker):
    _write("pre_fork", server=_server(server), worker=_worker(worker))


def post_fork(server, worker):
    _write("post_fork", server=_server(server), worker=_worker(worker))


def post_worker_init(worker):
    _write("post_worker_init", worker=_worker(worker))


def worker_int(worker):
    _write("worker_int", worker=_worker(worker))


def worker_abort(worker):
    _write("worker_abort", worker=_worker(worker))


def pre_exec(server):
    _write("pre_exec", server=_server(server))


def pre_request(worker, req):
    worker.log.debug("%s %s", req.method, req.path)
    _write(
        "pre_request",
        worker=_worker(worker),
        req={
            "method": req.method,
            "uri": req.uri,
            "path": req.path,
            "query": req.query,
            "fragment": req.fragment,
            "version": list(req.version),
            "headers": [list(header) for header in req.headers],
            "scheme": req.scheme,
            "peer": list(req.peer_addr),
            "remote": list(req.remote_addr),
            "trailers": list(req.trailers),
            "proxy": req.proxy_protocol_info,
            "body": hasattr(req.body, "read"),
        },
    )


def post_request(worker, req, environ, resp):
    _write(
        "post_request",
        worker=_worker(worker),
        req={"method": req.method, "path": req.path},
        environ={"method": environ.get("REQUEST_METHOD"), "path": environ.get("PATH_INFO")},
        resp={
            "status": resp.status,
            "status_code": getattr(resp, "status_code", None),
            "headers": [list(header) for header in resp.headers],
            "headers_sent": resp.headers_sent,
            "sent": resp.sent,
            "response_length": resp.response_length,
        },
    )


def child_exit(server, worker):
    _write("child_exit", server=_server(server), worker=_worker(worker))


def worker_exit(server, worker):
    _write("worker_exit", server=_server(server), worker=_worker(worker))


def nworkers_changed(server, new_value, old_value):
    # At its first call the server is only half made.
    _write("nworkers_changed", new=new_value, old=old_value, num_workers=server.num_workers)


def on_exit(server):
    _write("on_exit", server=_server(server))
