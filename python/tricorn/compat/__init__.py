"""gunicorn's names for code that was written for gunicorn: configuration files, hooks, logger classes.

    install()     from now on `import gunicorn` works, with gunicorn installed or without

What is served stands in `table`: the names that configuration files lean on. Everything else of gunicorn's raises an
error that says so; a program that embeds gunicorn (`gunicorn.app.base`) needs gunicorn.

If gunicorn is installed it is left alone, but for `gunicorn.glogging`: a logger class is used by this server and must
subclass the server's logger.
"""

from __future__ import annotations

from tricorn.compat.finder import install

__all__ = ["install"]
