"""Configuration files as they are found in projects: unchanged, and with their effect."""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import signal
import stat
import subprocess
from pathlib import Path

from tests.harness import CLOSE, Load, Site, until
from tests.harness.needs import needs
from tests.harness.server import free_port
from tests.harness.site import rests

CONFIGS = Path(__file__).parent / "configs"


def site(name: str, **options: object) -> Site:
    return Site(CONFIGS / f"{name}.py", **options)  # type: ignore[arg-type]


def stop(server: Site) -> None:
    server.signal(signal.SIGTERM)
    assert server.wait_exit() == 0


def test_config_cpu_count() -> None:
    workers = multiprocessing.cpu_count() * 2 + 1
    with site("cpu_count", workers=workers) as server:
        assert len(server.worker_pids()) == workers
        assert server.get("/hello").status == 200
        server.out.wait('"GET /hello HTTP/1.1" 200')
        server.log.wait("Using worker: gthread")


METRICS = """
import os
from prometheus_client import CollectorRegistry, Gauge, Counter, generate_latest, multiprocess

requests = Counter("asked", "requests")
live = Gauge("alive", "workers", multiprocess_mode="liveall")


def application(environ, start_response):
    requests.inc()
    live.set(1)
    registry = CollectorRegistry()
    multiprocess.MultiProcessCollector(registry)
    body = generate_latest(registry)
    start_response("200 OK", [("Content-Length", str(len(body))), ("Pid", str(os.getpid()))])
    return [body]
"""


