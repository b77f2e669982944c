"""The one table of options: each row is an attribute of the group of settings that it belongs to.

The attribute `max_tokens` declares the flag `--loop-max-tokens` and, if it has an ini default, the ini key
`loop_max_tokens`; `setting` declares an ini key alone. The parser, the ini file, the settings, the arguments of child
processes and docs/options.md are made from these rows.
"""

from __future__ import annotations

from pytest_loop.settings.rows import Group, Option, command, setting, switch, text, texts, value
from pytest_loop.settings.values import (
    one_of,
    parse_amount,
    parse_count,
    parse_limits,
    parse_phase,
    parse_share,
    parse_thresholds,
    parse_whole,
    parse_yes_or_no,
)


class JudgingSettings(Group):
    """Rules and sessions"""

    phase = value("judge only the rules that are active in this phase (default: all)", "A|B", parse_phase, "B")
    baseline = text("compare with an evaluation saved before; fail only on what became worse", "FILE", "")
    save_baseline = text("save this evaluation for --loop-baseline", "FILE")
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
    session_timeout = setting("end an evaluation after so many seconds", parse_amount, "3600")
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
    confirm = setting(
        "when a person is asked on the way: as the clarity of the draft asks for (shape), always, or never",
        one_of("shape", "always", "never"),
        "shape",
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
    agent_timeout = value("end an agent after so many seconds", "S", parse_amount, "1800")
    agent_silence = setting("end an agent that says nothing for so many seconds", parse_amount, "600")
    candidates = value("let so many try each edit at once, and keep the best", "N", parse_whole, "1")
    plan = setting("who plans: rules (made from rules and critique) or agent", str, "rules")
    prompts = setting("a folder with prompts of your own, such as refine.md", str, "")
    critique_tokens = setting("how long a critique may be", parse_whole, "2000")
    localise = setting(
        "tell agents which lines failing tests run and passing ones do not: yes or no", parse_yes_or_no, "no"
    )
    memory = switch("tell agents what fixed the same failure in earlier runs", "no")
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
    )


class LimitSettings(Group):
    """Limits"""

    max_iterations = value("stop after so many evaluations", "N", parse_whole, "4")
    budget = Option("stop when agents have reported this cost", "USD", parse_amount, default=None, ini="25")
    estimated_cost = setting(
        "count estimated costs against the budget, or only show them", one_of("show", "count"), "show"
    )
    max_tokens = Option("stop when agents have reported so many tokens", "N", parse_whole, default=None, ini="")
    max_seconds = Option("stop when completed steps have taken so long", "N", parse_whole, default=None, ini="")
    limit: Option[dict[str, float]] = Option(
        "stop when agents have used this much, such as '5 USD, 20 min, 200k tokens'",
        "LIMITS",
        parse_limits,
        default={},
        ini="",
    )


class BreakerSettings(Group):
    """Breakers"""

    stuck = setting("stop when the same rules failed so many iterations in a row (0: never)", parse_count, "5")
    same_error = setting("stop when every failure said the same so many times in a row (0: never)", parse_count, "3")
    thrashing = setting(
        "stop when a file is rewritten so often in one iteration, or edits are undone (0: never)", parse_count, "5"
    )
    stagnation = setting("stop when so many iterations gained too little (0: never)", parse_count, "2")
    min_gain = setting("what is too little", parse_share, "0.02")
    plateau = setting(
        "stop when two changes in a row were a smaller share of the score, such as 0.02 (0: never)", parse_share, "0"
    )
    diminishing = setting("the same, asked after it, such as 0.05 (0: never)", parse_share, "0")
    confidence = setting(
        "when so much of the weight passes beyond an opinion, do not wait for an agent's exit signal (0: always do)",
        parse_share,
        "0",
    )


class ControlSettings(Group):
    """Retries and escalations"""

    auto_retry_on_test_fail = setting("try again without asking when rules fail: yes or no", parse_yes_or_no, "yes")
    auto_retry_on_review_reject = setting(
        "try again without asking when a person rejects the work: yes or no", parse_yes_or_no, "yes"
    )
    escalation_includes_diff = setting("add the change to the question of a stopped run", parse_yes_or_no, "yes")
    feedback_max_length = setting("how many characters of advice a decision to retry holds", parse_whole, "500")


class WorkloadSettings(Group):
    """Workloads"""

    manifest = text("tune the workload of this manifest, case by case", "FILE", takes_over=True)
    case = texts("run only the cases of this name (a path, a name or a glob)", "CASE", has_ini=False)
    focus = texts("cases of a workload to look at first", "CASE")
    guard = texts("cases of a workload that must not become worse", "CASE")
    mode = value(
        "how to experiment with a workload",
        "precision|exploration|convergence|custom",
        one_of("precision", "exploration", "convergence", "custom"),
        "precision",
    )
    plan = text("hypotheses and the part of each case, planned before (YAML, JSON, TOML or Markdown)", "FILE")
    debrief = text("write what was believed, done and found in an experiment as Markdown", "PATH", takes_over=True)
    case_timeout = setting("end a command of a workload's case after so many seconds", parse_amount, "600")
    on_plateau = setting(
        "where no case of a workload improves any more: ask, continue or stop", one_of("ask", "continue", "stop"), "ask"
    )
    on_regression = Option(
        "where a case of a workload becomes worse: ask, accept, different or stop",
        "",
        one_of("ask", "accept", "different", "stop"),
        default="",
        ini="",
        has_flag=False,
    )
    decide = setting(
        "who chooses among the edits of a composer: ask or recommended", one_of("ask", "recommended"), "ask"
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
    gate_blocks = setting("let an agent stop after it was kept from that so often in a row", parse_whole, "5")
    gate_timeout = setting("let an agent stop when it was not judged within so many seconds", parse_amount, "540")
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
# The flags that `pytest --help` shows, by what they are for. All others work, too: see docs/options.md.
HELP_GROUPS = {
    "what to do": (
        *("task", "rules", "template", "artifact", "allow", "seal", "unseal", "threshold", "phase", "baseline"),
        *("save-baseline", "manifest", "confirm", "alias", "yes"),
    ),
    "who does it": ("agent", "judge", "candidates", "agent-timeout", "worktree", "detach", "fence"),
    "limits": ("max-iterations", "limit", "guards"),
    "output": ("json", "report", "output", "record"),
}
