"""What a person asked of a run, read from the command line and the ini file into one frozen value."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.settings.command_line import Reader
from pytest_loop.settings.options import amount, count, share, whole, word

_BREAKERS: dict[str, Callable[[str], float]] = {
    **dict.fromkeys(("stuck", "same_error", "thrashing", "stagnation"), count),
    **dict.fromkeys(("min_gain", "plateau", "diminishing", "confidence"), share),
}


@dataclass(frozen=True)
class RunOptions:
    """What a person asked of a run."""

    task: str
    agents: tuple[str, ...]
    judge: str
    rules: tuple[str, ...]
    template: str
    artifact: str
    workspace: bool
    allow: tuple[str, ...]
    seal: tuple[str, ...]
    unseal: tuple[str, ...]
    keep: str
    session: str
    stop_early: bool
    reuse: bool
    max_iterations: int
    is_limit_given: bool
    candidates: int
    thresholds: dict[str, str]
    budget: float | None
    max_tokens: int | None
    max_seconds: int | None
    agent_timeout: float
    agent_silence: float
    session_timeout: float
    alias: str
    yes: bool
    force: bool
    detach: bool
    worktree: bool
    record: str
    memory: bool
    confirmed: tuple[str, ...]
    confirm: str
    status_block: bool
    json: str
    folder: str
    plan: str
    prompts: str
    critique_tokens: int
    localise: bool
    breakers: dict[str, float]
    status: str | None
    history: str | None
    stop: str | None
    resume: str | None
    pause: str | None
    attach: str | None
    clean: str | None
    restore: int | None
    infer: str | None
    report: str
    is_report_asked: bool
    is_report_opened: bool
    verbosity: int
    colour: str
    is_list: bool
    is_agents: bool
    is_gate: bool
    is_watch: bool
    gate_blocks: int
    gate_timeout: float
    manifest: str
    cases: tuple[str, ...]
    focus: tuple[str, ...]
    guards: tuple[str, ...]
    mode: str
    plan_file: str
    debrief: str
    on_plateau: str
    on_regression: str
    decide: str
    case_timeout: float

    @property
    def command(self) -> str | None:
        """The command that was asked for, if any; a report is one where no run is to begin or to go on."""
        asked = {
            "status": self.status,
            "history": self.history,
            "stop": self.stop,
            "pause": self.pause,
            "attach": self.attach,
            "clean": self.clean,
            "restore": self.restore,
            "infer": self.infer,
        }
        is_run = bool(self.task or self.manifest) or self.resume is not None
        flags = {
            "list": self.is_list,
            "agents": self.is_agents,
            "gate": self.is_gate,
            "watch": self.is_watch,
            "report": self.is_report_asked and not is_run,
            "debrief": bool(self.debrief) and not is_run,
        }
        found = [name for name, value in asked.items() if value is not None] + [name for name in flags if flags[name]]
        if len(found) > 1:
            raise pytest.UsageError(f"expected one command, found {' and '.join(f'--loop-{name}' for name in found)}")
        return found[0] if found else None


def project_root(config: pytest.Config, values: argparse.Namespace) -> Path:
    """pytest's rootdir; where neither an ini file nor `--rootdir` says what that is, the folder we were called in.

    The values of our options are paths to pytest before it knows them: `--loop-artifact docs/x.md` would move it.
    """
    is_said = config.inipath is not None or values.rootdir is not None
    return config.rootpath if is_said else Path(config.invocation_params.dir)


def run_options(config: pytest.Config, values: argparse.Namespace) -> RunOptions:
    """The options of a run, from the command line and the ini file."""
    reader = Reader(config, values)
    if values.loop_report_open and not reader.get("loop_report"):
        raise pytest.UsageError("--loop-report-open: say where the report is to be written with --loop-report PATH")
    return RunOptions(
        **_goal(reader, values), **_means(reader), **_commands(reader, values), **_workload(reader, values)
    )


def _goal(reader: Reader, values: argparse.Namespace) -> dict[str, Any]:
    """What is to be reached, of what, and within which limits."""
    thresholds = {
        part.partition("=")[0].strip().upper(): part.partition("=")[2].strip()
        for part in (reader.get("loop_threshold") or "").split(",")
        if part
    }
    return {
        "task": reader.get("loop_task") or "",
        "rules": tuple(reader.get("loop_rules")),
        "template": reader.get("loop_template") or "",
        "artifact": reader.get("loop_artifact") or "",
        "workspace": reader.get("loop_workspace"),
        "allow": tuple(reader.get("loop_allow")),
        "seal": tuple(reader.get("loop_seal")),
        "unseal": tuple(reader.get("loop_unseal")),
        "keep": reader.get("loop_keep"),
        "max_iterations": reader.get("loop_max_iterations"),
        "is_limit_given": values.loop_max_iterations is not None,
        "thresholds": thresholds,
        "budget": reader.get("loop_budget"),
        "max_tokens": reader.get("loop_max_tokens"),
        "max_seconds": reader.get("loop_max_seconds"),
        "alias": reader.get("loop_alias") or "",
        "yes": reader.get("loop_yes"),
        "force": reader.get("loop_force"),
        "detach": reader.get("loop_detach"),
        "worktree": reader.get("loop_worktree"),
        "confirmed": tuple(values.loop_confirm or ()),
        "confirm": reader.setting("loop_confirm", word("shape", "always", "never")),
        "folder": reader.setting("loop_dir") or "",
        "breakers": {name: reader.setting(f"loop_{name}", read) for name, read in _BREAKERS.items()},
    }


def _means(reader: Reader) -> dict[str, Any]:
    """Who is asked, and how sessions judge."""
    return {
        "agents": tuple(reader.get("loop_agent")),
        "judge": reader.get("loop_judge") or "",
        "session": reader.get("loop_session"),
        "stop_early": reader.get("loop_stop_early"),
        "reuse": not reader.get("loop_no_reuse"),
        "candidates": reader.get("loop_candidates"),
        "agent_timeout": reader.get("loop_agent_timeout"),
        "agent_silence": reader.setting("loop_agent_silence", amount),
        "session_timeout": reader.setting("loop_session_timeout", amount),
        "record": reader.get("loop_record") or "",
        "memory": reader.get("loop_memory") in (True, "yes"),
        "plan": reader.setting("loop_plan") or "rules",
        "prompts": reader.setting("loop_prompts") or "",
        "critique_tokens": reader.setting("loop_critique_tokens", whole),
        "localise": reader.setting("loop_localise", word("yes", "no")) == "yes",
    }


def _commands(reader: Reader, values: argparse.Namespace) -> dict[str, Any]:
    """What is asked about runs, and how it is shown."""
    return {
        "status_block": reader.get("loop_status_block"),
        "json": reader.get("loop_json") or "",
        "status": values.loop_status,
        "history": values.loop_history,
        "stop": values.loop_stop,
        "resume": values.loop_resume,
        "pause": values.loop_pause,
        "attach": values.loop_attach,
        "clean": values.loop_clean,
        "restore": values.loop_restore,
        "infer": values.loop_infer,
        "report": reader.get("loop_report") or "",
        "is_report_asked": values.loop_report is not None or values.loop_report_open,
        "is_report_opened": values.loop_report_open,
        "verbosity": values.verbose,
        "colour": values.color,
        "is_list": values.loop_list,
        "is_agents": values.loop_agents,
        "is_gate": values.loop_gate,
        "is_watch": values.loop_watch,
        "gate_blocks": reader.setting("loop_gate_blocks", whole),
        "gate_timeout": reader.setting("loop_gate_timeout", amount),
    }


def _workload(reader: Reader, values: argparse.Namespace) -> dict[str, Any]:
    """How a workload is tuned."""
    return {
        "manifest": values.loop_manifest or "",
        "cases": tuple(values.loop_case),
        "focus": tuple(reader.get("loop_focus")),
        "guards": tuple(reader.get("loop_guard")),
        "mode": reader.get("loop_mode"),
        "plan_file": values.loop_plan or "",
        "debrief": values.loop_debrief or "",
        "on_plateau": reader.setting("loop_on_plateau", word("ask", "continue", "stop")),
        "on_regression": reader.setting("loop_on_regression", word("ask", "accept", "different", "stop")) or "",
        "decide": reader.setting("loop_decide", word("ask", "recommended")),
        "case_timeout": reader.setting("loop_case_timeout", amount),
    }
