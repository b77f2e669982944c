"""The requests in words: one template for each step, which a user may replace."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from string import Template

from pytest_loop.core.judging.critique import render_critique
from pytest_loop.core.model.run_criteria import RunRule
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Step
from pytest_loop.core.reporting.outcome import render_attempt
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.sanitizer import fence_text
from pytest_loop.core.text.wording import limit_lines
from pytest_loop.errors import StateError

FOLDER = Path(__file__).parent
MOST_RULES = 60
LONGEST_RULE = 1_000
_ALWAYS = ("trouble", "run_id", "iteration", "max_iterations", "phase", "task", "rules", "plan", "gate", "context")
# What each template may name. PREPARE has no word for the artifact: checks are made without having seen it.
PLACEHOLDERS: dict[str, tuple[str, ...]] = {
    "PLAN": (*_ALWAYS, "critique", "attempts"),
    "PRODUCE": (*_ALWAYS, "artifact_path"),
    "PREPARE": _ALWAYS,
    "REFINE": (*_ALWAYS, "critique", "lessons", "attempts", "artifact", "artifact_path"),
    "REFINE_FILES": (*_ALWAYS, "critique", "lessons", "attempts", "sealed", "allowed"),
    "JUDGE": ("trouble", "question", "artifact"),
    "COMPOSE": (
        *("trouble", "run_id", "iteration", "max_iterations", "task", "workload_id", "plan", "feedback"),
        *("role", "focus", "shape", "success", "cases_summary", "iteration_history", "current_hypothesis"),
        *("evaluation_critiques", "domain_docs", "artifact_content"),
    ),
}


def build_prompt(
    step: Step,
    state: RunState,
    nonce: str,
    *,
    artifact: str = "",
    artifact_path: str = "",
    wanted: Sequence[str] = (),
    lessons: str = "",
    folder: Path | None = None,
    template: str = "",
    gate: str = "",
    context: str = "",
) -> str:
    """The prompt of a step of a run: `wanted` are the rules that PREPARE is to make concrete.

    `gate` is what has to be done before anything else, `context` what the project says of itself. What was not written
    by the person, such as the critique, lessons, the artifact and the context, is marked as data.
    """
    values = {
        "trouble": shorten(state.error_of(step), 1_000),
        "run_id": state.run_id,
        "iteration": str(state.iteration),
        "max_iterations": str(state.max_iterations),
        "phase": state.phase.value,
        "task": state.task.prompt,
        "rules": _wanted_rules(state, wanted) if wanted else _rules(state),
        "plan": "\n".join(f"{number}. {line}" for number, line in enumerate(state.plan, 1)),
        "critique": fence_text(render_critique(state.critique), nonce)
        if state.critique and state.critique.issues
        else "",
        "lessons": fence_text(lessons, nonce) if lessons else "",
        "attempts": "\n".join(f"- {render_attempt(one)}" for one in state.progress.attempts),
        "gate": gate,
        "context": fence_text(context, nonce) if context else "",
        "artifact": fence_text(artifact, nonce) if artifact else "",
        "artifact_path": artifact_path,
        "sealed": ", ".join(state.setup.seal.patterns) if state.setup.seal else "",
        "allowed": ", ".join(state.setup.seal.allow) if state.setup.seal else "",
    }
    return render_template(template or step.value, values, folder)


def _wanted_rules(state: RunState, wanted: Sequence[str]) -> str:
    return "\n".join(_told(rule) for rule in state.criteria.get_active_rules(state.phase) if rule.id in wanted)


def _rules(state: RunState) -> str:
    """Those that fail come first, and there are not more than anybody reads."""
    unmet = state.evaluation.unmet if state.evaluation else frozenset()
    shown = [rule for rule in state.criteria.get_active_rules(state.phase) if not rule.holdout]
    rules = sorted(shown, key=lambda rule: rule.id not in unmet)
    return "\n".join(limit_lines([*map(_told, rules)], MOST_RULES))


def _told(rule: RunRule) -> str:
    """What a rule asks for; a sentence says more than the description of it."""
    if rule.description == rule.id:  # a test without a mark: its name is all that it says
        return f"- {shorten(rule.id, LONGEST_RULE)} ({rule.severity.value})"
    asked = f"{rule.description}: {rule.check}" if isinstance(rule.check, str) else rule.description
    return f"- {shorten(rule.id)} ({rule.severity.value}): {shorten(asked, LONGEST_RULE)}"


def render_template(step: str, values: dict[str, str], folder: Path | None = None, own: Path | None = None) -> str:
    """The prompt of a step; `folder` may hold a template of the user's own, such as `refine.md`, or `own` is one.

    Blocks are separated by empty lines: a block that names only what is empty is left out.
    """
    path = own or _path(step, folder)
    known = {name: values.get(name, "") for name in PLACEHOLDERS[step.upper()]}
    blocks = [block for block in re.split(r"\n\s*\n", _text(path).strip()) if not _is_empty(block, known)]
    return "\n\n".join(_filled(block, known, path) for block in blocks) + "\n"


def check_templates(folder: Path) -> None:
    """Say what is wrong with a user's own templates before the first of them is needed."""
    if not folder.is_dir():
        raise StateError(f"loop_prompts: expected a folder with templates such as refine.md, found none: {folder}")
    for step, names in PLACEHOLDERS.items():
        render_template(step, dict.fromkeys(names, "x"), folder)


def _path(step: str, folder: Path | None) -> Path:
    name = f"{step.lower()}.md"
    own = folder / name if folder else FOLDER / name
    return own if own.exists() else FOLDER / name


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise StateError(f"cannot read the prompt {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise StateError(f"{path}: expected UTF-8 text, found the byte 0x{error.object[error.start]:02x}") from None


def _is_empty(block: str, values: dict[str, str]) -> bool:
    names = {found["named"] or found["braced"] for found in Template.pattern.finditer(block)} - {None}
    return bool(names) and not any(values.get(name, name) for name in names)


def _filled(block: str, values: dict[str, str], path: Path) -> str:
    try:
        return Template(block).substitute(values)
    except (KeyError, ValueError) as error:
        known = ", ".join(f"${name}" for name in sorted(values))
        found = f"${error.args[0]}" if isinstance(error, KeyError) else "a single $"
        raise StateError(f"{path}: expected only {known} (and $$ for a dollar), found {found}") from None
