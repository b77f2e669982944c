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
        "judge only the rules that are active in this phase (default: all)",
        "A|B",
        parse_phase,
        "B",
        old_key="loop_phase",
    )
    baseline = text(
        "compare with an evaluation saved before; fail only on what became worse", "FILE", old_key="loop_baseline"
    )
    save_baseline = text("save this evaluation for --loop-baseline", "FILE")
    shard: Option[Shard | None] = Option(
        "judge one of several shards of the items, and write its evidence for pytest-loop merge",
        "N/TOTAL",
        parse_shard,
        default=None,
    )
    schema = switch("print the JSON Schema of rule files, and exit")
    rules = texts("exactly these rule files judge (otherwise: every item of the arguments)", "PATH")
    template = text("judge by a built-in template: api-spec, code, docs, config", "NAME", "")
    threshold: Option[dict[str, str]] = Option(
        "the scores that pass, such as A=0.8,B=0.9", "SCORES", parse_thresholds, default={}, ini=""
    )
    confirm = texts("confirm a manual rule", "RULE", has_ini=False)
    session = value(
        "how sessions start: forked from a server (warm), as a new interpreter (cold), or what is possible (auto)",
        "auto|cold|warm",
        one_of("auto", "cold", "warm"),
        "auto",
    )
    session_timeout = setting("end an evaluation after so many seconds", parse_seconds, "3600", part="timeouts.session")
    build = setting("a command that builds what is compiled or generated, run before a deciding evaluation", str, "")
    baseline_runs = setting(
        "how often the whole suite runs before the first edit: once (what fails is repeated), or twice",
        parse_count,
        "1",
    )
    stop_early = switch("end an evaluation at the first failure that keeps it from passing")
    no_reuse = switch("judge every rule every time, also where nothing that it looks at has changed")


class StartSettings(Group):
    """Starting a run"""

    task = text("what to do, until the rules are satisfied (@FILE and - read it)", "TEXT", takes_over=True)
    ideal = text("what the ideal result is: for prompts, and for rules about a document", "TEXT")
    tests_first = switch(
        "let the agent write failing tests for the task, confirm and seal them, and begin the work then"
    )
    alias = text("the name of the run", "NAME", other_flags=("--loop-id",))
    yes = switch("start without asking")
    ask = setting(
        "when a person is asked on the way: as the clarity of the draft asks for (shape), always, or never",
        one_of("shape", "always", "never"),
        "shape",
        old_key="loop_confirm",
    )
    answer = text("answer the question of a stopped run, and continue it (with --loop-resume)", "TEXT", takes_over=True)
    force = switch("start although four runs are active")
    detach = switch("work in the background, apart from this terminal")
    worktree = switch("work in a git work tree and on a branch of its own, loop/ALIAS")
    dir = setting("the folder for runs (default: .loop, or .ai-factory/evolution)", str, "")


class AgentSettings(Group):
    """Agents"""

    agent = texts("who does it: builtin, codex, claude, command:WORDS, python:module:callable, ...", "SPEC")
    judge = text("the agent that answers judge checks and makes sentences concrete", "SPEC", "")
    agent_timeout = value("end an agent after so many seconds", "S", parse_seconds, "1800", part="timeouts.agent")
    agent_silence = setting(
        "end an agent that says nothing for so many seconds", parse_seconds, "600", part="timeouts.silence"
    )
    timeouts = bundle("how long each may take, in seconds or such as 'agent 30 min, session 1 h'")
    candidates = value(
        "let so many try each edit at once, and keep the best", "N", parse_whole, "1", old_key="loop_candidates"
    )
    planner = setting("who plans: rules (made from rules and critique) or agent", str, "rules", old_key="loop_plan")
    prompts = setting("a folder with prompts of your own, such as refine.md", str, "", part="feedback.prompts")
    critique_tokens = setting("how long a critique may be, in tokens", parse_whole, "2000", part="feedback.tokens")
    localise = setting(
        "tell agents which lines failing tests run and passing ones do not: yes or no",
        parse_yes_or_no,
        "no",
        part="feedback.lines",
    )
    memory = switch("tell agents what fixed the same failure in earlier runs", part="feedback.memory")
    feedback = bundle("what agents and people are told, such as 'tokens 2000, memory yes'")
    record = text("write the answers of agents into a file for replay:FILE", "FILE")


