"""A document, from start to end: task, template or rules, the artifact, and the messages about it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from pytest_loop.core.machine.stop_reasons import find_row
from pytest_loop.inference.task_phrases import parse_task
from tests.acceptance.terminal import Answers, run_at_terminal
from tests.pytest_caller import PLUGIN_VARIABLES, PytestCaller

Pytest = Callable[..., "subprocess.CompletedProcess[str]"]
EXAMPLES = Path(__file__).parents[2] / "examples/good"
WRITER = '''
import re
from pathlib import Path

ANSWERS = Path(__file__).parent / "answers"


def work(request):
    """Answer with the prepared documents, one after the other; as a judge, agree."""
    if request.step == "JUDGE":
        return {"passed": True, "reason": "it says so"}
    if request.step == "PREPARE":
        rules = re.findall(r"^- (\\S+) \\(", request.prompt, re.MULTILINE)
        return {"checks": [{"rule_id": rule, "check": {"judge": "Is it so?"}} for rule in rules]}
    number = 0 if request.step == "PRODUCE" else request.iteration
    return (ANSWERS / f"{number}.txt").read_text()
'''


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "writer.py").write_text(WRITER)
    return folder


def prepare_answers(project: Path, *answers: str) -> None:
    """Let the agent produce the first text, and refine it into the next ones."""
    (project / "answers").mkdir()
    for number, text in enumerate(answers):
        (project / f"answers/{number}.txt").write_text(text)


def read_state(project: Path, alias: str) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((project / f".loop/{alias}/run.json").read_text())
    return data


AGENT = ("--loop-agent", "python:writer:work", "--loop-yes")


class TemplateRow(NamedTuple):
    """A task, its template, the name of the artifact, a broken answer, what it fails, and a good document."""

    task: str
    template: str
    name: str
    broken: str
    failed: tuple[str, ...]
    good: Path


TEMPLATES = [
    TemplateRow(
        "Write an OpenAPI 3.1 spec for courses",
        "api-spec",
        "openapi.yaml",
        "openapi: 3.1.0\ninfo: {title: Courses, version: 1.0.0}\npaths: {/courses: {get: {responses: {}}}}\n",
        ("a.correctness.endpoints", "a.correctness.schemas"),
        EXAMPLES / "api-spec/openapi.yaml",
    ),
    TemplateRow(
        "Write the shipping costs of a parcel as a Python module",
        "code",
        "main.py",
        "def broken(:\n",
        ("a.correctness.compiles", "a.completeness.functions"),
        EXAMPLES / "code/shipping.py",
    ),
    TemplateRow(
        "Write docs for the backup tool",
        "docs",
        "artifact.md",
        "# Backups\n\nTODO\n",
        ("a.completeness.sections",),
        EXAMPLES / "docs/guide.md",
    ),
    TemplateRow(
        "Write a config for the service",
        "config",
        "config.yaml",
        "server: [\n",
        ("a.correctness.syntax", "a.correctness.required"),
        EXAMPLES / "config/service.yaml",
    ),
]


@pytest.mark.parametrize(
    "row",
    [
        pytest.param(row, id=row.template, marks=() if row.template == "docs" else pytest.mark.thorough)
        for row in TEMPLATES
    ],
)
def test_template_fails_a_broken_artifact_and_passes_a_good_one(project: Path, run: Pytest, row: TemplateRow) -> None:
    is_markdown = row.name.endswith(".md")
    prepare_answers(project, row.broken if is_markdown else f"Here:\n\n```\n{row.broken}```\n", row.good.read_text())
    task = ("--loop-task", row.task, "--loop-template", row.template, "--loop-alias", "doc")
    done = run(*task, *AGENT, "--loop-json", "out.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert f" · writes: .loop/doc/{row.name}\n" in done.stdout
    events = [json.loads(line) for line in (project / ".loop/doc/history.jsonl").read_text().splitlines()]
    first = next(event["payload"] for event in events if event["event"] == "evaluation_done")
    assert [complaint["id"] for complaint in first["failed"]] == list(row.failed)
    assert (project / f".loop/doc/{row.name}").read_text() == row.good.read_text()
    assert read_state(project, "doc")["setup"]["artifact"] == f".loop/doc/{row.name}"
    assert json.loads((project / "out.json").read_text())["artifact"] == f".loop/doc/{row.name}"
    assert f" · document .loop/doc/{row.name} · " in run("--loop-status").stdout


# The file with which the other system begins a run, before its set-up has made any rules.
INITIAL_RUN = {
    "run_id": "courses-api-ddd-20260218-120000",
    "task_alias": "courses-api-ddd",
    "status": "running",
    "iteration": 1,
    "max_iterations": 4,
    "phase": "A",
    "current_step": "PLAN",
    "task": {"prompt": "OpenAPI 3.1 spec + DDD notes + JSON examples", "ideal_result": "..."},
    "criteria": {
        "name": "loop_default_v1",
        "version": 1,
        "phase": {
            "A": {"threshold": 0.8, "active_levels": ["A"]},
            "B": {"threshold": 0.9, "active_levels": ["A", "B"]},
        },
        "rules": [],
    },
    "plan": [],
    "prepared_checks": None,
    "evaluation": None,
    "critique": None,
    "stop": {"passed": False, "reason": ""},
    "last_score": 0,
    "stagnation_count": 0,
    "created_at": "2026-02-18T12:00:00Z",
    "updated_at": "2026-02-18T12:00:00Z",
}


def test_run_with_zero_rules_never_passes(project: Path, run: Pytest) -> None:
    folder = project / ".ai-factory/evolution/courses-api-ddd"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps(INITIAL_RUN, indent=2))
    done = run("--loop-resume", "courses-api-ddd", *AGENT)
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED
    assert done.stderr.startswith(
        "ERROR: the run 'courses-api-ddd' has no rules, so that nothing can be judged: add them "
    )
    assert json.loads((folder / "run.json").read_text()) == INITIAL_RUN
    assert "courses-api-ddd · running" in run("--loop-status").stdout


# One run of the document's own example, and what it says about such a run as rows of a table

EXAMPLE_TASK = "OpenAPI 3.1 spec + DDD notes + JSON examples"
ALIAS = "courses-api-ddd"
SKILL = "# Rules\n\n- The artifact names its aggregate roots.\n"
OBSERVER = WRITER.replace(
    'def work(request):\n    """Answer',
    '''def work(request):
    """Note what a reader of the files sees while an agent works. Answer''',
).replace(
    '    if request.step == "JUDGE":',
    """    if request.step in ("PRODUCE", "REFINE"):
        seen = Path(__file__).parent / "seen" / f"{request.step}-{request.iteration}"
        seen.mkdir(parents=True)
        root = request.workspace / ".ai-factory/evolution"
        (seen / "current.json").write_bytes((root / "current.json").read_bytes())
        (seen / "run.json").write_bytes((root / "courses-api-ddd/run.json").read_bytes())
        (seen / "prompt.txt").write_text(request.prompt)
    if request.step == "JUDGE":""",
)


