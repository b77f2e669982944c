"""How a run is carried out: who is asked on the way, what a project says of itself, and what the end is worth."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

from tests.pytest_caller import PytestCaller

Pytest = Callable[..., "subprocess.CompletedProcess[str]"]
RULES = """\
artifact: notes.md
rules:
  - {id: a.words.hello, description: It greets, check: {contains: hello}}
  - {id: a.words.please, description: It is kind, check: {contains: please}}
"""
AGENT = """\
from pathlib import Path
prompts = Path("prompts")
prompts.mkdir(exist_ok=True)
def work(request):
    number = len(list(prompts.iterdir())) + 1
    (prompts / f"{number}.txt").write_text(request.prompt)
    return ["hello", "hello, please", "hello, please, in short"][min(number, 3) - 1] + "\\n"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    (tmp_path / "notes.rules.yaml").write_text(RULES)
    (tmp_path / "agent.py").write_text(AGENT)
    return tmp_path


def start(*more: str, task: str = "write the notes") -> tuple[str, ...]:
    named = ("--loop-rules", "notes.rules.yaml", "--loop-agent", "python:agent:work", "--loop-alias", "notes")
    return ("--loop-task", task, *named, *more)


def at_terminal(project: Path, *words: str, answers: str, expected: int) -> str:
    """What pytest says to somebody who types these lines; what is left then is the end of the input."""
    ours, theirs = pty.openpty()
    os.write(ours, answers.encode() + b"\x04")
    command = [sys.executable, "-m", "pytest", *words]
    try:
        done = subprocess.run(
            command, cwd=project, stdin=theirs, capture_output=True, text=True, check=False, timeout=120
        )
    finally:
        os.close(theirs)
        os.close(ours)
    assert done.returncode == expected, done.stdout + done.stderr
    return done.stdout


