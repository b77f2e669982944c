"""Prepare a new run: make its draft, seal files, take the baseline, and let the user confirm it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import pytest

from pytest_loop.agents.installed_clients import choose_default_agent, explain_missing_agent
from pytest_loop.cli.confirmation import Confirmation, mark_confirmed
from pytest_loop.cli.draft import RunDraft
from pytest_loop.cli.draft_dialogue import DraftDialogue
from pytest_loop.cli.first_step import choose_first_step
from pytest_loop.cli.readiness import Readiness, UnclearError, assess_readiness
from pytest_loop.cli.sealing import seal_document, seal_files, take_baseline
from pytest_loop.cli.task import SetupAnswers, can_judge, may_only_edit, read_task_context
from pytest_loop.core.machine.run_machine import RUN_MACHINE
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.inference.task_phrases import ParsedTask
from pytest_loop.run.console import Console
from pytest_loop.run.runner import Runner
from pytest_loop.run.sessions import SessionFactory, set_display
from pytest_loop.settings.settings import Settings
from pytest_loop.show.draft_text import DraftFacts, render_draft
from pytest_loop.store.project_runs import Store
from pytest_loop.store.run_files import RunFiles
from pytest_loop.workspace.sealed_files import SealedFiles


@dataclass
class RunPreparation:
    """Prepare one run until the user confirms it.

    `project` are the files that this process sealed. `failing_count` is the number of goals that do not pass at
    baseline; None without a baseline. A run that `is_detached` continues in the background after its confirmation.
    """

    settings: Settings
    store: Store
    console: Console
    sessions: SessionFactory
    runner: Runner
    files: RunFiles
    is_detached: bool
    project: SealedFiles | None = None
    failing_count: int | None = None

    @cached_property
    def _confirmation(self) -> Confirmation:
        return Confirmation(self.settings, self.console, self.store)

    def prepare(self, task: ParsedTask) -> RunState:
        """Return the confirmed state of a run for this task; leave no records behind if the user confirms none."""
        judging = {"can_judge": can_judge(self.settings), "may_only_edit": may_only_edit(self.settings)}
        context = read_task_context(task, self.settings.root, **judging)
        context = replace(context, answers=SetupAnswers(ideal=self.settings.start.ideal))
        dialogue = DraftDialogue(self.settings, self.console, self.files, self.sessions, context)
        try:
            return self._confirm_draft(dialogue)
        except BaseException:
            self._delete_seal()
            self.files.remove_rules()
            raise

    def _confirm_draft(self, dialogue: DraftDialogue) -> RunState:
        """Return the state that the user confirmed; make another draft of a document each time the user changes it."""
        draft: RunDraft | None = dialogue.make_draft()
        while draft is not None:
            try:
                state, readiness = self._prepare_state(draft)
            except UnclearError as error:
                self._delete_seal()
                draft = dialogue.make_another_draft(error)
                continue
            self._confirmation.print_draft(dialogue.describe_rule_file(draft))
            self._confirmation.print_conditions(state, self.project, is_detached=self.is_detached)
            if not dialogue.can_revise(draft):
                return self._confirmation.confirm(state, readiness.render_question("start"))
            question = readiness.render_question("confirm these success criteria")
            draft = dialogue.revise(draft, question, state.max_iterations)
        return mark_confirmed(state, "terminal")

    def _prepare_state(self, draft: RunDraft) -> tuple[RunState, Readiness]:
        """Return the state that the run would begin with, and how ready it is; show them to the user."""
        state = self._choose_agent(draft.build_state(self.files.alias))
        self.runner.check_candidates(state)
        state = RUN_MACHINE.begin(self._seal_and_evaluate(draft, state))
        readiness = assess_readiness(state, draft.choices, draft.context.project)
        gaps = {"unjudged": draft.context.list_unjudged(), "unmeasured": state.setup.draft.unmeasured}
        state = state.replace(draft=readiness.confirmed_draft.model_copy(update=gaps))
        self._print_draft(draft, state, readiness)
        self._require_agent(state)
        return state, readiness

    def _choose_agent(self, state: RunState) -> RunState:
        """Add the default agent to a run without one."""
        if state.setup.agents:
            return state
        agent = choose_default_agent(are_files_edited=state.setup.target is Target.WORKSPACE)
        return state.replace(agents=(agent,)) if agent else state

    def _seal_and_evaluate(self, draft: RunDraft, state: RunState) -> RunState:
        """Seal the files that decide verdicts, and take the baseline."""
        self._delete_seal()
        self.project = seal_files(draft, state, self.files)
        draft.session.bytecode = self.sessions.bytecode or self.sessions.cache_bytecode(is_new=True)
        if state.setup.target is Target.ARTIFACT:
            return seal_document(draft, state, self.project)
        set_display(draft.session, self.console.look)
        baseline = take_baseline(draft, state, self.project, self.store.root)
        self.failing_count, self.sessions.baseline_result = baseline.failing_count, baseline.baseline_result
        return choose_first_step(baseline, draft.context.task, self.project, draft.settings, self.console)

    def _print_draft(self, draft: RunDraft, state: RunState, readiness: Readiness) -> None:
        sealed_count = len(self.project.list_sealed_files()) if self.project else 0
        facts = DraftFacts(draft.find_origins(state), self.failing_count, sealed_count)
        is_detailed = self.console.look.verbosity > 0
        self._confirmation.print_draft(render_draft(state, facts, self.console.look))
        self._confirmation.print_draft(readiness.render_lines(is_detailed=is_detailed))
        self._confirmation.print_draft(draft.render_notes(is_detailed=is_detailed))

    def _require_agent(self, state: RunState) -> None:
        """Raise `UsageError` if there is work to do, and no agent to do it."""
        if state.setup.target is Target.ARTIFACT:
            has_work = not (self.settings.root / state.setup.artifact).exists()
        else:
            has_work = bool(self.failing_count or state.setup.edits_first)
        if has_work and not state.setup.agents:
            raise pytest.UsageError(explain_missing_agent())

    def _delete_seal(self) -> None:
        """Delete the seal of an earlier draft."""
        if self.project:
            self.project.delete_records()
            self.project = None