class Facts(NamedTuple):
    """The files that one finished run has left, and what its agent saw while it worked."""

    folder: Path
    output: str
    state: dict[str, Any]
    events: list[dict[str, Any]]
    result: dict[str, Any]
    history: dict[str, Any]
    seen: dict[str, dict[str, Any]]
    prompts: dict[str, str]

    def list_payloads(self, name: str) -> list[dict[str, Any]]:
        return [event["payload"] for event in self.events if event["event"] == name]


def write_versions() -> list[str]:
    """Return a specification without examples, one without security, and a good one."""
    good = (EXAMPLES / "api-spec/openapi.yaml").read_text()
    insecure = yaml.safe_load(good)
    insecure.pop("security", None)
    del insecure["components"]["securitySchemes"]
    bare = yaml.safe_load(good)
    remove_examples(bare)
    return [yaml.safe_dump(bare), yaml.safe_dump(insecure), good]


def remove_examples(value: Any) -> None:
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        remove_examples(inner)
    if isinstance(value, dict):
        for name in ("example", "examples"):
            value.pop(name, None)


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory, caller: PytestCaller) -> Facts:
    """Write the courses specification in three iterations, in a project of the other system."""
    project = tmp_path_factory.mktemp("courses")
    (project / "writer.py").write_text(OBSERVER)
    (project / ".gitignore").write_text("seen/\n")  # the agent logs there, and may change only the document
    prepare_answers(project, *write_versions())
    context = project / ".ai-factory"
    (context / "skill-context/aif-loop").mkdir(parents=True)
    (context / "skill-context/aif-loop/SKILL.md").write_text(SKILL)
    for name in ("DESCRIPTION", "ARCHITECTURE", "RULES"):
        (context / f"{name}.md").write_text(f"# {name.title()}\n\nWords of {name}.\n")

    def call(*arguments: str) -> str:
        done = caller.call(*arguments, folder=project, variables=PLUGIN_VARIABLES)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    task = ("--loop-task", EXAMPLE_TASK, "--loop-template", "api-spec", "--loop-alias", ALIAS)
    output = call(*task, *AGENT[:3], "-vv", "--loop-output", "openapi.yaml", "--loop-json", "out.json")
    call("--loop-history", "--loop-json", "history.json")
    folder = context / "evolution" / ALIAS
    seen = {path.name: path for path in (project / "seen").iterdir()}
    return Facts(
        folder,
        output,
        json.loads((folder / "run.json").read_text()),
        [json.loads(line) for line in (folder / "history.jsonl").read_text().splitlines()],
        json.loads((project / "out.json").read_text()),
        json.loads((project / "history.json").read_text()),
        {
            f"{step}/{name}": json.loads((path / f"{name}.json").read_text())
            for step, path in seen.items()
            for name in ("current", "run")
        },
        {step: (path / "prompt.txt").read_text() for step, path in seen.items()},
    )