def test_config_prometheus(tmp_path: Path) -> None:
    needs("prometheus_client")
    environment = {"PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    files = {"metrics.py": METRICS}
    with site("prometheus", workers=2, app="metrics:application", files=files, env=environment) as server:
        # The library's collector cannot read a file that another worker is about to make.
        until(lambda: all(map(rests, server.worker_pids())), "all workers have made theirs")
        first = server.get("/")
        assert "asked_total 1.0" in first.text
        victim = int(first.get("Pid") or 0)
        os.kill(victim, signal.SIGKILL)
        server.log.wait(f"metrics of worker {victim} are marked")
        until(
            lambda: len(pids := server.worker_pids()) == 2 and all(map(rests, pids)), "a successor has made its files"
        )
        text = server.get("/").text
        assert "asked_total 2.0" in text, "the dead worker's counters are kept"
        assert text.count("alive{") <= 2, "only workers that live have a gauge"


def test_config_db_pool() -> None:
    with site("db_pool", workers=2) as server:
        server.log.wait("Server is ready. Spawning workers")
        spawned = server.log.wait(r"Worker spawned \(pid: (\d+), connections: 4\)", count=2)
        assert sorted(int(match[1]) for match in spawned) == server.worker_pids()
        server.hup()
        closed = server.log.wait(r"Pool of worker (\d+) is closed", count=2)
        assert {int(match[1]) for match in closed} == {int(match[1]) for match in spawned}
        stop(server)
        server.log.wait(r"Pool of worker (\d+) is closed", count=4)


def test_config_timing() -> None:
    with site("timing") as server:
        server.get("/sleep?s=0.2")
        (line,) = server.log.wait(r"timing GET /sleep 200 (\d\.\d{3}) s (\d+) bytes host=t")
        assert 0.19 < float(line[1]) < 5


def test_config_logging_dict(tmp_path: Path) -> None:
    with site("logging_dict", env={"LOG_DIRECTORY": str(tmp_path)}) as server:
        server.get("/hello?marked")
        access, error = tmp_path / "access.log", tmp_path / "error.log"
        until(lambda: "marked" in access.read_text(), "the line is in the file")
        assert re.match(r'ACCESS 127\.0\.0\.1 - - \[.*\] "GET /hello\?marked HTTP/1\.1" 200 6 ', access.read_text())
        assert re.search(rf"^INFO\|{server.pid}\|gunicorn\.error\|Listening at: ", error.read_text(), re.MULTILINE)
        assert server.log.matching(r"^INFO\|\d+\|gunicorn\.error\|Booting worker with pid")
        for turn in ("hup", "usr1"):
            access.rename(tmp_path / f"access.{turn}")
            if turn == "hup":
                server.hup()
            else:
                server.signal(signal.SIGUSR1)
            until(lambda: server.get("/hello?after") and access.exists() and "after" in access.read_text(), turn)


def test_config_logger_subclass() -> None:
    with site("logger_subclass") as server:
        server.get("/hello")
        server.get("/pid")
        server.out.wait('^custom-atom "GET /pid HTTP/1.1" 200')
        assert "/hello" not in server.out.text
        assert server.log.matching(r"custom-logger \[\d+\] \[INFO\] Booting worker with pid")


def test_config_environment() -> None:
    port = free_port()
    given = {
        "LISTEN_PORT": str(port),
        "WORKERS_PER_CORE_TEST": "2",
        "APP_NAME": "shop",
        "APP_GUNICORN_BACKLOG": "77",
        "ACCESS_LOG": "",
    }
    server = site("environment", workers=2, app="settings:application", env=given)
    server.argv.remove("-b")
    server.argv.remove(server.bind)
    server.address = ("127.0.0.1", port)
    with server:
        assert server.get("/").json()["env"]["TRICORN_A"] == "shop"
        assert len(server.worker_pids()) == 2
        assert backlog(port) == 77
        assert not server.out.text


def backlog(port: int) -> int:
    """The length of the accept queue as the kernel has it."""
    lines = subprocess.run(["ss", "-Hltn", f"sport = :{port}"], capture_output=True, text=True, check=True).stdout
    return int(lines.split()[2])


def test_config_json_access() -> None:
    with site("json_access") as server:
        fields = [("X-Request-Id", "r-1"), ("X-Forwarded-Proto", "https")]
        environ = server.get("/echo?a=b", *fields).json()
        assert environ["wsgi.url_scheme"][1] == "https"
        (line,) = server.out.wait("^{.*}$")
        entry = json.loads(line[0])
        assert entry["request_id"] == "r-1"
        assert (entry["request_path"], entry["request_querystring"]) == ("/echo", "a=b")
        assert entry["response_code"] == "200"
        assert entry["pid"] == f"<{server.worker_pid()}>"


def test_config_container() -> None:
    with site("container", workers=2) as server:
        with Load(server.address, "/hello", clients=2, fields=CLOSE) as load:
            server.log.wait("Autorestarting worker after current request", count=2)
            load.stop()
        until(lambda: len(server.worker_pids()) == 2, "two workers")
        server.get("/hello")
        server.signal(signal.SIGINT)
        assert server.wait_exit() == 0
        assert server.log.matching("worker received INT or QUIT signal")


def test_config_behind_nginx(tmp_path: Path) -> None:
    server = site("behind_nginx", workers=2, env={"RUN_DIRECTORY": str(tmp_path)})
    server.argv.remove("-b")
    server.argv.remove(server.bind)
    path = tmp_path / "app.sock"
    server.address = str(path)
    with server:
        assert server.get("/hello").status == 200
        assert stat.S_IMODE(path.stat().st_mode) == 0o770
        assert int((tmp_path / "app.pid").read_text()) == server.pid
        server.log.wait(f"Listening at: unix:{path}")
        stop(server)
        assert server.log.matching(f"bye from {server.pid}")
        assert not list(tmp_path.iterdir())


def test_config_heroku(tmp_path: Path) -> None:
    mark = tmp_path / "initialized"
    with site("heroku", workers=3, env={"APP_INITIALIZED": str(mark), "WEB_CONCURRENCY": "3"}) as server:
        assert mark.exists()
        assert Path(f"{mark}.fork").exists()
        server.log.wait("workers: None -> 3")
        assert len(server.worker_pids()) == 3
        assert all(server.get("/hello").status == 200 for _ in range(10))


def test_config_telemetry() -> None:
    with site("telemetry", workers=2) as server:
        served = int(server.get("/pid").body)
        server.log.wait(f"span /pid of worker-{served}")
        stop(server)  # the other worker may still be booting, and then never gets so far
        server.log.wait(f"exporter of worker-{served} is flushed")


def test_every_config_file_has_its_test() -> None:
    names = {path.stem for path in CONFIGS.glob("*.py")}
    assert {f"test_config_{name}" for name in names} <= set(globals())
    assert len(names) >= 10
