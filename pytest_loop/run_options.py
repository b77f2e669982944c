"""What a person asked of a run, read from the command line and the ini file into one frozen value."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import pytest

from pytest_loop.option_table import amount, count, share, whole, word
from pytest_loop.options import Reader


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
    confirmed: tuple[str, ...]
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
    is_list: bool
    is_agents: bool
    is_gate: bool
    is_watch: bool
    gate_blocks: int
    gate_timeout: float

    @property
    def command(self) -> str | None:
        """The command that was asked for, if any."""
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
        flags = {"list": self.is_list, "agents": self.is_agents, "gate": self.is_gate, "watch": self.is_watch}
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
    thresholds = {
        part.partition("=")[0].strip().upper(): part.partition("=")[2].strip()
        for part in (reader.get("loop_threshold") or "").split(",")
        if part
    }
    breakers = {
        name: reader.setting(f"loop_{name}", count) for name in ("stuck", "same_error", "thrashing", "stagnation")
    }
    return RunOptions(
        task=reader.get("loop_task") or "",
        agents=tuple(reader.get("loop_agent")),
        judge=reader.get("loop_judge") or "",
        rules=tuple(reader.get("loop_rules")),
        template=reader.get("loop_template") or "",
        artifact=reader.get("loop_artifact") or "",
        workspace=reader.get("loop_workspace"),
        allow=tuple(reader.get("loop_allow")),
        seal=tuple(reader.get("loop_seal")),
        unseal=tuple(reader.get("loop_unseal")),
        keep=reader.get("loop_keep"),
        session=reader.get("loop_session"),
        stop_early=reader.get("loop_stop_early"),
        reuse=not reader.get("loop_no_reuse"),
        max_iterations=reader.get("loop_max_iterations"),
        is_limit_given=values.loop_max_iterations is not None,
        candidates=reader.get("loop_candidates"),
        thresholds=thresholds,
        budget=reader.get("loop_budget"),
        max_tokens=reader.get("loop_max_tokens"),
        max_seconds=reader.get("loop_max_seconds"),
        agent_timeout=reader.get("loop_agent_timeout"),
        agent_silence=reader.setting("loop_agent_silence", amount),
        session_timeout=reader.setting("loop_session_timeout", amount),
        alias=reader.get("loop_alias") or "",
        yes=reader.get("loop_yes"),
        force=reader.get("loop_force"),
        detach=reader.get("loop_detach"),
        worktree=reader.get("loop_worktree"),
        record=reader.get("loop_record") or "",
        confirmed=tuple(reader.get("loop_confirm")),
        json=reader.get("loop_json") or "",
        folder=reader.setting("loop_dir") or "",
        plan=reader.setting("loop_plan") or "rules",
        prompts=reader.setting("loop_prompts") or "",
        critique_tokens=reader.setting("loop_critique_tokens", whole),
        localise=reader.setting("loop_localise", word("yes", "no")) == "yes",
        breakers={**breakers, "min_gain": reader.setting("loop_min_gain", share)},
        status=values.loop_status,
        history=values.loop_history,
        stop=values.loop_stop,
        resume=values.loop_resume,
        pause=values.loop_pause,
        attach=values.loop_attach,
        clean=values.loop_clean,
        restore=values.loop_restore,
        infer=values.loop_infer,
        is_list=values.loop_list,
        is_agents=values.loop_agents,
        is_gate=values.loop_gate,
        is_watch=values.loop_watch,
        gate_blocks=reader.setting("loop_gate_blocks", whole),
        gate_timeout=reader.setting("loop_gate_timeout", amount),
    )
