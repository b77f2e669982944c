"""Several candidates for one edit: the best is kept, and nothing of the others stays."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_loop.agents.protocol import AgentError, AgentReply, AgentRequest, AgentUnavailableError, Watch
from pytest_loop.core.model.evaluation import Evaluation
from pytest_loop.run.candidates import Candidate, CandidateRound
from pytest_loop.store import disk
from pytest_loop.workspace.sealed_files import SealedFiles
from tests.run.parts import Answer, ScriptedAgent, make_agent

SCORES = {"colour": 0.0, "red": 0.0, "green": 0.5, "blue": 1.0}


class Round:
    """A round of candidates with one prepared answer each, whose score depends on the word in shop.py."""

    def __init__(self, project: SealedFiles, *answers: Answer) -> None:
        self.agents: list[ScriptedAgent] = []
        self.lines: list[str] = []
        self.project = project
        pending = iter(answers)

        def make_candidate_agent(_folder: Path) -> ScriptedAgent:
            self.agents.append(make_agent(next(pending), name=f"agent {len(self.agents) + 1}"))
            return self.agents[-1]

        def ask(candidate: Candidate, _is_cancelled: Callable[[], bool]) -> AgentReply:
            return candidate.agent.answer(AgentRequest("REFINE", "Make it blue", candidate.folder), Watch())

        folder = project.root / ".loop" / "guide"
        self.round = CandidateRound(
            project, folder, len(answers), make_candidate_agent, ask, self.evaluate, self.lines.append
        )

    def evaluate(self) -> Evaluation:
        score = SCORES[self.read()]
        return Evaluation(score=score, passed=score == 1)

    def read(self) -> str:
        return (self.project.root / "shop.py").read_text().split()[0]


def write(text: str, path: str = "shop.py") -> Callable[[AgentRequest], AgentReply]:
    def edit(request: AgentRequest) -> AgentReply:
        (request.workspace / path).write_text(text)
        return AgentReply(report=text)

    return edit


def test_candidate_with_the_highest_score_is_kept(git_project: SealedFiles) -> None:
    candidates = Round(git_project, write("green\n"), write("blue\n"), write("red\nred\n"))
    best, everyone = candidates.round.keep_best()
    assert (best.number, candidates.read()) == (2, "blue")
    assert [candidate.evaluation.score for candidate in everyone if candidate.evaluation] == [0.5, 1.0, 0.0]
    assert candidates.lines[-1] == "candidate 2 of 3 is kept"
    assert best.summarise(is_kept=True).changed == ("shop.py",)
    assert all(agent.is_closed for agent in candidates.agents)
    assert not list((git_project.root / ".loop" / "guide").glob("candidate-*"))


def test_smaller_change_wins_with_the_same_score(git_project: SealedFiles) -> None:
    assert Round(git_project, write("blue\nblue\n"), write("blue\n")).round.keep_best()[0].number == 2


def test_candidate_that_edits_sealed_files_loses(git_project: SealedFiles) -> None:
    def cheat(request: AgentRequest) -> AgentReply:
        (request.workspace / "test_shop.py").write_text("")
        return write("blue\n")(request)

    best, (cheater, _) = Round(git_project, cheat, write("green\n")).round.keep_best()
    assert (best.number, cheater.summarise(is_kept=False).void) == (2, True)
    assert (git_project.root / "test_shop.py").read_text() == "import shop\n"


def test_candidate_that_fails_without_an_edit_is_reported(git_project: SealedFiles) -> None:
    candidates = Round(git_project, AgentError("it was empty"), write("green\n"))
    best, (failed, _) = candidates.round.keep_best()
    assert (best.number, failed.summarise(is_kept=False).error) == (2, "it was empty")
    assert "it was empty" in candidates.lines


@pytest.mark.parametrize("error", [AgentError("it was empty"), AgentUnavailableError("it is not installed")])
def test_errors_of_all_candidates_are_an_error(git_project: SealedFiles, error: AgentError) -> None:
    candidates = Round(git_project, error, error)
    with pytest.raises(type(error), match=str(error)):
        candidates.round.keep_best()
    assert candidates.read() == "colour"


def test_files_are_restored_if_an_evaluation_fails(git_project: SealedFiles) -> None:
    candidates = Round(git_project, write("purple\n"))
    with pytest.raises(KeyError):
        candidates.round.keep_best()
    assert candidates.read() == "colour"


def test_files_from_before_a_crash_are_restored_first(git_project: SealedFiles) -> None:
    folder = git_project.root / ".loop" / "guide"
    disk.write_atomically(folder / "before-candidates.json", git_project.save_current().to_json())
    (git_project.root / "shop.py").write_text("purple\n")
    candidates = Round(git_project, AgentError("it was empty"))
    with pytest.raises(AgentError):
        candidates.round.keep_best()
    assert candidates.read() == "colour"
    assert not (folder / "before-candidates.json").exists()


def test_project_without_git_has_no_candidates(project: SealedFiles) -> None:
    with pytest.raises(AgentUnavailableError, match="there is no work tree for a candidate"):
        Round(project, write("blue\n")).round.keep_best()
