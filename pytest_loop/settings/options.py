"""All options of the plugin in one table: how each is written, what it takes, and what it is for."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from typing import Any, NamedTuple


def whole(text: str) -> int:
    """A whole number from 1 on."""
    return int(_number(text, "a whole number >= 1", lambda number: number >= 1 and number == int(number)))


def amount(text: str) -> float:
    """A number above 0."""
    return _number(text, "a number > 0", lambda number: number > 0)


def count(text: str) -> int:
    """A whole number from 0 on."""
    return int(_number(text, "a whole number >= 0", lambda number: number >= 0 and number == int(number)))


def share(text: str) -> float:
    """A number from 0 to 1."""
    return _number(text, "a number from 0 to 1", lambda number: 0 <= number <= 1)


def _number(text: str, expected: str, holds: Callable[[float], bool]) -> float:
    try:
        number = float(text)
        if math.isfinite(number) and abs(number) < 1e15 and holds(number):
            return number
    except ValueError:
        pass
    raise argparse.ArgumentTypeError(f"expected {expected}, found {text!r}")


def _thresholds(text: str) -> str:
    """Kept as text, because xdist sends options to its workers."""
    for part in text.split(","):
        phase, sign, number = part.partition("=")
        if phase.strip().upper() not in ("A", "B") or not sign:
            raise argparse.ArgumentTypeError(f"expected A=0.8,B=0.9, found {text!r}")
        share(number)
    return text


def _phase(text: str) -> str:
    if text.upper() not in ("A", "B"):
        raise argparse.ArgumentTypeError(f"expected A or B, found {text!r}")
    return text.upper()


def word(*words: str) -> Callable[[str], str]:
    """One of a few words."""

    def read(text: str) -> str:
        if text not in words:
            raise argparse.ArgumentTypeError(f"expected {', '.join(words[:-1])} or {words[-1]}, found {text!r}")
        return text

    return read


class Option(NamedTuple):
    """One option: how it is written, what it takes, and what it is for. `ini` is the default of its ini twin."""

    name: str
    help: str
    metavar: str = ""
    read: Callable[[str], Any] = str
    many: bool = False
    optional: bool = False
    ini: str | None = None

    @property
    def dest(self) -> str:
        return self.name.removeprefix("--").replace("-", "_")

    @property
    def takes_value(self) -> bool:
        return bool(self.metavar) and not self.optional


# What judges; also for a plain session.
JUDGING = (
    Option("--loop-phase", "judge only the rules that are active in this phase (default: all)", "A|B", _phase, ini="B"),
    Option(
        "--loop-baseline", "compare with an evaluation saved before; fail only on what became worse", "FILE", ini=""
    ),
    Option("--loop-save-baseline", "save this evaluation for --loop-baseline", "FILE"),
    Option("--loop-judge", "the agent that answers judge checks and makes sentences concrete", "SPEC", ini=""),
    Option("--loop-schema", "print the JSON Schema of rule files, and exit"),
)
# A run: what starts it, and what it may do.
RUN = (
    Option("--loop-task", "what to do, until the rules are satisfied (@FILE and - read it)", "TEXT"),
    Option(
        "--loop-agent",
        "who does it: builtin, codex, claude, command:WORDS, python:module:callable, ...",
        "SPEC",
        many=True,
        ini="",
    ),
    Option(
        "--loop-rules",
        "exactly these rule files judge (otherwise: every item of the arguments)",
        "PATH",
        many=True,
        ini="",
    ),
    Option("--loop-template", "judge by a built-in template: api-spec, code, docs, config", "NAME", ini=""),
    Option("--loop-artifact", "the document to improve (default: artifact.md in the run's folder)", "PATH", ini=""),
    Option("--loop-workspace", "improve the files of the project in place (default where only tests judge)"),
    Option("--loop-allow", "only files that match may be edited (as in .gitignore)", "GLOB", many=True, ini=""),
    Option("--loop-seal", "these files judge too, and stay as they are", "GLOB", many=True, ini=""),
    Option("--loop-unseal", "these files may be edited although they judge", "GLOB", many=True, ini=""),
    Option(
        "--loop-keep",
        "which files stay when it stops without success: the last, or the best",
        "last|best",
        word("last", "best"),
        ini="last",
    ),
    Option(
        "--loop-session",
        "how sessions start: forked from a server (warm), as a new interpreter (cold), or what is possible (auto)",
        "auto|cold|warm",
        word("auto", "cold", "warm"),
        ini="auto",
    ),
    Option("--loop-stop-early", "end an evaluation at the first failure that keeps it from passing"),
    Option("--loop-no-reuse", "judge every rule every time, also where nothing that it looks at has changed"),
    Option("--loop-max-iterations", "stop after so many evaluations", "N", whole, ini="4"),
    Option("--loop-threshold", "the scores that pass, such as A=0.8,B=0.9", "SCORES", _thresholds, ini=""),
    Option("--loop-budget", "stop when agents have reported this cost", "USD", amount, ini="25"),
    Option("--loop-max-tokens", "stop when agents have reported so many tokens", "N", whole, ini=""),
    Option("--loop-max-seconds", "stop when completed steps have taken so long", "N", whole, ini=""),
    Option("--loop-agent-timeout", "end an agent after so many seconds", "S", amount, ini="1800"),
    Option("--loop-candidates", "let so many try each edit at once, and keep the best", "N", whole, ini="1"),
    Option("--loop-alias", "the name of the run", "NAME"),
    Option("--loop-yes", "start without asking"),
    Option(
        "--loop-memory", "tell agents what mended the same failure in earlier runs", read=word("yes", "no"), ini="no"
    ),
    Option("--loop-force", "start although four runs are active"),
    Option("--loop-worktree", "work in a git work tree and on a branch of its own, loop/ALIAS"),
    Option("--loop-detach", "work in the background, apart from this terminal"),
    Option("--loop-record", "write the answers of agents into a file for replay:FILE", "FILE"),
    Option("--loop-confirm", "confirm a manual rule", "RULE", many=True),
    Option("--loop-status-block", "say after each evaluation where the run stands, in the block that other loops use"),
    Option("--loop-manifest", "tune the workload of this manifest, case by case", "FILE"),
    Option("--loop-case", "run only the cases of this name (a path, a name or a glob)", "CASE", many=True),
    Option("--loop-focus", "cases of a workload to look at first", "CASE", many=True, ini=""),
    Option("--loop-guard", "cases of a workload that must not become worse", "CASE", many=True, ini=""),
    Option(
        "--loop-mode",
        "how to experiment with a workload",
        "precision|exploration|convergence|custom",
        word("precision", "exploration", "convergence", "custom"),
        ini="precision",
    ),
    Option(
        "--loop-plan", "hypotheses and the part of each case, planned before (YAML, JSON, TOML or Markdown)", "FILE"
    ),
    Option("--loop-debrief", "write what was believed, done and found in an experiment as Markdown", "PATH"),
    Option("--loop-json", "write the result for machines (- is standard output)", "PATH"),
    Option("--loop-report-open", "show the report in a browser"),
)
# Commands around a run; none of them starts an iteration, but for resume.
COMMANDS = (
    Option("--loop-status", "show a run, and exit", "ALIAS", optional=True),
    Option("--loop-list", "list all runs, and exit"),
    Option("--loop-agents", "list the agents whose clients are installed here, and exit"),
    Option("--loop-history", "show the events of a run, and exit", "ALIAS", optional=True),
    Option("--loop-stop", "end the active run, and exit", "REASON", optional=True),
    Option("--loop-pause", "interrupt a run where it stands, and exit", "ALIAS", optional=True),
    Option("--loop-attach", "follow a run that works in the background", "ALIAS", optional=True),
    Option("--loop-resume", "go on with a run where it stands", "ALIAS", optional=True),
    Option("--loop-clean", "delete a run, or all", "ALIAS|all"),
    Option("--loop-infer", "show what would tell that a task is done in this project, and exit", "TEXT"),
    Option("--loop-gate", "judge once, answer the Stop hook of a coding agent, and exit"),
    Option("--loop-watch", "judge again whenever files change, until somebody interrupts"),
    Option("--loop-restore", "make the files those of an iteration again, and exit", "N", whole),
    Option("--loop-report", "write a run as a page of HTML: at its end, or of one that is there", "PATH", ini=""),
)
# Ini options without a twin on the command line.
SETTINGS = {
    "loop_dir": ("the folder for runs (default: .loop, or .ai-factory/evolution)", ""),
    "loop_plan": ("who plans: rules (made from rules and critique) or agent", "rules"),
    "loop_prompts": ("a folder with prompts of your own, such as refine.md", ""),
    "loop_agent_silence": ("end an agent that says nothing for so many seconds", "600"),
    "loop_session_timeout": ("end an evaluation after so many seconds", "3600"),
    "loop_gate_blocks": ("let an agent stop after it was kept from that so often in a row", "5"),
    "loop_gate_timeout": ("let an agent stop when it was not judged within so many seconds", "540"),
    "loop_confirm": (
        "when a person is asked on the way: as the clarity of the draft asks for (shape), always, or never",
        "shape",
    ),
    "loop_case_timeout": ("end a command of a workload's case after so many seconds", "600"),
    "loop_localise": ("tell agents which lines failing tests run and passing ones do not: yes or no", "no"),
    "loop_critique_tokens": ("how long a critique may be", "2000"),
    "loop_stuck": ("stop when the same rules failed so many iterations in a row (0: never)", "5"),
    "loop_same_error": ("stop when every failure said the same so many times in a row (0: never)", "3"),
    "loop_thrashing": ("stop when a file is rewritten so often in one iteration, or edits are undone (0: never)", "5"),
    "loop_stagnation": ("stop when so many iterations gained too little (0: never)", "2"),
    "loop_on_plateau": ("where no case of a workload improves any more: ask, continue or stop", "ask"),
    "loop_on_regression": ("where a case of a workload becomes worse: ask, accept, different or stop", ""),
    "loop_decide": ("who chooses among the edits of a composer: ask or recommended", "ask"),
    "loop_min_gain": ("what is too little", "0.02"),
    "loop_plateau": (
        "stop when two changes in a row were a smaller share of the score, such as 0.02 (0: never)",
        "0",
    ),
    "loop_diminishing": ("the same, asked after it, such as 0.05 (0: never)", "0"),
    "loop_confidence": (
        "when so much of the weight passes beyond an opinion, do not wait for an agent's exit signal (0: always do)",
        "0",
    ),
}
ALL = (*JUDGING, *RUN, *COMMANDS)
