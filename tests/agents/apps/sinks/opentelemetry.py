"""OpenTelemetry: `opentelemetry-instrument` has patched the libraries; a processor of ours sees spans as they end."""

from __future__ import annotations

from typing import Any

from notes import note
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider


class Sink(SpanProcessor):
    def on_end(self, span: ReadableSpan) -> None:
        facts = span.attributes or {}
        note(
            span=span.name,
            kind=span.kind.name,
            route=facts.get("http.route"),
            status=facts.get("http.status_code"),
            events=[each.name for each in span.events],
        )


def prepare() -> None:
    provider = trace.get_tracer_provider()
    assert isinstance(provider, TracerProvider)
    provider.add_span_processor(Sink())


def instrument_flask(app: Any) -> None: ...


def instrument_fastapi(app: Any) -> None: ...
