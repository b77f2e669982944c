"""Divide an evaluation into shards for workers; evaluate in this process if they fail or disagree."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from statistics import median

from pytest_loop.cluster.dispatcher import Dispatcher, Workers
from pytest_loop.cluster.job import MERGED_FIELDS, Answer, Job, pack
from pytest_loop.cluster.outputs import write_outputs
from pytest_loop.cluster.pool import ClusterError, Pool, open_pool
from pytest_loop.cluster.sender import Sender
from pytest_loop.core.judging.shards import find_plan_difference
from pytest_loop.core.model.evaluation import ClusterWork, ShardRun
from pytest_loop.core.model.rules import Outcome
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.text.wording import PrintLine, format_bytes, format_count
from pytest_loop.repair.mutation.mutation_request import MutationError, MutationRequest, measure_mutants
from pytest_loop.session.history import is_failure
from pytest_loop.session.isolated_items import run_items_alone
from pytest_loop.session.result import SessionResult
from pytest_loop.session.runner import SessionStoppedError, SubprocessSession
from pytest_loop.workspace.sealed_files import SealedFiles

_MAX_SHARDS_PER_SLOT = 4


@dataclass
class ClusterSession:
    """Evaluate on the workers at `address`, or here if they cannot evaluate an order.

    A worker's evidence counts once and only if all shards agree about rules and items, every item has a report, and
    no sealed file was written, except those that the baseline has `written`. What fails or passes there for the first
    time is repeated here.
    """

    local: SubprocessSession
    project: SealedFiles
    address: str
    print_line: PrintLine
    builds_environments: bool = False
    written: Collection[str] = ()
    open_pool: Callable[[str, str], Pool] = open_pool
    on_progress: Callable[[str], None] = lambda _text: None
    sent_bytes: int = field(default=0, init=False)
    _overhead: float = field(default=0.0, init=False)
    _printed: set[str] = field(default_factory=set, init=False)
    _reviewed: set[str] = field(default_factory=set, init=False)

    def __post_init__(self) -> None:
        self._sender = Sender(self.local, self.project, self.builds_environments, self.written)
        self._workers = Workers(
            self.address, lambda address: self.open_pool(address, str(self.project.root)), self.print_line
        )

    def evaluate(self, order: SessionOrder, *extra: str) -> SessionResult:
        if extra or _needs_this_process(order) or order.manifest in self._reviewed:
            return self.local.evaluate(order, *extra)
        try:
            job = self._sender.make_job(order)
            outputs = tuple(self.project.scope.outputs) if order.manifest else ()
            answers = self._judge_shards(job.model_copy(update={"outputs": outputs}))
            result = self._merge(answers, has_canary=bool(order.canary))
            self._check_cases(order, result)
            for answer in answers:
                write_outputs(self.project.root, self.project.scope.outputs, answer.outputs)
        except ClusterError as error:
            self._print_once(f"judged here, not on {self.address}: {error}")
            return self.local.evaluate(order)
        order = self._add_trials(order, result)
        if differing := self._repeat_here(order, result):
            self._print_once(f"judged here, not on {self.address}: {differing} has another verdict here")
            return self.local.evaluate(order)
        self.local.history.add(result.evidence)
        return result

    def run_shares(self, engine: str, request: str) -> list[str]:
        """Return the result of each worker's share of trials; raise `ClusterError` if a share has none."""
        if self.address.startswith("local:"):  # its workers share the processors of this machine
            request = json.dumps(json.loads(request) | {"workers": 1})
        job = self._sender.make_job(SessionOrder()).model_copy(update={"engine": engine, "trials": request})
        return [answer.trials for answer in self._judge_shards(job)]

    def connect(self) -> None:
        """Connect to the workers; raise `ClusterError` if there are none."""
        self._workers.connect()

    def close(self) -> None:
        """Leave the workers."""
        self._workers.close()

    def _print_once(self, text: str) -> None:
        if text not in self._printed:
            self._printed.add(text)
            self.print_line(text)

    # -- workers

    def _judge_shards(self, job: Job) -> list[Answer]:
        slots = len(self._workers.list_slots()) or 1
        total = slots if job.engine else self._choose_total(slots, job.order)
        shown = ""

        def describe() -> str:
            done = f"{len(dispatcher.answers)}/{format_count(total, 'shard')}"
            return f"{done} on {format_count(slots, 'worker')}, {format_bytes(dispatcher.sent_bytes)} sent"

        def check() -> None:
            nonlocal shown
            if not self.local.should_continue():
                self.close()
                raise SessionStoppedError("the evaluation was stopped on request")
            if shown != (shown := describe()):
                self.on_progress(shown)

        dispatcher = Dispatcher(self._workers, pack(job), total, self.local.timeout, self._sender.read_pieces, check)
        try:
            with self.local.show_progress("running tests", describe):
                answers = dispatcher.judge()
        finally:
            self.sent_bytes = dispatcher.sent_bytes
            self.on_progress("")
        if not job.engine:
            tests = [sum(piece.seconds for piece in answer.evidence.values()) for answer in answers]
            self._overhead = median(answer.seconds - spent for answer, spent in zip(answers, tests, strict=True))
        return answers

    def _choose_total(self, slots: int, order: SessionOrder) -> int:
        """Return the number of shards: several for each slot only if a start takes less than a tenth of a shard."""
        seconds = sum(order.durations.values()) / slots
        pays = seconds / (10 * self._overhead) if self._overhead > 0 else 1
        return slots * max(1, min(_MAX_SHARDS_PER_SLOT, int(pays)))

    # -- results

    def _merge(self, answers: list[Answer], *, has_canary: bool) -> SessionResult:
        """Return one result of all shards; raise `ClusterError` unless they agree and are complete."""
        plan = answers[0].plan
        if plan is None:
            raise ClusterError(f"shard 1 ended with {answers[0].ending} before its items were known")
        for number, answer in enumerate(answers, 1):
            difference = find_plan_difference(answer.plan, plan) if answer.plan else ""
            if not difference and answer.plan_hash != answers[0].plan_hash:
                difference = "it collected other items or rules"
            if difference:
                raise ClusterError(f"shard {number} does not belong to shard 1: {difference}")
        replaced_tests = tuple(sorted({name for answer in answers for name in answer.replaced_tests}))
        plan = plan.model_copy(update={"replaced_tests": replaced_tests})
        result = SessionResult(plan=plan, exit_status=0, ending="exit code 0")
        for number, answer in enumerate(answers):
            shard = plan.shards[number]
            if answer.exit_status not in (0, 1, 5) or answer.problems or answer.contradictions:
                raise ClusterError(f"shard {number + 1} ended with {answer.ending}")
            if has_canary and not answer.canaries:
                raise ClusterError(f"shard {number + 1} did not run its hidden test")
            if any(item not in answer.evidence for item in shard if item in plan.items):
                raise ClusterError(f"shard {number + 1} did not report every item")
            result.evidence |= {item: answer.evidence[item] for item in shard if item in answer.evidence}
            result.canaries += answer.canaries
            result.plugins |= frozenset(answer.plugins)
            _add_observations(result, answer)
            result.pytest_failures += answer.pytest_failures
            result.exit_status = max(result.exit_status or 0, answer.exit_status % 5)  # 5 is a shard without items
            result.output += answer.output
        result.unmet_items = {item for item, evidence in result.evidence.items() if is_failure(evidence)}
        result.cluster = ClusterWork(shards=tuple(map(_make_shard_run, answers)), sent_bytes=self.sent_bytes)
        return result

    def _add_trials(self, order: SessionOrder, result: SessionResult) -> SessionOrder:
        """Run the trials that checks left to the workers; return the order with the results."""
        results = {}
        for request in {evidence.trials for evidence in result.evidence.values()} - {""}:
            try:
                mutants = measure_mutants(MutationRequest.model_validate_json(request), self.run_shares)
                results[request] = mutants.model_dump_json()
            except (ClusterError, MutationError) as error:
                self._print_once(f"mutants are run here, not on {self.address}: {error}")
        return order.model_copy(update={"trials": results})

    def _check_cases(self, order: SessionOrder, result: SessionResult) -> None:
        """Raise `ClusterError` if the cases of a workload ask the judge, and remember that."""
        if order.manifest and any(evidence.outcome is Outcome.SKIPPED for evidence in result.evidence.values()):
            self._reviewed.add(order.manifest)
            raise ClusterError(f"the cases of {order.manifest} ask the judge")

    def _repeat_here(self, order: SessionOrder, result: SessionResult) -> str:
        """Repeat here new failures, items that failed before and pass there, and items with trials or a judge.

        Return an item that passes only here or only there, because of the folder or of the items before it; the
        verdicts of that evaluation do not count.
        Of the cases of a workload only errors are repeated: another try at an output would be a better chance than
        cases have here.
        """
        before = frozenset(self.local.history.extend_order(order).failed_before)
        unclear = {
            item
            for item, evidence in result.evidence.items()
            if evidence.trials or evidence.outcome is (Outcome.ERROR if order.manifest else Outcome.ASSUMED)
        }
        changed = set() if order.manifest else result.unmet_items ^ (result.evidence.keys() & before)
        if not (repeated := tuple(sorted(unclear | changed))):
            return ""
        again = run_items_alone(self.local, order, self.project.root, repeated)
        for item in sorted(changed - unclear):
            here = again.evidence.get(item) if again is not None else None
            if here is None or is_failure(here) is not (item in result.unmet_items):
                return item
        if again is not None:
            result.evidence |= {item: again.evidence[item] for item in repeated if item in again.evidence}
            result.unmet_items = {item for item, evidence in result.evidence.items() if is_failure(evidence)}
            _add_observations(result, again)
            if not result.unmet_items:
                result.pytest_failures = result.exit_status = 0
        return ""


def _add_observations(result: SessionResult, other: Answer | SessionResult) -> None:
    for name in MERGED_FIELDS:
        getattr(result, name).update(getattr(other, name))


def _make_shard_run(answer: Answer) -> ShardRun:
    started = max(0.0, answer.ended - answer.seconds)
    return ShardRun(
        worker=answer.worker, items=len(answer.evidence), started=round(started, 3), seconds=round(answer.seconds, 3)
    )


def _needs_this_process(order: SessionOrder) -> bool:
    """Return whether an order must be evaluated here: of a document or a few items, or ending early."""
    return bool(order.artifact or order.only or order.selected or order.can_stop_early)
