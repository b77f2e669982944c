"""The report is complete, self-contained, and never interprets foreign text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pytest_loop.core.machine.run_machine import RUN_MACHINE
from pytest_loop.core.machine.stop_reasons import find_row
from pytest_loop.core.model.evaluation import SealFinding
from pytest_loop.core.model.rules import Finding, Phase, Severity
from pytest_loop.core.model.run_criteria import RunCriteria, RunRule
from pytest_loop.core.model.run_setup import Origin
from pytest_loop.core.model.run_state import RunState, Stop, Task
from pytest_loop.core.model.vocabulary import Kind, Reason, Status, Target
from pytest_loop.core.reporting.iteration_records import build_records
from pytest_loop.show.html.diff_view import DiffRenderer
from pytest_loop.show.html.report_page import render_report
from pytest_loop.show.html.rule_grid import OMITTED, build_grid
from pytest_loop.show.html.texts import reveal_lines
from pytest_loop.show.html.timeline import build_timeline
from pytest_loop.show.html.verdict_panel import build_verdict_panel
from pytest_loop.show.job_summary import list_evaluations
from pytest_loop.show.run_tables import describe_trajectory
from tests.event_factory import make_event
from tests.show.runs import HOSTILE, MOMENT, RunStory, build_hostile_run, build_large_run, build_small_run

GOLDEN = Path(__file__).parent / "golden" / "report.html"


class Page(HTMLParser):
    """A parsed page: elements in order, the text of each, and the data."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.source = text
        self.tags: list[tuple[str, tuple[str, ...]]] = []
        self.texts: list[tuple[str, str]] = []
        self.attributes: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, tuple(name for name, _ in attrs)))
        self.attributes += [value or "" for _, value in attrs]
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        self.texts.append((self._open[-1] if self._open else "", data))

    def list_texts(self, tag: str) -> list[str]:
        return [text for own, text in self.texts if own == tag]

    @property
    def text(self) -> str:
        """The visible text."""
        return " ".join(" ".join(text for tag, text in self.texts if tag not in ("script", "style")).split())

    @property
    def data(self) -> Any:
        return json.loads(next(text for text in self.list_texts("script") if text.startswith("{")))


def render_page(story: RunStory, status: str = "") -> Page:
    return Page(render_report(story.state, story.events, status))


def read_rows(page: Page) -> dict[str, str]:
    return {rule["id"]: rule["cells"] for rule in page.data["rules"]}


# -- content


def test_verdict_and_distance_come_first() -> None:
    page = render_page(build_small_run())
    assert [text for tag, text in page.texts if tag in ("h1", "h2")] == [
        "Stopped without success", "Failing rules", "Warnings: 1", "The question", "The change", "Score", "Rules",
        "Timeline", "Time and cost", "About this run",
    ]  # fmt: skip
    assert "The maximum number of iterations is reached. iteration_limit" in page.text
    assert "rules that pass 2 of 4 score 0.625 threshold 0.9 in phase B distance 0.275 to the threshold" in page.text
    assert "Failing rules b.speed 3 s" in page.text


def test_completed_run_has_no_escalation_and_no_resume_command() -> None:
    story = RunStory("a", "b").evaluate(["a"]).refine().evaluate().add(Kind.PHASE_SWITCHED).end("threshold_reached")
    page = render_page(story)
    assert page.list_texts("h1") == ["Completed"]
    assert "rules that pass 2 of 2 score 1 threshold 0.9 iteration 2" in page.text
    assert "The question" not in page.list_texts("h2")
    assert "Continue with:" not in page.text
    assert "Failing rules" not in page.text


def test_score_and_distance_add_up_to_the_threshold() -> None:
    shown = build_verdict_panel(RunStory(*"abcdefghi").evaluate("abcd").state)
    assert (shown.score, shown.gap, shown.threshold) == ("0.555", "0.245", "0.8")


@pytest.mark.parametrize("reason", [*Reason, None, "enough"])
def test_every_stop_reason_is_explained(reason: Reason | str | None) -> None:
    state = build_small_run().state
    word = getattr(reason, "value", reason) or ""
    status = find_row(reason).status if isinstance(reason, Reason) else Status.STOPPED if reason else Status.RUNNING
    stop = state.stop.model_copy(update={"reason": word, "passed": status is Status.COMPLETED})
    stopped = state.model_copy(update={"status": status, "stop": stop})
    assert (f"<code>{word}</code></p>" in render_report(stopped, build_small_run().events)) == bool(word)
    assert build_verdict_panel(stopped).explanation.endswith(".") == bool(word)


