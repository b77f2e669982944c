"""What judges, loaded before any code of the project; a process that forks sessions knows more of it ahead."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path

_MACHINERY = (
    "pytest_loop.session.canary",
    "pytest_loop.session.channel",
    "pytest_loop.session.record",
    "pytest_loop.rules.binding",
    "pytest_loop.rules.markdown_document",
    "pytest_loop.session.ordering",
    "pytest_loop.rules.protocol",
    "pytest_loop.session.reports",
    "pytest_loop.rules.toml_lines",
    "pytest_loop.show.status",
    "pytest_loop.show.terminal",
    "pytest_loop.session.judge",
)
# What only some sessions need: those with cases, and those with workers.
_SOMETIMES = (
    "pytest_loop.session.durations",
    "pytest_loop.rules.carrying",
    "pytest_loop.session.kept_rules",
    "pytest_loop.workloads.protocol",
)
# What pytest itself needs in every session, and imports later than a session is forked.
_LATER = ("encodings.utf_8_sig", "faulthandler", "getpass", "pdb")


def load() -> None:
    """Nothing of the project can take its place."""
    for name in _MACHINERY:
        import_module(name)


def get_ready() -> None:
    """Load it, and let its models be built, which otherwise happens when the first of each is made."""
    from pytest_loop.core.model import rules
    from pytest_loop.core.model.session_order import SessionOrder
    from pytest_loop.core.workload.measurement import CaseResult
    from pytest_loop.rules import garbage
    from pytest_loop.rules.parse_cache import MEANINGS

    load()
    for name in (*_SOMETIMES, *_LATER):
        import_module(name)
    garbage.is_frozen = True
    for one in (SessionOrder, rules.Plan, rules.Criteria, rules.Rule, rules.Evidence, rules.Finding, CaseResult):
        one.model_rebuild()
    MEANINGS.is_kept = True


def rule_files() -> dict[str, str]:
    """The rule files that this process has read, each with its project."""
    from pytest_loop.rules.parse_cache import MEANINGS

    return {str(path): str(root) for path, root in MEANINGS.read.items()}


def read(files: Mapping[str, str]) -> None:
    """Rule files are texts, and what a text means is always the same: a session whose text is another reads it anew."""
    from pytest_loop.errors import RuleFileError
    from pytest_loop.rules.rule_files import load_rule_file as load_rules

    for path, root in files.items():
        with suppress(RuleFileError, OSError):
            load_rules(Path(path), Path(root))
