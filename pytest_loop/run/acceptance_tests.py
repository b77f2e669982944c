"""Prepare acceptance tests before the work begins: an agent writes them; they are checked, confirmed and sealed."""

from __future__ import annotations

import re
import secrets
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from pytest_loop.agents.protocol import Agent, AgentError, AgentUnavailableError, StopRequestedError
from pytest_loop.core.events.run_payloads import AcceptanceTestsPrepared
from pytest_loop.core.judging.acceptance_tests import check_test_source, explain_wrong_failure
from pytest_loop.core.judging.run_draft import add_module_rules, build_run_criteria
from pytest_loop.core.model.evaluation import Seal, SealFinding
from pytest_loop.core.model.rules import Outcome, Phase, SessionPlan
from pytest_loop.core.model.run_criteria import RunRule
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.model.vocabulary import BUILTIN, Step
from pytest_loop.core.text.lengths import shorten
from pytest_loop.core.text.sanitizer import reveal_hidden
from pytest_loop.core.text.wording import format_count, limit_lines
from pytest_loop.run.step_context import StepContext
from pytest_loop.session.result import SessionResult
from pytest_loop.workspace.file_tree import compare_trees
from pytest_loop.workspace.seal import ACCEPTANCE_FILES, format_path_pattern

_MAX_SHOWN_LINES = 60
_MAX_SOURCE = 200_000  # bytes
_FAILURES = (Outcome.FAILED, Outcome.ERROR, Outcome.MISSING)


def prepare_tests(context: StepContext) -> AcceptanceTestsPrepared:
    """Let an agent write failing tests, check and confirm them, and seal them.

    Use tests that a killed process has left if these are good enough. Raises `AgentError` for tests that cannot be
    used, and `StopRequestedError` for tests that are not confirmed.
    """
    tests = AcceptanceTests(context)
    project = context.run.project
    project.before_step = project.start  # a process that died may have changed more than tests
    tests.undo_other_changes()
    has_feedback = bool(context.state.get_error(Step.PREPARE)) or context.state.is_answered
    if has_feedback or tests.find_problem():
        context.ask(Step.PREPARE, _choose_agent(context))
        tests.undo_other_changes()
        if problem := tests.find_problem():
            raise AgentError(problem)
    while not tests.confirm():  # the user has edited them while the question waited
        if problem := tests.find_problem():
            raise AgentError(problem)
    return tests.seal()


def _choose_agent(context: StepContext) -> Agent:
    """Return the agent that writes the tests: the judge, else the first agent that can."""
    run = context.run
    agent = next((agent for agent in (run.judge, *run.agents) if agent and agent.name != BUILTIN), None)
    if agent is None:
        raise AgentUnavailableError("there is no agent that could write tests: name one with --loop-agent")
    return agent


