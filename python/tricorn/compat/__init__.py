"""gunicorn's names, for code that was written for it: configuration files, hooks, loggers, worker classes, programs.

    install()                 from now on `import gunicorn` works, with gunicorn installed or without
    install(programs=True)    every name is ours, so that a program that starts gunicorn or uvicorn starts this server

What is served are the files of the folder `gunicorn` here, imported under that name: classes can be derived from,
pickled and inspected. Everything else of gunicorn's raises an error that says so.

Without `programs` a gunicorn that is installed is left alone, but for what this server itself uses (`finder.OURS`).
"""

from __future__ import annotations

from tricorn.compat.finder import install

__all__ = ["install"]