EVENTS = {
    *("run_started", "plan_created", "artifact_created", "checks_prepared", "evaluation_done", "critique_done"),
    *("refinement_done", "phase_switched", "iteration_advanced", "phase_error", "stopped", "failed"),
}
STORY = [
    *("run_started", "plan_created", "artifact_created", "evaluation_done", "critique_done", "refinement_done"),
    *("iteration_advanced", "plan_created", "evaluation_done", "phase_switched", "evaluation_done", "critique_done"),
    *("refinement_done", "iteration_advanced", "plan_created", "evaluation_done", "stopped"),
]
ROWS: dict[str, Callable[[Facts], bool]] = {
    # persistence
    "pointer exists while the run is active": lambda facts: (
        sorted(facts.seen["PRODUCE-1/current"]) == ["active_run_id", "status", "task_alias", "updated_at"]
        and facts.seen["PRODUCE-1/current"]["status"] == "running"
        and facts.seen["PRODUCE-1/current"]["active_run_id"] == facts.state["run_id"]
    ),
    "pointer goes when the run is over": lambda facts: not (facts.folder.parent / "current.json").exists(),
    "a run has its three files, and the seal": lambda facts: (
        sorted(path.name for path in facts.folder.iterdir() if not path.name.startswith("."))
        == ["files.json", "files.kept", "history.jsonl", "left-out.json", "openapi.yaml", "run.json"]
    ),
    "run.json holds no text of the artifact": lambda facts: "List courses" not in (facts.folder / "run.json").read_text(),
    # run.json
    "run.json has every field": lambda facts: set(INITIAL_RUN) <= set(facts.seen["PRODUCE-1/run"]),
    "alias is a slug, and the run id has the time": lambda facts: (
        facts.state["task_alias"] == ALIAS and bool(re.fullmatch(rf"{ALIAS}-\d{{8}}-\d{{6}}", facts.state["run_id"]))
    ),
    "a run begins in iteration 1 and phase A": lambda facts: (
        [facts.seen["PRODUCE-1/run"][name] for name in ("status", "iteration", "max_iterations", "phase", "last_score")]
        == ["running", 1, 4, "A", 0]
    ),
    "two steps side by side are one": lambda facts: (
        facts.seen["PRODUCE-1/run"]["current_step"] == "PRODUCE_PREPARE"
        and facts.seen["REFINE-1/run"]["current_step"] == "REFINE"
    ),
    "task is kept": lambda facts: (
        facts.state["task"]["prompt"] == EXAMPLE_TASK and "ideal_result" in facts.state["task"]
    ),
    "levels and thresholds are kept": lambda facts: (
        facts.state["criteria"]["phase"]
        == {"A": {"threshold": 0.8, "active_levels": ["A"]}, "B": {"threshold": 0.9, "active_levels": ["A", "B"]}}
    ),
    "rules are complete": lambda facts: all(
        {"id", "description", "severity", "weight", "phase", "check"} <= set(rule)
        for rule in facts.state["criteria"]["rules"]
    ),
    "weights follow from severities": lambda facts: all(
        rule["weight"] == {"fail": 2, "warn": 1, "info": 0}[rule["severity"]] for rule in facts.state["criteria"]["rules"]
    ),
    "a run ends as completed": lambda facts: (
        (facts.state["status"], facts.state["stop"]) == ("completed", {"passed": True, "reason": "threshold_reached"})
    ),
    # history.jsonl
    "events are those of the document": lambda facts: {event["event"] for event in facts.events} <= EVENTS,
    "an event has eight fields": lambda facts: all(
        {"ts", "run_id", "iteration", "phase", "step", "event", "status", "payload"} <= set(event)
        for event in facts.events
    ),
    "steps follow each other": lambda facts: [event["event"] for event in facts.events] == STORY,
    "a refinement has the hash before it": lambda facts: (
        facts.list_payloads("refinement_done")[0]["previous_artifact_hash"]
        == facts.list_payloads("artifact_created")[0]["artifact_hash"]
    ),
    "evaluations have score and verdict": lambda facts: (
        [payload["passed"] for payload in facts.list_payloads("evaluation_done")] == [False, True, False, True]
        and all(0 <= payload["score"] <= 1 for payload in facts.list_payloads("evaluation_done"))
    ),
    "a plan has three to five steps": lambda facts: all(
        3 <= len(payload["plan"]) <= 5 for payload in facts.list_payloads("plan_created")
    ),
    "a critique has at most five issues, each with a fix": lambda facts: all(
        0 < len(payload["issues"]) <= 5
        and all({"rule_id", "problem", "fix_instruction", "expected_effect"} <= set(issue) for issue in payload["issues"])
        for payload in facts.list_payloads("critique_done")
    ),
    "phase B judges the same artifact": lambda facts: (
        facts.list_payloads("evaluation_done")[1]["artifact_hash"]
        == facts.list_payloads("evaluation_done")[2]["artifact_hash"]
    ),
    # the record of an iteration
    "record has its head": lambda facts: "\n1/4  ✗ 3 of 4 pass in phase A" in facts.output,
    "record has plan and hash": lambda facts: "\n       plan: a." in facts.output and " of 0.8, hash " in facts.output,
    "record names the first version": lambda facts: "\n       changed: initial generation\n" in facts.output,
    "record names changed sections": lambda facts: bool(
        re.search(r"\n +changed: added .*components\.securitySchemes", facts.output)
    ),
    "record names failed rules and warnings, or none": lambda facts: (
        "       failed: a.completeness.examples\n       warnings: none\n" in facts.output
        and "\n       failed: none\n" in facts.output
    ),
    "record has the path of the artifact": lambda facts: (
        f", .ai-factory/evolution/{ALIAS}/openapi.yaml\n" in facts.output
    ),
    "a failure adds rule and fix": lambda facts: (
        "1. a.completeness.examples (fail, new)\n" in facts.output and "   fix: Add `example` or" in facts.output
    ),
    "iterations for machines have plan and change": lambda facts: (
        [bool(record["plan"]) for record in facts.history["iterations"]] == [True] * 3
        and facts.history["iterations"][0]["changed"]["is_first"]
        and "components.securitySchemes" in str(facts.history["iterations"][2]["changed"]["added"])
    ),
    # what an agent is told
    "context files are in the prompt": lambda facts: all(
        f"Words of {name}." in facts.prompts["PRODUCE-1"] for name in ("DESCRIPTION", "ARCHITECTURE", "RULES")
    ),
    "skill context is in the prompt": lambda facts: "aggregate roots" in facts.prompts["PRODUCE-1"],
    "the name of the document is in the prompt": lambda facts: "the file openapi.yaml" in facts.prompts["PRODUCE-1"],
    "a refinement sees critique and document": lambda facts: (
        "a.completeness.examples" in facts.prompts["REFINE-1"] and "openapi: 3" in facts.prompts["REFINE-1"]
    ),
    # the end
    "end has reason, iteration and phase": lambda facts: (
        "\ncompleted: threshold_reached after iteration 3 of 4, phase B\n" in facts.output
    ),
    "end has score, path and status of the artifact": lambda facts: bool(
        re.search(
            rf"\nfinal_score: 1, artifact: .ai-factory/evolution/{ALIAS}/openapi.yaml \(\w{{8}}, evaluated\)\n",
            facts.output,
        )
    ),
    "artifact is copied": lambda facts: (
        "\ncopied to openapi.yaml\n" in facts.output
        and (facts.folder / "openapi.yaml").read_bytes()
        == (facts.folder.parents[2] / "openapi.yaml").read_bytes()
    ),
    "next step follows from the type": lambda facts: (
        '\nnext: build what it describes: pytest --loop-task "implement openapi.yaml"\n' in facts.output
    ),
    "result for machines has status, path and change": lambda facts: (
        facts.result["artifact_status"] == "evaluated"
        and facts.result["artifact"] == f".ai-factory/evolution/{ALIAS}/openapi.yaml"
        and facts.result["changed"]["added"] != []
        and facts.result["distance_to_success"] is None
    ),
}  # fmt: skip


