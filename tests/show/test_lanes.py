"""Workers in the report and in the story of a run."""

from __future__ import annotations

import pytest

from pytest_loop.core.model.evaluation import ClusterWork, ShardRun
from pytest_loop.core.text.wording import format_bytes
from pytest_loop.show.html import lanes
from pytest_loop.show.html.lanes import Bar, Lane, build_lanes
from pytest_loop.show.html.report_page import render_report
from pytest_loop.show.look import Look
from tests.show.runs import RunStory
from tests.show.test_run_story import make_test_rule, tell

WORK = ClusterWork(
    shards=(
        ShardRun(worker="tcp://b:1", items=3, started=1.0, seconds=9.0),
        ShardRun(worker="tcp://a:1", items=1, started=0.0, seconds=5.0),
        ShardRun(worker="tcp://a:1", items=2, started=5.0, seconds=0.001),
    ),
    sent_bytes=123_456,
)


def test_each_worker_has_a_lane_with_its_shards() -> None:
    view = build_lanes(WORK)
    assert view.summary == "3 shards on 2 workers, 123 kB sent"
    assert view.lanes == (
        Lane("tcp://a:1", (Bar(0.0, 250.0, "1 item in 5.0 s"), Bar(250.0, 2.0, "2 items in 1 ms"))),
        Lane("tcp://b:1", (Bar(50.0, 450.0, "3 items in 9.0 s"),)),
    )
    many = ClusterWork(shards=tuple(ShardRun(worker=f"w{n}", items=1, started=0, seconds=0) for n in range(50)))
    assert build_lanes(many).left_out == 50 - lanes.MAX_LANES


@pytest.mark.parametrize(("count", "text"), [(1, "1 byte"), (999, "999 bytes"), (1_000, "1 kB"), (2_345_678, "2.3 MB")])
def test_bytes_have_a_unit(count: int, text: str) -> None:
    assert format_bytes(count) == text


def test_the_story_and_the_report_have_the_workers() -> None:
    story = RunStory(make_test_rule("tests/test_shop.py::test_sum")).evaluate(cluster=WORK.model_dump(mode="json"))
    assert story.state.evaluation is not None
    assert story.state.evaluation.cluster == WORK
    page = render_report(story.state, story.events)
    assert "<title>tcp://b:1: 3 items in 9.0 s</title>" in page
    assert any(line.strip() == "cluster: 3 shards on 2 workers, 123 kB sent" for line in tell(story, Look(verbosity=1)))
