"""From `module:attribute` or `module:factory(arguments)` to the application; error texts are gunicorn's.

A module may be named by its file, `main.py`. One that is named alone has `application`, `app`, or a factory
`create_app()`, whichever is there first. What is named may be the application, a factory, or an object with a method
that makes one (`interfaces`).
"""

from __future__ import annotations

import ast
import importlib
import inspect
import os
import sys
import traceback
from collections.abc import Callable, Mapping
from typing import Any

from tricorn.config.settings.processes import AUTO
from tricorn.errors import AppImportError, BootError, shown
from tricorn.gateway import interfaces
from tricorn.spelling import hint

DEFAULT_ATTRIBUTES = ("application", "app")
"""gunicorn's, and that of the frameworks' tutorials."""
DEFAULT_FACTORY = "create_app"


def load(uri: str, *, factory: bool = False, worker_class: str = AUTO) -> Callable[..., Any]:
    """The application that `uri` names, for a worker of this class. With `factory` it names what makes the application.

    Exceptions of its module come through as they are.
    """
    module_name, _, expression = uri.partition(":")
    if _is_file(module_name):
        module_name = _module_of(module_name)
    elif os.sep in module_name or "" in module_name.split("."):
        raise AppImportError(_no_module_name(module_name, expression))
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
    if arguments is not None:
        return _application(_call_factory(found, *arguments), expression, worker_class, is_made=True)
    return make(found, expression, factory=factory, worker_class=worker_class)


Arguments = tuple[list[Any], dict[str, Any]]


def make(found: Any, name: str, *, factory: bool = False, worker_class: str = AUTO) -> Callable[..., Any]:
    """The application that `found` is, or makes. With `factory` it is known to make one; `name` is for errors."""
    if factory and not inspect.iscoroutinefunction(found):  # aiohttp's worker awaits those
        return _application(_call_factory(found, [], {}), name, worker_class, is_made=True)
    if interfaces.is_factory(found, worker_class):
        return _application(_call_supposed(found, name, worker_class), name, worker_class, is_made=True)
    return _application(found, name, worker_class)


def _application(found: Any, name: str, worker_class: str, *, is_made: bool = False) -> Callable[..., Any]:
    """Raises AppImportError if it is none, and has none."""
    if (method := interfaces.application_in(found)) is not None:
        is_application = not interfaces.is_factory(method) and interfaces.might_be_application(method)
        found = method if is_application else _call_factory(method, [], {})
    what = f"{name!r} {'has returned' if is_made else 'is'}"
    if found is None:
        raise AppImportError(f"Failed to find application object: {what} None.")
    if inspect.iscoroutine(found):
        found.close()
        raise AppImportError(f"Application object must be callable. {what} a coroutine: factories are not awaited.")
    if not interfaces.is_application(found, worker_class):
        if callable(found):
            raise AppImportError(f"{what} another factory, {_kind(found)}; expected the application.")
        raise AppImportError(f"Application object must be callable. {what} {_kind(found)}.")
    application: Callable[..., Any] = found
    return application


def _kind(found: object) -> str:
    """`a str`, `a function`."""
    name = type(found).__qualname__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _call_supposed(found: Any, name: str, worker_class: str) -> Any:
    """Calls an object that looks like a factory. A failure says so if the guess may be wrong."""
    try:
        return _call_factory(found, [], {})
    except AppImportError:
        raise
    except Exception as error:
        if not interfaces.might_be_application(found, worker_class):
            raise
        details = "".join(traceback.format_exception(*shown(error)))
        raise BootError(
            f"{name!r} was called as a factory because all its parameters have defaults, and raised "
            f"{type(error).__name__}. If it is the application, set its worker class (sync or asgi, for example).",
            details=details,
        ) from error


def _is_file(name: str) -> bool:
    return name.endswith(".py") and os.path.isfile(name)


def _no_module_name(name: str, expression: str) -> str:
    """Explains that `name` is no dotted name; a path may lack its extension, as the shell completes it."""
    rest = f":{expression}" if expression else ""
    if name.endswith(".py"):
        return f"There is no file {name!r}."
    path = name.rstrip("/")
    dotted = os.path.normpath(path).replace(os.sep, ".") if path else ""
    meant = [f"'{path}.py{rest}'"] if path and os.path.isfile(f"{path}.py") else []
    if all(part.isidentifier() for part in dotted.split(".")):
        meant.append(f"'{dotted}{rest}'")
    hinted = f"; did you mean {' or '.join(meant)}?" if meant else ", as in MODULE:ATTRIBUTE, and no file."
    return f"{name!r} is not a module name{hinted}"


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
    looked = " or ".join(map(repr, DEFAULT_ATTRIBUTES))
    raise AppImportError(
        f"Failed to find an application in {module_name!r}: it has no {looked}, and no {DEFAULT_FACTORY}(). "
        f"Add the attribute, as in '{module_name}:ATTRIBUTE'."
    )


def _parse(expression: str) -> tuple[tuple[str, ...], Arguments | None]:
    names = tuple(expression.split("."))
    if all(name.isidentifier() for name in names):
        return names, None
    try:
        node = ast.parse(expression, mode="eval").body
    except SyntaxError:
        node = None
    if not isinstance(node, ast.Call):
        raise AppImportError(f"Failed to parse {expression!r} as an attribute name or function call.")
    function = ast.unparse(node.func).split(".")
    if not all(name.isidentifier() for name in function):
        raise AppImportError(f"A factory must be a name or a dotted name: {expression!r}")
    try:
        positional = [ast.literal_eval(argument) for argument in node.args]
        named = {keyword.arg: ast.literal_eval(keyword.value) for keyword in node.keywords if keyword.arg}
    except ValueError:
        raise AppImportError(f"Failed to parse arguments as literal values: {expression!r}") from None
    if len(named) != len(node.keywords):
        raise AppImportError(f"Failed to parse arguments as literal values: {expression!r}")
    return tuple(function), (positional, named)


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


def load_paste(path: str, variables: Mapping[str, str]) -> Callable[..., Any]:
    """The application of a PasteDeploy file, `FILE` or `FILE#NAME`: Pyramid's `production.ini`.

    Exceptions of its modules come through as they are.
    """
    try:
        from paste.deploy import loadapp
    except ModuleNotFoundError as error:
        raise BootError(f"paste needs PasteDeploy ({error}): pip install 'tricorn[paste]'.") from None
    file, _, name = path.partition("#")
    uri = f"config:{os.path.abspath(file)}" + (f"#{name}" if name else "")
    try:
        found: Callable[..., Any] = loadapp(uri, global_conf=dict(variables))
    except LookupError as error:
        raise AppImportError(f"{path} does not describe the application: {error}") from None
    return found
