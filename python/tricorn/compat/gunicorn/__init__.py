"""gunicorn's names, as far as tricorn serves them; see `tricorn.compat`."""

from __future__ import annotations

from tricorn.compat.absent import refuse

version_info = (27, 0, 1)
"""The gunicorn whose behaviour is promised."""
__version__ = ".".join(map(str, version_info))

SERVER = "gunicorn"
SERVER_SOFTWARE = f"{SERVER}/{__version__}"

__getattr__ = refuse(__name__)
