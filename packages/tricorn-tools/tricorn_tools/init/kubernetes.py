"""Manifests for Kubernetes: a Deployment with probes at the admin listener, a Service and a disruption budget."""

from __future__ import annotations

import math

from tricorn.record import Record
from tricorn_tools.init import docker
from tricorn_tools.init.service import File, Rendered, Service, is_loopback
from tricorn_tools.init.systemd import refuse_daemon
from tricorn_tools.init.template import fill

PERIOD = 5
"""Seconds between two probes of readiness."""


class Choices(Record):
    image: str = ""
    replicas: int = 2
    pod_monitor: bool = False
    """The Prometheus operator's, in place of annotations."""


def render(service: Service, choices: Choices) -> Rendered:
    """`service` has an admin listener that is reached from outside (`additions`)."""
    refuse_daemon(service)
    text = fill(
        "kubernetes.yaml",
        service,
        image=_image(service, choices),
        replicas=choices.replicas,
        pod_monitor=choices.pod_monitor,
        admin_port=next(address.port for address in service.admin if not is_loopback(address)),
        period=PERIOD,
        tries=math.ceil(docker.boot(service) / PERIOD),
        **docker.values(service),
    )
    return Rendered((File(f"{service.name}.yaml", text),), tuple(_notes(service, choices)))


def _image(service: Service, choices: Choices) -> str:
    return choices.image or f"{service.name}:latest"


def _notes(service: Service, choices: Choices) -> list[str]:
    found = [
        note for note in docker.notes(service, docker.Tree(is_project=True)) if "root in its container" not in note
    ]
    if docker.user(service) == 0:
        found.append(f"runAsNonRoot refuses root: {service.says('user')}. Choose another user, or none.")
    if not choices.image:
        found.append(f"The image is called {_image(service, choices)}: name yours with --image.")
    if service.config.admin_allow != "*":
        found.append(f"Probes come from the node: its addresses must be in {service.says('admin_allow')}.")
    if not service.config.metrics_path:
        found.append(f"There are no metrics to scrape: {service.says('metrics_path')}.")
    return found
