"""Templates: each file of `templates/` looks like the file that it becomes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

from tricorn.errors import ConfigError
from tricorn_tools.init.service import Service, mebibytes

DIRECTORY = Path(__file__).with_name("templates")

Filters = Mapping[str, Callable[..., str]]


def fill(name: str, service: Service, *, filters: Filters | None = None, **values: object) -> str:
    """Returns the text of the template `name` with these values; a value that it misses is an error.

    `filters` are the quoting rules of the file's format. Raises ConfigError without Jinja2.
    """
    try:
        import jinja2
    except ImportError:
        raise ConfigError(
            "`tricorn init` needs Jinja2, which is not installed: pip install 'tricorn[tools]'."
        ) from None
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(DIRECTORY),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(json=json.dumps, mebibytes=mebibytes)
    environment.filters.update(filters or {})
    template = environment.get_template(f"{name}.j2")
    return template.render(service=service, config=service.config, says=service.says, **values)
