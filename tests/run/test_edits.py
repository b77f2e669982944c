"""Edits by agents: of a document, and of sealed files."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_loop.agents.protocol import AgentError, AgentReply, AgentRequest, AgentUnavailableError, Watch
from pytest_loop.core.model.changed_parts import ChangedParts
from pytest_loop.core.model.run_state import Blocked, Usage
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.run.edits import produce, refine
from pytest_loop.workspace import edit_counter
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


def test_agent_of_a_document_can_change_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "guide.rules.yaml").write_text("strict")
    (tmp_path / "checks.py").write_text("strict")

    def cheat(request: AgentRequest) -> AgentReply:
        for name in ("guide.rules.yaml", "checks.py", "notes.txt"):
            (request.workspace / name).write_text("easy")
        return AgentReply(text="red")

    payload = produce(make_run(tmp_path, cheat).make_step())
    assert [(finding.kind, finding.path) for finding in payload.findings] == [
        ("sealed", "guide.rules.yaml"),
        ("allow", "checks.py"),
        ("allow", "notes.txt"),
    ]
    assert [(tmp_path / name).read_text() for name in ("guide.rules.yaml", "checks.py")] == ["strict", "strict"]
    assert not (tmp_path / "notes.txt").exists()
    assert (tmp_path / "guide.md").read_text() == "red"


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


@pytest.mark.parametrize(
    ("answer", "text", "signal"),
    [
        ("blue\n\n---LOOP_STATUS---\nEXIT_SIGNAL: false\n---END_STATUS---\n", "blue\n\n", False),
        ("```markdown\nblue\n```\nEXIT_SIGNAL: true", "blue\n", True),
        ("<loop-complete>\n", "red", True),
        (AgentReply(text="blue\nEXIT_SIGNAL: false\n", exit_signal=True), "blue\n", True),
    ],
    ids=["block", "line", "tag alone", "field before words"],
)
def test_exit_signal_is_not_a_part_of_the_document(
    tmp_path: Path, answer: Answer, text: str, signal: bool | None
) -> None:
    (tmp_path / "guide.md").write_text("red")
    payload = refine(make_run(tmp_path, answer).make_step())
    assert ((tmp_path / "guide.md").read_text(), payload.exit_signal) == (text, signal)


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


def test_words_of_an_agent_that_edits_files_may_be_a_signal(project: SealedFiles) -> None:
    payload = refine(make_project_run(project, "It is blue now.\nEXIT_SIGNAL: false\nBye.").make_step())
    assert payload.exit_signal is False


def test_file_that_an_agent_writes_again_and_again_is_counted(
    project: SealedFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(edit_counter, "MIN_INTERVAL", 0.0)
    monkeypatch.setattr(edit_counter, "PAUSE_PER_LOOK", 0)

    def rewrite(request: AgentRequest, watch: Watch) -> AgentReply:
        for number in range(6):
            (request.workspace / "shop.py").write_text(f"colour = {number}\n")
            assert watch.should_continue()
        return AgentReply()

    run = make_project_run(project)
    monkeypatch.setattr(run.agent, "answer", rewrite)
    payload = refine(run.make_step())
    assert (payload.rewritten, payload.rewrites) == ("shop.py", 6)


def test_agent_that_fails_after_an_edit_is_evaluated_all_the_same(project: SealedFiles) -> None:
    def edit_and_fail(request: AgentRequest) -> AgentReply:
        (request.workspace / "shop.py").write_text("colour = 'blue'\n")
        raise AgentError("it crashed")

    run = make_project_run(project, edit_and_fail, AgentError("it crashed"))
    payload = refine(run.make_step())
    assert (payload.changed, payload.error) == (("shop.py",), "it crashed")
    with pytest.raises(AgentError, match="it crashed"):
        refine(run.make_step())


def test_right_edit_before_a_refused_login_is_evaluated(project: SealedFiles) -> None:
    def edit_and_fail(request: AgentRequest) -> AgentReply:
        (request.workspace / "shop.py").write_text("colour = 'blue'\n")
        raise AgentUnavailableError("status 401")

    assert refine(make_project_run(project, edit_and_fail).make_step()).error == "status 401"


def test_document_edited_before_a_failure_is_evaluated(tmp_path: Path) -> None:
    def edit_and_fail(request: AgentRequest) -> AgentReply:
        assert request.artifact
        request.artifact.write_text("It is blue.\n")
        raise AgentError("it crashed")

    run = make_run(tmp_path, edit_and_fail, AgentError("it crashed"))
    assert produce(run.make_step()).error == "it crashed"
    with pytest.raises(AgentError, match="it crashed"):
        produce(run.make_step())


def test_failed_request_is_paid_for(project: SealedFiles) -> None:
    error = AgentError("it crashed")
    error.usage = Usage(tokens=5)
    step = make_project_run(project, error).make_step()
    with pytest.raises(AgentError):
        refine(step)
    assert step.record.usage.tokens == 5


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
    assert step.record.usage.tokens == 10
    assert [agent.requests[0].key for agent in agents] == ["candidate 1", "candidate 2"]


def test_edit_of_a_document_names_its_sections(tmp_path: Path) -> None:
    run = make_run(
        tmp_path, "# Guide\n", "# Guide\n\n## Usage\n\nblue\n", redact=lambda text: text.replace("Usage", "[X]")
    )
    assert produce(run.make_step()).change == ChangedParts(is_first=True)
    assert refine(run.make_step()).change == ChangedParts(added=("[X]",))


def test_edit_of_files_names_them(project: SealedFiles) -> None:
    def edit(request: AgentRequest) -> AgentReply:
        (request.workspace / "shop.py").write_text("colour = 'blue'\n")
        (request.workspace / "new.py").write_text("")
        return AgentReply()

    run = make_run(project.root, edit, project=project, state={"target": Target.WORKSPACE})
    assert refine(run.make_step()).change == ChangedParts(added=("new.py",), modified=("shop.py",))