def events(project: Path) -> list[dict[str, Any]]:
    lines = (project / ".loop/notes/history.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def state(project: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((project / ".loop/notes/run.json").read_text())
    return found


# -- gates


def ask_always(project: Path) -> None:
    (project / "pytest.ini").write_text("[pytest]\nloop_confirm = always\n")


@pytest.mark.measured
def test_a_person_is_asked_after_each_iteration_and_before_the_end(project: Path) -> None:
    ask_always(project)
    said = at_terminal(project, *start(), answers="y\n\nn\nshorter\n\n", expected=0)
    assert "start? [y/N] " in said
    assert "iteration 1 of 4 is over, 1 rule left: go on? [Y/n] " in said
    assert said.count("2 rules judged, and it passes: is it done? [Y/n] ") == 2
    assert "1. the review (fail, new)\n     shorter" in said
    assert "shorter" in (project / "prompts/3.txt").read_text()
    assert (project / ".loop/notes/artifact.md").read_text() == "hello, please, in short\n"
    reviews = [event["payload"] for event in events(project) if event["event"] == "review_done"]
    assert [(one["status"], one.get("feedback"), one["decision"]["action"]) for one in reviews] == [
        ("reject", "shorter", "retry"),
        ("approve", None, "proceed"),
    ]
    assert reviews[0]["decision"]["feedback"]["actionable_items"] == ["shorter"]
    assert state(project)["setup"]["draft"]["confirmed_by"] == "terminal"


def test_who_does_not_want_to_go_on_stops_there(project: Path) -> None:
    ask_always(project)
    said = at_terminal(project, *start(), answers="y\nn\n", expected=1)
    assert "stopped: user_stop after iteration 1 of 4" in said
    assert "verdict: RESEARCH, because it is not done (user_stop)" in said


@pytest.mark.thorough
def test_a_review_without_an_answer_is_asked_for_again(project: Path) -> None:
    ask_always(project)
    said = at_terminal(project, *start(), answers="y\n\n", expected=1)
    assert "stopped: unconfirmed" in said
    assert "question: The review is outstanding: is it done?\ngo on: pytest --loop-resume=notes" in said
    again = at_terminal(project, "--loop-resume=notes", answers="y\n", expected=0)
    assert "completed: threshold_reached" in again
    assert len(list((project / "prompts").iterdir())) == 2


def test_who_agreed_beforehand_is_not_asked_again(project: Path, run: Pytest) -> None:
    ask_always(project)
    at_terminal(project, *start(), answers="y\n\n", expected=1)
    again = run("--loop-resume=notes", "--loop-yes")
    assert again.returncode == 0, again.stdout + again.stderr


@pytest.mark.measured
def test_a_run_that_waits_for_an_answer_has_written_down_what_it_knows_and_can_be_stopped(
    project: Path, run: Pytest
) -> None:
    ask_always(project)
    ours, theirs = pty.openpty()
    os.write(ours, b"y\n")
    history = project / ".loop/notes/history.jsonl"
    command = [sys.executable, "-m", "pytest", *start()]
    with subprocess.Popen(command, cwd=project, stdin=theirs, stdout=subprocess.PIPE, text=True) as waiting:
        while waiting.poll() is None and not (history.exists() and "evaluation_done" in history.read_text()):
            time.sleep(0.05)
        assert run("--loop-stop").returncode == 0
        said = waiting.communicate(timeout=120)[0]
    os.close(theirs)
    os.close(ours)
    assert "iteration 1 of 4 is over, 1 rule left: go on? [Y/n] " in said
    assert "stopped: user_stop" in said


def test_an_unclear_draft_is_a_matter_for_two_and_says_so(project: Path) -> None:
    (project / "notes.rules.yaml").write_text(
        "rules:\n  - {id: a.tone, description: It is kind, check: {judge: Is it kind?}}\n"
    )
    said = at_terminal(project, *start("--loop-artifact", "notes.md"), answers="n\n", expected=2)
    assert " of 10, colleague\n  outcome     1  something is named, and no machine decides it\n" in said
    assert not (project / ".loop").exists()


def test_where_nobody_is_at_a_terminal_a_policy_decides(project: Path, run: Pytest) -> None:
    ask_always(project)
    refused = run(*start())
    assert refused.returncode == 4
    assert "nobody is here to confirm this" in refused.stderr
    done = run(*start("--loop-yes"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert state(project)["setup"]["draft"]["confirmed_by"] == "--loop-yes"
    assert not any(event["event"] == "review_done" for event in events(project))


def test_the_ini_file_may_say_that_nobody_is_asked(project: Path, run: Pytest) -> None:
    (project / "pytest.ini").write_text("[pytest]\nloop_confirm = never\n")
    done = run(*start())
    assert done.returncode == 0, done.stdout + done.stderr
    assert state(project)["setup"]["draft"]["confirmed_by"] == "loop_confirm"
    (project / "pytest.ini").write_text("[pytest]\nloop_confirm = sometimes\n")
    wrong = run(*start())
    assert wrong.returncode == 4
    assert "loop_confirm: expected shape, always or never, found 'sometimes'" in wrong.stderr


# -- the manner of the work


@pytest.mark.measured
def test_what_is_hard_to_take_back_is_checked_before_and_watched_after(project: Path, run: Pytest) -> None:
    done = run(*start("--loop-yes", task="change the database schema until the notes are kind"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "undo 1: database schema: others build on it" in done.stdout
    assert "pre-check   1. write down three to five ways in which this task could be misread" in done.stdout
    assert "lacking     2 must_not rules, found 0" in done.stdout
    assert "verdict: MONITOR, because it passes, and it is hard to take back" in done.stdout
    said = at_terminal(project, *start(task="change the database schema"), answers="n\n", expected=2)
    assert "this is hard to take back, and lacks 2 must_not rules, found 0: start all the same? [y/N] " in said


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("fix the notes", "Find the cause before you change anything"),
        ("add notes about it", "Before you write something new, look for it"),
        ("clean up the notes", "Delete before you redesign"),
    ],
)
def test_an_agent_is_told_what_comes_first_in_work_of_this_kind(
    project: Path, run: Pytest, task: str, words: str
) -> None:
    run(*start("--loop-yes", "--loop-max-iterations", "1", task=task))
    assert f"## First\n{words}" in (project / "prompts/1.txt").read_text()


# -- what a project says of itself


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a shape file, whose agent mends the code and keeps its prompt."""
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    (tmp_path / "shop.py").write_text("def total(prices):\n    return 0\n")
    (tmp_path / "test_shop.py").write_text("import shop\n\ndef test_it():\n    assert shop.total([1, 2]) == 3\n")
    (tmp_path / "agent.py").write_text(
        "from pathlib import Path\ndef work(request):\n    Path('prompt.txt').write_text(request.prompt)\n"
        "    Path('shop.py').write_text('def total(prices):\\n    return sum(prices)\\n')\n"
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    shape = tmp_path / ".loop/shape/SHAPE.md"
    shape.parent.mkdir(parents=True)
    shape.write_text(
        dedent("""\
        # Shape
        Spec score: 6/10

        criteria:
          - The total is a sum
        mustNot:
          - "`grep -q eval shop.py`"

        | Criterion | Verification | Command |
        |---|---|---|
        | The total is a sum | execution output | `grep -q sum shop.py` |
        """)
    )
    return tmp_path


@pytest.fixture
def call(shop: Path, caller: PytestCaller) -> Pytest:
    """Calls pytest in the shop."""
    return partial(caller.call, folder=shop)


@pytest.fixture
def mended(call: Pytest) -> Pytest:
    """A run that makes the shop right."""
    task = ("--loop-task", "make the shop right", "--loop-agent", "python:agent:work", "--loop-alias", "notes")
    return partial(call, *task, "--loop-yes")


def test_a_shape_file_says_when_it_is_done_and_what_must_not_happen(shop: Path, mended: Pytest, call: Pytest) -> None:
    done = mended()
    assert done.returncode == 0, done.stdout + done.stderr
    assert "a.shape.the-total-is-a-sum  The total is a sum  [.loop/shape/SHAPE.md:5]" in done.stdout
    assert "a.must-not.grep-q-eval-shop-py" in done.stdout
    assert "test_shop.py::test_it" in done.stdout
    assert "inferred " not in done.stdout
    assert "project  FAIL" in done.stdout
    assert " of 10, colleague\n" in done.stdout
    assert "verdict: SHIP" in done.stdout
    listed = call("--loop-list")
    assert "shape" not in listed.stdout


def test_what_a_shape_file_forbids_stops_at_once(shop: Path, mended: Pytest) -> None:
    (shop / "agent.py").write_text(
        "from pathlib import Path\ndef work(request):\n"
        "    Path('shop.py').write_text('def total(prices):\\n    return eval(\"sum(prices)\")\\n')\n"
    )
    done = mended()
    assert done.returncode == 1
    assert "stopped: must_not after iteration 2" in done.stdout


def test_the_context_of_an_ai_factory_is_in_the_prompt_and_its_rules_judge(shop: Path, mended: Pytest) -> None:
    factory = shop / ".ai-factory"
    (factory / "skill-context/aif-loop").mkdir(parents=True)
    (factory / "DESCRIPTION.md").write_text("A shop that sells bread.\n")
    (factory / "RULES.md").write_text("- Run `grep -q prices shop.py`\n- Prices are whole cents\n")
    (factory / "skill-context/aif-loop/SKILL.md").write_text(
        "### Totals\n**Rule**: `grep -q total shop.py`\n\nmax_iterations: 2\n"
    )
    done = mended()
    assert done.returncode == 1, done.stdout + done.stderr  # nobody can judge the sentence about cents
    assert "b.project.totals  Totals" in done.stdout
    assert "b.project.prices-are-whole-cents" in done.stdout
    assert "limits      2 iterations" in done.stdout
    (factory / "RULES.md").write_text("- Run `grep -q prices shop.py`\n")
    (shop / "shop.py").write_text("def total(prices):\n    return 0\n")
    done = mended("--loop-alias", "other")
    assert done.returncode == 0, done.stdout + done.stderr
    prompt = (shop / "prompt.txt").read_text()
    assert "## What the project says of itself" in prompt
    assert "What this project is (.ai-factory/DESCRIPTION.md):\nA shop that sells bread." in prompt


@pytest.mark.measured
def test_sentences_that_nobody_here_can_judge_stay_words(shop: Path, call: Pytest) -> None:
    (shop / ".ai-factory").mkdir()
    (shop / ".ai-factory/RULES.md").write_text("- Prices are whole cents\n")
    (shop / "shop.py").write_text("def total(prices):\n    return sum(prices)\n")
    done = call("--loop-task", "fix until green", "--loop-yes", "--loop-agent", "builtin")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "note        .ai-factory/RULES.md: 1 rule that only an agent could judge" in done.stdout


# -- what judges stays as it is


@pytest.mark.parametrize(
    ("task", "before", "edit"),
    [
        ("fix shop.py until `make check` passes", {"Makefile": "check:\n\tfalse\n"}, ("Makefile", "check:\n\ttrue\n")),
        (
            f"fix shop.py until `{sys.executable} -m pytest -k total` passes",
            {"test_shop.py": "def test_total():\n    assert 0\n"},
            ("test_shop.py", "def test_total():\n    pass\n"),
        ),
        (
            "fix until `sh run.sh` passes",
            {"run.sh": "exit 1\n", "web/cart.test.js": "fails"},
            ("web/cart.test.js", "passes"),
        ),
    ],
    ids=["makefile", "tests of a command", "tests of another language"],
)
def test_what_a_command_judges_by_is_sealed(
    shop: Path, call: Pytest, task: str, before: dict[str, str], edit: tuple[str, str]
) -> None:
    (shop / ".loop/shape/SHAPE.md").unlink()
    for name, text in before.items():
        (shop / name).parent.mkdir(exist_ok=True)
        (shop / name).write_text(text)
    (shop / "agent.py").write_text(
        f"from pathlib import Path\ndef work(request):\n    Path({edit[0]!r}).write_text({edit[1]!r})\n"
    )
    command = ["--loop-task", task, "--loop-agent", "python:agent:work", "--loop-yes", "--loop-max-iterations", "2"]
    done = call(*command)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"sealed: {edit[0]}: was changed, and was put back" in done.stdout
    assert (shop / edit[0]).read_text() == before[edit[0]]


@pytest.mark.parametrize(
    ("check", "before", "edit"),
    [
        ("{command: make check}", {"Makefile": "check:\n\tfalse\n"}, ("Makefile", "check:\n\ttrue\n")),
        (
            f"{{command: '{sys.executable} -m pytest -q -p no:cacheprovider unit'}}",
            {"unit/test_it.py": "def test_it():\n    assert 0\n"},
            ("unit/test_it.py", "def test_it():\n    pass\n"),
        ),
        (
            "{python: 'checks.deep:good'}",
            {"checks/deep.py": "def good(a, w):\n    return False\n", "checks/__init__.py": ""},
            ("checks/deep.py", "def good(a, w):\n    return True\n"),
        ),
    ],
    ids=["makefile", "tests of a command", "function"],
)
def test_what_rules_of_a_person_judge_by_is_sealed_as_well(
    shop: Path, mended: Pytest, check: str, before: dict[str, str], edit: tuple[str, str]
) -> None:
    for name, text in before.items():
        (shop / name).parent.mkdir(exist_ok=True)
        (shop / name).write_text(text)
    (shop / "it.rules.yaml").write_text(f"rules: [{{id: a.x, description: x, check: {check}}}]\n")
    (shop / "agent.py").write_text(
        f"from pathlib import Path\ndef work(request):\n    Path({edit[0]!r}).write_text({edit[1]!r})\n"
    )
    done = mended("--loop-rules", "it.rules.yaml", "--loop-workspace", "--loop-max-iterations", "2")
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"sealed: {edit[0]}: was changed, and was put back" in done.stdout


def test_a_new_module_that_a_command_would_take_for_pytest_is_removed(shop: Path, mended: Pytest) -> None:
    command = f"{sys.executable} -m pytest -q -p no:cacheprovider unit"
    (shop / "unit").mkdir()
    (shop / "unit/test_it.py").write_text("def test_it():\n    assert 0\n")
    (shop / "it.rules.yaml").write_text(f"rules: [{{id: a.x, description: x, check: {{command: {command!r}}}}}]\n")
    (shop / "agent.py").write_text(
        "from pathlib import Path\ndef work(request):\n    Path('pytest.py').write_text('')\n    Path('sum.py').touch()\n"
    )
    done = mended("--loop-rules", "it.rules.yaml", "--loop-workspace", "--loop-max-iterations", "2")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "sealed: pytest.py: was new, and was removed" in done.stdout
    assert not (shop / "pytest.py").exists()
    assert (shop / "sum.py").exists()


def test_a_task_that_needs_new_tests_may_add_them_and_change_none(shop: Path, call: Pytest) -> None:
    (shop / ".loop/shape/SHAPE.md").unlink()
    (shop / "test_shop.py").unlink()
    (shop / "tests").mkdir()
    (shop / "tests/test_old.py").write_text("def test_old():\n    pass\n")
    (shop / "coverage.sh").write_text("echo TOTAL 10 10 $(( $(ls tests/test_*.py | wc -l) * 45 ))%\n")
    (shop / "agent.py").write_text(
        "from pathlib import Path\ndef work(request):\n    Path('tests/test_old.py').write_text('')\n"
        "    Path('tests/conftest.py').write_text('')\n    Path('tests/test_new.py').write_text('')\n"
    )
    task = "loop until coverage > 80%, as `sh coverage.sh` prints it"
    command = ["--loop-task", task, "--loop-agent", "python:agent:work", "--loop-yes", "--loop-max-iterations", "2"]
    done = call(*command)
    assert (shop / "tests/test_new.py").exists(), done.stdout + done.stderr
    assert (shop / "tests/test_old.py").read_text() == "def test_old():\n    pass\n"
    assert not (shop / "tests/conftest.py").exists()


def test_what_was_not_asked_for_by_any_rule_is_not_shipped(shop: Path, call: Pytest) -> None:
    (shop / ".loop/shape/SHAPE.md").unlink()
    (shop / "shop.py").write_text("def total(prices):\n    return sum(prices)\n")
    command = ["--loop-task", "add a discount function to shop.py", "--loop-agent", "builtin", "--loop-yes"]
    done = call(*command)
    assert "verdict: RESEARCH, because everything passed before anything was done" in done.stdout


@pytest.mark.measured
def test_tests_that_happen_to_be_there_do_not_say_what_a_vague_task_wants(shop: Path, call: Pytest) -> None:
    (shop / ".loop/shape/SHAPE.md").unlink()
    command = ["test_shop.py", "--loop-task", "make it better", "--loop-agent", "builtin", "--loop-yes"]
    done = call(*command)
    assert done.returncode == 4
    assert "this cannot be measured: make it better" in done.stderr


# -- the end, and where a run stands


def test_the_end_says_what_the_verdict_rests_on(project: Path, run: Pytest) -> None:
    (project / "notes.rules.yaml").write_text(
        RULES + "  - {id: b.seen, description: Somebody has seen it, check: {manual: Have you seen it?}}\n"
    )
    held = run(*start("--loop-yes"))
    assert held.returncode == 1
    assert "verdict: RESEARCH, because nobody has confirmed b.seen" in held.stdout
    done = run("--loop-resume=notes", "--loop-confirm", "b.seen", "--loop-json", "result.json")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "verdict: MONITOR, because it passes, and b.seen was judged by reading only" in done.stdout
    assert "  observation  2 of 2 pass: a.words.hello, a.words.please" in done.stdout
    assert "  code review  1 of 1 pass: b.seen" in done.stdout
    verdict = json.loads((project / "result.json").read_text())["verdict"]
    assert verdict["word"] == "MONITOR"
    assert verdict["evidence"]["observation"] == {"passed": 2, "total": 2}


def test_a_run_that_a_breaker_has_stopped_says_how_it_goes_on_and_does(project: Path, run: Pytest) -> None:
    (project / "agent.py").write_text("def work(request):\n    return f'hello {request.iteration}\\n'\n")
    done = run(*start("--loop-yes", "--loop-max-iterations", "9"))
    assert "stopped: same_error after iteration 3 of 9" in done.stdout
    assert "pattern: same failure: the same rules fail for 3 iterations, with the same message" in done.stdout
    assert "go on: pytest --loop-resume=notes --loop-max-iterations 13" in done.stdout
    status = run("--loop-status")
    assert "breakers: stuck 3 of 5, same_error 3 of 3, thrashing 0 of 5, stagnation 0 of 2" in status.stdout
    (project / "agent.py").write_text(AGENT)
    (project / "prompts").mkdir()
    (project / "prompts/before").write_text("")
    again = run("--loop-resume=notes", "--loop-max-iterations", "13", "--loop-yes")
    assert again.returncode == 0, again.stdout + again.stderr


@pytest.mark.measured
def test_other_loops_are_told_where_a_run_stands(project: Path, run: Pytest) -> None:
    done = run(*start("--loop-yes", "--loop-status-block"))
    blocks = done.stdout.split("---LOOP_STATUS---\n")[1:]
    assert len(blocks) == 3
    assert blocks[0].startswith('EXIT_SIGNAL: false\nCRITERIA: {"a.words.hello": {"met": true, ')
    assert "STUCK_COUNT: 0\nNEXT: critique_done of iteration 1\n---END_STATUS---\n" in blocks[0]
    assert "EXIT_SIGNAL: true" in blocks[2]
    status = run("--loop-status", "--loop-status-block")
    assert status.stdout.startswith("---LOOP_STATUS---\nEXIT_SIGNAL: true\n")
