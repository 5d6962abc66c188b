"""compose.yaml: the image of the Dockerfile, read-only, with the limits that follow from settings."""

from __future__ import annotations

import json

from tricorn_tools.init import docker
from tricorn_tools.init.service import File, Rendered, Service, lines, mebibytes
from tricorn_tools.init.systemd import refuse_daemon


def render(service: Service, tree: docker.Tree) -> Rendered:
    refuse_daemon(service)
    notes = [note for note in docker.notes(service, tree) if docker.REQUIREMENTS not in note]
    if "Dockerfile" not in tree.files:
        notes.append(
            "compose.yaml builds the image of a Dockerfile: `tricorn init docker` with the same flags prints one."
        )
    return Rendered((File("compose.yaml", _compose(service)),), tuple(notes))


def _compose(service: Service) -> str:
    published = [f"{address.port}:{address.port}" for address in service.reachable]
    return lines(
        "# Written by `tricorn init compose`.",
        "services:",
        f"  {service.name}:",
        "    build: .",
        f"    command: {_yaml(docker.command(service))}",
        *_environment(service),
        *([f"    # {service.says('bind')}.", f"    ports: {_yaml(published)}"] if published else []),
        f"    user: {json.dumps(f'{docker.user(service)}:{docker.group(service)}')}",
        "    restart: unless-stopped",
        "    # The arbiter is process 1, and reaps what it inherits.",
        "    init: false",
        "    stop_signal: SIGTERM",
        f"    # {service.says('drain_delay', 'graceful_timeout')}, and 5 for the end of the processes.",
        f"    stop_grace_period: {service.grace}s",
        "    healthcheck:",
        f"      test: {_yaml(['CMD', *docker.health(service)])}",
        f"      interval: {docker.INTERVAL}s",
        f"      timeout: {docker.PATIENCE}s",
        "      retries: 3",
        f"      # {service.says('boot_timeout')}.",
        f"      start_period: {docker.boot(service)}s",
        "    read_only: true",
        "    # The control socket, and bodies of slow clients, which are memory here.",
        "    tmpfs: [/tmp]",
        "    cap_drop: [ALL]",
        '    security_opt: ["no-new-privileges:true"]',
        *_memory(service),
    )


def _environment(service: Service) -> list[str]:
    if not service.variables:
        return []
    return ["    environment:", *(f"      {name}: {_yaml(value)}" for name, value in service.variables)]


def _memory(service: Service) -> list[str]:
    if service.memory is None:
        return [f"    # With {service.without_memory} set, mem_limit follows from it."]
    return [
        f"    # {service.says('workers', 'max_worker_memory')}: twice, since a reload has two generations.",
        f"    mem_limit: {mebibytes(service.memory)}m",
    ]


def _yaml(value: object) -> str:
    """As JSON, which YAML reads; Compose takes `$$` for a dollar sign."""
    return json.dumps(value, ensure_ascii=False).replace("$", "$$")
