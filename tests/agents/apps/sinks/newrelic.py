"""New Relic: `newrelic-admin run-program` has patched the libraries; in developer mode nothing is sent."""

from __future__ import annotations

from typing import Any

from newrelic.core.application import Application
from notes import note


def prepare() -> None:
    record = Application.record_transaction

    def recorded(self: Any, data: Any) -> Any:
        note(transaction=data.path, type=data.type, errors=[each.type for each in data.errors])
        return record(self, data)

    Application.record_transaction = recorded


def instrument_flask(app: Any) -> None: ...


def instrument_fastapi(app: Any) -> None: ...
