"""The Helm chart: what it renders is valid, and its pods are those of `tricorn init kubernetes`."""

from __future__ import annotations

import io
import json
import subprocess
import warnings
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import pytest
import yaml
from tricorn.cli import main

from tests.cluster.balancers import DEPLOY, ENVIRONMENT
from tests.harness.deadline import PATIENCE

CHART = DEPLOY / "helm/tricorn"
IMAGE = {"repository": "registry.example/shop", "tag": "1"}
VERSIONS = ("1.30", "1.33", "1.34")
"""Of Kubernetes, whose schemas `kubernetes-validate` carries."""

RENDER = """\
import json, sys
from helm_python.chart import Chart, lint
path, values = sys.argv[1], json.load(sys.stdin)
try:
    files = Chart.load(path).render(values, name="shop", namespace="web")
    told = {"files": files, "lint": lint(path, values, strict=True)}
except Exception as error:
    told = {"error": str(error)}
print(json.dumps(told))
"""
"""`helm template` and `helm lint`, by helm's own code: requirements/cluster.txt."""


def helm(values: Mapping[str, Any]) -> dict[str, Any]:
    return _helm(json.dumps({"image": IMAGE, **values}))


@cache
def _helm(values: str) -> dict[str, Any]:
    python = ENVIRONMENT / "bin/python"
    if not python.exists():
        pytest.skip("helm is not installed")
    done = subprocess.run(
        [python, "-c", RENDER, str(CHART)], input=values, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def objects(**values: Any) -> dict[str, dict[str, Any]]:
    """What is made of these values, by kind; the second Service is `Service/admin`."""
    told = helm(values)
    assert "error" not in told, told
    found: dict[str, dict[str, Any]] = {}
    for name, text in told["files"].items():
        for made in yaml.safe_load_all(io.StringIO(text)) if name.endswith(".yaml") else ():
            if made is not None:
                admin = made["metadata"]["name"] == "shop-admin"
                found[f"{made['kind']}/admin" if admin else made["kind"]] = made
    return found


ALL: dict[str, Any] = {
    "app": "shop.wsgi:application",
    "env": [{"name": "A", "value": "b"}],
    "resources": {"limits": {"cpu": "2", "memory": "1Gi"}},
    "tmpSizeLimit": "1Gi",
    "podLabels": {"team": "shop"},
    "podAnnotations": {"note": "x"},
    "threads": 4,
    "maxWorkerMemory": "400M",
    "forwardedAllowIps": "10.0.0.0/8",
    "autoscaling": {"enabled": True},
    "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
    "tolerations": [{"key": "spot", "operator": "Exists"}],
    "nodeSelector": {"disk": "ssd"},
}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("values", [{}, ALL], ids=["defaults", "all"])
def test_what_it_renders_is_valid(version: str, values: dict[str, Any]) -> None:
    found = objects(**values)
    assert {"Deployment", "Service", "PodDisruptionBudget"} <= set(found)
    for kind, made in found.items():
        if made["apiVersion"].partition("/")[0] in ("monitoring.coreos.com", "keda.sh"):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert kubernetes_validate.validate(made, version, strict=True), kind


@pytest.mark.parametrize("values", [{}, ALL], ids=["defaults", "all"])
def test_helm_finds_nothing_to_complain_of(values: dict[str, Any]) -> None:
    told = helm(values)["lint"]
    assert [message for message in told["messages"] if message["severity"] > 1] == []
    assert not told["errors"]


def test_its_pods_are_those_that_init_prints(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """But for names and labels, the command line, and what only the chart has."""
    monkeypatch.chdir(tmp_path)
    printed = tmp_path / "printed"
    words = ["init", "kubernetes", "-o", str(printed), "--image", "registry.example/shop:1", "--replicas", "2"]
    words += ["-b", "0.0.0.0:8000", "--admin-bind", "0.0.0.0:8001", "-w", "auto", "--drain-delay", "7"]
    assert main([*words, "--graceful-timeout", "20", "--boot-timeout", "61", "shop.wsgi:application"]) == 0
    (path,) = printed.iterdir()
    expected = {made["kind"]: made for made in yaml.safe_load_all(path.read_text())}
    found = objects(drainDelay=7, gracefulTimeout=20, bootTimeout=61, app="shop.wsgi:application")
    ours, theirs = found["Deployment"]["spec"], expected["Deployment"]["spec"]
    assert ours["strategy"] == theirs["strategy"]
    assert ours["replicas"] == theirs["replicas"]
    pod, other = ours["template"]["spec"], theirs["template"]["spec"]
    for key in ("terminationGracePeriodSeconds", "securityContext", "volumes"):
        assert pod[key] == other[key], key
    (container,), (wanted,) = pod["containers"], other["containers"]
    for key in ("image", "ports", "startupProbe", "readinessProbe", "livenessProbe", "securityContext", "volumeMounts"):
        assert container[key] == wanted[key], key
    assert (
        found["PodDisruptionBudget"]["spec"]["maxUnavailable"]
        == expected["PodDisruptionBudget"]["spec"]["maxUnavailable"]
    )
    assert found["Service"]["spec"]["ports"] == expected["Service"]["spec"]["ports"]


def test_tricorn_takes_the_command_line() -> None:
    from tricorn.config.load import Sources

    (container,) = objects(**ALL)["Deployment"]["spec"]["template"]["spec"]["containers"]
    program, *words = container["command"]
    config = Sources(tuple(words), {}, "/").load().config
    assert program == "tricorn"
    assert (config.threads, config.max_worker_memory, config.wsgi_app) == (4, 400 << 20, "shop.wsgi:application")
    assert config.sizing is not None
    assert (config.drain_delay, config.graceful_timeout, config.forwarded_allow_ips) == (10, 30, "10.0.0.0/8")


def test_it_scales_on_demand() -> None:
    scaler = objects(autoscaling={"enabled": True, "targetDemand": "640m"})
    (metric,) = scaler["HorizontalPodAutoscaler"]["spec"]["metrics"]
    assert metric["pods"] == {
        "metric": {"name": "tricorn_demand"},
        "target": {"type": "AverageValue", "averageValue": "640m"},
    }
    assert "replicas" not in scaler["Deployment"]["spec"], "else each upgrade would undo what the scaler has done"
    (trigger,) = objects(autoscaling={"enabled": True, "kind": "keda", "targetDemand": "640m"})["ScaledObject"]["spec"][
        "triggers"
    ]
    assert trigger["metadata"]["query"] == 'sum(tricorn_demand{namespace="web",pod=~"shop-.+"})'
    assert trigger["metadata"]["threshold"] == "0.64"


def test_metrics_are_not_on_the_public_service() -> None:
    found = objects(serviceMonitor={"enabled": True})
    assert [port["name"] for port in found["Service"]["spec"]["ports"]] == ["http"]
    labels = found["ServiceMonitor"]["spec"]["selector"]["matchLabels"]
    admin, public = (found[name]["metadata"]["labels"] for name in ("Service/admin", "Service"))
    assert labels.items() <= admin.items()
    assert not labels.items() <= public.items()


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        ({"image": {"repository": "r", "tag": ""}}, "/image/tag"),
        ({"workers": 0}, "/workers"),
        ({"worker": 4}, "additional properties 'worker' not allowed"),
        ({"user": 0}, "/user"),
        ({"ports": {"http": 80}}, "/ports/http"),
        ({"autoscaling": {"targetDemand": "7"}}, "/autoscaling/targetDemand"),
        ({"args": ["--drain-delay=3"]}, "args has --drain-delay, and a value of the chart is for that"),
        ({"autoscaling": {"enabled": True, "minReplicas": 5, "maxReplicas": 4}}, "minReplicas is 5, and more than"),
    ],
)
def test_what_cannot_be_is_refused(values: dict[str, Any], complaint: str) -> None:
    told = helm(values)
    assert complaint in told["error"], told


def test_each_value_has_its_place_in_the_schema() -> None:
    """Without helm: the defaults, with an image, are what the schema allows."""
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    schema = json.loads((CHART / "values.schema.json").read_text())
    assert set(values) == set(schema["properties"]) - {"global", "nameOverride"}
    jsonschema.validate({**values, "image": {**values["image"], **IMAGE}}, schema)
