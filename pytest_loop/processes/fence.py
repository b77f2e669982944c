"""A fence: a sandbox in which processes may only read some paths, and which ends all of them after the first one.

Nothing else changes for these processes: other files, the network, sockets, the user and the environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cache
from pathlib import Path, PurePath
from typing import NamedTuple

from pytest_loop.core.text.lengths import shorten
from pytest_loop.processes.process_tree import can_find_children

Words = Sequence[str]
# With these, root could change the mounts, look into processes outside, or open files past the mounts.
_DROPPED_CAPABILITIES = ("sys_admin", "sys_ptrace", "dac_read_search")
# The first process inside: once it ends, the kernel ends all others. A shell also collects what they leave behind.
_FIRST_PROCESS = ("/bin/sh", "-c", '"$@"; exit $?', "sh")
# Makes each path a mount of its own, then runs the command. Flags of the mount below must be repeated in a user
# namespace. A path that was removed meanwhile is left out. The working folder is entered again, because a mount on
# top of it does not apply to a process that is already there.
_MOUNT_SCRIPT = """\
mount_path() {
    mount --rbind -- "$2" "$2" || return
    for flags in "" ,nosuid ,nosuid,nodev ,nosuid,nodev,noexec; do
        mount -o "remount,bind,$1$flags" -- "$2" 2>/dev/null && return
    done
    echo "cannot make $2 $1" >&2
    return 1
}
while [ "$1" != -- ]; do
    if [ ! -e "$2" ]; then :
    elif [ "$1" = empty ]; then mount -t tmpfs -o mode=0700 tmpfs "$2" || exit 125
    else mount_path "$1" "$2" || exit 125; fi
    shift 2
