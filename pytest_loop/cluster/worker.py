"""Judge one shard on a worker: rebuild the tree, run a cold and fenced session, and return its evidence."""

from __future__ import annotations

import os
import platform
import signal
import tempfile
from pathlib import Path

from pytest_loop.cluster.job import (
    Answer,
    FencePlan,
    Job,
    describe_environment,
    find_differences,
    find_shadowing_distributions,
)
from pytest_loop.cluster.tree import (
    Contents,
    build_tree,
    find_base,
    find_changed,
    list_missing,
    make_folders,
    remove_old_files,
    store_pieces,
)
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.text.wording import list_names
from pytest_loop.errors import LoopError
from pytest_loop.processes.fence import Fence, FenceTool, probe_tools
from pytest_loop.session.result import SessionResult
from pytest_loop.session.runner import SubprocessSession
from pytest_loop.store.signature import find_state_folder

_MAX_NAMES = 3


def judge_shard(text: bytes, contents: Contents) -> bytes:
    """Judge one shard, a `Job` as JSON; return an `Answer` as JSON."""
    job = Job.model_validate_json(text)
    answer = _judge(job, contents).model_copy(update={"worker": f"{platform.node()} {os.getpid()}"})
    return answer.model_dump_json(exclude_defaults=True).encode()


def ignore_interrupts() -> None:
    """Leave Ctrl-C to the run, which ends its workers; programs that a worker starts do not inherit this."""
    signal.signal(signal.SIGINT, lambda *_: None)


def _judge(job: Job, contents: Contents) -> Answer:
    if refusal := _find_refusal(job):
        return Answer(refusal=refusal)
    folder = make_folders()
    remove_old_files()
    store_pieces(contents)
    if missing := list_missing(piece.digest for piece in job.pieces.values()):
        return Answer(missing=missing)
    with tempfile.TemporaryDirectory(dir=folder) as name:
        tree = Path(name).resolve() / "tree"
        tree.mkdir()
        if damaged := build_tree(tree, job.pieces):
            return Answer(missing=damaged)
        try:
            result = _make_session(job, tree).evaluate(_rebase_order(job, tree))
        except LoopError as error:
            return Answer(refusal=f"the session failed there: {error}")
        if changed := find_changed(tree, job.pieces, job.sealed):
            return Answer(refusal=f"sealed files were changed while they judged: {list_names(changed, _MAX_NAMES)}")
        return _make_answer(result, str(tree), job.root)


def _find_refusal(job: Job) -> str:
    """Return why this worker must not judge; empty if it may."""
    if differences := find_differences(job.environment, describe_environment()):
        return f"another environment: {list_names(differences, _MAX_NAMES)}"
    if installed := sorted(set(find_shadowing_distributions(Path(job.root), job.modules))):
        return f"{list_names(installed, _MAX_NAMES)} is installed there, and would be judged in place of the project"
    if job.fence is not None:
        tool = probe_tools().tool
        if tool is None or tool.value != job.fence.tool:
            return f"the fence there is {tool.value if tool else 'none'}, expected {job.fence.tool}"
    return ""


def _make_session(job: Job, tree: Path) -> SubprocessSession:
    return SubprocessSession(
        tuple(_replace_root(word, job.root, tree) for word in job.arguments),
        tree / job.folder,
        job.timeout,
        os.environ,
        lambda _data: None,
        fence=_build_fence(job.fence, job.root, tree) if job.fence else None,
    )


def _build_fence(plan: FencePlan, root: str, tree: Path) -> Fence:
    read_only = tuple(
        path for path in (_replace_root(path, root, tree) for path in plan.read_only) if Path(path).exists()
    )
    read_only = (str(find_base()), *read_only)  # the trees of other shards, too
    writable = tuple(_replace_root(path, root, tree) for path in plan.writable)
    hidden = os.path.realpath(find_state_folder())
    return Fence(FenceTool(plan.tool), read_only, writable, hidden if Path(hidden).exists() else "")


def _rebase_order(job: Job, tree: Path) -> SessionOrder:
    moved = {
        name: tuple(_replace_root(path, job.root, tree) for path in getattr(job.order, name))
        for name in ("excluded", "only")
    }
    return job.order.model_copy(update=moved)


def _replace_root(word: str, root: str, tree: Path) -> str:
    """Replace the project's root in a word by the worker's tree."""
    return word.replace(root, str(tree))


def _make_answer(result: SessionResult, tree: str, root: str) -> Answer:
    """Return what the session reported, with the paths of the project in its texts."""
    answer = Answer(
        plan=result.plan,
        evidence=result.evidence,
        problems=result.problems,
        canaries=tuple(result.canaries),
        plugins=tuple(result.plugins),
        reads=tuple(result.reads),
        interference=tuple(result.interference),
        contradictions=tuple(result.list_contradictions()),
        exit_status=result.exit_status,
        pytest_failures=result.pytest_failures,
        ending=result.ending,
        output=result.output,
    )
    return Answer.model_validate_json(answer.model_dump_json().replace(tree, root))
