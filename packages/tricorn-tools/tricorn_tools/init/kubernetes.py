"""Manifests for Kubernetes: a Deployment with probes at the admin listener, a Service and a disruption budget."""

from __future__ import annotations

import json
import math

from tricorn.record import Record
from tricorn_tools.init import docker
from tricorn_tools.init.service import File, Rendered, Service, is_loopback, lines, mebibytes
from tricorn_tools.init.systemd import refuse_daemon

PERIOD = 5
"""Seconds between two probes of readiness."""
ALIVE_PERIOD, ALIVE_FAILURES = 10, 6


class Choices(Record):
    image: str = ""
    replicas: int = 2
    pod_monitor: bool = False
    """The Prometheus operator's, in place of annotations."""


def render(service: Service, choices: Choices) -> Rendered:
    """`service` has an admin listener that is reached from outside (`additions`)."""
    refuse_daemon(service)
    parts = [_deployment(service, choices), _service(service), _budget(service)]
    if choices.pod_monitor and service.config.metrics_path:
        parts.append(_pod_monitor(service))
    text = "# Written by `tricorn init kubernetes`.\n" + "---\n".join(parts)
    return Rendered((File(f"{service.name}.yaml", text),), tuple(_notes(service, choices)))


def _deployment(service: Service, choices: Choices) -> str:
    return lines(
        "apiVersion: apps/v1",
        "kind: Deployment",
        *_metadata(service),
        "spec:",
        f"  replicas: {choices.replicas}",
        f"  selector: {{matchLabels: {_labels(service)}}}",
        "  strategy:",
        "    # New pods are ready before old ones are told to go.",
        "    rollingUpdate: {maxSurge: 25%, maxUnavailable: 0}",
        "  template:",
        "    metadata:",
        f"      labels: {_labels(service)}",
        *_annotations(service, choices),
        "    spec:",
        f"      # {service.says('drain_delay', 'graceful_timeout')}, and 5 for the end of the processes.",
        f"      terminationGracePeriodSeconds: {service.grace}",
        *_pod_security(service),
        "      containers:",
        f"      - name: {service.name}",
        f"        image: {json.dumps(_image(service, choices))}",
        f"        command: {json.dumps(docker.command(service))}",
        *_environment(service),
        *_ports(service),
        *_probes(service),
        *_resources(service),
        "        securityContext:",
        "          allowPrivilegeEscalation: false",
        "          readOnlyRootFilesystem: true",
        "          capabilities: {drop: [ALL]}",
        "        volumeMounts:",
        "        # The control socket, and bodies of slow clients.",
        "        - {name: tmp, mountPath: /tmp}",
        "      volumes:",
        *_volume(service),
    )


def _metadata(service: Service) -> list[str]:
    return ["metadata:", f"  name: {service.name}", f"  labels: {_labels(service)}"]


def _labels(service: Service) -> str:
    return f"{{app.kubernetes.io/name: {service.name}}}"


def _image(service: Service, choices: Choices) -> str:
    return choices.image or f"{service.name}:latest"


def _annotations(service: Service, choices: Choices) -> list[str]:
    path = service.config.metrics_path
    if choices.pod_monitor or not path:
        return []
    return [
        "      annotations:",
        f"        # {service.says('admin_bind', 'metrics_path')}.",
        '        prometheus.io/scrape: "true"',
        f'        prometheus.io/port: "{admin_port(service)}"',
        f"        prometheus.io/path: {json.dumps(path)}",
    ]


def admin_port(service: Service) -> int:
    return next(address.port for address in service.admin if not is_loopback(address))


def _pod_security(service: Service) -> list[str]:
    found = [
        "      securityContext:",
        "        runAsNonRoot: true",
        f"        runAsUser: {docker.user(service)}",
        f"        runAsGroup: {docker.group(service)}",
        f"        fsGroup: {docker.group(service)}",
        "        seccompProfile: {type: RuntimeDefault}",
    ]
    if service.low_ports:
        found += [
            f"        # {service.says('bind')}: a port below 1024, without a capability.",
            '        sysctls: [{name: net.ipv4.ip_unprivileged_port_start, value: "0"}]',
        ]
    return found


