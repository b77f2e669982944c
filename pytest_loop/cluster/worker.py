"""Judge one shard on a worker: update the tree, run a cold and fenced session, and return its evidence."""

from __future__ import annotations

import json
import os
import platform
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path

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


def ignore_interrupts() -> None:
    """Leave Ctrl-C to the run, which ends its workers; programs that a worker starts do not inherit this."""
    signal.signal(signal.SIGINT, lambda *_: None)


def _judge(project: Project, files: FileTree, job: Job, shard: Shard, can_build: bool) -> Answer:
    differences = find_differences(project.environment, describe_environment())
    if differences and can_build and project.requirements:
        if missing := tuple(digest for digest in project.requirements.values() if read_piece(digest) is None):
            return Answer(missing=missing)
        return _judge_elsewhere(build_environment(project.requirements, project.environment["Python"]), *shard)
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


def _judge_elsewhere(python: Path, text: bytes, number: int, total: int) -> Answer:
    """Judge a shard with another interpreter, which compares its environment again."""
    command = [str(python), "-m", __name__, str(number), str(total)]
    result = subprocess.run(command, input=text, capture_output=True, check=False)
    if result.returncode:
        last_line = next(iter(reversed(result.stderr.decode(errors="replace").strip().splitlines())), "no message")
        raise BuildError(f"the environment that was built cannot judge: {last_line}")
    return unpack(result.stdout, Answer)


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


if __name__ == "__main__":
    sys.stdout.buffer.write(judge_shard(sys.stdin.buffer.read(), int(sys.argv[1]), int(sys.argv[2]), can_build=False))
