"""What the gateways report reaches the error log, at the level it deserves."""

from __future__ import annotations

import logging

import pytest
from tricorn.config.resolve import resolve
from tricorn.gateway.reports import to_log
from tricorn.log import make


def test_errors_have_their_traceback_and_notices_their_level(capfd: pytest.CaptureFixture[str]) -> None:
    on_error, on_notice = to_log(make(resolve([])))
    try:
        raise ValueError("100 % wrong")
    except ValueError as error:
        on_error("Error handling request GET /%s", error)
    on_notice(logging.WARNING, "a warning of 5 %s")
    on_notice(logging.DEBUG, "only for debugging")
    lines = capfd.readouterr().err
    assert "[ERROR] Error handling request GET /%s" in lines
    assert "Traceback" in lines
    assert "ValueError: 100 % wrong" in lines
    assert "[WARNING] a warning of 5 %s" in lines
    assert "debug" not in lines