done
shift
cd "$(pwd -P)" || exit 125
"""
_BIND_OPTIONS = {"ro": "--ro-bind-try", "rw": "--dev-bind-try"}
_PROBE_TIMEOUT = 20.0
_MIN_LANDLOCK = 2  # earlier versions allow no rename between folders


class FenceTool(str, Enum):
    """A program or kernel feature that enforces a fence, the strictest first; the last one only ends processes."""

    BUBBLEWRAP = "bubblewrap"
    UNSHARE = "unshare"
    LANDLOCK = "Landlock"
    SUPERVISOR = "a supervisor"

    @property
    def has_mounts(self) -> bool:
        """Whether a part of a writable folder can be read-only."""
        return self in (FenceTool.BUBBLEWRAP, FenceTool.UNSHARE)


class Mount(NamedTuple):
    """A path inside of a fence, and its mode: ro, rw, or empty."""

    path: str
    mode: str


@dataclass(frozen=True)
class Fence:
    """A fence: read-only paths, and parts of these that stay writable; of nested paths, the inner one decides.

    A `hidden` folder is empty inside, and what is written there is lost. The folders around it, up to the home folder,
    cannot be renamed, so that no other folder takes its place. Paths are absolute and without links. One that does not
    exist is left out.
    """

    tool: FenceTool
    read_only: tuple[str, ...]
    writable: tuple[str, ...] = ()
    hidden: str = ""

    def wrap(self, words: Words, *, has_own_pids: bool = True, dies_with_parent: bool = False) -> list[str]:
        """Return the command that runs another one inside.

        With `has_own_pids`, processes inside cannot see others, and end with the first of them. `dies_with_parent` ends
        the command when the thread that started it ends: only for a thread that waits for the command.
        """
        return _WRAPPERS[self.tool](self, words, has_own_pids, dies_with_parent)

    @property
    def mounts(self) -> list[Mount]:
        """The paths with another mode than the folder around them, the outer ones first, and a hidden one."""
        modes = dict.fromkeys(self.read_only, "ro") | dict.fromkeys(self.writable, "rw")
        mounts = {"/": "rw"}
        for path in sorted(modes, key=lambda path: (len(PurePath(path).parts), path)):
            parents = map(str, PurePath(path).parents)
            around = next((mounts[folder] for folder in parents if folder in mounts), "rw")
            if modes[path] != around:
                mounts[path] = modes[path]
        hiding_mounts = [*self._list_hiding_mounts(mounts)]
        del mounts["/"]
        return [*(Mount(path, mode) for path, mode in mounts.items()), *hiding_mounts]

    def _list_hiding_mounts(self, mounts: dict[str, str]) -> Iterator[Mount]:
        """Yield the hidden folder and, since a mount cannot be renamed, a mount for each folder around it."""
        if self.hidden and Path(self.hidden).is_dir():
            home = os.path.realpath(Path.home())
            folders = [str(folder) for folder in PurePath(self.hidden).parents]
            around = [folder for folder in folders if folder != home and _contains(home, folder)]
            for folder in reversed(around):
                if folder not in mounts:
                    yield Mount(folder, next(mounts[outer] for outer in folders if outer in mounts))
            yield Mount(self.hidden, "empty")


def _wrap_with_bubblewrap(fence: Fence, words: Words, has_own_pids: bool, dies_with_parent: bool) -> list[str]:
    options = ["--dev-bind", "/", "/"]
    for path, mode in fence.mounts:
        options += ["--tmpfs", path] if mode == "empty" else [_BIND_OPTIONS[mode], path, path]
    if os.geteuid() == 0:
        options += [word for name in _DROPPED_CAPABILITIES for word in ("--cap-drop", f"cap_{name}")]
    options += ["--unshare-pid", "--proc", "/proc", "--as-pid-1"] if has_own_pids else []
    options += ["--die-with-parent"] if dies_with_parent else []
    return ["bwrap", *options, "--new-session", "--", *(_FIRST_PROCESS if has_own_pids else ()), *words]


def _wrap_with_unshare(fence: Fence, words: Words, has_own_pids: bool, dies_with_parent: bool) -> list[str]:
    """Mount as root, of a user namespace if need be, and then give up the right to change these mounts."""
    mounts = [word for path, mode in fence.mounts for word in (mode, path)]
    pids = ("--pid", "--mount-proc") if has_own_pids else ()
    if os.geteuid() == 0:
        user: Words = ()
        capabilities = ",".join(f"-{name}" for name in _DROPPED_CAPABILITIES)
        drop: Words = ("setpriv", "--no-new-privs", "--inh-caps", capabilities, "--bounding-set", capabilities, "--")
    else:
        user = ("--map-root-user",)
        drop = ("unshare", f"--map-user={os.geteuid()}", f"--map-group={os.getegid()}", "--")
    script = _MOUNT_SCRIPT + ('"$@"; exit $?' if has_own_pids else 'exec "$@"')
    parent = ("setpriv", "--pdeathsig", "KILL", "--") if dies_with_parent else ()
    unshare = [*parent, "unshare", *user, "--mount", *pids, "--fork", "--kill-child", "--"]
    return [*unshare, "setsid", "/bin/sh", "-c", script, "sh", *mounts, "--", *drop, *words]


def _wrap_with_supervisor(fence: Fence, words: Words, _has_own_pids: bool, dies_with_parent: bool) -> list[str]:
    """Return the command of a supervisor that ends processes left behind, and may restrict writing with Landlock."""
    paths = list_writable_parts(fence) if fence.tool is FenceTool.LANDLOCK else ()
    package = str(Path(__file__).parents[2])
    script = (
        f"import sys; sys.path.append({package!r}); "
        "from pytest_loop.processes.landlock_supervisor import main; "
        f"main(sys.argv[1:], dies_with_parent={dies_with_parent})"
    )
    return [sys.executable, "-I", "-S", "-c", script, *paths, "--", *words]


_WRAPPERS: dict[FenceTool, Callable[[Fence, Words, bool, bool], list[str]]] = {
    FenceTool.BUBBLEWRAP: _wrap_with_bubblewrap,
    FenceTool.UNSHARE: _wrap_with_unshare,
    FenceTool.LANDLOCK: _wrap_with_supervisor,
    FenceTool.SUPERVISOR: _wrap_with_supervisor,
}


def list_writable_parts(fence: Fence, folder: str = "/") -> Iterator[str]:
    """Yield the outermost files and folders that hold no read-only path, and the writable parts of those.

    In a folder that holds a read-only path, existing entries stay writable, but no new ones can be made.
    """
    if folder in fence.writable or not any(_contains(folder, path) for path in fence.read_only):
        yield folder
    elif folder in fence.read_only:
        yield from (path for path in fence.writable if _contains(folder, path))
    else:
        for entry in _list_entries(folder):
            if entry.is_dir(follow_symlinks=False):
                yield from list_writable_parts(fence, entry.path)
            elif entry.path not in fence.read_only and not entry.is_symlink():
                yield entry.path


def _list_entries(folder: str) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return sorted(entries, key=lambda entry: entry.name)
    except OSError:  # a folder that may be entered, but not listed
        return []


def _contains(folder: str, path: str) -> bool:
    return PurePath(path).is_relative_to(folder)


@cache
def make_supervisor_fence() -> Fence | None:
    """Return a fence that only ends processes, and allows all writing; None if that is impossible here."""
    return Fence(FenceTool.SUPERVISOR, ()) if sys.platform == "linux" and can_find_children() else None


class Probe(NamedTuple):
    """The tool that works here, or the reason why none does."""

    tool: FenceTool | None
    problem: str = ""


@cache
def probe_tools() -> Probe:
    """Try the tools until one keeps a process from writing."""
    if sys.platform != "linux":
        return Probe(None, f"{sys.platform} has no fence that pytest-loop knows")
    if not can_find_children():
        return Probe(None, "the system does not show which processes are whose children")
    problems = []
    for tool in (FenceTool.BUBBLEWRAP, FenceTool.UNSHARE, FenceTool.LANDLOCK):
        problem = find_tool_problem(tool)
        if not problem:
            return Probe(tool)
        problems.append(problem)
    return Probe(None, "; ".join(problems))


def find_tool_problem(tool: FenceTool) -> str:
    """Try a tool, and return why it does not work here; empty if it does."""
    from pytest_loop.processes import landlock  # for runs only: sessions must start quickly

    if tool is FenceTool.LANDLOCK and landlock.detect_version() < _MIN_LANDLOCK:
        return "the kernel has no Landlock"
    with tempfile.TemporaryDirectory(prefix="pytest-loop-") as folder:
        script = '! (: > "$0/file") 2>/dev/null'
        words = Fence(tool, (os.path.realpath(folder),)).wrap(["/bin/sh", "-c", script, folder])
        if shutil.which(words[0]) is None:
            return f"{words[0]} is not installed"
        try:
            result = subprocess.run(
                words, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_PROBE_TIMEOUT
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{tool.value} does not work here: {error}"
    message = result.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return f"{tool.value} does not work here: {shorten(message) or 'it stops nothing'}" if result.returncode else ""
