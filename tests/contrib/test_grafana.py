"""The dashboard, read by Grafana's own library of its schema, and the rules that no schema tells."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from tests.contrib.test_contrib import DASHBOARD, expressions
from tests.harness import Server, until
from tests.harness.scrape import scrape
from tests.harness.server import free_port

BEYOND_THE_SCHEMA = {
    # What Grafana's editor writes beside the query, for plugins of before.
    r"/templating/list\[\d+\]/definition",
    # Prometheus' own, of an annotation query.
    r"/annotations/list\[\d+\]/(titleFormat|step)",
}
"""Fields that the schema does not have, and that Grafana knows."""


def dashboard() -> dict[str, Any]:
    read: dict[str, Any] = json.loads(DASHBOARD.read_text())
    return read


def differences(ours: Any, read: Any, path: str = "") -> Iterator[str]:
    """What is lost or changed. What is added are defaults."""
    if isinstance(ours, dict) and isinstance(read, dict):
        for name, value in ours.items():
            if name in read:
                yield from differences(value, read[name], f"{path}/{name}")
            else:
                yield f"{path}/{name}"
    elif isinstance(ours, list) and isinstance(read, list) and len(ours) == len(read):
        for index, (one, other) in enumerate(zip(ours, read, strict=True)):
            yield from differences(one, other, f"{path}[{index}]")
    elif ours != read:
        yield f"{path}: {ours!r} became {read!r}"


def through_the_schema(written: dict[str, Any]) -> list[str]:
    if sys.version_info < (3, 11):
        pytest.skip("needs grafana-foundation-sdk, which wants Python 3.11")
    from grafana_foundation_sdk.cog import plugins
    from grafana_foundation_sdk.cog.encoder import JSONEncoder
    from grafana_foundation_sdk.models.dashboard import Dashboard

    plugins.register_default_plugins()
    read = json.loads(json.dumps(Dashboard.from_json(written), cls=JSONEncoder))
    return [each for each in differences(written, read) if not any(re.fullmatch(at, each) for at in BEYOND_THE_SCHEMA)]


def test_every_field_is_one_that_the_schema_has_for_its_panel() -> None:
    assert through_the_schema(dashboard()) == []


def test_a_field_that_is_none_is_noticed() -> None:
    written = dashboard()
    panel = next(panel for panel in written["panels"] if panel["type"] == "timeseries")
    panel["options"]["legends"] = {}
    panel["fieldConfig"]["defaults"]["custom"]["lineWidht"] = 2
    panel["targets"][0]["expresion"] = "up"
    assert sorted(each.rpartition("/")[2] for each in through_the_schema(written)) == [
        "expresion",
        "legends",
        "lineWidht",
    ]


def test_panels_have_ids_of_their_own_and_queries_letters_of_their_own() -> None:
    panels = dashboard()["panels"]
    ids = [panel["id"] for panel in panels]
    assert len(set(ids)) == len(ids)
    assert min(ids) > 0
    for panel in panels:
        letters = [target["refId"] for target in panel.get("targets", ())]
        assert len(set(letters)) == len(letters), panel["title"]
        assert panel["type"] == "row" or letters, f"{panel['title']} asks nothing"


def test_variables_are_defined_before_they_are_used_and_every_source_is_the_chosen_one() -> None:
    """An import elsewhere has no data source of our name: a variable asks for one."""
    written = dashboard()
    variables = {each["name"]: each for each in written["templating"]["list"]}
    assert (variables["datasource"]["type"], variables["datasource"]["query"]) == ("datasource", "prometheus")
    builtin = {"__rate_interval", "__interval", "__range", "__all"}
    used = set(re.findall(r"\$\{?(\w+)", json.dumps(written)))
    assert used <= set(variables) | builtin
    seen: set[str] = set()
    for each in written["templating"]["list"]:
        assert set(re.findall(r"\$\{?(\w+)", json.dumps(each))) <= seen | builtin, each["name"]
        seen.add(each["name"])
    queries = [target for panel in written["panels"] for target in panel.get("targets", ())]
    asking = [*queries, *(panel for panel in written["panels"] if panel["type"] != "row")]
    asking += [each for each in written["templating"]["list"] if each["type"] == "query"]
    for each in asking:
        assert each["datasource"] == {"type": "prometheus", "uid": "${datasource}"}, each


def test_what_panels_ask_for_is_told_by_a_server() -> None:
    named = {metric for expression in expressions() for metric in re.findall(r"\btricorn_\w+", expression)}
    told = set()
    for worker_class in ("gthread", "asgi"):  # threads tell what loops do not have, and loops what threads do not
        told |= told_by(worker_class)
    assert named <= told


def told_by(worker_class: str) -> set[str]:
    """The metrics of a server that has something to tell."""
    admin = ("127.0.0.1", free_port())
    options = {"worker_class": worker_class, "workers": 2, "max_concurrency": 64, "asgi_loop": "asyncio"}
    with Server(admin_bind=f"{admin[0]}:{admin[1]}", **options) as server:
        with server.connect() as wire:
            assert wire.send(b"nonsense\r\n\r\n").reply().status == 400
        special = "gil_wait_seconds_bucket" if worker_class == "gthread" else "loop_blocked_seconds_total"

        def told() -> set[str]:
            assert server.get("/hello").status == 200
            return {name for name, _ in scrape(admin)}

        rare = {special, "refused_total", "responses_total", "process_pss_bytes"}
        until(lambda: rare <= told(), "the rarest are told", every=0.2)
        return {f"tricorn_{name}" for name in told()}
