"""Confirmations of a run, rules that the project states, and the verdict at the end."""

from __future__ import annotations

import json
import os
import pty
import re
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
    (tmp_path / ".gitignore").write_text("prompts/\n")
    (tmp_path / "notes.rules.yaml").write_text(RULES)
    (tmp_path / "agent.py").write_text(AGENT)
    return tmp_path


def make_arguments(*more: str, task: str = "write the notes") -> tuple[str, ...]:
    arguments = ("--loop-rules", "notes.rules.yaml", "--loop-agent", "python:agent:work", "--loop-alias", "notes")
    return ("--loop-task", task, *arguments, *more)


def run_at_terminal(project: Path, *words: str, answers: str, expected: int) -> str:
    """Return the output of pytest at a terminal on which these lines are typed, followed by the end of input."""
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


def read_events(project: Path) -> list[dict[str, Any]]:
    lines = (project / ".loop/notes/history.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


def read_state(project: Path) -> dict[str, Any]:
    data: dict[str, Any] = json.loads((project / ".loop/notes/run.json").read_text())
    return data


# -- gates


def ask_always(project: Path) -> None:
    (project / "pytest.ini").write_text("[pytest]\nloop_ask = always\n")


@pytest.mark.measured
def test_user_is_asked_after_each_iteration_and_before_success(project: Path) -> None:
    ask_always(project)
    output = run_at_terminal(project, *make_arguments("-vv"), answers="y\ny\n\nn\nshorter\n\n", expected=0)
    assert (
        "confirm these success criteria? (e edits them) [y/N] confirm max iterations = 4? (or another number) [y/N] "
        in output
    )
    assert "iteration 1 of 4 is over, 1 rule left: go on? [Y/n] " in output
    assert output.count("2 rules judged, and it passes: is it done? [Y/n] ") == 2
    assert "1. the review (fail, new)\n          shorter" in output
    assert "shorter" in (project / "prompts/3.txt").read_text()
    assert (project / "notes.md").read_text() == "hello, please, in short\n"
    reviews = [event["payload"] for event in read_events(project) if event["event"] == "review_done"]
    assert [(review["status"], review.get("feedback"), review["decision"]["action"]) for review in reviews] == [
        ("reject", "shorter", "retry"),
        ("approve", None, "proceed"),
    ]
    assert reviews[0]["decision"]["feedback"]["actionable_items"] == ["shorter"]
    assert read_state(project)["setup"]["draft"]["confirmed_by"] == "terminal"


@pytest.mark.thorough
def test_declining_an_iteration_stops_the_run(project: Path) -> None:
    ask_always(project)
    output = run_at_terminal(project, *make_arguments(), answers="y\ny\nn\n", expected=1)
    assert " · user_stop: " in output
    assert " · verdict RESEARCH\n" in output


@pytest.mark.thorough
def test_unanswered_review_is_asked_again_on_resume(project: Path) -> None:
    ask_always(project)
    output = run_at_terminal(project, *make_arguments(), answers="y\ny\n\n", expected=1)
    assert " · unconfirmed: " in output
    assert "question: The review is outstanding: is it done?\ncontinue: pytest-loop resume --run notes" in output
    again = run_at_terminal(project, "--loop-resume=notes", answers="y\n", expected=0)
    assert "done in " in again
    assert len(list((project / "prompts").iterdir())) == 2


@pytest.mark.thorough
def test_loop_yes_skips_all_questions(project: Path, run: Pytest) -> None:
    ask_always(project)
    run_at_terminal(project, *make_arguments(), answers="y\ny\n\n", expected=1)
    again = run("--loop-resume=notes", "--loop-yes")
    assert again.returncode == 0, again.stdout + again.stderr


@pytest.mark.thorough
@pytest.mark.measured
def test_run_that_waits_for_an_answer_is_saved_and_can_be_stopped(project: Path, run: Pytest) -> None:
    ask_always(project)
    ours, theirs = pty.openpty()
    os.write(ours, b"y\ny\n")
    history = project / ".loop/notes/history.jsonl"
    command = [sys.executable, "-m", "pytest", *make_arguments()]
    with subprocess.Popen(command, cwd=project, stdin=theirs, stdout=subprocess.PIPE, text=True) as waiting:
        while waiting.poll() is None and not (history.exists() and "evaluation_done" in history.read_text()):
            time.sleep(0.05)
        assert run("--loop-stop").returncode == 0
        output = waiting.communicate(timeout=120)[0]
    os.close(theirs)
    os.close(ours)
    assert "iteration 1 of 4 is over, 1 rule left: go on? [Y/n] " in output
    assert " · user_stop: " in output


def test_draft_of_medium_clarity_asks_at_every_gate(project: Path) -> None:
    (project / "notes.rules.yaml").write_text(
        "rules:\n  - {id: a.tone, description: It is kind, check: {judge: Is it kind?}}\n"
    )
    output = run_at_terminal(project, *make_arguments("--loop-artifact", "notes.md", "-v"), answers="n\n", expected=2)
    assert " of 10, colleague\n  outcome     1  a.tone, and no machine decides it\n" in output
    assert not (project / ".loop").exists()


@pytest.mark.thorough
def test_policy_decides_without_a_terminal(project: Path, run: Pytest) -> None:
    ask_always(project)
    refused = run(*make_arguments())
    assert refused.returncode == 4
    assert "there is no terminal to confirm this at" in refused.stderr
    done = run(*make_arguments("--loop-yes"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert read_state(project)["setup"]["draft"]["confirmed_by"] == "--loop-yes"
    assert not any(event["event"] == "review_done" for event in read_events(project))


@pytest.mark.thorough
def test_ini_file_may_skip_all_questions(project: Path, run: Pytest) -> None:
    (project / "pytest.ini").write_text("[pytest]\nloop_ask = never\n")
    done = run(*make_arguments())
    assert done.returncode == 0, done.stdout + done.stderr
    assert read_state(project)["setup"]["draft"]["confirmed_by"] == "loop_ask"
    (project / "pytest.ini").write_text("[pytest]\nloop_ask = sometimes\n")
    wrong = run(*make_arguments())
    assert wrong.returncode == 4
    assert "loop_ask: expected shape, always or never, found 'sometimes'" in wrong.stderr


# -- kinds of work


@pytest.mark.measured
def test_work_that_is_hard_to_undo_has_pre_checks(project: Path, run: Pytest) -> None:
    done = run(*make_arguments("--loop-yes", task="change the database schema until the notes are kind"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "hard to take back (database schema: others build on it), and lacks 2 must_not rules, found 0" in done.stdout
    assert "verdict MONITOR: it passes, and it is hard to take back" in done.stdout
    output = run_at_terminal(project, *make_arguments(task="change the database schema"), answers="n\n", expected=2)
    assert (
        "this is hard to take back, and lacks 2 must_not rules, found 0: confirm these success criteria all the same? (e edits them) [y/N] "
        in output
    )


@pytest.mark.parametrize(
    ("task", "words"),
    [
        ("fix the notes", "Find the cause before you change anything"),
        pytest.param("add notes about it", "Before you write something new, look for it", marks=pytest.mark.thorough),
        pytest.param("clean up the notes", "Delete before you redesign", marks=pytest.mark.thorough),
    ],
)
def test_prompt_begins_with_the_instruction_of_the_workflow(project: Path, run: Pytest, task: str, words: str) -> None:
    run(*make_arguments("--loop-yes", "--loop-max-iterations", "1", task=task))
    assert f"## First\n{words}" in (project / "prompts/1.txt").read_text()


# -- rules that the project states


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a shape file, whose agent fixes the code and saves its prompt."""
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
def run_in_shop(shop: Path, caller: PytestCaller) -> Pytest:
    """Return a function that runs pytest in the shop."""
    return partial(caller.call, folder=shop)


@pytest.fixture
def fix_shop(run_in_shop: Pytest) -> Pytest:
    """Return a function that starts a run which fixes the shop."""
    task = ("--loop-task", "make the shop right", "--loop-agent", "python:agent:work", "--loop-alias", "notes")
    return partial(run_in_shop, *task, "--loop-yes")


def test_shape_file_adds_rules_and_forbidden_changes(shop: Path, fix_shop: Pytest, run_in_shop: Pytest) -> None:
    done = fix_shop("-v")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"a\.shape\.the-total-is-a-sum +The total is a sum  \[.loop/shape/SHAPE.md:5\]", done.stdout)
    assert "a.must-not.grep-q-eval-shop-py" in done.stdout
    assert "test_shop.py::test_it" in done.stdout
    assert "inferred " not in done.stdout
    assert "project  FAIL" in done.stdout
    assert " of 10, colleague\n" in done.stdout
    assert "verdict SHIP" in done.stdout
    listed = run_in_shop("--loop-list")
    assert "shape" not in listed.stdout


def test_change_that_the_shape_file_forbids_stops_the_run(shop: Path, fix_shop: Pytest) -> None:
    (shop / "agent.py").write_text(
        "from pathlib import Path\ndef work(request):\n"
        "    Path('shop.py').write_text('def total(prices):\\n    return eval(\"sum(prices)\")\\n')\n"
    )
    done = fix_shop()
    assert done.returncode == 1
    assert " · must_not: " in done.stdout


def test_ai_factory_context_is_in_the_prompt_and_its_rules_judge(shop: Path, fix_shop: Pytest) -> None:
    factory = shop / ".ai-factory"
    (factory / "skill-context/aif-loop").mkdir(parents=True)
    (factory / "DESCRIPTION.md").write_text("A shop that sells bread.\n")
    (factory / "RULES.md").write_text("- Run `grep -q prices shop.py`\n- Prices are whole cents\n")
    (factory / "skill-context/aif-loop/SKILL.md").write_text(
        "### Totals\n**Rule**: `grep -q total shop.py`\n\nmax_iterations: 2\n"
    )
    done = fix_shop("-v")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search("b\\.project\\.totals +Totals", done.stdout)
    assert "note: .ai-factory/RULES.md: 1 rule that only an agent could judge" in done.stdout
    assert " · at most 2 iterations" in done.stdout
    prompt = (shop / "prompt.txt").read_text()
    assert "## What the project says of itself" in prompt
    assert "What this project is (.ai-factory/DESCRIPTION.md):\nA shop that sells bread." in prompt


@pytest.mark.thorough
@pytest.mark.measured
def test_sentences_without_a_judge_are_only_in_the_prompt(shop: Path, run_in_shop: Pytest) -> None:
    (shop / ".ai-factory").mkdir()
    (shop / ".ai-factory/RULES.md").write_text("- Prices are whole cents\n")
    (shop / "shop.py").write_text("def total(prices):\n    return sum(prices)\n")
    done = run_in_shop("--loop-task", "fix until green", "--loop-yes", "--loop-agent", "builtin")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "note: .ai-factory/RULES.md: 1 rule that only an agent could judge" in done.stdout


# -- sealed files


@pytest.mark.parametrize(
    ("task", "before", "edit"),
    [
        pytest.param(
            "fix shop.py until `make check` passes",
            {"Makefile": "check:\n\tfalse\n"},
            ("Makefile", "check:\n\ttrue\n"),
            marks=pytest.mark.thorough,
        ),
        pytest.param(
            f"fix shop.py until `{sys.executable} -m pytest -k total` passes",
            {"test_shop.py": "def test_total():\n    assert 0\n"},
            ("test_shop.py", "def test_total():\n    pass\n"),
            marks=pytest.mark.thorough,
        ),
        (
            "fix until `sh run.sh` passes",
            {"run.sh": "exit 1\n", "web/cart.test.js": "fails"},
            ("web/cart.test.js", "passes"),
        ),
    ],
    ids=["makefile", "tests of a command", "tests of another language"],
)
def test_files_that_a_command_judges_by_are_sealed(
    shop: Path, run_in_shop: Pytest, task: str, before: dict[str, str], edit: tuple[str, str]
) -> None:
    (shop / ".loop/shape/SHAPE.md").unlink()
    for name, text in before.items():
        (shop / name).parent.mkdir(exist_ok=True)
        (shop / name).write_text(text)
    (shop / "agent.py").write_text(
        f"from pathlib import Path\ndef work(request):\n    Path({edit[0]!r}).write_text({edit[1]!r})\n"
    )
    command = ["--loop-task", task, "--loop-agent", "python:agent:work", "--loop-yes", "--loop-max-iterations", "2"]
    done = run_in_shop(*command)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"sealed: {edit[0]}: was changed, and was put back" in done.stdout
    assert (shop / edit[0]).read_text() == before[edit[0]]


@pytest.mark.parametrize(
    ("check", "before", "edit"),
    [
        ("{command: make check}", {"Makefile": "check:\n\tfalse\n"}, ("Makefile", "check:\n\ttrue\n")),
        pytest.param(
            f"{{command: '{sys.executable} -m pytest -q -p no:cacheprovider unit'}}",
            {"unit/test_it.py": "def test_it():\n    assert 0\n"},
            ("unit/test_it.py", "def test_it():\n    pass\n"),
            marks=pytest.mark.thorough,
        ),
        (
            "{python: 'checks.deep:good'}",
            {"checks/deep.py": "def good(a, w):\n    return False\n", "checks/__init__.py": ""},
            ("checks/deep.py", "def good(a, w):\n    return True\n"),
        ),
    ],
    ids=["makefile", "tests of a command", "function"],
)
def test_files_that_user_rules_judge_by_are_sealed(
    shop: Path, fix_shop: Pytest, check: str, before: dict[str, str], edit: tuple[str, str]
) -> None:
    for name, text in before.items():
        (shop / name).parent.mkdir(exist_ok=True)
        (shop / name).write_text(text)
    (shop / "it.rules.yaml").write_text(f"rules: [{{id: a.x, description: x, check: {check}}}]\n")
    (shop / "agent.py").write_text(
        f"from pathlib import Path\ndef work(request):\n    Path({edit[0]!r}).write_text({edit[1]!r})\n"
    )
    done = fix_shop("--loop-rules", "it.rules.yaml", "--loop-workspace", "--loop-max-iterations", "2")
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"sealed: {edit[0]}: was changed, and was put back" in done.stdout


@pytest.mark.thorough
def test_new_module_that_shadows_pytest_is_removed(shop: Path, fix_shop: Pytest) -> None:
    command = f"{sys.executable} -m pytest -q -p no:cacheprovider unit"
    (shop / "unit").mkdir()
    (shop / "unit/test_it.py").write_text("def test_it():\n    assert 0\n")
    (shop / "it.rules.yaml").write_text(f"rules: [{{id: a.x, description: x, check: {{command: {command!r}}}}}]\n")
    (shop / "agent.py").write_text(
        "from pathlib import Path\ndef work(request):\n    Path('pytest.py').write_text('')\n    Path('sum.py').touch()\n"
    )
    done = fix_shop("--loop-rules", "it.rules.yaml", "--loop-workspace", "--loop-max-iterations", "2")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "sealed: pytest.py: was new, and was removed" in done.stdout
    assert not (shop / "pytest.py").exists()
    assert (shop / "sum.py").exists()


@pytest.mark.thorough
def test_task_that_needs_tests_may_add_but_not_change_them(shop: Path, run_in_shop: Pytest) -> None:
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
    done = run_in_shop(*command)
    assert (shop / "tests/test_new.py").exists(), done.stdout + done.stderr
    assert (shop / "tests/test_old.py").read_text() == "def test_old():\n    pass\n"
    assert not (shop / "tests/conftest.py").exists()


def test_run_without_rules_for_its_change_is_refused(shop: Path, run_in_shop: Pytest) -> None:
    (shop / ".loop/shape/SHAPE.md").unlink()
    (shop / "shop.py").write_text("def total(prices):\n    return sum(prices)\n")
    command = ["--loop-task", "add a discount function to shop.py", "--loop-agent", "builtin", "--loop-yes"]
    done = run_in_shop(*command)
    assert done.returncode == 4
    assert "every rule passes before the first edit, so nothing measures" in done.stderr


@pytest.mark.measured
def test_vague_task_is_refused_although_there_are_tests(shop: Path, run_in_shop: Pytest) -> None:
    (shop / ".loop/shape/SHAPE.md").unlink()
    command = ["test_shop.py", "--loop-task", "make it better", "--loop-agent", "builtin", "--loop-yes"]
    done = run_in_shop(*command)
    assert done.returncode == 4
    assert "this cannot be measured: make it better" in done.stderr


# -- the end, and the status


@pytest.mark.thorough
def test_end_lists_the_evidence_of_the_verdict(project: Path, run: Pytest) -> None:
    (project / "notes.rules.yaml").write_text(
        RULES + "  - {id: b.seen, description: Somebody has seen it, check: {manual: Have you seen it?}}\n"
    )
    held = run(*make_arguments("--loop-yes"))
    assert held.returncode == 1
    assert "verdict RESEARCH: not confirmed yet: b.seen" in held.stdout
    done = run("--loop-resume=notes", "--loop-confirm", "b.seen", "--loop-json", "result.json", "-v")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "verdict MONITOR: it passes, and b.seen was judged by reading only" in done.stdout
    assert "  observation  2 of 2 pass: a.words.hello, a.words.please" in done.stdout
    assert "  code review  1 of 1 pass: b.seen" in done.stdout
    verdict = json.loads((project / "result.json").read_text())["verdict"]
    assert verdict["word"] == "MONITOR"
    assert verdict["evidence"]["observation"] == {"passed": 2, "total": 2}


@pytest.mark.thorough
def test_run_stopped_by_a_breaker_can_be_resumed_as_it_says(project: Path, run: Pytest) -> None:
    (project / "agent.py").write_text("def work(request):\n    return f'hello {request.iteration}\\n'\n")
    done = run(*make_arguments("--loop-yes", "--loop-max-iterations", "9"))
    assert " · same_error: " in done.stdout
    assert "progress: the same rules fail for 3 iterations, with the same message" in done.stdout
    assert "continue: pytest-loop resume --run notes --max-iterations 13" in done.stdout
    status = run("--loop-status", "-v")
    assert "breakers: stuck 3 of 5, same_error 3 of 3, thrashing 0 of 5, stagnation 0 of 2" in status.stdout
    (project / "agent.py").write_text(AGENT)
    (project / "prompts").mkdir()
    (project / "prompts/before").write_text("")
    again = run("--loop-resume=notes", "--loop-max-iterations", "13", "--loop-yes")
    assert again.returncode == 0, again.stdout + again.stderr


@pytest.mark.thorough
@pytest.mark.measured
def test_status_block_is_printed_for_other_loops(project: Path, run: Pytest) -> None:
    done = run(*make_arguments("--loop-yes", "--loop-status-block"))
    blocks = done.stdout.split("---LOOP_STATUS---\n")[1:]
    assert len(blocks) == 3
    assert blocks[0].startswith('EXIT_SIGNAL: false\nCRITERIA: {"a.words.hello": {"met": true, ')
    assert "STUCK_COUNT: 0\nNEXT: critique_done of iteration 1\n---END_STATUS---\n" in blocks[0]
    assert "EXIT_SIGNAL: true" in blocks[2]
    status = run("--loop-status", "--loop-status-block")
    assert status.stdout.startswith("---LOOP_STATUS---\nEXIT_SIGNAL: true\n")