@dataclass
class AcceptanceTests:
    """The tests and rules that an agent has written for a task; `result` is the result of a session with them.

    `arguments` are the files that pytest does not collect by itself.
    """

    context: StepContext
    findings: list[SealFinding] = field(default_factory=list)
    result: SessionResult = field(default_factory=SessionResult)
    arguments: tuple[str, ...] = ()

    @property
    def paths(self) -> tuple[str, ...]:
        """The new files since the run began."""
        project = self.context.run.project
        return compare_trees(project.start, project.current).select(project.allow).added

    def undo_other_changes(self) -> None:
        """Undo every change but new tests and rules, and tell the user about it."""
        findings = self.context.run.project.enforce_seal()
        self.findings += findings
        for finding in findings:
            self.context.run.live.write(
                f"  not allowed before the tests are confirmed: {finding.path}: {finding.detail}"
            )

    def find_problem(self) -> str:
        """Run the tests, and return why they cannot be used; empty if they can."""
        if not self.paths:
            return f"expected new files with tests or rules ({', '.join(ACCEPTANCE_FILES[:3])}), found none"
        for path in self.paths:
            if path.endswith(".py") and (problem := check_test_source(self._read(path))):
                return f"{path}: {problem}"
        self._run_tests()
        return next(self._list_wrong_results(), "")

    def _read(self, path: str) -> str:
        try:
            data = (self.context.run.settings.root / path).read_bytes()[:_MAX_SOURCE]
        except OSError as error:
            raise AgentError(f"{path}: {error.strerror or error}") from None
        return data.decode("utf-8", "replace")

    def _run_tests(self) -> None:
        """Run a session with the new files; name the files that the session does not collect by itself."""
        run = self.context.run
        run.project.begin_work(is_session=True)
        order = SessionOrder(phase=Phase.B)
        collected = _list_collected_files(run.session.evaluate(order, "--collect-only", "-q"))
        self.arguments = tuple(path for path in self.paths if path not in collected)
        order = SessionOrder(phase=Phase.B, canary=secrets.token_hex(8))
        self.result = run.session.evaluate(order, *self.arguments)
        self.undo_other_changes()

    def _list_wrong_results(self) -> Iterator[str]:
        """Yield why files are no acceptance tests: not collected, passing already, or failing for another reason."""
        names = {*self._list_project_names(), *re.findall(r"\w+", self.context.state.task.prompt.lower())}
        collected = _list_collected_files(self.result)
        for path in self.paths:
            failures = self._find_failures([path])
            if path not in collected:
                yield f"{path}: pytest collects nothing from it"
            elif not failures:
                yield f"{path}: everything passes before the work begins, so that it measures nothing"
            for name, text in failures.items():
                if problem := explain_wrong_failure(text, self._read(path), names):
                    yield f"{name} fails for the wrong reason: {problem}"

    def _find_failures(self, paths: Collection[str]) -> dict[str, str]:
        """Return the messages of each item and module in these files that does not pass."""
        failures = dict(self.result.problems)
        for name, evidence in self.result.evidence.items():
            if evidence.outcome in _FAILURES:
                failures[name] = f"{evidence}\n{evidence.text}"
        return {name: text for name, text in failures.items() if name.partition("::")[0] in paths}

    def _list_project_names(self) -> Iterator[str]:
        """Yield the names of modules and folders of the project."""
        for path in map(PurePosixPath, self.context.run.project.current.entries):
            if path.suffix == ".py":
                yield from (part.lower() for part in (*path.parts[:-1], path.stem))

    def _render_lines(self) -> Iterator[str]:
        """Render the tests for the user who confirms them."""
        paths = self.paths
        files = format_count(len(paths), "new file")
        yield f"tests: {files} with acceptance tests, which fail now and must pass in the end:"
        for path in paths:
            lines = [f"  | {reveal_hidden(line)}" for line in self._read(path).splitlines()]
            yield f"  {path}"
            yield from limit_lines(lines, _MAX_SHOWN_LINES, f"  ... and {{}} more lines, see {path}")
        for name, text in self._find_failures(paths).items():
            yield f"  fails: {shorten(name)}: {shorten(_find_cause(text))}"

    def confirm(self) -> bool:
        """Show the tests, and let the user confirm them; return False if the files were edited meanwhile.

        Raises `StopRequestedError` if the user declines or cannot be asked.
        """
        run = self.context.run
        before = run.project.digest
        for line in self._render_lines():
            run.live.write(line)
        answer = run.gates.confirm_tests(self.context.state)
        if answer is None:
            raise KeyboardInterrupt
        if not answer:
            run.live.write(
                "the tests are not confirmed: edit them and type `pytest-loop resume`, or say with "
                "`pytest-loop answer TEXT` what they should ask for"
            )
            raise StopRequestedError
        run.project.accept_current()
        return run.project.digest == before

    def seal(self) -> AcceptanceTestsPrepared:
        """Add the tests to the sealed files, and return them as rules of the run."""
        run, paths = self.context.run, self.paths
        before = self.context.state.setup.work_seal or Seal()
        patterns = (*before.patterns, *map(format_path_pattern, paths))
        fields = {
            "patterns": patterns,
            "files": run.project.reseal(patterns, before.allow),
            "start_digest": run.project.digest,
            "replaced_tests": tuple(sorted({*before.replaced_tests, *self.result.replaced_tests})),
        }
        return AcceptanceTestsPrepared(
            paths=paths,
            arguments=self.arguments,
            rules=tuple(self._list_rules(paths)),
            seal=before.model_copy(update=fields),
            artifact_hash=run.project.digest,
            findings=tuple(self.findings),
        )

    def _list_rules(self, paths: tuple[str, ...]) -> Iterator[RunRule]:
        modules = (path for path in self.result.problems if path in paths and path.endswith(".py"))
        plan = add_module_rules(self.result.plan or SessionPlan(), modules)
        return (rule for rule in build_run_criteria(plan, {}).rules if rule.path in paths)


def _list_collected_files(result: SessionResult) -> set[str]:
    node_ids = (*(result.plan.items if result.plan else ()), *result.problems)
    return {node_id.partition("::")[0] for node_id in node_ids}


def _find_cause(text: str) -> str:
    """Return the last line that names an error, else the last line."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("E ") or re.match(r"[\w.]*(Error|Exception)\b", line)]
    return (errors or lines or ["no output"])[-1].removeprefix("E ").strip()
