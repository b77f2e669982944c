"""Judge one shard on a worker: update the tree, run a cold and fenced session, and return its evidence."""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import IO, cast

from pytest_loop.cluster.environment import BuildError, build_environment
from pytest_loop.cluster.job import (
    MERGED_FIELDS,
    Answer,
    FencePlan,
    Job,
    Project,
    describe_environment,
    find_differences,
    find_shadowing_distributions,
    pack,
    unpack,
)
from pytest_loop.cluster.outputs import read_outputs
from pytest_loop.cluster.tree import (
    claim_tree,
    find_base,
    find_changed,
    load_files,
    read_piece,
    read_stamps,
    store_pieces,
    update_tree,
)
from pytest_loop.core.judging.shards import hash_plan
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.text.wording import list_names
from pytest_loop.errors import LoopError, StateError
from pytest_loop.processes.fence import Fence, FenceTool, probe_tools
from pytest_loop.repair.engine_process import run_engine
from pytest_loop.session.result import SessionResult
from pytest_loop.session.runner import SubprocessSession
from pytest_loop.store.signature import find_state_folder
from pytest_loop.workspace.fenced_paths import list_environment_paths
from pytest_loop.workspace.file_tree import FileTree

_MAX_NAMES = 3
# A smaller plan travels with each answer, to say how it differs.
_MAX_PLAN_ITEMS = 2_000
Shard = tuple[bytes, int, int]
# Imports no module of the working folder, and restores PYTHONPATH for the sessions of the worker.
_START_SCRIPT = """\
import os, sys
sys.path[:] = [path for path in sys.path if path not in ("", os.getcwd())]
os.environ.pop("PYTHONPATH", None)
os.environ.update(zip(("PYTHONPATH",), sys.argv[1:]))
from pytest_loop.cluster.worker import serve
serve()
"""


def judge_shard(text: bytes, number: int, total: int, *, can_build: bool = True) -> bytes:
    """Judge one shard of a packed `Job`; return a packed `Answer`."""
    started = time.monotonic()
    job = unpack(text, Job)
    try:
        store_pieces({digest: content.encode("latin-1") for digest, content in job.new.items()})
        project, files = read_piece(job.project), load_files(job)
        if project is None or files is None:
            texts = ((job.project, project), (job.base, files))
            answer = Answer(missing=tuple(digest for digest, value in texts if not value))
        else:
            answer = _judge(Project.model_validate_json(project), files, job, (text, number, total), can_build)
    except (OSError, StateError, BuildError) as error:  # a full disk, for example
        answer = Answer(unfit=str(error))
    host, seconds = f"{platform.node()} {find_base().parent}", time.monotonic() - started
    fields = {"worker": f"{platform.node()} {os.getpid()}", "host": host, "seconds": seconds}
    return pack(answer.model_copy(update=fields))


def start_worker(python: str, root: str, errors: IO[bytes] | None = None) -> subprocess.Popen[bytes]:
    """Start a process that judges shards, and into which no file of the project at `root` is imported."""
    original = [os.environ["PYTHONPATH"]] if "PYTHONPATH" in os.environ else []
    folders = [os.path.realpath(path) for text in original for path in text.split(os.pathsep) if path]
    outside = [path for path in folders if not _is_below(path, [os.path.realpath(root)])]
    return subprocess.Popen(
        [python, "-c", _START_SCRIPT, *original],
        cwd="/",
        env={**os.environ, "PYTHONPATH": os.pathsep.join(outside), "TMPDIR": tempfile.gettempdir()},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
    )


def ask_worker(
    process: subprocess.Popen[bytes], text: bytes, number: int, total: int, *, can_build: bool = True
) -> bytes:
    """Let a process judge a shard, and return its packed answer; raise `ConnectionError` if it ends before."""
    requests, answers = cast("IO[bytes]", process.stdin), cast("IO[bytes]", process.stdout)
    requests.write(b"%d %d %d %d\n%b" % (number, total, can_build, len(text), text))
    requests.flush()
    size = int(answers.readline() or -1)
    data = answers.read(max(0, size))
    if len(data) != size:
        raise ConnectionError("the process of a worker ended")
    return data


def end_worker(process: subprocess.Popen[bytes]) -> None:
    """End a process, also one that judges, and close its pipes."""
    process.terminate()
    with suppress(OSError, ValueError):
        process.communicate()


def serve() -> None:
    """Judge the shards that arrive at the standard input, until it is closed."""
    signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C is for the run, which ends its workers
    requests, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    while words := requests.readline().split():
        number, total, can_build, size = map(int, words)
        data = judge_shard(requests.read(size), number, total, can_build=bool(can_build))
        answers.write(b"%d\n%b" % (len(data), data))
        answers.flush()


def _judge(project: Project, files: FileTree, job: Job, shard: Shard, can_build: bool) -> Answer:
    differences = find_differences(project.environment, describe_environment())
    if differences and can_build and project.requirements:
        if missing := tuple(digest for digest in project.requirements.values() if read_piece(digest) is None):
            return Answer(missing=missing)
        python = build_environment(project.requirements, project.environment["Python"])
        return _judge_elsewhere(python, project.root, *shard)
    if differences:
        return Answer(unfit=f"another environment: {list_names(differences, _MAX_NAMES)}")
    if reason := _find_obstacle(project):
        return Answer(unfit=reason)
    with claim_tree(project.root) as tree:
        reads_all = job.order.is_deciding and project.fence is None
        if missing := update_tree(tree, files, files.entries if reads_all else frozenset(project.sealed)):
            return Answer(missing=missing)
        stamps = read_stamps(tree, project.watched)
        try:
            run = _run_share if job.engine else _run_session
            answer = run(project, job, shard[1:], tree)
        except LoopError as error:
            return Answer(refusal=f"the session failed there: {error}")
        written = {path for path, stamp in read_stamps(tree, project.watched).items() if stamp != stamps[path]}
        if changed := sorted(written.union(find_changed(tree, files.entries, project.sealed))):
            return Answer(refusal=f"sealed files were written while they judged: {list_names(changed, _MAX_NAMES)}")
        return answer


