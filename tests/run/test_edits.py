"""Edits by agents: of a document, and of sealed files."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_loop.agents.protocol import AgentError, AgentReply, AgentRequest, AgentUnavailableError
from pytest_loop.core.model.run_state import Blocked, Usage
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.run.edits import produce, refine
from pytest_loop.workspace.sealed_files import SealedFiles
from tests.run.parts import Answer, SmallRun, make_agent, make_run


def edit_copy(request: AgentRequest) -> AgentReply:
    assert request.artifact is not None
    request.artifact.write_text("blue")
    return AgentReply(text="I have edited the file.")


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("blue\n", "blue\n"),
        ("```markdown\nblue\n```", "blue\n"),
        (edit_copy, "blue"),
        (AgentReply(exit_signal=True), "red"),
        ("BLOCKED a.word.blue: red is required", "red"),
    ],
    ids=["text", "fence", "edited copy", "exit signal", "claim"],
)
def test_document_is_written_from_text_or_edited_copy(tmp_path: Path, answer: Answer, text: str) -> None:
    (tmp_path / "guide.md").write_text("red")
    run = make_run(tmp_path, answer)
    payload = refine(run.make_step())
    assert (tmp_path / "guide.md").read_text() == text
    assert payload.artifact_hash == run.context.artifact.compute_hash()
    assert payload.blocked == (
        Blocked(rule="a.word.blue", reason="red is required") if text == "red" and isinstance(answer, str) else None
    )


@pytest.mark.parametrize(
    ("reply", "message"), [(AgentReply(), "found neither"), (AgentReply(text="``` \n```"), "found an empty answer")]
)
def test_answer_without_a_document_is_an_error(tmp_path: Path, reply: AgentReply, message: str) -> None:
    with pytest.raises(AgentError, match=message):
        produce(make_run(tmp_path, reply).make_step())
    assert not (tmp_path / "guide.md").exists()


def test_copy_that_cannot_be_read_is_an_error_of_the_agent(tmp_path: Path) -> None:
    def make_folder(request: AgentRequest) -> AgentReply:
        assert request.artifact is not None
        request.artifact.mkdir()
        return AgentReply()

    with pytest.raises(AgentError, match="expected a file for the artifact"):
        produce(make_run(tmp_path, make_folder).make_step())


def test_claim_about_an_unknown_rule_is_ignored(tmp_path: Path) -> None:
    run = make_run(tmp_path, AgentReply(text="blue", blocked=Blocked(rule="a.other.x", reason="no")))
    assert produce(run.make_step()).blocked is None


def test_edit_without_an_agent_is_refused(tmp_path: Path) -> None:
    with pytest.raises(AgentUnavailableError, match="--loop-agent"):
        produce(make_run(tmp_path, agents=[]).make_step())


def make_project_run(project: SealedFiles, *answers: Answer) -> SmallRun:
    return make_run(project.root, *answers, project=project, state={"target": Target.WORKSPACE})


def test_edit_of_files_reports_the_diff_and_restores_sealed_files(project: SealedFiles) -> None:
    def edit(request: AgentRequest) -> AgentReply:
        (request.workspace / "shop.py").write_text("colour = 'blue'\n")
        (request.workspace / "test_shop.py").write_text("")
        return AgentReply(report="It is blue now.")

    payload = refine(make_project_run(project, edit).make_step())
    assert payload.changed == ("shop.py",)
    assert [(finding.kind, finding.path) for finding in payload.findings] == [("sealed", "test_shop.py")]
    assert (project.root / "test_shop.py").read_text() == "import shop\n"
    assert "+colour = 'blue'" in payload.diff
    assert payload.report == "It is blue now."


def test_agent_that_fails_after_an_edit_is_evaluated_all_the_same(project: SealedFiles) -> None:
    def edit_and_fail(request: AgentRequest) -> AgentReply:
        (request.workspace / "shop.py").write_text("colour = 'blue'\n")
        raise AgentError("it crashed")

    run = make_project_run(project, edit_and_fail, AgentError("it crashed"))
    assert refine(run.make_step()).changed == ("shop.py",)
    assert "it crashed; what it edited is judged all the same" in run.output.getvalue()
    with pytest.raises(AgentError, match="it crashed"):
        refine(run.make_step())


def test_request_has_the_failing_rules_as_a_repair_task(project: SealedFiles) -> None:
    run = make_project_run(project, AgentReply())
    evaluation = run.make_step().make_evaluator().evaluate_rules()
    refine(run.make_step(evaluation=evaluation))
    task = run.agent.requests[0].repair_task
    assert task is not None
    assert task.files_hash == project.digest


def test_best_of_several_candidates_is_kept_and_all_are_paid_for(git_project: SealedFiles) -> None:
    def write(text: str) -> Answer:
        def edit(request: AgentRequest) -> AgentReply:
            (request.workspace / "shop.py").write_text(text)
            return AgentReply(usage=Usage(tokens=5))

        return edit

    agents = [make_agent(write("green\n")), make_agent(write("blue\n"))]
    pending = iter(agents)
    run = make_run(
        git_project.root,
        project=git_project,
        state={"target": Target.WORKSPACE, "candidates": 2},
        make_candidate=lambda _rung, _folder: next(pending),
    )
    step = run.make_step()
    payload = refine(step)
    assert [(candidate.candidate, candidate.kept) for candidate in payload.candidates] == [(1, False), (2, True)]
    assert (git_project.root / "shop.py").read_text() == "blue\n"
    assert step.costs.usage.tokens == 10
    assert [agent.requests[0].key for agent in agents] == ["candidate 1", "candidate 2"]
