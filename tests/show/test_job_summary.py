"""The job summary is complete, short, and never interprets foreign text."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import EvaluationDone
from pytest_loop.core.judging.assessment import assess
from pytest_loop.core.machine.progress import compute_evaluation_changes
from pytest_loop.core.model.rules import Evidence, Finding, Outcome, Phase, Severity
from pytest_loop.core.model.run_criteria import RunCriteria, RunRule
from pytest_loop.core.model.run_state import RunState, Stop, Task
from pytest_loop.core.model.vocabulary import Status
from pytest_loop.core.text.lengths import shorten
from pytest_loop.show.job_summary import VARIABLE, append_summary, format_code, list_evaluations, render_summary

HOSTILE = [
    "<script>alert(1)</script>", "[click](https://evil.example)", "![x](https://evil.example/x.png)", "`` ` ```", "`",
    "@everyone", "a | b | c", "\n\n# Heading\n", "<!-- gone", "</details>", "https://evil.example", "\\`", "<img src=x>",
    "&lt;b&gt;", "**bold** _it_", "* list\n- list", "```\nfence", "~~~", "\x1b[31mred\x1b[0m", "\u202egnp.exe", "$`x`$", "",
]  # fmt: skip
MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable("table")


class SummaryStory:
    """A run built from evaluations and their failing rules."""

    def __init__(self, *ids: str, **fields: Any) -> None:
        rules = tuple(RunRule(id=name, description=name) for name in ids)
        fields.setdefault("task", Task(prompt="fix until green"))
        self.state = RunState(run_id="green-1", task_alias="green", criteria=RunCriteria(rules=rules), **fields)
        self.events: list[Event] = []

    def evaluate(self, failing: Mapping[str, str] | Iterable[str] = (), **fields: Any) -> SummaryStory:
        messages = failing if isinstance(failing, Mapping) else dict.fromkeys(failing, "no")
        reported = {
            rule.id: [Evidence(outcome=Outcome.FAILED, findings=(Finding(expected="", found=messages[rule.id]),))]
            if rule.id in messages
            else [Evidence(outcome=Outcome.PASSED)]
            for rule in self.state.criteria.rules
        }
        evaluation = assess(
            self.state.criteria, self.state.phase, reported, f"{len(self.events):08}", self.state.evaluation
        )
        self.add(
            "evaluation_done",
            evaluation.model_dump(mode="json", exclude_defaults=True) | {"score": evaluation.score} | fields,
        )
        payload = self.events[-1].payload
        assert isinstance(payload, EvaluationDone)
        self.state = self.state.replace(**compute_evaluation_changes(self.state, payload))
        return self

    def add(self, kind: str, payload: dict[str, Any]) -> SummaryStory:
        state = self.state
        event = Event(
            ts="", run_id="x", iteration=state.iteration, phase=state.phase, step="", event=kind, payload=payload
        )
        self.events.append(event)
        return self

    def advance(self) -> SummaryStory:
        self.state = self.state.model_copy(update={"iteration": self.state.iteration + 1})
        return self

    def stop(self, reason: str, status: Status = Status.STOPPED) -> SummaryStory:
        stop = Stop(passed=status is Status.COMPLETED, reason=reason)
        self.state = self.state.model_copy(update={"status": status, "stop": stop})
        return self

    @property
    def text(self) -> str:
        return render_summary(self.state, self.events)


def parse_inline(text: str) -> list[Token]:
    return [child for token in MARKDOWN.parse(text) for child in token.children or [token]]


def test_stopped_run_shows_fixes_blockers_and_resume_command() -> None:
    story = SummaryStory("a", "b", "c", max_iterations=3)
    story.evaluate({"a": "KeyError: 'x'", "b": "no", "c": "no"}).add("critique_done", {})
    story.advance().evaluate({"a": "KeyError: 'x'"}).advance().evaluate({"a": "KeyError: 'x'", "c": "again"})
    assert story.stop("iteration_limit").text == (
        "## pytest-loop: stopped\n"
        "\n"
        "`green` is stopped because of `iteration_limit` in iteration 3 of 3, phase A. The task: `fix until green`\n"
        "\n"
        "| iteration | phase | score | verdict | rules that pass | fixed | broken |\n"
        "|---:|:---:|---:|:---:|---:|---:|---:|\n"
        "| 1 | A | 0 | fail | 0 of 3 | 0 | 0 |\n"
        "| 2 | A | 0.666 | fail | 2 of 3 | 2 | 0 |\n"
        "| 3 | A | 0.333 | fail | 1 of 3 | 0 | 1 |\n"
        "\n"
        "- iteration 2: fixed `b`, `c`\n"
        "- iteration 3: passed before and fail now: `c`\n"
        "\n"
        "### Failing: 2 rules\n"
        "\n"
        "- `a`: `KeyError: 'x'`\n"
        "- `c`: `again`\n"
        "\n"
        "### What comes next\n"
        "\n"
        "- pattern: moving failure: edits break what passed before\n"
        "- question: `Is another round worth it, or is a asking for the wrong thing?`\n"
        "- answer: `pytest-loop answer TEXT --run green`\n"
        "- continue: `pytest-loop resume --run green --max-iterations 7`\n"
    )


def test_stop_that_only_an_answer_reopens_shows_no_other_command() -> None:
    text = SummaryStory("a").evaluate(["a"]).stop("must_not", Status.STOPPED).text
    assert text.endswith("- answer: `pytest-loop answer TEXT --run green`\n")


def test_completed_run_has_no_resume_command() -> None:
    story = SummaryStory("a", "b").evaluate(["a"]).advance().evaluate(["b"])
    story.state = story.state.model_copy(update={"phase": Phase.B})
    text = story.evaluate().stop("threshold_reached", Status.COMPLETED).text
    assert text.startswith("## pytest-loop: completed\n")
    assert "| 2 | B | 1 | pass | 2 of 2 | 1 | 0 |\n" in text
    assert "- iteration 2: fixed `a`; passed before and fail now: `b`\n" in text
    assert text.endswith("- iteration 2: fixed `b`\n")


def test_run_without_evaluation_shows_its_position() -> None:
    assert SummaryStory("a").text == (
        "## pytest-loop: running\n"
        "\n"
        "`green` is running in iteration 1 of 4, phase A. The task: `fix until green`\n"
        "\n"
        "### What comes next\n"
        "\n"
        "- continue: `pytest-loop resume --run green`\n"
    )


def test_one_blocking_rule_is_singular_and_may_lack_a_message() -> None:
    story = SummaryStory("a").evaluate(failed=[{"id": "a", "severity": Severity.FAIL, "message": ""}])
    assert "### Failing: 1 rule\n\n- `a`\n" in story.text


def test_void_evaluation_fixes_nothing_and_shows_findings() -> None:
    finding = {"kind": "changed", "path": "tests/conftest.py", "detail": "it was put back"}
    story = (
        SummaryStory("a", "b")
        .evaluate(["a", "b"])
        .advance()
        .evaluate(void=True, findings=[finding, {"kind": "canary", "rule": "a"}])
    )
    assert [evaluation.fixed for evaluation in list_evaluations(story.events)] == [(), ()]
    assert "| 2 | A | 1 | void | 2 of 2 | 0 | 0 |\n" in story.text
    assert (
        "### The judge was tampered with\n\n- `changed` `tests/conftest.py` `it was put back`\n- `canary` `a`\n"
        in story.text
    )
    assert [evaluation.fixed for evaluation in list_evaluations(story.advance().evaluate(["a"]).events)] == [
        (),
        (),
        ("b",),
    ]


def test_foreign_evaluations_are_omitted() -> None:
    story = SummaryStory("a").add("evaluation_done", {"score": "high"}).evaluate(["a"])
    assert len(list_evaluations(story.events)) == 1


def test_score_is_never_rounded_up() -> None:
    assert "| 0.899 |" in SummaryStory("a").evaluate(["a"], score=0.89999).text


# -- untrusted text


@given(st.sampled_from(HOSTILE) | st.text(max_size=60))
@example("`")
@example("a``b`")
def test_code_span_holds_exactly_its_text(text: str) -> None:
    tokens = [
        token
        for token in parse_inline(f"- {format_code(text)}: {format_code(text)}")
        if token.type not in ("text", "list_item_open")
    ]
    spans = [token for token in tokens if token.type == "code_inline"]
    assert [token.content for token in spans] == [shorten(text, 160) or " "] * 2
    assert {token.tag for token in tokens} <= {"code", "ul", "li", "p"}


@pytest.mark.parametrize("text", HOSTILE)
def test_foreign_text_is_never_markdown_or_html(text: str) -> None:
    finding = {"kind": text, "path": text, "rule": text, "detail": text}
    story = SummaryStory(f"x{text}", f"y{text}", task=Task(prompt=text), blocked={"rule": text, "reason": text})
    story.evaluate([f"y{text}"]).advance()
    story.evaluate({f"x{text}": text}, findings=[finding], assumptions=[text]).stop("blocked")
    for reason in ("blocked", "unconfirmed", f"own {text}"):
        types = {token.type for token in parse_inline(story.stop(reason).text)}
        assert not types & {"html_inline", "html_block", "link_open", "image", "fence", "strong_open", "em_open", "hr"}
        assert "<script" not in MARKDOWN.render(story.text)
        headings = [token for token in MARKDOWN.parse(story.text) if token.type == "heading_open"]
        assert len(headings) == 4
        tables = [token for token in MARKDOWN.parse(story.text) if token.type == "td_open"]
        assert len(tables) == 2 * 7


def test_messages_stay_readable() -> None:
    story = SummaryStory("a").evaluate({"a": HOSTILE[0]})
    assert HOSTILE[0] in html.unescape(MARKDOWN.render(story.text))


def test_summary_is_never_long() -> None:
    names = [f"tests/test_{number}.py::test_{'漢' * 9_000}" for number in range(40)]
    findings = [{"kind": "x" * 9_000, "path": "y" * 9_000, "detail": "z" * 9_000}] * 200
    story = SummaryStory(*names, task=Task(prompt="x" * 1_000_000), max_iterations=99)
    for number in range(50):
        story.evaluate(dict.fromkeys(names[number % 2 :: 2], "long " * 9_000), findings=findings).advance()
    text = story.stop("iteration_limit").text
    assert "30 earlier evaluations are left out.\n" in text
    assert text.count("- and ") == 2
    assert " and 15 more; passed before" in text
    assert len(text.encode()) < 256 * 1024


# -- the file


def test_summary_is_appended_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "summary.md"
    path.write_text("before\n", encoding="utf-8")
    assert append_summary("# one \ud800\n", {VARIABLE: str(path)}) == ""
    assert append_summary("# two\n", {VARIABLE: str(path)}) == ""
    assert path.read_text(encoding="utf-8") == "before\n# one ?\n\n# two\n\n"


@pytest.mark.parametrize("environment", [{}, {VARIABLE: ""}])
def test_nothing_is_written_outside_of_github(environment: dict[str, str]) -> None:
    assert append_summary("# one\n", environment) == ""


def test_summary_that_cannot_be_written_returns_a_message(tmp_path: Path) -> None:
    assert append_summary("x", {VARIABLE: str(tmp_path)}) == "the job summary could not be written: Is a directory"
    assert append_summary("x", {VARIABLE: "a\0b"}) == "the job summary could not be written: embedded null byte"
