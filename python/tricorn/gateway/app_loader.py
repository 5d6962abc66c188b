"""From `module:attribute` or `module:factory(arguments)` to a callable; error texts are gunicorn's."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from typing import Any

from tricorn.errors import AppImportError, nearest
from tricorn.gateway import interfaces

DEFAULT_ATTRIBUTE = "application"


def load(uri: str) -> Callable[..., Any]:
    """The application that `uri` names. Exceptions of its module come through as they are."""
    module_name, _, expression = uri.partition(":")
    expression = expression or DEFAULT_ATTRIBUTE
    name, arguments = _parse(expression)
    module = _import(module_name, expression)
    try:
        found = getattr(module, name)
    except AttributeError:
        raise AppImportError(_not_found(name, module_name, tuple(vars(module)))) from None
    if arguments is not None:
        found = _call_factory(found, *arguments)
    if found is None:
        raise AppImportError(f"Failed to find application object: {expression!r}")
    if not callable(found) and interfaces.interface_of(found) is None:  # tornado's delegates need not be
        raise AppImportError("Application object must be callable.")
    application: Callable[..., Any] = found
    return application


Arguments = tuple[list[Any], dict[str, Any]]


def _parse(expression: str) -> tuple[str, Arguments | None]:
    if expression.isidentifier():
        return expression, None
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
    return node.func.id, (positional, named)


def _import(name: str, expression: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        if name.endswith(".py") and os.path.exists(name):
            stem = name.rpartition(".")[0].replace(os.sep, ".")
            raise AppImportError(f"Failed to find application, did you mean '{stem}:{expression}'?") from None
        raise


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
    meant = nearest(name, tuple(word for word in known if not word.startswith("__")))
    if meant is None and name == DEFAULT_ATTRIBUTE and "app" in known:
        meant = "app"
    hint = f" Did you mean '{module}:{meant}'?" if meant else ""
    return f"Failed to find attribute {name!r} in {module!r}.{hint}"
