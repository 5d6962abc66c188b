"""From `module:attribute` or `module:factory(arguments)` to a callable; error texts are gunicorn's.

A module may be named by its file, `main.py`. One that is named alone has `application`, `app`, or a factory
`create_app()`, whichever is there first.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Callable
from typing import Any

from tricorn.errors import AppImportError
from tricorn.gateway import interfaces
from tricorn.spelling import hint

DEFAULT_ATTRIBUTES = ("application", "app")
"""gunicorn's, and that of the frameworks' tutorials."""
DEFAULT_FACTORY = "create_app"


def load(uri: str, *, factory: bool = False) -> Callable[..., Any]:
    """The application that `uri` names, or with `factory` what the named function returns.

    A function that needs no arguments is taken for a factory without being called one: no interface calls it so.
    Exceptions of its module come through as they are.
    """
    module_name, _, expression = uri.partition(":")
    if _is_file(module_name):
        module_name = _module_of(module_name)
    names, arguments = _parse(expression) if expression else ((), None)
    module: Any = importlib.import_module(module_name)
    if not names:
        names, arguments = _default(module, module_name)
        expression = ".".join(names) + ("" if arguments is None else "()")
    found: Any = module
    for name in names:
        try:
            found = getattr(found, name)
        except AttributeError:
            raise AppImportError(_not_found(name, module_name, tuple(vars(module)))) from None
    if arguments is None and (factory or interfaces.is_factory(found)):
        arguments = [], {}
    if arguments is not None:
        found = _call_factory(found, *arguments)
    if found is None:
        raise AppImportError(f"Failed to find application object: {expression!r}")
    if not callable(found) and interfaces.interface_of(found) is None:  # tornado's delegates need not be
        raise AppImportError("Application object must be callable.")
    application: Callable[..., Any] = found
    return application


Arguments = tuple[list[Any], dict[str, Any]]


def make(factory: Any) -> Any:
    """What a factory of a program's returns."""
    return _call_factory(factory, [], {})


def _is_file(name: str) -> bool:
    return name.endswith(".py") and os.path.isfile(name)


def _module_of(path: str) -> str:
    """The name by which the module in the file `path` can be imported."""
    path = os.path.relpath(path)
    if path.startswith(os.pardir):
        folder, path = os.path.split(os.path.abspath(path))
        if folder not in sys.path:
            sys.path.insert(0, folder)
    return path.removesuffix(".py").removesuffix(os.sep + "__init__").replace(os.sep, ".")


def _default(module: Any, module_name: str) -> tuple[tuple[str, ...], Arguments | None]:
    for name in DEFAULT_ATTRIBUTES:
        if hasattr(module, name):
            return (name,), None
    if hasattr(module, DEFAULT_FACTORY):
        return (DEFAULT_FACTORY,), ([], {})
    looked = ", ".join(map(repr, DEFAULT_ATTRIBUTES))
    raise AppImportError(
        f"Failed to find an application in {module_name!r}: it has no {looked} and no {DEFAULT_FACTORY}(). "
        f"Name it, as in '{module_name}:ATTRIBUTE'."
    )


def _parse(expression: str) -> tuple[tuple[str, ...], Arguments | None]:
    names = tuple(expression.split("."))
    if all(name.isidentifier() for name in names):
        return names, None
    import ast  # only for factories

    try:
        node = ast.parse(expression, mode="eval").body
    except SyntaxError:
        node = None
    if not isinstance(node, ast.Call):
        raise AppImportError(f"Failed to parse {expression!r} as an attribute name or function call.")
    if not isinstance(node.func, ast.Name):
        raise AppImportError(f"Function reference must be a simple name: {expression!r}")
    try:
        positional = [ast.literal_eval(argument) for argument in node.args]
        named = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords if keyword.arg}
    except ValueError:
        raise AppImportError(f"Failed to parse arguments as literal values: {expression!r}") from None
    if len(named) != len(node.keywords):
        raise AppImportError(f"Failed to parse arguments as literal values: {expression!r}")
    return (node.func.id,), (positional, named)


def _call_factory(factory: Any, positional: list[Any], named: dict[str, Any]) -> Any:
    if not callable(factory):
        raise AppImportError(f"Application factory must be callable, got {type(factory).__name__}.")
    try:
        return factory(*positional, **named)
    except TypeError as error:
        # Raised by the call itself, not inside of the factory: the arguments are wrong, no traceback helps.
        if error.__traceback__ is not None and error.__traceback__.tb_next is None:
            raise AppImportError(f"TypeError: {error}") from None
        raise


def _not_found(name: str, module: str, known: tuple[str, ...]) -> str:
    public = [word for word in known if not word.startswith("__")]
    meant = hint(name, public, f"'{module}:{{}}'")
    return f"Failed to find attribute {name!r} in {module!r}{meant}"
