"""Faults that the suite is to notice: `make mutants`. One table for each language; `fault.py` says what a row is."""

from __future__ import annotations

from tests.mutants.fault import Fault
from tests.mutants.metrics import METRICS
from tests.mutants.processes import PROCESSES
from tests.mutants.protocol import PROTOCOL
from tests.mutants.reactor import REACTOR
from tests.mutants.workers import WORKERS

FAULTS: tuple[Fault, ...] = (*PROTOCOL, *REACTOR, *METRICS, *PROCESSES, *WORKERS)