@pytest.mark.parametrize(
    ("story", "text"),
    [
        (RunStory("a", target=Target.ARTIFACT), "There is nothing to judge yet."),
        (RunStory("a", artifact_hash="ab" * 32), "What there is has not been judged yet."),
        (RunStory("a").evaluate(["a"]).refine(), "the score is that of the version before."),
        (RunStory("a").evaluate(["a"], void=True), "The last evaluation is void"),
    ],
    ids=["not created", "not judged", "stale", "void"],
)
def test_outdated_score_is_marked(story: RunStory, text: str) -> None:
    assert text in render_page(story).text


def test_open_run_shows_its_status_and_resume_command() -> None:
    page = render_page(RunStory("a"), "running (crashed)")
    assert "Not over yet" in page.list_texts("h1")
    assert "rules that pass" not in page.text
    assert "status running (crashed)" in page.text
    assert "Nothing was judged yet." in page.text
    assert "No agent has changed anything." in page.text
    assert page.list_texts("pre") == ["pytest-loop resume --run green", "pytest-loop history --run green"]


def test_answers_of_people_are_in_the_timeline() -> None:
    page = render_page(build_small_run().add(Kind.ANSWERED, text="use a number", question="which?"))
    assert "Your answer which? use a number" in page.text
    assert "Your answer" not in render_page(build_small_run().add(Kind.ANSWERED)).text


def test_chart_marks_thresholds_phase_switch_and_best_and_has_a_text() -> None:
    page = render_page(build_small_run())
    labels = page.list_texts("text")
    assert [label for label in labels if label in ("A 0.8", "B 0.9", "phase A", "best", "2A", "2B")] == [
        "phase A", "A 0.8", "B 0.9", "2A", "best", "2B",
    ]  # fmt: skip
    assert page.list_texts("desc") == [
        "Score over 3 evaluations: 0 in iteration 1, 1 in iteration 2, 0.625 in iteration 2. The best is iteration 2."
    ]
    assert "iteration 2, phase B: score 0.625, fails, 2 of 4 rules pass, the best" in page.list_texts("title")


def test_run_with_phase_b_only_has_one_threshold() -> None:
    labels = render_page(
        RunStory(RunRule(id="a", description="a", phase=Phase.B), phase=Phase.B).evaluate(["a"])
    ).list_texts("text")
    assert [label for label in labels if label in ("A 0.8", "B 0.9")] == ["B 0.9"]


def test_chart_of_a_long_run_drops_labels() -> None:
    story = RunStory("a")
    for _ in range(59):
        story.evaluate(["a"]).refine()
    page = render_page(story.evaluate(["a"]))
    labels = [text for text in page.list_texts("text") if text.isdigit() and int(text) > 1]
    assert labels[:2] == ["3", "5"]
    assert "20 more" not in page.list_texts("desc")[0]
    assert "and 40 more" in page.list_texts("desc")[0]


def test_void_evaluation_and_signs_of_tampering_are_shown() -> None:
    sign = SealFinding(kind="sealed", path="tests/test_a.py", detail="was changed, and was put back")
    story = RunStory("a").evaluate(["a"], void=True, findings=[sign.model_dump()]).refine().evaluate()
    page = render_page(story)
    assert "iteration 1: sealed: tests/test_a.py was changed, and was put back" in page.text
    assert any("void" in text for text in page.list_texts("title"))
    assert page.data["rounds"][0]["void"]


def test_grid_lists_failing_rules_first_with_their_findings() -> None:
    page = render_page(build_small_run())
    assert read_rows(page) == {"b.speed": "  F", "b.style": "  W", "a.totals": "F..", "a.names": "F.."}
    by_id = {rule["id"]: rule for rule in page.data["rules"]}
    assert page.data["says"][by_id["a.totals"]["says"][0]] == [
        [["12", "11", "shop.py:3", "    def total():\n>       return 11"]],
        0,
    ]
    issue = page.data["issues"][page.data["rounds"][0]["issues"]["a.totals"]]
    assert issue["fix"] == "Make this true: Totals are right"
    assert [each["label"] for each in page.data["rounds"]] == ["1", "2A", "2B"]
    assert by_id["a.totals"]["description"] == "Totals are right"


def test_repeated_finding_is_stored_once() -> None:
    story = RunStory("a", "b")
    for text in ("no", "no", "never", "no"):
        story.evaluate({"a": text}).refine()
    page = render_page(story)
    assert page.data["rules"][0]["says"] == [0, 2, 1, 1, 0, 1]
    assert [each[0][0][1] for each in page.data["says"]] == ["no", "never"]


