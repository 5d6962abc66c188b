"""compose.yaml: the image of the Dockerfile, read-only, with the limits that follow from settings."""

from __future__ import annotations

import json

from tricorn_tools.init import docker
from tricorn_tools.init.service import File, Rendered, Service
from tricorn_tools.init.systemd import refuse_daemon
from tricorn_tools.init.template import fill


def render(service: Service, tree: docker.Tree) -> Rendered:
    refuse_daemon(service)
    notes = [note for note in docker.notes(service, tree) if docker.REQUIREMENTS not in note]
    if "Dockerfile" not in tree.files:
        notes.append(
            "compose.yaml builds the image of a Dockerfile: `tricorn init docker` with the same flags prints one."
        )
    text = fill(
        "compose.yaml",
        service,
        filters={"yaml": _yaml},
        published=[f"{address.port}:{address.port}" for address in service.reachable],
        **docker.values(service),
    )
    return Rendered((File("compose.yaml", text),), tuple(notes))


def _yaml(value: object) -> str:
    """Quotes as JSON, which YAML reads; Compose takes `$$` for a dollar sign."""
    return json.dumps(value, ensure_ascii=False).replace("$", "$$")
