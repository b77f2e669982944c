"""The score of a session: its baseline, its exit code, and its section of the terminal summary."""

from __future__ import annotations

import os
from collections.abc import Generator, Sequence
from typing import TYPE_CHECKING, Any

import pytest

from pytest_loop.settings.session_settings import SessionSettings

if TYPE_CHECKING:
    from pytest_loop.core.model.rules import CriteriaScore, SessionPlan
    from pytest_loop.session.baseline import Baseline
    from pytest_loop.session.record import Recorder


class SessionScore:
    """The plugin that scores a session at its end. Heavy modules are imported once there is something to judge."""

    def __init__(self, config: pytest.Config, settings: SessionSettings) -> None:
        self.config = config
        self.settings = settings
        self.baseline: Baseline | None = None
        self.scores: list[CriteriaScore] = []
        self._save_error = ""

    def load_baseline(self) -> None:
        """Load the file of `--loop-baseline`, if there is one; raise `UsageError` if it cannot be used."""
        if self.settings.baseline is None:
            return
        from pytest_loop.errors import SavedFileError
        from pytest_loop.session.baseline import load_baseline

        try:
            self.baseline = load_baseline(self.settings.baseline)
        except SavedFileError as error:
            raise pytest.UsageError(str(error)) from None

    def compute(self, session: pytest.Session, recorder: Recorder, plan: SessionPlan) -> None:
        """Score the recorded evidence, save it if asked to, and let the criteria decide the exit code."""
        from pytest_loop.core.judging.score import apply_custom_score
        from pytest_loop.core.model.rules import Phase
        from pytest_loop.session.record import score_criteria
        from pytest_loop.session.reports import add_junit_scores

        scores = score_criteria(plan, Phase(self.settings.phase), recorder.evidence)
        self.scores = [apply_custom_score(score, self.config.hook.pytest_loop_score) for score in scores]
        add_junit_scores(self.config, self.scores)
        self._save_baseline(session)
        if session.exitstatus == pytest.ExitCode.OK and not is_acceptable(self.scores, self._find_regressions()):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _find_regressions(self) -> list[str] | None:
        """Return the rules that are worse than at the baseline; None without a baseline."""
        return None if self.baseline is None else self.baseline.find_regressions(self.scores)

    def _save_baseline(self, session: pytest.Session) -> None:
        if self.settings.save_baseline is None:
            return
        from pytest_loop.errors import SavedFileError
        from pytest_loop.session.baseline import save_baseline

        try:
            save_baseline(self.scores, self.settings.save_baseline)
        except SavedFileError as error:
            self._save_error = str(error)
            session.exitstatus = pytest.ExitCode.USAGE_ERROR

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_terminal_summary(self, terminalreporter: Any) -> Generator[None, None, None]:
        """Write the score after pytest's own summary."""
        yield
        if not self.scores:
            return
        from pytest_loop.show.score_section import render_score_section

        terminalreporter.write_sep("=", "loop score")
        for line in render_score_section(self.scores, self._find_regressions()):
            terminalreporter.write_line(line.text, **({line.colour: True} if line.colour else {}))
        if self._save_error:
            terminalreporter.write_line(f"ERROR: {self._save_error}", red=True)
        if self.baseline is None and os.environ.get("GITHUB_ACTIONS"):
            from pytest_loop.show.github_annotations import find_folder_in_checkout, render_score_annotations

            folder = find_folder_in_checkout(self.config.rootpath, os.environ)
            for text in render_score_annotations(self.scores, folder):
                terminalreporter.write_line(text)


def is_acceptable(scores: Sequence[CriteriaScore], regressions: list[str] | None) -> bool:
    """Return whether the session succeeds.

    With a baseline, no rule may be worse than in it; without one (`regressions` is None), all criteria must pass.
    """
    if regressions is not None:
        return not regressions
    return all(score.passed and not score.unverified for score in scores)