@pytest.mark.parametrize("row", ROWS)
def test_run_is_what_the_document_says(facts: Facts, row: str) -> None:
    assert ROWS[row](facts)


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("threshold_reached", "completed"),
        ("no_major_issues", "completed"),
        ("user_stop", "stopped"),
        ("iteration_limit", "stopped"),
        ("stagnation", "stopped"),
        ("budget_exceeded", "stopped"),
        ("phase_error", "failed"),
    ],
)
def test_stop_reason_leads_to_its_status(reason: str, status: str) -> None:
    assert find_row(reason).status.value == status


@pytest.mark.parametrize(
    ("text", "meaning"),
    [
        (f"/aif-loop new {EXAMPLE_TASK}", EXAMPLE_TASK),
        ("/aif-loop resume", "pytest-loop resume"),
        (f"/aif-loop resume {ALIAS}", f"pytest-loop resume --run {ALIAS}"),
        ("/aif-loop status", "pytest-loop status"),
        ("/aif-loop stop", "pytest-loop stop"),
        ("/aif-loop list", "pytest-loop list"),
        ("/aif-loop history", "pytest-loop history"),
        (f"/aif-loop history {ALIAS}", f"pytest-loop history --run {ALIAS}"),
    ],
)
def test_examples_of_the_document_are_understood(text: str, meaning: str) -> None:
    parsed = parse_task(text)
    assert meaning == (parsed.loop_command.line if parsed.loop_command else parsed.request)


