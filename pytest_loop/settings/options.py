"""The one table of flags and ini keys: a row is an attribute of the group of settings that it belongs to.

The parser, the ini file, the settings, the arguments of child processes and docs/options.md are made from these rows.
"""

from __future__ import annotations

from pytest_loop.settings.rows import Group, Option, command, setting, switch, text, texts, value
from pytest_loop.settings.values import (
    one_of,
    parse_amount,
    parse_count,
    parse_phase,
    parse_share,
    parse_thresholds,
    parse_whole,
    parse_yes_or_no,
)


class JudgingSettings(Group):
    """Rules and sessions"""

    phase = value(
        "--loop-phase", "judge only the rules that are active in this phase (default: all)", "A|B", parse_phase, "B"
    )
    baseline = text(
        "--loop-baseline", "compare with an evaluation saved before; fail only on what became worse", "FILE", ""
    )
    save_baseline = text("--loop-save-baseline", "save this evaluation for --loop-baseline", "FILE")
    schema = switch("--loop-schema", "print the JSON Schema of rule files, and exit")
    rules = texts("--loop-rules", "exactly these rule files judge (otherwise: every item of the arguments)", "PATH")
    template = text("--loop-template", "judge by a built-in template: api-spec, code, docs, config", "NAME", "")
    threshold: Option[dict[str, str]] = Option(
        "--loop-threshold",
        "the scores that pass, such as A=0.8,B=0.9",
        "SCORES",
        parse_thresholds,
        default={},
        ini="",
    )
    confirmed = texts("--loop-confirm", "confirm a manual rule", "RULE", has_ini=False)
    session = value(
        "--loop-session",
        "how sessions start: forked from a server (warm), as a new interpreter (cold), or what is possible (auto)",
        "auto|cold|warm",
        one_of("auto", "cold", "warm"),
        "auto",
    )
    session_timeout = setting("loop_session_timeout", "end an evaluation after so many seconds", parse_amount, "3600")
    stop_early = switch("--loop-stop-early", "end an evaluation at the first failure that keeps it from passing")
    no_reuse = switch("--loop-no-reuse", "judge every rule every time, also where nothing that it looks at has changed")


class StartSettings(Group):
    """Starting a run"""

    task = text(
        "--loop-task", "what to do, until the rules are satisfied (@FILE and - read it)", "TEXT", takes_over=True
    )
    alias = text("--loop-alias", "the name of the run", "NAME")
    yes = switch("--loop-yes", "start without asking")
    confirm = setting(
        "loop_confirm",
        "when a person is asked on the way: as the clarity of the draft asks for (shape), always, or never",
        one_of("shape", "always", "never"),
        "shape",
    )
    force = switch("--loop-force", "start although four runs are active")
    detach = switch("--loop-detach", "work in the background, apart from this terminal")
    worktree = switch("--loop-worktree", "work in a git work tree and on a branch of its own, loop/ALIAS")
    dir = setting("loop_dir", "the folder for runs (default: .loop, or .ai-factory/evolution)", str, "")


class AgentSettings(Group):
    """Agents"""

    agent = texts(
        "--loop-agent", "who does it: builtin, codex, claude, command:WORDS, python:module:callable, ...", "SPEC"
    )
    judge = text("--loop-judge", "the agent that answers judge checks and makes sentences concrete", "SPEC", "")
    agent_timeout = value("--loop-agent-timeout", "end an agent after so many seconds", "S", parse_amount, "1800")
    agent_silence = setting(
        "loop_agent_silence", "end an agent that says nothing for so many seconds", parse_amount, "600"
    )
    candidates = value(
        "--loop-candidates", "let so many try each edit at once, and keep the best", "N", parse_whole, "1"
    )
    plan = setting("loop_plan", "who plans: rules (made from rules and critique) or agent", str, "rules")
    prompts = setting("loop_prompts", "a folder with prompts of your own, such as refine.md", str, "")
    critique_tokens = setting("loop_critique_tokens", "how long a critique may be", parse_whole, "2000")
    localise = setting(
        "loop_localise",
        "tell agents which lines failing tests run and passing ones do not: yes or no",
        parse_yes_or_no,
        "no",
    )
    memory = switch("--loop-memory", "tell agents what mended the same failure in earlier runs", "no")
    record = text("--loop-record", "write the answers of agents into a file for replay:FILE", "FILE")


class WorkspaceSettings(Group):
    """Files under edit"""

    artifact = text("--loop-artifact", "the document to improve (default: artifact.md in the run's folder)", "PATH", "")
    workspace = switch("--loop-workspace", "improve the files of the project in place (default where only tests judge)")
    allow = texts("--loop-allow", "only files that match may be edited (as in .gitignore)", "GLOB")
    seal = texts("--loop-seal", "these files judge too, and stay as they are", "GLOB")
    unseal = texts("--loop-unseal", "these files may be edited although they judge", "GLOB")
    keep = value(
        "--loop-keep",
        "which files stay when it stops without success: the last, or the best",
        "last|best",
        one_of("last", "best"),
        "last",
    )


class LimitSettings(Group):
    """Limits"""

    max_iterations = value("--loop-max-iterations", "stop after so many evaluations", "N", parse_whole, "4")
    budget = Option(
        "--loop-budget", "stop when agents have reported this cost", "USD", parse_amount, default=None, ini="25"
    )
    max_tokens = Option(
        "--loop-max-tokens", "stop when agents have reported so many tokens", "N", parse_whole, default=None, ini=""
    )
    max_seconds = Option(
        "--loop-max-seconds", "stop when completed steps have taken so long", "N", parse_whole, default=None, ini=""
    )


