"""Immutable records: what `dataclass(frozen=True)` makes, without compiling methods for each class.

There are a hundred of them, and every start waits for them: dataclasses write and compile the source of six methods for
each, half a millisecond a class. Here the methods are shared, and look at the class's fields.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object) -> Any:
        return lambda decorated: decorated


@dataclass_transform(frozen_default=True)
class Record:
    """Its annotations are its fields, in order; those that have a value may be left out."""

    __match_args__: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        own = [name for name, kind in cls.__annotations__.items() if not str(kind).startswith("ClassVar")]
        setattr(cls, "__match_args__", (*cls.__match_args__, *own))  # noqa: B010  (type checkers take it for final)

    if not TYPE_CHECKING:  # type checkers make their own of the fields

        def __init__(self, *values: object, **named: object) -> None:
            fields = self.__match_args__
            given = dict(zip(fields, values, strict=False))
            if len(values) > len(fields) or not named.keys() <= set(fields) - given.keys():
                raise TypeError(f"{type(self).__name__} takes {', '.join(fields)}, each once")
            given.update(named)
            for name in fields:
                if name not in given:
                    try:
                        given[name] = getattr(type(self), name)
                    except AttributeError:
                        raise TypeError(f"{type(self).__name__} needs {name}") from None
            vars(self).update(given)

        def __setattr__(self, name: str, value: object) -> None:
            raise AttributeError(f"{type(self).__name__} is immutable")

        def __delattr__(self, name: str) -> None:
            raise AttributeError(f"{type(self).__name__} is immutable")

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and vars(self) == vars(other)

    def __hash__(self) -> int:
        return hash((type(self), *vars(self).values()))

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__match_args__)
        return f"{type(self).__name__}({fields})"


if TYPE_CHECKING:
    from dataclasses import replace as replace  # noqa: TID251  (for type checkers only)
else:

    def replace(record, **changes):
        """Returns the same record with other values of some fields."""
        return type(record)(**{**vars(record), **changes})