class WorkspaceSettings(Group):
    """Files under edit"""

    artifact = text(
        "the document to improve (default: the one that the rule file, the task or the template names)", "PATH", ""
    )
    workspace = switch("improve the files of the project in place (default if no rule reads a document)")
    allow = texts("only files that match may be edited (as in .gitignore)", "GLOB")
    seal = texts("these files judge too, and stay as they are", "GLOB")
    unseal = texts("these files may be edited although they judge", "GLOB")
    guards = value(
        "tests that pass before the first edit must keep passing: all of them, or none",
        "all|none",
        one_of("all", "none"),
        "all",
    )
    fence = value(
        "keep agents and tests from writing sealed files: where possible (auto), or else refuse (on), or never (off)",
        "auto|on|off",
        one_of("auto", "on", "off"),
        "auto",
    )
    fence_allow = texts("agents may write this path, such as the environment for installs", "PATH")
    keep = value(
        "which files stay when it stops without success: the last, or the best",
        "last|best",
        one_of("last", "best"),
        "last",
        old_key="loop_keep",
    )


class OutputSettings(Group):
    """Output"""

    json = text("write the result for machines (- is standard output)", "PATH")
    output = text("copy the document of a run to this path at its end", "PATH")
    report = text("write a run as a page of HTML: at its end, or of one that is there", "PATH", "", takes_over=True)
    report_open = switch("show the report in a browser", takes_over=True)
    on_stop = setting("run this command when a run ends: words, with {status}, {alias} and {report}", str, "")
    status_block = switch("say after each evaluation where the run stands, in the block that other loops use")


class CommandSettings(Group):
    """Commands around runs"""

    status = command("show a run, and exit")
    list = switch("list all runs, and exit", takes_over=True)
    agents = switch("list the agents whose clients are installed here, and exit", takes_over=True)
    history = command("show the events of a run, and exit")
    stop = command("end the active run, and exit", "REASON")
    pause = command("interrupt a run where it stands, and exit")
    attach = command("follow a run that works in the background")
    resume = command("go on with a run where it stands")
    clean = Option("delete a run, or all", "ALIAS|all", str, default=None, takes_over=True)
    infer = Option(
        "show which checks decide that a task is done in this project, and exit",
        "TEXT",
        str,
        default=None,
        takes_over=True,
    )
    restore = Option(
        "make the files those of an iteration again, and exit", "N", parse_count, default=None, takes_over=True
    )
    show = command("show every rule that does not pass in a run, and exit")
    diff = command("show what a run has changed, and exit")
    gate = switch("judge once, answer the Stop hook of a coding agent, and exit", takes_over=True)
    gate_blocks = setting(
        "the Stop hook has kept an agent from stopping so often in a row; then it may stop",
        parse_whole,
        "5",
        part="stop_when.gate_blocks",
    )
    gate_timeout = setting(
        "let an agent stop when the Stop hook has not judged within so many seconds",
        parse_seconds,
        "540",
        part="timeouts.gate",
    )
    watch = switch("judge again whenever files change, until you interrupt it", takes_over=True)


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
# The flags that `pytest --help` shows, by what they are for. All others work, too: see docs/options.md.
HELP_GROUPS = {
    "what to do": (
        *("task", "rules", "template", "artifact", "allow", "seal", "unseal", "threshold", "phase", "baseline"),
        *("save-baseline", "manifest", "workload", "confirm", "alias", "yes"),
    ),
    "who does it": ("agent", "judge", "candidates", "agent-timeout", "worktree", "detach", "fence"),
    "limits": ("max-iterations", "limit", "guards"),
    "output": ("json", "report", "output", "record"),
}