def _judge_elsewhere(python: Path, root: str, text: bytes, number: int, total: int) -> Answer:
    """Judge a shard with another interpreter, which compares its environment again."""
    with tempfile.TemporaryFile() as errors:
        process = start_worker(str(python), root, errors)
        try:
            return unpack(ask_worker(process, text, number, total, can_build=False), Answer)
        except OSError as error:
            errors.seek(0)
            last_line = next(iter(reversed(errors.read().decode(errors="replace").strip().splitlines())), error)
            raise BuildError(f"the environment that was built cannot judge: {last_line}") from None
        finally:
            end_worker(process)


def _find_obstacle(project: Project) -> str:
    """Return why this worker must not judge; empty if it may."""
    if installed := sorted(set(find_shadowing_distributions(Path(project.root), project.modules))):
        return f"{list_names(installed, _MAX_NAMES)} is installed there, and would be judged in place of the project"
    if project.fence is not None:
        tool = probe_tools().tool
        if tool is None or tool.value != project.fence.tool:
            return f"the fence there is {tool.value if tool else 'none'}, expected {project.fence.tool}"
    return ""


def _make_session(project: Project, tree: Path) -> SubprocessSession:
    return SubprocessSession(
        tuple(_replace_root(word, project.root, tree) for word in project.arguments),
        tree / project.folder,
        project.timeout,
        os.environ,
        lambda _data: None,
        fence=_build_fence(project.fence, project.root, tree) if project.fence else None,
    )


def _run_session(project: Project, job: Job, shard: tuple[int, int], tree: Path) -> Answer:
    started = time.time()
    order = _rebase_order(job.order, project.root, tree).model_copy(update={"shard": shard})
    result = _make_session(project, tree).evaluate(order)
    outputs = read_outputs(tree, job.outputs, started)
    answer = _make_answer(result, str(tree), project.root).model_copy(update={"outputs": outputs})
    if answer.plan is None:
        return answer
    plan = answer.plan if shard[0] == 1 or len(answer.plan.items) <= _MAX_PLAN_ITEMS else None
    return answer.model_copy(update={"plan_hash": hash_plan(answer.plan), "plan": plan})


def _run_share(project: Project, job: Job, shard: tuple[int, int], tree: Path) -> Answer:
    """Carry out this worker's share of the trials, and return the result of the engine."""
    request = json.loads(_replace_root(job.trials, project.root, tree)) | {"share": shard}
    fence = _build_fence(project.fence, project.root, tree) if project.fence else None
    text = run_engine(job.engine, json.dumps(request), request["seconds"], fence)
    return Answer(trials=text.replace(str(tree), project.root))


def _build_fence(plan: FencePlan, root: str, tree: Path) -> Fence:
    """Return the fence for a tree, and for the environment of this worker, wherever it is.

    Other paths that are not here protect nothing: what is not in the tree is removed before its next session.
    """
    tool = FenceTool(plan.tool)
    writable = tuple(_replace_root(path, root, tree) for path in plan.writable)
    opened = [path for path in writable if path != str(tree)]
    own = [path for path in list_environment_paths(tree) if not _is_below(path, opened)] if tool.has_mounts else []
    moved = (_replace_root(path, root, tree) for path in plan.read_only)
    read_only = (str(find_base()), *own, *filter(os.path.exists, moved))  # the trees of other shards, too
    hidden = os.path.realpath(find_state_folder())
    return Fence(tool, read_only, writable, hidden if Path(hidden).exists() else "")


def _is_below(path: str, folders: Iterable[str]) -> bool:
    return any(Path(path).is_relative_to(folder) for folder in folders)


def _rebase_order(order: SessionOrder, root: str, tree: Path) -> SessionOrder:
    moved = {
        name: tuple(_replace_root(path, root, tree) for path in getattr(order, name)) for name in ("excluded", "only")
    }
    return order.model_copy(update=moved)


def _replace_root(word: str, root: str, tree: Path) -> str:
    """Replace the project's root in a word by the worker's tree, but not in a longer name, such as `root-env`."""
    pattern = rf"""(?:(?<![\w./-])|(?<=^-\w)){re.escape(root)}(?=[/:;,"'\\\s)\]}}]|$)"""
    return re.sub(pattern, lambda _: str(tree), word)


def _make_answer(result: SessionResult, tree: str, root: str) -> Answer:
    """Return what the session reported, with the paths of the project in its texts."""
    answer = Answer(
        plan=result.plan,
        evidence=result.evidence,
        problems=result.problems,
        canaries=tuple(result.canaries),
        plugins=tuple(result.plugins),
        **{name: tuple(getattr(result, name)) for name in MERGED_FIELDS},
        replaced_tests=result.replaced_tests,
        contradictions=tuple(result.list_contradictions()),
        exit_status=result.exit_status,
        pytest_failures=result.pytest_failures,
        ending=result.ending,
        output=result.output,
    )
    return Answer.model_validate_json(answer.model_dump_json().replace(tree, root))
