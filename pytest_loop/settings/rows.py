"""One row of the table of options, and the groups that hold the rows and their values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, Generic, TypeVar, overload

from pytest_loop.settings.values import parse_parts, parse_yes_or_no

T = TypeVar("T")


@dataclass(eq=False)
class Option(Generic[T]):
    """A flag with or without an ini key, or an ini key alone; as an attribute of a `Group` it gives the value.

    `ini` is the default of the ini key (None: there is no ini key), `default` the value if nothing is written. Without
    `has_flag`, there is no flag. The value of a flag may be left out if `is_value_optional`.
    `takes_over` marks flags that make this process drive or inspect a run instead of running a session. `other_flags`
    are further names of the flag. A row with `part`, such as `stop_when.stuck`, is written `loop_stop_when = stuck 5`
    and read by `parse_part`. `old_key` is an ini key of earlier releases, and `old_default` its default; `new_flag`
    replaces a flag of earlier releases.
    """

    description: str
    metavar: str
    parse: Callable[[str], T]
    _: KW_ONLY
    default: T
    ini: str | None = None
    has_flag: bool = True
    is_repeatable: bool = False
    is_value_optional: bool = False
    takes_over: bool = False
    other_flags: tuple[str, ...] = ()
    part: str = ""
    parse_part: Callable[[str], T] | None = None
    old_key: str = ""
    old_default: str = ""
    new_flag: str = ""

    def __post_init__(self) -> None:
        self.bundle, _, self.part = self.part.partition(".")

    @property
    def takes_value(self) -> bool:
        """Whether the flag is always followed by a value."""
        return bool(self.metavar) and not self.is_value_optional

    def __set_name__(self, owner: type, name: str) -> None:
        self._attribute = name
        self.key = f"loop_{name}"
        self.old_key = self.old_key or (self.key if self.bundle else "")
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


# The kinds of rows; `more` are further fields of `Option`.


def switch(description: str, *, part: str = "", **more: Any) -> Option[bool]:
    """Declare a flag without a value."""
    return Option(description, "", parse_yes_or_no, default=False, part=part, old_default="no" if part else "", **more)


def text(description: str, metavar: str, ini: str | None = None, **more: Any) -> Option[str]:
    """Declare an option whose value is a text, empty by default."""
    return Option(description, metavar, str, default=ini or "", ini=ini, **more)


def texts(
    description: str, metavar: str, *, has_ini: bool = True, part: str = "", **more: Any
) -> Option[tuple[str, ...]]:
    """Declare a flag that may be repeated; its ini key takes words."""
    return Option(
        description,
        metavar,
        lambda word: (word,),
        default=(),
        ini="" if has_ini and not part else None,
        is_repeatable=True,
        part=part,
        parse_part=lambda words: tuple(words.split()),
        **more,
    )


def value(
    description: str, metavar: str, parse: Callable[[str], T], ini: str, *, part: str = "", old_key: str = ""
) -> Option[T]:
    """Declare a flag whose default is written as in the ini file; it has an ini key, a part of one, or an old one."""
    fields: dict[str, Any] = {"ini": ini}
    if part or old_key:
        fields = {"part": part, "old_key": old_key, "old_default": ini}
    return Option(description, metavar, parse, default=parse(ini), **fields)


def setting(description: str, parse: Callable[[str], T], ini: str, *, part: str = "", **more: Any) -> Option[T]:
    """Declare an ini key without a flag, or a part of an ini key."""
    fields: dict[str, Any] = {"part": part, "old_default": ini} if part else {"ini": ini}
    return Option(description, "", parse, default=parse(ini), has_flag=False, **fields, **more)


def bundle(description: str, metavar: str = "", ini: str | None = "") -> Option[dict[str, str]]:
    """Declare an ini key or a flag that holds several rows, such as `stuck 5, same_error 3`."""
    return Option(description, metavar, parse_parts, default={}, ini=ini, has_flag=bool(metavar))


def command(description: str, metavar: str = "ALIAS") -> Option[str | None]:
    """Declare a flag that takes over, followed by the name of a run or by nothing."""
    return Option(description, metavar, str, default=None, is_value_optional=True, takes_over=True)
