"""The one table of options: each row is an attribute of the group of settings that it belongs to.

The attribute `max_iterations` declares the flag `--loop-max-iterations` and, if it has an ini default, the ini key
`loop_max_iterations`; `setting` declares an ini key alone, and `part` puts a row into the ini key of a `bundle`.
The parser, the ini file, the settings, the arguments of child processes and docs/options.md are made from these rows.
The rows of limits are in `limit_options`, those of workloads in `workload_options`.
"""

from __future__ import annotations

from typing import Any

from pytest_loop.settings.limit_options import BreakerSettings, ControlSettings, LimitSettings
from pytest_loop.settings.rows import Group, Option, bundle, command, setting, switch, text, texts, value
from pytest_loop.settings.values import (
    Shard,
    one_of,
    parse_count,
    parse_phase,
    parse_seconds,
    parse_shard,
    parse_thresholds,
    parse_whole,
    parse_yes_or_no,
)
from pytest_loop.settings.workload_options import WorkloadSettings


class JudgingSettings(Group):
    """Rules and sessions"""

    phase = value(
        "judge only the rules of this phase (default: all rules)",
        "A|B",
        parse_phase,
        "B",
        old_key="loop_phase",
    )
    baseline = text("compare with a saved evaluation, and fail only on regressions", "FILE", old_key="loop_baseline")
    save_baseline = text("save this evaluation, for --loop-baseline", "FILE")
    shard: Option[Shard | None] = Option(
        "judge one of several shards of the items, and write its evidence for pytest-loop merge",
        "N/TOTAL",
        parse_shard,
        default=None,
    )
    schema = switch("print the JSON Schema of rule files, and exit")
    rules = texts("judge by these rule files only (default: by everything that is collected)", "PATH")
    template = text("judge by a built-in template: api-spec, code, docs, config", "NAME", "")
    threshold: Option[dict[str, str]] = Option(
        "the scores needed to pass, such as A=0.8,B=0.9", "SCORES", parse_thresholds, default={}, ini=""
    )
    confirm = texts("mark a manual rule as confirmed", "RULE", has_ini=False)
    session = value(
        "how sessions start: forked from a server (warm), in a new interpreter (cold), or warm if possible (auto)",
        "auto|cold|warm",
        one_of("auto", "cold", "warm"),
        "auto",
    )
    session_timeout = setting(
        "end an evaluation after this many seconds", parse_seconds, "3600", part="timeouts.session"
    )
    build = setting("command that builds compiled or generated files before a deciding evaluation", str, "")
    baseline_runs = setting(
        "how often the whole suite runs before the first edit: 1 (only failing tests are repeated) or 2",
        parse_count,
        "1",
    )
    cluster = text(
        "judge on the workers of a Dask scheduler (tcp://HOST:PORT), of the hosts in a file (ssh:FILE), "
        "or on N processes (local:N)",
        "ADDRESS",
    )
    cluster_sync = switch("build the project's environment, from its lock or requirements, at workers that differ")
    affected = switch("record which files each test executes also before Python 3.12, where that takes longer")
    stop_early = switch("end an evaluation at the first failure that prevents success")
    no_reuse = switch("judge every rule in every evaluation, even if none of its inputs changed")


class StartSettings(Group):
    """Starting a run"""

    task = text(
        "start a run: work on this task until the rules pass (@FILE and - read the text)", "TEXT", takes_over=True
    )
    ideal = text("describe the ideal result, for prompts and for rules about a document", "TEXT")
    tests_first = switch(
        "let the agent write failing tests first; you confirm them, they are sealed, and the work begins"
    )
    alias = text("name of the run", "NAME", other_flags=("--loop-id",))
    yes = switch("do not ask for confirmation")
    ask = setting(
        "when a run asks you: always, never, or more often if the task is unclear (shape)",
        one_of("shape", "always", "never"),
        "shape",
        old_key="loop_confirm",
    )
    answer = text("answer the question of a stopped run, and continue it (with --loop-resume)", "TEXT", takes_over=True)
    force = switch("start even if four runs are active")
    detach = switch("run in the background")
    worktree = switch("work in a separate git worktree, on the branch loop/ALIAS")
    dir = setting("folder for runs (default: .loop, or .ai-factory/evolution if it exists)", str, "")


class AgentSettings(Group):
    """Agents"""

    agent = texts("the agent that edits: builtin, codex, claude, command:WORDS, python:module:callable, ...", "SPEC")
    judge = text("the agent that answers judge checks and turns sentences into checks", "SPEC", "")
    agent_timeout = value("stop an agent after this many seconds", "S", parse_seconds, "1800", part="timeouts.agent")
    agent_silence = setting(
        "stop an agent that prints nothing for this many seconds", parse_seconds, "600", part="timeouts.silence"
    )
    timeouts = bundle("time limits, such as 'agent 30 min, session 1 h'")
    candidates = value(
        "let N agents try each edit in parallel, and keep the best result",
        "N",
        parse_whole,
        "1",
        old_key="loop_candidates",
    )
    planner = setting(
        "who writes the plan: rules (derived from rules and critique) or agent", str, "rules", old_key="loop_plan"
    )
    prompts = setting("folder with your own prompts, such as refine.md", str, "", part="feedback.prompts")
    critique_tokens = setting("maximum length of a critique, in tokens", parse_whole, "2000", part="feedback.tokens")
    localise = setting(
        "tell agents which lines only failing tests execute: yes or no",
        parse_yes_or_no,
        "no",
        part="feedback.lines",
    )
    memory = switch("tell agents what fixed the same failure in earlier runs", part="feedback.memory")
    feedback = bundle("what feedback contains, such as 'tokens 2000, memory yes'")
    record = text("save the agents' answers, for --loop-agent replay:FILE", "FILE")