def test_info_rules_and_rules_that_are_not_judged_have_their_own_cells() -> None:
    rules: list[RunRule | str] = [RunRule(id="i", description="i", severity=Severity.INFO, weight=0), "x"]
    story = RunStory(*rules).evaluate({"i": "no"})
    story.events.append(
        make_event(story.state, "critique_done", {"issues": [{"rule_id": 5}]}, MOMENT)
    )  # another tool's
    assert read_rows(render_page(story)) == {"i": "i", "x": "."}
    result = {"id": "x", "verdict": "na", "details": "nobody has confirmed it"}
    passed = {"id": "y", "verdict": "pass"}
    broken = {"id": "z", "verdict": "error", "details": "its tool is missing"}
    assert read_rows(render_page(RunStory("z").evaluate(rule_results=[broken]))) == {"z": "E"}
    page = render_page(RunStory("x", "y").evaluate(rule_results=[result, passed]))
    assert read_rows(page) == {"x": "-", "y": "."}
    assert [rule["says"] for rule in page.data["rules"]] == [[0, 1], []]


def test_complaints_of_other_tools_are_shown() -> None:
    story = RunStory("known").add(
        Kind.EVALUATION_DONE,
        score=0.5,
        passed=False,
        failed=[{"id": "foreign", "message": "is wrong"}],
        warnings=[{"id": "known", "severity": "warn"}],
    )
    page = render_page(story)
    assert read_rows(page) == {"foreign": "F", "known": "W"}
    assert page.data["says"][page.data["rules"][0]["says"][0]] == [[["", "is wrong", "", ""]], 0]


def test_oldest_texts_are_omitted_if_there_is_no_room() -> None:
    story = RunStory("a")
    for number in range(5):
        text = Finding(expected="", found=f"{number}" * 50, detail="x" * 90)
        story.evaluate({"a": text}).refine(diff="--- a/x\n+++ b/x\n@@ -1 +1 @@\n-a\n+b")
    data = build_grid(story.state, list_evaluations(story.events), story.events, room=450, limit=4)
    assert data["earlier"] == 1
    assert data["rules"][0]["says"] == [-1, 1, 2, 1, 1, 1, 0, 1]
    assert [each[0][0][3] for each in data["says"]] == ["x" * 90, "x" * 90, OMITTED]
    iterations = build_timeline(story.events, (), DiffRenderer(room=4))
    assert [each.edits[0].diff.is_omitted for each in iterations] == [False, False, True, True, True]


# -- edits, reports, cost


def test_added_and_removed_lines_are_marked() -> None:
    page = render_page(build_small_run())
    assert '<ins data-n="2">    <span class="y-k">return</span> <span class="y-m">12</span></ins>' in page.source
    assert "shop.py" in page.list_texts("code")
    assert "Editing by scripted +2 −2 2.0 s" in page.text  # noqa: RUF001 - a minus sign


def test_whole_change_comes_before_the_score() -> None:
    story = build_small_run()
    diff = "--- a/shop.py\n+++ b/shop.py\n@@ -1 +1 @@\n-a = 1\n+a = 2"
    page = Page(render_report(story.state, story.events, change=diff))
    assert page.text.index("1 file changed") < page.text.index("Score over iterations")
    assert diff in page.list_texts("template")
    assert "the text" in Page(render_report(story.state, story.events, document="the text")).list_texts("pre")


def test_prompts_answers_and_origin_are_shown() -> None:
    story = RunStory("a", origin=Origin(command="pytest -q", revision="abc", versions={"Python": "3.12"}))
    story.evaluate(["a"]).refine(prompt="Fix it", answer="Fixed", report="found it")
    asked = {"checks": [], "prompt": "Prepare", "agent": "claude"}
    story.events.append(make_event(story.state, "checks_prepared", asked, MOMENT))
    page = render_page(story)
    assert [text for text in page.list_texts("pre") if text.startswith("Fix")] == ["Fixed", "Fix it"]
    assert "Preparing checks by claude Prompt Prepare" in page.text
    assert "git revision abc Python 3.12 Command line pytest -q" in page.text


def test_truncated_diff_of_several_files_is_parsed() -> None:
    diff = "--- a/x\n+++ b/x\n@@ -1,9 +1,9 @@\n-a\n[... 8 more lines of this diff left out ...]\n--- a/y\n+++ /dev/null\n@@ -1 +0,0 @@\n-b\n\\ No newline"
    page = render_page(RunStory("a").evaluate(["a"]).refine(diff=diff))
    assert page.list_texts("del") == ["a", "b"]
    assert "[... 8 more lines of this diff left out ...]" in page.list_texts("b")


