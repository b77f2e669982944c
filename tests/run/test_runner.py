"""The runner: checks before a run, one run from start to end, and the files that it leaves."""

from __future__ import annotations

import io
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.agents.protocol import AgentReply, AgentRequest
from pytest_loop.core.events.event import Event
from pytest_loop.core.events.run_payloads import RunStarted
from pytest_loop.core.machine.run_machine import RUN_MACHINE
from pytest_loop.core.model.evaluation import Seal
from pytest_loop.core.model.run_criteria import RunCriteria
from pytest_loop.core.model.run_state import RunState, Task
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.errors import StateError
from pytest_loop.run.console import Console
from pytest_loop.run.runner import Runner
from pytest_loop.run.sessions import SessionFactory
from pytest_loop.settings.options import AgentSettings, JudgingSettings, WorkspaceSettings
from pytest_loop.settings.settings import Settings, make_default_settings
from pytest_loop.store.clock import read_clock
from pytest_loop.store.project_runs import Store
from pytest_loop.workspace.environment import hash_site_files
from pytest_loop.workspace.sealed_files import SealedFiles
from tests.run.parts import Answer, WordSession, make_agent, make_hook, make_rules

RULES = make_rules("a.word.blue", "a.word.large")


class WordSessions(SessionFactory):
    """Makes sessions in this process that look for the words of `RULES` in shop.py."""

    def make(self, arguments: tuple[str, ...], started_at: float) -> Any:
        return WordSession(self.settings.root / "shop.py", RULES)


def make_settings(root: Path, **groups: Any) -> Settings:
    groups = {"agents": AgentSettings(agent=("scripted",)), **groups}
    return make_default_settings(root, **{"judging": JudgingSettings(session="cold"), **groups})


class AgentPlugin:
    """A plugin that makes the agent `scripted`."""

    def __init__(self, *answers: Answer) -> None:
        self.agent = make_agent(*answers)

    @pytest.hookimpl
    def pytest_loop_make_agent(self, spec: str) -> Any:
        return self.agent if spec == "scripted" else None


def make_runner(settings: Settings, *answers: Answer) -> tuple[Runner, AgentPlugin, io.StringIO]:
    stream, plugin = io.StringIO(), AgentPlugin(*answers)
    sessions = WordSessions(settings, lambda _line: None)
    return Runner(settings, make_hook(plugin), Console(stream), sessions), plugin, stream


def make_state(**fields: Any) -> RunState:
    state = RunState(
        run_id="guide-1",
        task_alias="guide",
        task=Task(prompt="Fix it"),
        criteria=RunCriteria(rules=RULES),
        created_at=read_clock(),
    )
    return RUN_MACHINE.begin(
        state.replace(**{"artifact": ".loop/guide/artifact.md", "agents": ("scripted",), **fields})
    )


@pytest.mark.parametrize(
    ("agents", "message"),
    [
        ({"agent": ("nothing:x",)}, "--loop-agent: "),
        ({"agent": ("scripted",), "judge": "nothing:x"}, "--loop-judge: "),
        ({"prompts": "none"}, "none"),
    ],
)
def test_unusable_agents_and_prompts_are_refused(tmp_path: Path, agents: dict[str, Any], message: str) -> None:
    runner, _, _ = make_runner(make_settings(tmp_path, agents=AgentSettings(**agents)))
    with pytest.raises((pytest.UsageError, StateError), match=message):
        runner.check_settings()


def test_candidates_need_files_and_git(tmp_path: Path) -> None:
    runner, _, _ = make_runner(make_settings(tmp_path))
    runner.check_candidates(make_state())
    with pytest.raises(pytest.UsageError, match="expected a run that edits files, found one of a document"):
        runner.check_candidates(make_state(candidates=2))
    with pytest.raises(pytest.UsageError, match="--loop-candidates: "):
        runner.check_candidates(make_state(candidates=2, target=Target.WORKSPACE))


def write(text: str) -> Callable[[AgentRequest], AgentReply]:
    def edit(request: AgentRequest) -> AgentReply:
        (request.workspace / "shop.py").write_text(text)
        return AgentReply()

    return edit


def test_run_of_another_process_is_driven_to_its_end_and_keeps_the_best_files(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("red and small\n")
    store = Store(tmp_path)
    files = store.get_run("guide")
    files.acquire()
    project = SealedFiles(tmp_path, files.folder, ["test_*.py"])
    seal = Seal(patterns=("test_*.py",), site=hash_site_files(), files=project.record_start())
    project.close()
    state = make_state(target=Target.WORKSPACE, seal=seal, max_iterations=3)
    files.append([Event.create(state, RunStarted(state=state), read_clock())], state)
    answers = [write("blue and small\n"), write("red and tiny\n")]
    settings = make_settings(tmp_path, workspace=WorkspaceSettings(keep="best"))
    runner, plugin, stream = make_runner(settings, *answers)
    state = runner.run(state, files, store, None)
    runner.sessions.close()
    assert (state.stop.reason, state.iteration, state.progress.best and state.progress.best.iteration) == (
        "iteration_limit", 3, 2,
    )  # fmt: skip
    assert (tmp_path / "shop.py").read_text() == "blue and small\n"
    assert "the files are those of iteration 2, which scored 0.5" in stream.getvalue()
    assert plugin.agent.is_closed
    assert not files.is_busy


def test_agent_that_cannot_be_made_is_a_usage_error(tmp_path: Path) -> None:
    store = Store(tmp_path)
    files = store.get_run("guide")
    files.acquire()
    state = make_state(agents=("nothing:x",))
    runner, _, _ = make_runner(make_settings(tmp_path, agents=AgentSettings()))
    with pytest.raises(pytest.UsageError, match="nothing"):
        runner.run(state, files, store, None)
    runner.sessions.close()
    assert not files.is_busy


def test_sealed_files_are_put_back_and_named_before_a_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text("blue and large\n")
    (tmp_path / "test_shop.py").write_text("import shop\n")
    store = Store(tmp_path)
    files = store.get_run("guide")
    files.acquire()
    project = SealedFiles(tmp_path, files.folder, ["test_*.py"])
    state = make_state(target=Target.WORKSPACE, seal=project.record_seal())
    project.close()
    files.append([Event.create(state, RunStarted(state=state), read_clock())], state)
    (tmp_path / "test_shop.py").write_text("")
    runner, _, stream = make_runner(make_settings(tmp_path))
    runner.run(state, files, store, None)
    runner.sessions.close()
    lines = stream.getvalue().splitlines()
    assert lines[0] == "test_shop.py: was changed, and was put back"
    assert lines[1].startswith("sealed files stay as they were when the run began; copies are in ")
    assert (tmp_path / "test_shop.py").read_text() == "import shop\n"