def _environment(service: Service) -> list[str]:
    if not service.variables:
        return []
    rows = [f"        - {{name: {name}, value: {json.dumps(value)}}}" for name, value in service.variables]
    return ["        env:", *rows]


def _ports(service: Service) -> list[str]:
    numbers = [address.port for address in service.reachable]
    names = ["http", *(f"http-{number}" for number in numbers[1:])]
    rows = [f"        - {{name: {name}, containerPort: {number}}}" for name, number in zip(names, numbers, strict=True)]
    return ["        ports:", *rows, f"        - {{name: admin, containerPort: {admin_port(service)}}}"]


def _probes(service: Service) -> list[str]:
    config = service.config
    ready = f"httpGet: {{path: {json.dumps(config.ready_path)}, port: admin}}"
    alive = f"httpGet: {{path: {json.dumps(config.health_path)}, port: admin}}"
    tries = math.ceil(docker.boot(service) / PERIOD)
    return [
        f"        # {service.says('boot_timeout')}: {tries} times {PERIOD} seconds.",
        f"        startupProbe: {{{ready}, periodSeconds: {PERIOD}, failureThreshold: {tries}}}",
        "        # The core answers probes without the application: one that is busy is not restarted for it.",
        f"        readinessProbe: {{{ready}, periodSeconds: {PERIOD}, failureThreshold: 1}}",
        f"        livenessProbe: {{{alive}, periodSeconds: {ALIVE_PERIOD}, failureThreshold: {ALIVE_FAILURES}}}",
    ]


def _resources(service: Service) -> list[str]:
    workers = service.config.workers
    if service.config.sizing:
        cpu = f"        # {service.says('workers')}: as many as limits.cpu and limits.memory allow, rounded up."
    else:
        each = f"each keeps one processor busy at most (requests: {{cpu: {workers}}})"
        cpu = f"        # {service.says('workers')}: {each}."
    if service.memory is None:
        return [cpu, f"        # With {service.without_memory} set, a limit of memory follows from it."]
    memory = f"{mebibytes(service.memory)}Mi"
    return [
        cpu,
        f"        # {service.says('max_worker_memory')}: twice for each worker, since a reload has two generations.",
        f"        resources: {{requests: {{memory: {memory}}}, limits: {{memory: {memory}}}}}",
    ]


def _volume(service: Service) -> list[str]:
    if service.spool is None:
        return ["      - {name: tmp, emptyDir: {}}"]
    size = mebibytes(service.spool) + 64
    return [
        f"      # {service.says('body_disk_total', 'response_disk_total', 'workers')}, and 64 MiB.",
        f"      - {{name: tmp, emptyDir: {{sizeLimit: {size}Mi}}}}",
    ]


def _service(service: Service) -> str:
    return lines(
        "apiVersion: v1",
        "kind: Service",
        *_metadata(service),
        "spec:",
        f"  selector: {_labels(service)}",
        "  ports: [{name: http, port: 80, targetPort: http}]",
    )


def _budget(service: Service) -> str:
    return lines(
        "# A node that is drained takes one pod at a time.",
        "apiVersion: policy/v1",
        "kind: PodDisruptionBudget",
        *_metadata(service),
        "spec:",
        "  maxUnavailable: 1",
        f"  selector: {{matchLabels: {_labels(service)}}}",
    )


def _pod_monitor(service: Service) -> str:
    return lines(
        "apiVersion: monitoring.coreos.com/v1",
        "kind: PodMonitor",
        *_metadata(service),
        "spec:",
        f"  selector: {{matchLabels: {_labels(service)}}}",
        "  podMetricsEndpoints:",
        f"  # {service.says('metrics_path')}.",
        f"  - {{port: admin, path: {json.dumps(service.config.metrics_path)}}}",
    )


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
