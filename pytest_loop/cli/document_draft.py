"""Draft a run of one document: choose its template, and write the rule file that extends it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pytest_loop.cli.document import locate_document
from pytest_loop.cli.readiness import UnclearError
from pytest_loop.cli.session_arguments import check_template
from pytest_loop.cli.task import DocumentDraft, SetupAnswers, TaskContext, can_ask, propose_criteria
from pytest_loop.core.model.rules import DEFAULT_THRESHOLDS, Phase
from pytest_loop.inference.command_candidate import Confidence
from pytest_loop.inference.document_criteria import DocumentCriteria, DocumentTask, InheritedRule, draft_criteria
from pytest_loop.inference.task_types import TaskType, detect_task_type, list_document_types
from pytest_loop.rules.sources import list_templates, read_template
from pytest_loop.run.console import Console
from pytest_loop.settings.settings import Settings

DEFAULT_SEVERITY = "fail"


def explain_templates() -> str:
    """Return the advice for a task whose words name no type of document."""
    *names, last = list_templates()
    return f"  to write one document, name its type: --loop-template {', '.join(names)} or {last}"


def find_named_type(settings: Settings, context: TaskContext, console: Console) -> TaskType | None:
    """Return the type that the user named at a terminal, else with `--loop-template`; None with rule files.

    Return None, too, with `--loop-workspace`, or if the template is used as it is, and no user can change that.
    """
    template = settings.judging.template
    check_template(template)
    if settings.judging.rules or settings.workspace.workspace:
        return None
    needs_draft = template and (context.statements or context.answers.ideal or can_ask(settings, console))
    return context.answers.task_type or (TaskType(template, is_exact=True) if needs_draft else None)


def find_task_type(settings: Settings, context: TaskContext) -> TaskType | None:
    """Return the type of document that the words of the task ask for, or None.

    An uncertain type counts only if no command or test measures the task. Raises `UnclearError` for a task that asks
    for several documents.
    """
    task = context.task
    if settings.workspace.workspace or task.commands or task.completion:
        return None
    if len(documents := list_document_types(task.task)) > 1:
        names = ", ".join(f"`{document.words}`" for document in documents)
        raise UnclearError(f"this asks for several documents ({names}), and a run writes one: name one in the task")
    task_type = detect_task_type(task.task)
    if task_type is None:
        return None
    return task_type if task_type.is_certain or not _is_measured(settings, context) else None


def _is_measured(settings: Settings, context: TaskContext) -> bool:
    """Return whether the criteria that can be inferred for the task have more than low confidence."""
    try:
        return propose_criteria(context, settings).confidence is not Confidence.LOW
    except UnclearError:
        return False


def draft_document(
    settings: Settings, context: TaskContext, task_type: TaskType, folder: Path
) -> tuple[TaskContext, Path]:
    """Return the context with the draft of a document instead of the project's rules, and the document's path."""
    template = task_type.template
    criteria = draft_document_criteria(context, task_type)
    path = locate_document(settings, template, context.task.text, folder)
    is_path_named = path.parent != folder
    name = path.relative_to(settings.root).as_posix() if path.is_relative_to(settings.root) else path.name
    rule_file = context.answers.rule_file or criteria.render(name, list_inherited_rules(template))
    document = DocumentDraft(criteria, name, rule_file, is_path_named)
    return replace(context.drop_project_rules(), document=document), path


def draft_document_criteria(context: TaskContext, task_type: TaskType) -> DocumentCriteria:
    """Return the criteria of a document with the answers of the user."""
    answers = context.answers
    text = "" if task_type.is_exact else context.task.task
    task = DocumentTask(text, answers.ideal, answers.mandatory, context.statements)
    return replace(
        draft_criteria(task_type.template, task_type.words, task, can_judge=context.can_judge),
        severities=answers.severities,
        thresholds={**get_thresholds(task_type.template), **context.project.thresholds, **answers.thresholds},
    )


def draft_answered_criteria(context: TaskContext, answers: SetupAnswers) -> DocumentCriteria:
    """Return the criteria of a document with `answers` in place of the answers in the context."""
    return draft_document_criteria(replace(context, answers=answers), answers.task_type or TaskType(""))


def list_inherited_rules(template: str) -> list[InheritedRule]:
    """Return the rules of a template."""
    return [
        InheritedRule(rule.id, rule.severity or DEFAULT_SEVERITY, rule.description or rule.id)
        for rule in read_template(template).rules
    ]


def list_drafted_rules(criteria: DocumentCriteria) -> list[InheritedRule]:
    """Return all rules of a draft: those of the template, some of them replaced, and those about the task."""
    task_rules = (
        InheritedRule(rule.id, str(rule.entry.get("severity", DEFAULT_SEVERITY)), str(rule.entry["description"]))
        for rule in criteria.rules
    )
    return list({rule.id: rule for rule in (*list_inherited_rules(criteria.template), *task_rules)}.values())


def get_thresholds(template: str) -> dict[str, float]:
    """Return the threshold of each phase, from the template or else the default."""
    phases = read_template(template).phases
    declared = {phase: getattr(phases, phase.value, None) for phase in Phase}
    return {
        phase.value: level.threshold if level else float(DEFAULT_THRESHOLDS[phase]) for phase, level in declared.items()
    }
