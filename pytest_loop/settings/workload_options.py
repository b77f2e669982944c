"""The options of workloads."""

from __future__ import annotations

from pytest_loop.settings.rows import Group, Option, bundle, setting, text, texts
from pytest_loop.settings.values import (
    one_of,
    parse_seconds,
)


class WorkloadSettings(Group):
    """Workloads"""

    manifest = text("tune the prompt or pipeline that this manifest describes", "FILE", takes_over=True)
    case = texts("run only matching cases (a path, a name or a glob)", "CASE", has_ini=False)
    workload = bundle("override settings of the manifest, such as 'mode exploration, focus a.txt b.txt'", "PARTS", None)
    focus = texts("cases to look at first", "CASE", part="workload.focus", new_flag="--loop-workload 'focus {value}'")
    guard = texts(
        "cases that must not become worse", "CASE", part="workload.guard", new_flag="--loop-workload 'guard {value}'"
    )
    mode = Option(
        "how to experiment: precision, exploration, convergence or custom",
        "precision|exploration|convergence|custom",
        one_of("precision", "exploration", "convergence", "custom"),
        default="precision",
        part="workload.mode",
        old_default="precision",
        new_flag="--loop-workload 'mode {value}'",
    )
    plan = text("file with planned hypotheses and the role of each case (YAML, JSON, TOML or Markdown)", "FILE")
    debrief = text("write hypotheses, edits and results of an experiment as Markdown", "PATH", takes_over=True)
    case_timeout = setting(
        "stop a command of a case after this many seconds", parse_seconds, "600", part="workload.case_timeout"
    )
    on_plateau = setting(
        "when no case improves any more: ask, continue or stop",
        one_of("ask", "continue", "stop"),
        "ask",
        part="workload.on_plateau",
    )
    on_regression = Option(
        "when a case becomes worse: ask, accept, different or stop",
        "",
        one_of("ask", "accept", "different", "stop"),
        default="",
        has_flag=False,
        part="workload.on_regression",
    )
    decide = setting(
        "who chooses among the proposed edits: ask (you) or recommended (the agent)",
        one_of("ask", "recommended"),
        "ask",
        part="workload.decide",
    )
