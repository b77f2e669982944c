"""One row of the table of options, and the groups that hold the rows and their values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar, overload

from pytest_loop.settings.values import parse_yes_or_no

T = TypeVar("T")


class Option(Generic[T]):
    """A flag with or without an ini key, or an ini key alone; as an attribute of a `Group` it gives the value.

    `ini` is the default of the ini key (None: there is no ini key), `default` the value if nothing is written.
    `takes_over` marks flags that make this process drive or inspect a run instead of running a session. `other_flags`
    are further names of the flag.
    """

    def __init__(
        self,
        description: str,
        metavar: str,
        parse: Callable[[str], T],
        *,
        default: T,
        ini: str | None = None,
        has_flag: bool = True,
        is_repeatable: bool = False,
        is_value_optional: bool = False,
        takes_over: bool = False,
        other_flags: tuple[str, ...] = (),
    ) -> None:
        self.description = description
        self.metavar = metavar
        self.parse = parse
        self.default = default
        self.ini = ini
        self.has_flag = has_flag
        self.is_repeatable = is_repeatable
        self.is_value_optional = is_value_optional
        self.takes_over = takes_over
        self.other_flags = other_flags

    @property
    def takes_value(self) -> bool:
        """Whether the flag is always followed by a value."""
        return bool(self.metavar) and not self.is_value_optional

    def __set_name__(self, owner: type, name: str) -> None:
        self._attribute = name
        self.key = f"loop_{name}"
        self.flag = f"--loop-{name.replace('_', '-')}" if self.has_flag else ""

    @overload
    def __get__(self, group: None, owner: type) -> Option[T]: ...

    @overload
    def __get__(self, group: Group, owner: type) -> T: ...

    def __get__(self, group: Group | None, owner: type) -> Option[T] | T:
        if group is None:
            return self
        value: T = vars(group)[self._attribute]
        return value

    def __set__(self, group: Group, value: T) -> None:
        raise AttributeError(f"settings are frozen: {self._attribute}")


class Group:
    """Options that belong together, and their values (or defaults); the docstring is the heading in docs/options.md."""

    def __init__(self, **values: Any) -> None:
        for name, option in self.get_options().items():
            vars(self)[name] = values.pop(name, option.default)
        if values:
            raise TypeError(f"unknown settings: {', '.join(values)}")

    @classmethod
    def get_options(cls) -> dict[str, Option[Any]]:
        """Return the rows of this group by the names of their attributes."""
        return {name: option for name, option in vars(cls).items() if isinstance(option, Option)}

    @property
    def values(self) -> dict[str, Any]:
        """The values by the names of their attributes."""
        return dict(vars(self))


def switch(description: str, ini: str | None = None, *, takes_over: bool = False) -> Option[bool]:
    """Declare a flag without a value."""
    return Option(description, "", parse_yes_or_no, default=False, ini=ini, takes_over=takes_over)


def text(
    description: str,
    metavar: str,
    ini: str | None = None,
    *,
    takes_over: bool = False,
    other_flags: tuple[str, ...] = (),
) -> Option[str]:
    """Declare an option whose value is a text, empty by default."""
    return Option(description, metavar, str, default=ini or "", ini=ini, takes_over=takes_over, other_flags=other_flags)


def texts(description: str, metavar: str, *, has_ini: bool = True) -> Option[tuple[str, ...]]:
    """Declare a flag that may be repeated; its ini key takes words."""
    ini = "" if has_ini else None
    return Option(description, metavar, lambda word: (word,), default=(), ini=ini, is_repeatable=True)


def value(description: str, metavar: str, parse: Callable[[str], T], ini: str) -> Option[T]:
    """Declare a flag and an ini key whose default is written as in the ini file."""
    return Option(description, metavar, parse, default=parse(ini), ini=ini)


def setting(description: str, parse: Callable[[str], T], ini: str) -> Option[T]:
    """Declare an ini key without a flag."""
    return Option(description, "", parse, default=parse(ini), ini=ini, has_flag=False)


def command(description: str, metavar: str = "ALIAS") -> Option[str | None]:
    """Declare a flag that takes over, followed by the name of a run or by nothing."""
    return Option(description, metavar, str, default=None, is_value_optional=True, takes_over=True)
