"""`tricorn bench --locustfile` with locust's workers on other hosts: they make the load, over the network."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tricorn_bench.bench import result

from tests.cluster.net import Network
from tests.integration.test_bench import WORKS, ended
from tests.integration.test_bench_locust import LOCUSTFILE

PORT = 5557
ROUNDS = 2


def test_workers_of_two_hosts_come_anew_for_each_round(network: Network, tmp_path: Path) -> None:
    (tmp_path / "works.py").write_text(WORKS)
    (tmp_path / "locustfile.py").write_text(LOCUSTFILE)
    host = network["app-1"]
    master = f"{host.address}:{PORT}"
    words = ["works:app", "sync", "--rounds", str(ROUNDS), "--warmup", "0", "--seconds", "3", "--users", "6"]
    words += ["--host", host.address, "--locustfile", "locustfile.py", "--locust-master", master]
    words += ["--expect-workers", "2", "-o", "report"]
    line = f"locust -f locustfile.py --worker --master-host {host.address} --master-port {PORT}"
    for name in ("app-2", "app-3"):
        loop = f"while :; do {sys.executable} -m {line}; done"
        network[name].start(["sh", "-c", loop], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    bench = host.within([sys.executable, "-m", "tricorn", "bench", *words])
    piped = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    status, out, err = ended(subprocess.Popen(bench, cwd=tmp_path, text=True, **piped))  # type: ignore[call-overload]
    assert status == 0, err
    assert f"while :; do {line}; done" in err, "what is told to start is what this test has started"
    found = result.read(tmp_path / "report/result.json")
    assert "on 2 workers: 6 users of locustfile.py" in found["load"]
    rounds = found["cells"][0]["rounds"]
    assert len(rounds) == ROUNDS
    for one in rounds:
        names = {name["name"]: name["requests"] for name in one["load"]["generator"]["names"]}
        assert one["load"]["answered"] == names["/"] > 0
        assert one["load"]["sent"] == names["/"] + names["/search"]
    assert "GET /search" in out
