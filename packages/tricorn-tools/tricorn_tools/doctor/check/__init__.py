"""The static pass of `tricorn doctor check`: the application is loaded as a worker would, and looked at.

scene        what is looked at: the settings, the class, what was said while it was loaded
libraries    drivers that block this class; modules that were imported too early
resources    processors, cgroup quotas, descriptors
preload      threads that a fork leaves behind
databases    connections that may be asked for, and what the databases take
django       views without `async` under ASGI
finding      one thing that was found, and what to do
report       text and JSON
"""

from __future__ import annotations

from tricorn_tools.doctor.check import databases, django, libraries, preload, resources
from tricorn_tools.doctor.check.finding import Finding
from tricorn_tools.doctor.check.scene import Scene


def examine(scene: Scene, *, connect: bool) -> list[Finding]:
    """Everything that is found, the worst first. With `connect` databases are asked for their limits."""
    found = [
        *libraries.examine(scene),
        *preload.examine(scene),
        *databases.examine(scene, connect=connect),
        *resources.examine(scene),
        *django.examine(scene),
    ]
    return sorted(found, key=lambda finding: finding.severity.rank)
