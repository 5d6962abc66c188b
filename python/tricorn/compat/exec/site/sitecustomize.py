"""Read at the start of every interpreter below `tricorn exec`: from then on `import gunicorn` is this server's."""

import importlib
import os
import sys


def chain(here: str) -> None:
    """The `sitecustomize` that this one hides, if there is one."""
    hidden = [path for path in sys.path if os.path.abspath(path or ".") != here]
    sys.path[:], everything = hidden, sys.path[:]
    mine = sys.modules.pop("sitecustomize")
    try:
        importlib.import_module("sitecustomize")
    except ImportError:
        sys.modules["sitecustomize"] = mine
    finally:
        sys.path[:] = everything


def install() -> None:
    try:
        from tricorn import compat
    except ImportError:  # the interpreter of another environment: its gunicorn is its own
        return
    compat.install(programs=True)


install()
chain(os.path.dirname(os.path.abspath(__file__)))
