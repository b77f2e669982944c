"""Build prompts from one template for each step; users may replace the templates."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from string import Template

from pytest_loop.core.judging.critique import render_critique
from pytest_loop.core.model.run_criteria import RunRule
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Step
from pytest_loop.core.reporting.escalation import render_attempt
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.sanitizer import fence_text
from pytest_loop.core.text.wording import limit_lines
from pytest_loop.errors import StateError

FOLDER = Path(__file__).parent
MAX_RULES = 60
MAX_RULE_LENGTH = 1_000
_RUN = ("trouble", "run_id", "iteration", "max_iterations", "phase")
_COMMON = (*_RUN, "task", "ideal", "answers", "rules", "plan", "gate", "context")
_ANSWERS_BLOCK = "## Answers of the user\n$answers"
# The placeholders of each template. PREPARE must not see the artifact, so that its checks are not fitted to it.
PLACEHOLDERS: dict[str, tuple[str, ...]] = {
    "PLAN": (*_COMMON, "critique", "attempts"),
    "PRODUCE": (*_COMMON, "artifact_path", "artifact_name"),
    "PREPARE": tuple(name for name in _COMMON if name != "answers"),
    "PREPARE_TESTS": (*_COMMON, "allowed"),
    "REFINE": (*_COMMON, "critique", "lessons", "attempts", "artifact", "artifact_path", "artifact_name"),
    "REFINE_FILES": (*_COMMON, "critique", "lessons", "attempts", "sealed", "fence", "allowed"),
    "JUDGE": ("trouble", "question", "artifact"),
    "COMPOSE": (
        *("trouble", "run_id", "iteration", "max_iterations", "task", "workload_id", "plan", "feedback"),
        *("answers", "role", "focus", "shape", "success", "cases_summary", "iteration_history", "current_hypothesis"),
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
    rule_ids: Sequence[str] = (),
    lessons: str = "",
    folder: Path | None = None,
    template: str = "",
    gate: str = "",
    context: str = "",
    fence: str = "",
) -> str:
    """Return the prompt of a step; `rule_ids` are the rules that PREPARE makes checks for.

    `gate` is the text that precedes all work; `fence` names the tool that keeps sealed files read-only. Text that the
    user did not write (critique, lessons, artifact, context of the project) stands between lines with the `nonce`, a
    random text, which mark it as data.
    """

    def mark_as_data(text: str) -> str:
        return fence_text(text, nonce) if text else ""

    values = {
        "trouble": shorten(state.get_error(step) or _describe_idle_round(step, state), 1_000),
        "run_id": state.run_id,
        "iteration": str(state.iteration),
        "max_iterations": str(state.max_iterations),
        "phase": state.phase.value,
        "task": state.task.prompt,
        "ideal": state.task.ideal_result,
        "answers": render_answers(state),
        "rules": _list_rules_by_id(state, rule_ids) if rule_ids else _list_rules(state),
        "plan": "\n".join(f"{number}. {line}" for number, line in enumerate(state.plan, 1)),
        "critique": mark_as_data(render_critique(state.critique)) if state.critique and state.critique.issues else "",
        "lessons": mark_as_data(lessons),
        "attempts": "\n".join(f"- {render_attempt(attempt)}" for attempt in state.progress.attempts),
        "gate": gate,
        "context": mark_as_data(context),
        "artifact": mark_as_data(artifact),
        "artifact_path": artifact_path,
        "artifact_name": Path(artifact_path).name,
        "sealed": ", ".join(state.setup.seal.patterns) if state.setup.seal else "",
        "fence": fence,
        "allowed": ", ".join(state.setup.seal.allow) if state.setup.seal else "",
    }
    return render_template(template or step.value, values, folder)


def _describe_idle_round(step: Step, state: RunState) -> str:
    """Return a request to edit if the last REFINE changed nothing, else an empty text."""
    attempts = state.progress.attempts
    is_idle = step is Step.REFINE and bool(attempts) and attempts[-1].unchanged
    return "It changed nothing, so the same rules fail again. Edit, or answer BLOCKED with a reason." if is_idle else ""


def render_answers(state: RunState) -> str:
    """Return the questions of the run that people answered, with the answers."""
    pairs = [
        f"Question: {answer.question}\nAnswer: {answer.text}" if answer.question else f"Answer: {answer.text}"
        for answer in state.signals.answers
        if answer.text
    ]
    return "\n\n".join(pairs)


def _list_rules_by_id(state: RunState, rule_ids: Sequence[str]) -> str:
    return "\n".join(
        _describe_rule(rule) for rule in state.criteria.get_active_rules(state.phase) if rule.id in rule_ids
    )


def _list_rules(state: RunState) -> str:
    """List the rules that are not held out, failing ones first, up to a limit; include only failing guards."""
    unmet = state.evaluation.unmet if state.evaluation else frozenset()
    active = [rule for rule in state.criteria.get_active_rules(state.phase) if not rule.held_out]
    shown = [rule for rule in active if not rule.guard or rule.id in unmet]
    rules = sorted(shown, key=lambda rule: rule.id not in unmet)
    lines = limit_lines([*map(_describe_rule, rules)], MAX_RULES)
    guards = len(state.criteria.guards)
    return "\n".join([*lines, *([f"- every test that passes now must keep passing ({guards})"] if guards else [])])


def _describe_rule(rule: RunRule) -> str:
    """Describe a rule in one line; add the sentence of a rule that is written as one."""
    if rule.description == rule.id:  # a test without a mark has no description
        return f"- {shorten(rule.id, MAX_RULE_LENGTH)} ({rule.severity.value})"
    text = f"{rule.description}: {rule.check}" if isinstance(rule.check, str) else rule.description
    return f"- {shorten(rule.id)} ({rule.severity.value}): {shorten(text, MAX_RULE_LENGTH)}"


def render_template(step: str, values: dict[str, str], folder: Path | None = None, template: Path | None = None) -> str:
    """Fill the template of a step: `template`, else `refine.md` and the like in `folder`, else the built-in one.

    Blocks are separated by empty lines. A block whose placeholders are all empty is left out. If the template has no
    `$answers`, add a block with the user's answers.
    """
    path = template or _find_template(step, folder)
    placeholders = {name: values.get(name, "") for name in PLACEHOLDERS[step.upper()]}
    text = _read_template(path).strip()
    if "answers" in placeholders and not re.search(r"\$\{?answers\b", text):
        text += f"\n\n{_ANSWERS_BLOCK}"
    blocks = [block for block in re.split(r"\n\s*\n", text) if not _is_block_empty(block, placeholders)]
    return "\n\n".join(_fill_block(block, placeholders, path) for block in blocks) + "\n"


def check_templates(folder: Path) -> None:
    """Raise `StateError` if a template in the user's folder cannot be read or filled."""
    if not folder.is_dir():
        raise StateError(
            f"prompts in loop_feedback: expected a folder with templates such as refine.md, found none: {folder}"
        )
    for step, names in PLACEHOLDERS.items():
        render_template(step, dict.fromkeys(names, "x"), folder)


def _find_template(step: str, folder: Path | None) -> Path:
    name = f"{step.lower()}.md"
    return folder / name if folder and (folder / name).exists() else FOLDER / name


def _read_template(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise StateError(f"cannot read the prompt {path}: {error.strerror}") from None
    except UnicodeDecodeError as error:
        raise StateError(f"{path}: expected UTF-8 text, found the byte 0x{error.object[error.start]:02x}") from None


def _is_block_empty(block: str, values: dict[str, str]) -> bool:
    names = {match["named"] or match["braced"] for match in Template.pattern.finditer(block)} - {None}
    return bool(names) and not any(values.get(name, name) for name in names)


def _fill_block(block: str, values: dict[str, str], path: Path) -> str:
    try:
        return Template(block).substitute(values)
    except (KeyError, ValueError) as error:
        names = ", ".join(f"${name}" for name in sorted(values))
        problem = f"${error.args[0]}" if isinstance(error, KeyError) else "a single $"
        raise StateError(f"{path}: expected only {names} (and $$ for a dollar), found {problem}") from None
