"""Sentry: a transport of ours stands where its HTTP transport would."""

from __future__ import annotations

from typing import Any

import sentry_sdk
from notes import note
from sentry_sdk.transport import Transport


class Sink(Transport):
    def capture_envelope(self, envelope: Any) -> None:
        for item in envelope.items:
            sent = item.payload.json or {}
            if item.type == "transaction":
                trace = sent["contexts"]["trace"]
                note(transaction=sent["transaction"], op=trace["op"], status=trace.get("status"))
            elif item.type == "event":
                raised = [each["type"] for each in sent.get("exception", {}).get("values", [])]
                note(event=raised, transaction=sent.get("transaction"), level=sent.get("level"))


def prepare() -> None:
    sentry_sdk.init("http://key@127.0.0.1:9/1", transport=Sink(), traces_sample_rate=1.0)


def instrument_flask(app: Any) -> None: ...


def instrument_fastapi(app: Any) -> None: ...
