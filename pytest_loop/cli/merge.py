"""`pytest-loop merge`: make one verdict of the evidence that the shards of a session have written."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from pydantic import ValidationError

from pytest_loop import hookspecs
from pytest_loop.cli.command_parser import USAGE_ERROR, Parser
from pytest_loop.core.judging.score import apply_custom_score
from pytest_loop.core.judging.shards import (
    ShardEvidence,
    find_exit_code,
    list_failures,
    list_problems,
    merge_evidence,
)
from pytest_loop.core.model.rules import CriteriaScore, Phase
from pytest_loop.errors import SavedFileError
from pytest_loop.session.baseline import Baseline, save_baseline
from pytest_loop.session.record import score_criteria
from pytest_loop.session.session_score import is_acceptable
from pytest_loop.show.score_section import render_score_section


def main(words: Sequence[str]) -> int:
    """Print the score of all shards together, and return the exit code of an undivided session."""
    parser = Parser(prog="pytest-loop merge", description=(__doc__ or "").partition(": ")[2])
    parser.add_argument("files", nargs="+", metavar="FILE", help="the files of all shards, in any order")
    parser.add_argument("--save-baseline", metavar="FILE", type=Path, help="save this evaluation for --loop-baseline")
    parser.add_argument("-p", dest="plugins", action="append", default=[], metavar="MODULE", help="a score hook")
    values = parser.parse_args(words)
    try:
        shards = {name: _load_shard(name) for name in dict.fromkeys(values.files)}
        if problems := list(list_problems(shards)):
            print(*(f"ERROR: {problem}" for problem in problems), sep="\n", file=sys.stderr)
            return 1
        scores = _score_shards(shards, values.plugins)
        if values.save_baseline:
            save_baseline(scores, values.save_baseline)
    except SavedFileError as error:
        print(f"ERROR: {error}", file=sys.stderr)
        return USAGE_ERROR
    return _print_verdict(shards, scores)


def _load_shard(name: str) -> ShardEvidence:
    try:
        return ShardEvidence.model_validate_json(Path(name).read_bytes())
    except OSError as error:
        reason = error.strerror or str(error)
    except ValidationError:
        reason = "it is not the evidence of a shard"
    raise SavedFileError(f"cannot use {name}: {reason}; make it with pytest --loop-shard 1/3")


def _score_shards(shards: dict[str, ShardEvidence], plugins: Sequence[str]) -> list[CriteriaScore]:
    """Score the evidence of all shards by the rules that they share."""
    first = next(iter(shards.values()))
    manager = pytest.PytestPluginManager()
    manager.add_hookspecs(hookspecs)
    sys.path.insert(0, str(Path.cwd()))
    for name in plugins:
        try:
            manager.import_plugin(name)
        except Exception as error:
            raise SavedFileError(f"-p: {error}") from None
    compute_score = manager.hook.pytest_loop_score
    if first.has_own_score and not compute_score.get_hookimpls():
        raise SavedFileError(
            "a hook pytest_loop_score of a plugin or a conftest file scores these rules: name its module with -p"
        )
    evidence = {
        item: piece.model_dump(mode="json", exclude_defaults=True) for item, piece in merge_evidence(shards).items()
    }
    scores = score_criteria(first.plan, Phase(first.origin["phase"]), evidence)
    return [apply_custom_score(score, compute_score) for score in scores]


def _print_verdict(shards: dict[str, ShardEvidence], scores: list[CriteriaScore]) -> int:
    first = next(iter(shards.values()))
    baseline = None if first.baseline is None else Baseline(verdicts=first.baseline)
    regressions = None if baseline is None else baseline.find_regressions(scores)
    exit_code = find_exit_code(shards, is_acceptable=is_acceptable(scores, regressions))
    for failure in list_failures(shards):
        print(failure)
    if scores:
        print(" loop score ".center(shutil.get_terminal_size().columns, "="))
        for line in render_score_section(scores, regressions):
            print(line.text)
    items = sum(len(shard.items) for shard in shards.values())
    print(f"{len(shards)} shards, {items:,} items: {'passed' if exit_code == 0 else f'exit code {exit_code}'}")
    return exit_code