def test_commands_of_the_document_are_answered(facts: Facts, caller: PytestCaller) -> None:
    project = facts.folder.parents[2]

    def call(*arguments: str) -> str:
        done = caller.call(*arguments, folder=project, variables=PLUGIN_VARIABLES)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    head = ["alias", "status", "iteration", "phase", "current_step", "last_score", "updated_at"]
    assert call("--loop-status", "-v").splitlines()[0].split()[:7] == head
    assert call("--loop-list").splitlines()[0].split() == ["run", "status", "iteration", "score", "changed"]
    assert " refinement_done     artifact_hash=" in call("--loop-history", ALIAS, "-v")
    assert call("--loop-resume", ALIAS).startswith(f"{ALIAS} is over: completed, threshold_reached\n")


def test_cleaning_asks_and_deletes_the_files_of_a_run(facts: Facts, caller: PytestCaller, tmp_path: Path) -> None:
    project = tmp_path / "copy"
    shutil.copytree(facts.folder.parents[2], project)
    refused = caller.call(f"--loop-clean={ALIAS}", folder=project)
    assert refused.stdout == "nothing was deleted; --loop-yes deletes without asking\n"
    assert (project / f".ai-factory/evolution/{ALIAS}/run.json").exists()
    done = caller.call("--loop-clean=all", "--loop-yes", folder=project)
    assert (done.returncode, list((project / ".ai-factory/evolution").glob("*/run.json"))) == (0, [])
    assert f"there is no run in {project}/.ai-factory/evolution" in caller.call("--loop-list", folder=project).stdout


