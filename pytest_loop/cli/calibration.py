"""Try the pipeline of a workload before its experiment starts, with a user who can fix the manifest in between."""

from __future__ import annotations

from dataclasses import dataclass, field

from pytest_loop.errors import LoopError, ManifestError, UnmatchedPathsError
from pytest_loop.run.console import Console
from pytest_loop.settings.settings import Settings
from pytest_loop.workloads.manifest import choose_setting
from pytest_loop.workloads.new_experiment import NewExperiment
from pytest_loop.workloads.pipeline import MAX_CALIBRATIONS, Calibration, Pipeline, calibrate

_STOP_WORDS = ("s", "stop", "n", "no", "q")


@dataclass
class Calibrator:
    """Load and calibrate an experiment; `errors` are the errors of all attempts, `calibration` is the last result."""

    settings: Settings
    console: Console
    errors: list[str] = field(default_factory=list)
    calibration: Calibration | None = None

    @property
    def _can_ask(self) -> bool:
        return self.console.can_ask and not self.settings.start.yes

    def load(self) -> NewExperiment:
        """Load the experiment; while its manifest has an error, ask for a fix.

        The first error is raised instead, unless it is about paths that match no file.
        """
        while True:
            experiment = NewExperiment(self.settings)
            try:
                _ = experiment.workload  # raises `ManifestError`
            except ManifestError as error:
                if not (self.errors or isinstance(error, UnmatchedPathsError)):
                    raise
                if not self._ask_for_fix(str(error)):
                    raise LoopError(f"calibration failed: {error}") from None
            else:
                return experiment

    def calibrate(self, experiment: NewExperiment) -> NewExperiment:
        """Try one case until it works or the user gives up; return the experiment with the manifest as it is then.

        Without a user, return the experiment unchanged: its run calibrates it.
        """
        while self._can_ask:
            workload = experiment.workload
            pipeline = Pipeline(workload, choose_setting("case_timeout", self.settings.workload, workload.manifest))
            case = next(case for case in workload.cases if case.id == experiment.roles.selected[0])
            self.console.print_line(f"calibrating with {case.id} ...")
            attempt = calibrate(pipeline, case, tries=1)
            is_fixed = not attempt.passed and self._ask_for_fix(attempt.errors[0])
            self.calibration = Calibration(case.id, attempt.passed, tuple(self.errors))
            if not is_fixed:
                break
            experiment = self.load()  # the user may have edited the manifest
        return experiment

    def _ask_for_fix(self, error: str) -> bool:
        """Record an error, and ask for a fix unless this was the last attempt; return whether the user made one."""
        self.errors.append(error)
        if not self._can_ask or len(self.errors) >= MAX_CALIBRATIONS:
            return False
        self.console.print_line(f"calibration failed, try {len(self.errors)} of {MAX_CALIBRATIONS}: {error}")
        question = f"fix {self.settings.workload.manifest} or what it runs, then press Enter to try again (s stops): "
        answer = self.console.read_answer(question)
        return answer is not None and answer.lower() not in _STOP_WORDS
