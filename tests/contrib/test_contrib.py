"""What stands under contrib/ for other programs: it names metrics that there are, and those programs accept it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tricorn.metrics.scoreboard import metric_families

from tests.harness import Server, until
from tests.harness.server import free_port

CONTRIB = Path(__file__).resolve().parents[2] / "contrib"
RULES = CONTRIB / "prometheus" / "tricorn.rules.yml"
DASHBOARD = CONTRIB / "grafana" / "tricorn.json"


def program(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed")
    return found


def samples() -> Iterator[tuple[str, str]]:
    """The names of all samples, each with the label of its metric."""
    for name, kind, label, _ in metric_families():
        full = f"tricorn_{name}".rstrip("_")
        suffixes = {"counter": ["_total"], "histogram": ["_bucket", "_count", "_sum"], "info": ["_info"]}
        for suffix in suffixes.get(kind, [""]):
            yield full + suffix, "le" if suffix == "_bucket" else label


def expressions() -> list[str]:
    dashboard = json.loads(DASHBOARD.read_text())
    of_panels = [target["expr"] for panel in dashboard["panels"] for target in panel.get("targets", ())]
    of_variables = [variable["definition"] for variable in dashboard["templating"]["list"] if "definition" in variable]
    of_notes = [note["expr"] for note in dashboard["annotations"]["list"]]
    in_rules = re.findall(r"expr: (?:\|\n((?:\s{10,}.*\n)+)|(.+))", RULES.read_text())
    return [*of_panels, *of_variables, *of_notes, *(block or line for block, line in in_rules)]


def named_in(pattern: str, expression: str) -> set[str]:
    """The labels in lists of them."""
    return {label.strip() for group in re.findall(pattern, expression) for label in group.split(",")}


def test_every_metric_that_is_named_is_there_with_its_labels() -> None:
    known = dict(samples())
    everywhere = {"job", "instance", "le", ""}
    named = set()
    for expression in expressions():
        metrics = re.findall(r"\btricorn_\w+", expression)
        assert metrics, expression
        assert set(metrics) <= set(known), expression
        named.update(metrics)
        labels = {known[metric] for metric in metrics} | everywhere
        by = named_in(r"\b(?:by|on) \(([^)]*)\)", expression)
        matched = re.findall(r"[{,]\s*(\w+)\s*(?:=~|=|!=)", expression)
        assert {*by, *matched} <= labels, expression
    assert len(named) > 25


def test_legends_name_labels_that_the_expression_leaves() -> None:
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        for target in panel.get("targets", ()):
            kept = named_in(r"by \(([^)]*)\)", target["expr"])
            assert set(re.findall(r"{{(\w+)}}", target["legendFormat"])) <= kept, target


def test_panels_do_not_overlap() -> None:
    taken = set()
    for panel in json.loads(DASHBOARD.read_text())["panels"]:
        grid = panel["gridPos"]
        assert grid["x"] + grid["w"] <= 24
        cells = {
            (x, y) for x in range(grid["x"], grid["x"] + grid["w"]) for y in range(grid["y"], grid["y"] + grid["h"])
        }
        assert not taken & cells, panel["title"]
        taken |= cells


def test_prometheus_accepts_the_rules() -> None:
    checked = subprocess.run(
        [program("promtool"), "check", "rules", str(RULES)], capture_output=True, text=True, timeout=60
    )
    assert checked.returncode == 0, checked.stderr
    assert f"{RULES.read_text().count('alert:')} rules found" in checked.stdout


def test_a_prometheus_scrapes_a_server_and_knows_what_every_panel_asks(tmp_path: Path) -> None:
    binary = program("prometheus")
    port, web = free_port(), free_port()
    config = tmp_path / "prometheus.yml"
    config.write_text(
        f"global: {{scrape_interval: 200ms, evaluation_interval: 200ms}}\nrule_files: ['{RULES}']\n"
        f"scrape_configs: [{{job_name: shop, static_configs: [{{targets: ['127.0.0.1:{port}']}}]}}]\n"
    )
    command = [binary, f"--config.file={config}", f"--storage.tsdb.path={tmp_path / 'data'}"]
    command += [f"--web.listen-address=127.0.0.1:{web}", "--log.level=warn"]

    def ask(path: str, **query: str) -> Any:
        url = f"http://127.0.0.1:{web}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=5) as answer:
                return json.load(answer)["data"]
        except OSError:  # it is starting
            return None

    def value(expression: str) -> float | None:
        data = ask("query", query=expression)
        return float(data["result"][0]["value"][1]) if data and data["result"] else None

    with Server(worker_class="gthread", workers=2, admin_bind=f"127.0.0.1:{port}") as server:
        prometheus = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            for _ in range(5):
                assert server.get("/").status == 200
            until(lambda: value("tricorn_requests_total") == 5, "five requests are scraped", every=0.1)
            assert value('up{job="shop"}') == 1
            assert value('tricorn_workers{state="serving"}') == 2
            (target,) = ask("targets")["activeTargets"]
            assert target["lastError"] == ""
            # Every expression is one, whatever it finds.
            replaced = {"$job": ".*", "$instance": ".*", "$__rate_interval": "1m"}
            for expression in expressions():
                if not expression.startswith("label_values"):
                    for variable, text in replaced.items():
                        expression = expression.replace(variable, text)
                    assert ask("query", query=expression) is not None, expression
            health = {rule["name"]: rule["health"] for group in ask("rules")["groups"] for rule in group["rules"]}
            assert set(health.values()) <= {"ok", "unknown"}
            assert len(health) == RULES.read_text().count("alert:")
        finally:
            prometheus.kill()
            prometheus.wait(10)