@pytest.mark.parametrize(
    ("payload", "text"),
    [
        ({}, "The change was not written down: 6b86b273 became d4735e3a."),
        ({"artifact_hash": ""}, "The change was not written down: 6b86b273 became unknown."),
        ({"artifact_hash": hashlib.sha256(b"1").hexdigest()}, "nothing was changed"),
    ],
)
def test_edit_without_a_diff_shows_the_known_facts(payload: dict[str, Any], text: str) -> None:
    story = RunStory("a").evaluate(["a"]).refine()
    at = next(number for number, event in enumerate(story.events) if event.event == "refinement_done")
    edit = story.events[at]
    story.events[at] = edit.model_copy(update={"payload": edit.payload.model_copy(update=payload)})
    assert text in render_page(story).text


def read_ledger(story: RunStory) -> list[str]:
    source = render_report(story.state, story.events)
    body = source[source.index('id="cost"') :]
    rows = re.findall(r"<tr[^>]*>(.*?)</tr>", body[: body.index("</table>")], re.DOTALL)
    return [" ".join(re.sub(r"<[^>]+>", " ", row).split()) for row in rows][1:]


def test_unknown_usage_is_shown_as_unknown_not_zero() -> None:
    story = RunStory("a").evaluate(["a"]).refine()
    assert read_ledger(story) == [
        "all steps 3.5 s",
        "1 judging - 1.5 s",
        "1 editing scripted 2.0 s",
    ]
    assert "No agent reported tokens or costs." in render_page(story).text


def test_reported_usage_is_summed_and_partial_sums_are_marked() -> None:
    story = (
        RunStory("a", agents=("one", "two")).evaluate(["a"]).refine(agent="one", usage={"tokens": 0, "cost_usd": 0.0})
    )
    assert read_ledger(story)[0] == "all steps 3.5 s 0 USD"
    story.evaluate(["a"]).refine(usage={"tokens": 1500, "cost_usd": 0.25}).evaluate(["a"]).refine(usage={"tokens": 1})
    assert read_ledger(story)[0] == "all steps 10.5 s 1,501 at least 0.25 USD"
    assert [row for row in read_ledger(story) if "editing" in row] == [
        "1 editing one 2.0 s 0 0 USD",
        "2 editing unknown 2.0 s 1,500 0.25 USD",
        "3 editing unknown 2.0 s 1 unknown",
    ]


def test_usage_of_judges_is_shown() -> None:
    story = RunStory(RunRule(id="a", description="a", check="It reads well"), agents=("one", "two"))
    story.add(Kind.CHECKS_PREPARED, checks=[{"rule_id": "a"}], seconds=0.5, agent="claude")
    story.evaluate(["a"], seconds=None, agent="claude").refine(usage={"tokens": 5}).evaluate(usage={"cost_usd": 1})
    assert [row for row in read_ledger(story)[1:] if "judging" in row or "preparing" in row] == [
        "1 preparing checks claude 500 ms unknown unknown",
        "1 judging claude unknown unknown unknown",
        "2 judging unknown 1.5 s unknown 1 USD",
    ]


def test_parallel_steps_are_timed_once() -> None:
    story = RunStory(RunRule(id="a", description="a", check="It reads well"), target=Target.ARTIFACT)
    story.add(Kind.PLAN_CREATED, plan=["Write it"], seconds=0.0)
    story.add(Kind.ARTIFACT_CREATED, artifact_hash="ab" * 32, seconds=0.0)
    story.add(Kind.CHECKS_PREPARED, checks=[], seconds=4.0)
    assert "1 writing scripted with preparing checks" in read_ledger(story)


def test_reports_of_agents_and_errors_are_shown() -> None:
    story = build_small_run()
    assert "looked for the sum\nmended one line" in render_page(story).list_texts("pre")
    story = RunStory("a").evaluate(["a"]).add(Kind.CRITIQUE_DONE, issues=[])
    story.add(Kind.PHASE_ERROR, step="REFINE", reason="no answer", agent="scripted", seconds=3)
    story.add(Kind.PHASE_ERROR, step="REFINE", reason="no answer again", final=True).end("phase_error")
    page = render_page(story)
    assert page.list_texts("h1") == ["Failed"]
    assert "Editing by scripted failed no answer" in page.text
    assert "last error no answer again" in page.text
    assert "1 editing (failed) scripted 3.0 s" in read_ledger(story)


def test_claim_assumption_and_held_out_score_are_shown() -> None:
    story = RunStory("a").evaluate(["a"], assumptions=["c.by.hand"], held_out=0.5)
    story.add(Kind.CRITIQUE_DONE, issues=[])
    story.add(Kind.REFINEMENT_DONE, blocked={"rule": "a", "reason": "it contradicts b"})
    page = render_page(story.end("blocked"))
    assert "the agent says a cannot be met: it contradicts b" in page.text
    assert "Waits for your confirmation c.by.hand" in page.text
    assert "held out 0.5 by rules that no agent has seen" in page.text