class WorkspaceSettings(Group):
    """Files under edit"""

    artifact = text("the document to improve (default: the one named by the rule file, task or template)", "PATH", "")
    workspace = switch("edit the project's files in place (default if no rule reads a document)")
    allow = texts("the agent may edit only files that match (.gitignore syntax)", "GLOB")
    seal = texts("seal more files: the agent must not change them", "GLOB")
    unseal = texts("let the agent edit files that would be sealed", "GLOB")
    guards = value(
        "which tests that pass before the first edit must keep passing: all or none",
        "all|none",
        one_of("all", "none"),
        "all",
    )
    fence = value(
        "make sealed files read-only: if possible (auto), always or refuse to start (on), or never (off)",
        "auto|on|off",
        one_of("auto", "on", "off"),
        "auto",
    )
    fence_allow = texts("let agents write to this path despite the fence, such as a virtual environment", "PATH")
    keep = value(
        "which files to keep if the run stops without success: the last or the best",
        "last|best",
        one_of("last", "best"),
        "last",
        old_key="loop_keep",
    )


class OutputSettings(Group):
    """Output"""

    json = text("write the result as JSON (- is standard output)", "PATH")
    output = text("copy the run's document to this path when the run ends", "PATH")
    report = text("write an HTML report when the run ends, or of an existing run", "PATH", "", takes_over=True)
    report_open = switch("open the report in a browser", takes_over=True)
    on_stop = setting("command to execute when a run ends; may contain {status}, {alias} and {report}", str, "")
    status_block = switch("print a machine-readable status block after each evaluation")


class CommandSettings(Group):
    """Commands around runs"""

    status = command("show a run, and exit")
    list = switch("list all runs, and exit", takes_over=True)
    agents = switch("list the installed agent clients, and exit", takes_over=True)
    history = command("tell a run again (-v: every event), and exit")
    stop = command("end the active run, and exit", "REASON")
    pause = command("interrupt a run, and exit; --loop-resume continues it")
    attach = command("follow a run in the background")
    resume = command("continue a run where it stopped")
    clean = Option("delete a run, or all", "ALIAS|all", str, default=None, takes_over=True)
    infer = Option(
        "show which checks would decide that a task is done, and exit",
        "TEXT",
        str,
        default=None,
        takes_over=True,
    )
    restore = Option(
        "restore the files of an iteration (0: before the first edit), and exit",
        "N",
        parse_count,
        default=None,
        takes_over=True,
    )
    show = command("show every rule that does not pass in a run, and exit")
    diff = command("show what a run has changed, and exit")
    gate = switch("judge once, answer a coding agent's Stop hook, and exit", takes_over=True)
    gate_blocks = setting(
        "let an agent stop after the Stop hook has refused this many times in a row",
        parse_whole,
        "5",
        part="stop_when.gate_blocks",
    )
    gate_timeout = setting(
        "let an agent stop if the Stop hook has no result within this many seconds",
        parse_seconds,
        "540",
        part="timeouts.gate",
    )
    watch = switch("judge again whenever files change, until interrupted", takes_over=True)


GROUPS: dict[str, type[Group]] = {
    "judging": JudgingSettings,
    "start": StartSettings,
    "agents": AgentSettings,
    "workspace": WorkspaceSettings,
    "limits": LimitSettings,
    "breakers": BreakerSettings,
    "control": ControlSettings,
    "workload": WorkloadSettings,
    "output": OutputSettings,
    "commands": CommandSettings,
}
OPTIONS = tuple(option for group in GROUPS.values() for option in group.get_options().values())
# The rows that are parts of an ini key or a flag, by its name and theirs.
PARTS: dict[str, dict[str, Option[Any]]] = {}
for _option in OPTIONS:
    if _option.bundle:
        PARTS.setdefault(f"loop_{_option.bundle}", {})[_option.part] = _option
# The flags that `pytest --help` shows, in this order. All others work, too: see docs/options.md.
HELP_GROUPS = {
    "what to do": (
        *("task", "yes", "alias", "rules", "template", "artifact", "threshold", "phase", "confirm"),
        *("baseline", "save-baseline", "manifest", "workload"),
    ),
    "who does it": ("agent", "judge", "candidates", "worktree", "detach"),
    "limits": ("max-iterations", "limit", "agent-timeout", "allow", "seal", "unseal", "guards", "fence"),
    "output": ("report", "json", "output", "record"),
}
