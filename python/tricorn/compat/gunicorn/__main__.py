"""`python -m gunicorn`, where every name is ours."""

from __future__ import annotations

from .app.wsgiapp import run

if __name__ == "__main__":
    run(prog="gunicorn")