@pytest.mark.parametrize(
    ("scores", "text"),
    [
        ((0, 4), ""),
        ((4, 0), "The last iteration is worse than iteration 1."),
        ((0, 2, 4, 8), "Most iterations raised the score."),
        ((8, 4, 2, 0), "Most iterations lowered the score. The last iteration is worse than iteration 1."),
        ((4, 4, 4, 4), "Most iterations changed the score by no more than 0.02."),
        (
            (4, 8, 4, 8, 4),
            "Some iterations raised the score, others did not. The last iteration is worse than iteration 2.",
        ),
    ],
)
def test_trajectory_is_shown_from_three_scores_on(scores: tuple[int, ...], text: str) -> None:
    names = [f"r{number}" for number in range(9)]
    story = RunStory(*names)
    for passing in scores:
        story.evaluate(names[passing:]).refine()
    assert describe_trajectory(story.state, build_records(story.state, story.events)) == text


# -- a self-contained page


def test_page_is_self_contained_and_runs_only_its_own_script() -> None:
    source = render_report(build_small_run().state, build_small_run().events)
    assert not re.findall(r"https?:|src=|@import|url\(|<link|<iframe", source)
    page = Page(source)
    scripts = page.list_texts("script")
    assert len(scripts) == 2
    digest = base64.b64encode(hashlib.sha256(scripts[1].encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    assert policy in page.attributes


def test_tables_sections_and_drawings_are_labelled() -> None:
    source = render_report(build_small_run().state, build_small_run().events)
    assert source.count("<section") == len(re.findall(r'<section aria-labelledby="(\w+)"', source))
    for name in re.findall(r'aria-labelledby="([\w -]+)"', source):
        assert all(f'id="{each}"' in source for each in name.split())
    assert source.count("<svg") == source.count('role="img"')
    assert not re.findall(r"<th(?![^>]*scope=)[ >]", source)


def test_page_equals_the_golden_file() -> None:
    source = render_report(build_small_run().state, build_small_run().events)
    shown = source[source.index("<body>") : source.rindex("<script>")]
    assert shown == GOLDEN.read_text(encoding="utf-8")


def test_page_with_many_rules_and_iterations_is_small() -> None:
    story = build_large_run(200, 20)
    source = render_report(story.state, story.events)
    assert len(source) < 8 * 1024**2 * (200 * 20) / (2_000 * 50) + 100_000
    assert len(Page(source).data["rules"]) == 200


# -- foreign text


def list_tags(page: Page) -> list[tuple[str, tuple[str, ...]]]:
    """List all elements but colours of code, which depend on the code."""
    return [tag for tag in page.tags if tag != ("span", ("class",))]


HARMLESS = list_tags(render_page(build_hostile_run("x")))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.text(alphabet=st.characters(codec=None), max_size=40)
    | st.lists(st.sampled_from(HOSTILE), max_size=4).map("".join)
)
@example("".join(HOSTILE))
def test_foreign_text_never_becomes_markup(text: str) -> None:
    source = render_report((story := build_hostile_run(text)).state, story.events).encode("utf-8", "replace").decode()
    page = Page(source)
    assert list_tags(page) == HARMLESS
    assert not re.findall(r"[^\n\t -~\u0080-\U0010ffff]|[\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]", source)
    shown = " ".join(reveal_lines(f"s{text}").encode("utf-8", "replace").decode().split())
    assert shown in page.text
    assert page.data["rules"][0]["id"] == reveal_lines(f"r{text}")


@pytest.mark.parametrize(
    "payload", [{"seconds": "x", "usage": 5, "diff": 7, "report": [], "agent": None, "changed": "x"}]
)
def test_nonsensical_events_do_not_break_the_page(payload: dict[str, Any]) -> None:
    state = RunState(run_id="x-1", task_alias="xxx", task=Task(prompt="x"), criteria=RunCriteria())
    events = [
        make_event(state, kind, payload, MOMENT)
        for kind in (*(kind.value for kind in Kind), "unheard_of")
        if kind != "run_started"
    ]
    page = Page(render_report(RUN_MACHINE.begin(state), events))
    assert "writing unknown" in page.text


@pytest.mark.parametrize("reason", Reason)
def test_every_stop_reason_has_a_sentence(reason: Reason) -> None:
    assert build_verdict_panel(RunStory("a").state.model_copy(update={"stop": Stop(reason=reason.value)})).explanation
