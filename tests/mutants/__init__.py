"""Faults that the suite is to notice: `make mutants`. One table for each language; `fault.py` says what a row is."""

from __future__ import annotations

from tests.mutants.collectors import COLLECTORS
from tests.mutants.compression import COMPRESSION
from tests.mutants.control import CONTROL_SOCKET
from tests.mutants.deployment import DEPLOYMENT
from tests.mutants.doctor import DOCTOR
from tests.mutants.documentation import DOCUMENTATION
from tests.mutants.fault import Fault
from tests.mutants.files import FILES
from tests.mutants.load import LOAD
from tests.mutants.metrics import METRICS
from tests.mutants.processes import PROCESSES
from tests.mutants.protocol import PROTOCOL
from tests.mutants.reactor import REACTOR
from tests.mutants.sampling import SLOW_REQUESTS
from tests.mutants.tls import TLS
from tests.mutants.top import LIVE_VIEW
from tests.mutants.workers import WORKERS

FAULTS: tuple[Fault, ...] = (
    *PROTOCOL,
    *FILES,
    *REACTOR,
    *LOAD,
    *METRICS,
    *COLLECTORS,
    *PROCESSES,
    *CONTROL_SOCKET,
    *DEPLOYMENT,
    *LIVE_VIEW,
    *DOCTOR,
    *SLOW_REQUESTS,
    *DOCUMENTATION,
    *WORKERS,
    *TLS,
    *COMPRESSION,
)