def test_step_that_breaks_its_contract_is_repeated_once_and_ends_the_run(project: Path, run: Pytest) -> None:
    prepare_answers(project, "   ")
    task = ("--loop-task", EXAMPLE_TASK, "--loop-template", "api-spec", "--loop-alias", ALIAS)
    done = run(*task, *AGENT)
    assert done.returncode == 1
    events = [json.loads(line) for line in (project / f".loop/{ALIAS}/history.jsonl").read_text().splitlines()]
    names = [event["event"] for event in events]
    assert names == ["run_started", "plan_created", "phase_error", "phase_error", "failed"]
    assert events[2]["payload"]["reason"] == "expected a document, found an empty answer"
    assert " · phase_error: " in done.stdout
    state = read_state(project, ALIAS)
    assert (state["status"], state["stop"]["reason"]) == ("failed", "phase_error")
    complaint = "writing failed: expected a document, found an empty answer\n"
    assert complaint in run("--loop-status").stdout
    assert run("--loop-resume").stdout.startswith(f"{ALIAS} continues after phase_error\n{complaint}")


def test_run_that_reaches_its_limit_tells_the_distance_to_success(project: Path, run: Pytest) -> None:
    prepare_answers(project, *write_versions()[:1] * 2)
    task = ("--loop-task", EXAMPLE_TASK, "--loop-template", "api-spec", "--loop-alias", ALIAS)
    done = run(*task, *AGENT, "--loop-max-iterations", "2", "--loop-json", "out.json")
    assert done.returncode == 1
    assert json.loads((project / "out.json").read_text())["distance_to_success"] == {
        "threshold": 0.8,
        "score": 0.714286,
        "gap": 0.085714,
        "blocking": ["a.completeness.examples"],
        "rules_passed": 3,
        "rules_total": 4,
    }
    assert "still failing: a.completeness.examples" in done.stdout
    assert "next: " not in done.stdout


def test_user_at_a_terminal_is_asked_where_the_artifact_goes(project: Path) -> None:
    prepare_answers(project, write_versions()[-1])
    task = ("--loop-task", EXAMPLE_TASK, "--loop-template", "api-spec", "--loop-alias", ALIAS)
    answers: Answers = {
        "confirm these success criteria?": "y",
        "confirm max iterations = 4?": "y",
        "is it done?": "y",
        "copy it to which path?": "api.yaml",
    }
    code, output = run_at_terminal(project, (*task, *AGENT[:2], "-q"), answers)
    assert code == 0, output
    assert f"copy it to which path? [y is openapi.yaml, Enter leaves it at .loop/{ALIAS}/openapi.yaml] " in output
    assert "copied to api.yaml\r\n" in output
    assert output.endswith('next: build what it describes: pytest --loop-task "implement api.yaml"\r\n')
    assert (project / "api.yaml").exists()