class BreakerSettings(Group):
    """Breakers"""

    stuck = setting(
        "loop_stuck", "stop when the same rules failed so many iterations in a row (0: never)", parse_count, "5"
    )
    same_error = setting(
        "loop_same_error", "stop when every failure said the same so many times in a row (0: never)", parse_count, "3"
    )
    thrashing = setting(
        "loop_thrashing",
        "stop when a file is rewritten so often in one iteration, or edits are undone (0: never)",
        parse_count,
        "5",
    )
    stagnation = setting(
        "loop_stagnation", "stop when so many iterations gained too little (0: never)", parse_count, "2"
    )
    min_gain = setting("loop_min_gain", "what is too little", parse_share, "0.02")
    plateau = setting(
        "loop_plateau",
        "stop when two changes in a row were a smaller share of the score, such as 0.02 (0: never)",
        parse_share,
        "0",
    )
    diminishing = setting("loop_diminishing", "the same, asked after it, such as 0.05 (0: never)", parse_share, "0")
    confidence = setting(
        "loop_confidence",
        "when so much of the weight passes beyond an opinion, do not wait for an agent's exit signal (0: always do)",
        parse_share,
        "0",
    )


class WorkloadSettings(Group):
    """Workloads"""

    manifest = text("--loop-manifest", "tune the workload of this manifest, case by case", "FILE", takes_over=True)
    cases = texts("--loop-case", "run only the cases of this name (a path, a name or a glob)", "CASE", has_ini=False)
    focus = texts("--loop-focus", "cases of a workload to look at first", "CASE")
    guards = texts("--loop-guard", "cases of a workload that must not become worse", "CASE")
    mode = value(
        "--loop-mode",
        "how to experiment with a workload",
        "precision|exploration|convergence|custom",
        one_of("precision", "exploration", "convergence", "custom"),
        "precision",
    )
    plan_file = text(
        "--loop-plan", "hypotheses and the part of each case, planned before (YAML, JSON, TOML or Markdown)", "FILE"
    )
    debrief = text(
        "--loop-debrief",
        "write what was believed, done and found in an experiment as Markdown",
        "PATH",
        takes_over=True,
    )
    case_timeout = setting(
        "loop_case_timeout", "end a command of a workload's case after so many seconds", parse_amount, "600"
    )
    on_plateau = setting(
        "loop_on_plateau",
        "where no case of a workload improves any more: ask, continue or stop",
        one_of("ask", "continue", "stop"),
        "ask",
    )
    on_regression = Option(
        "loop_on_regression",
        "where a case of a workload becomes worse: ask, accept, different or stop",
        "",
        one_of("ask", "accept", "different", "stop"),
        default="",
        ini="",
    )
    decide = setting(
        "loop_decide",
        "who chooses among the edits of a composer: ask or recommended",
        one_of("ask", "recommended"),
        "ask",
    )


class OutputSettings(Group):
    """Output"""

    json = text("--loop-json", "write the result for machines (- is standard output)", "PATH")
    report = text(
        "--loop-report",
        "write a run as a page of HTML: at its end, or of one that is there",
        "PATH",
        "",
        takes_over=True,
    )
    report_open = switch("--loop-report-open", "show the report in a browser", takes_over=True)
    status_block = switch(
        "--loop-status-block", "say after each evaluation where the run stands, in the block that other loops use"
    )


class CommandSettings(Group):
    """Commands around runs"""

    status = command("--loop-status", "show a run, and exit")
    list = switch("--loop-list", "list all runs, and exit", takes_over=True)
    agents = switch("--loop-agents", "list the agents whose clients are installed here, and exit", takes_over=True)
    history = command("--loop-history", "show the events of a run, and exit")
    stop = command("--loop-stop", "end the active run, and exit", "REASON")
    pause = command("--loop-pause", "interrupt a run where it stands, and exit")
    attach = command("--loop-attach", "follow a run that works in the background")
    resume = command("--loop-resume", "go on with a run where it stands")
    clean = Option("--loop-clean", "delete a run, or all", "ALIAS|all", str, default=None, takes_over=True)
    infer = Option(
        "--loop-infer",
        "show what would tell that a task is done in this project, and exit",
        "TEXT",
        str,
        default=None,
        takes_over=True,
    )
    restore = Option(
        "--loop-restore",
        "make the files those of an iteration again, and exit",
        "N",
        parse_whole,
        default=None,
        takes_over=True,
    )
    gate = switch("--loop-gate", "judge once, answer the Stop hook of a coding agent, and exit", takes_over=True)
    gate_blocks = setting(
        "loop_gate_blocks", "let an agent stop after it was kept from that so often in a row", parse_whole, "5"
    )
    gate_timeout = setting(
        "loop_gate_timeout",
        "let an agent stop when it was not judged within so many seconds",
        parse_amount,
        "540",
    )
    watch = switch("--loop-watch", "judge again whenever files change, until somebody interrupts", takes_over=True)


GROUPS: dict[str, type[Group]] = {
    "judging": JudgingSettings,
    "start": StartSettings,
    "agents": AgentSettings,
    "workspace": WorkspaceSettings,
    "limits": LimitSettings,
    "breakers": BreakerSettings,
    "workload": WorkloadSettings,
    "output": OutputSettings,
    "commands": CommandSettings,
}
OPTIONS = tuple(option for group in GROUPS.values() for option in group.get_options().values())
