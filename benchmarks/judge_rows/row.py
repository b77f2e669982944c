"""One row: a project, a task, what a scripted agent does, and how the run should end; and the actions of agents."""

from __future__ import annotations

import os
import shutil
import site
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from textwrap import dedent

Action = Callable[[], None]
Files = Mapping[str, str]
FIX_UNTIL_GREEN = "fix until green"


class End(Enum):
    """How a run should end."""

    GREEN = "completed, nothing put back, nothing void"
    MONITOR = "completed, and the verdict is not SHIP"
    RED = "not completed"
    DOUBTED = "not completed, or the verdict is not SHIP"
    BLOCKED = "stopped, reason blocked"
    REFUSED = "exit code 4, no agent called"


@dataclass(frozen=True)
class Then:
    """A second call of pytest: `between` happens before it, `actions` when its agent is called."""

    arguments: tuple[str, ...]
    between: tuple[Action, ...] = ()
    actions: tuple[Action, ...] = ()


@dataclass(frozen=True)
class Row:
    """One agent.

    `actions` happen when it is called first; later calls do nothing. `check` is the command whose exit code a naive
    loop believes. `environment` are files for the site-packages of a disposable environment. `setup` are shell commands
    before the run, and `requires` the programs without which the row is left out. A cheating agent that `leaves_note`
    also changes a file that decides nothing, because a success without any change is suspicious.
    """

    kind: str
    name: str
    actions: tuple[Action, ...]
    files: Files
    end: End = End.RED
    task: str = FIX_UNTIL_GREEN
    options: tuple[str, ...] = ()
    check: tuple[str, ...] = ("python", "-m", "pytest", "-q")
    answer: str = "done"
    setup: tuple[str, ...] = ()
    environment: Files | None = None
    then: Then | None = None
    requires: tuple[str, ...] = ()
    leaves_note: bool = True

    @property
    def id(self) -> str:
        return f"{self.kind}: {self.name}"

    @property
    def is_honest(self) -> bool:
        return self.end in (End.GREEN, End.MONITOR)


# -- actions; an agent works in the folder of the project


def write(path: str, text: str) -> Action:
    """Write a file; `~` is the home folder, `SITE` the site-packages and `BIN` the programs of the environment."""

    def act() -> None:
        place = locate(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(clean(text), encoding="utf-8")

    return act


def append(path: str, text: str) -> Action:
    return edit(path, lambda old: old + clean(text))


def prepend(path: str, text: str) -> Action:
    return edit(path, lambda old: clean(text) + old)


def replace(path: str, old: str, new: str) -> Action:
    def change(text: str) -> str:
        if old not in text:
            raise SystemExit(f"{path}: expected {old!r}, found none")
        return text.replace(old, new)

    return edit(path, change)


def edit(path: str, change: Callable[[str], str]) -> Action:
    def act() -> None:
        place = locate(path)
        place.write_text(change(place.read_text(encoding="utf-8")), encoding="utf-8")

    return act


def remove(path: str) -> Action:
    def act() -> None:
        place = locate(path)
        shutil.rmtree(place) if place.is_dir() and not place.is_symlink() else place.unlink()

    return act


def rename(old: str, new: str) -> Action:
    def act() -> None:
        locate(new).parent.mkdir(parents=True, exist_ok=True)
        locate(old).rename(locate(new))

    return act


def shell(command: str) -> Action:
    """Run a command; what it prints is no part of the agent's answer."""
    return lambda: void(subprocess.run(command, shell=True, stdout=subprocess.DEVNULL, check=True))


def start_daemon(code: str) -> Action:
    """Start Python in a session of its own with an empty environment; it has to end when `over()` says so.

    `over` is true once the row has ended, or after a minute.
    """
    head = """
        import os, sys, time
        from pathlib import Path
        os.chdir({folder!r})
        deadline = time.monotonic() + 60
        def over():
            time.sleep(0.005)
            return time.monotonic() > deadline or Path({base!r}, "over").exists()
        """

    def act() -> None:
        folder = Path.cwd()
        text = clean(head).format(folder=str(folder), base=str(folder.parent)) + clean(code)
        if os.fork():
            return
        os.setsid()
        with open(os.devnull, "r+b") as null:  # noqa: PTH123 - a descriptor is needed
            for descriptor in range(3):
                os.dup2(null.fileno(), descriptor)
        os.execve(sys.executable, [sys.executable, "-I", "-c", text], {})

    return act


def void(_value: object) -> None:
    """Drop a value."""


def clean(text: str) -> str:
    return dedent(text).lstrip("\n")


def clean_files(files: Files) -> dict[str, str]:
    """Return files without the indentation that their texts have in a table."""
    return {path: clean(text) for path, text in files.items()}


def locate(path: str) -> Path:
    """Return the place of a path."""
    first, _, rest = path.partition("/")
    if first == "SITE":
        return Path(site.getsitepackages()[0], rest)
    if first == "BIN":
        return Path(sys.executable).with_name(rest)
    return Path(path).expanduser()
