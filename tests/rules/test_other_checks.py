from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.core.model.rules import Finding
from pytest_loop.errors import CheckError, NotJudgedError
from pytest_loop.rules import deadline, patterns
from pytest_loop.rules.checks.check import Answer, Check, Context, format_value, run_check
from pytest_loop.rules.checks.python_checks import Python
from pytest_loop.rules.checks.registry import BUILT_IN_KINDS, InvalidCheckError, build_check, needs_artifact
from pytest_loop.rules.document import Documents
from pytest_loop.rules.syntax import ContentError

Run = Callable[..., list[str]]
PYTHON = sys.executable


def test_a_command_passes_by_its_exit_code_and_output(run: Run) -> None:
    assert run({"command": "true"}) == []
    assert run({"command": "false", "expect_exit": 1}) == []
    assert run({"command": "echo hello world", "expect_output": "^hello"}) == []
    assert run({"command": "cat {artifact}", "expect_output": "some text"}, "some text") == []
    assert run({"command": "sh -c 'echo problem >&2'", "expect_output": "problem"}) == []


def test_a_command_runs_without_a_shell_in_the_folder_of_its_rule_file(run: Run, tmp_path: Path) -> None:
    (tmp_path / "x y").write_text("")
    assert run({"command": "ls 'x y'"}) == []
    assert run({"command": "echo '$HOME' {other}", "expect_output": r"^\$HOME \{other\}$"}) == []
    assert run({"command": "echo {workspace}", "expect_output": f"^{tmp_path}$"}) == []
    assert run({"command": "test -e x\\ y && echo $((1+1))", "shell": True, "expect_output": "^2$"}) == []
    assert run({"command": "cat {artifact} | wc -l", "shell": True, "expect_output": "^ *1$"}, "x\n", "a b;c") == []
    assert run({"type": "executable", "command": "true && echo ok", "expected": "it ends well"}) == []


def test_a_command_that_does_not_pass_says_how_it_ended(run: Run, tmp_path: Path) -> None:
    assert run({"command": "false"}) == ["expected exit code 0 of `false`, found exit code 1"]
    assert run({"command": "sh -c 'kill -9 $$'"}) == [
        "expected exit code 0 of `sh -c 'kill -9 $$'`, found an end by signal 9"
    ]
    assert run({"command": "echo x", "expect_output": "y"}) == [
        "expected output of `echo x` matching 'y', found other output"
    ]
    assert run({"command": "true", "expect_output": "y"}) == ["expected output of `true` matching 'y', found no output"]
    context = Context(tmp_path, tmp_path)
    (only,) = run_check(build_check({"command": "sh -c 'seq 100; exit 3'"}), context)
    assert only.detail.splitlines() == [str(number) for number in range(89, 101)]


def test_a_command_that_does_not_end_is_ended_with_its_whole_group(run: Run, tmp_path: Path) -> None:
    script = (
        "import subprocess, sys, time; p = subprocess.Popen(['sleep', '60']); print(p.pid, flush=True); time.sleep(60)"
    )
    started = time.monotonic()
    context = Context(tmp_path, tmp_path)
    (only,) = run_check(build_check({"command": f'{PYTHON} -c "{script}"', "timeout": 1}), context)
    assert time.monotonic() - started < 20
    assert str(only).endswith("to end within 1 s, found it still running, and ended it")
    assert _is_gone(int(only.detail))


def test_what_a_command_leaves_in_its_group_is_ended_and_does_not_hold_us_up(run: Run, tmp_path: Path) -> None:
    started = time.monotonic()
    assert run({"command": "sleep 60 & echo $! > pid", "shell": True}) == []
    assert time.monotonic() - started < 20
    assert _is_gone(int((tmp_path / "pid").read_text()))


def test_a_command_that_ignores_the_polite_signal_is_ended_all_the_same(run: Run) -> None:
    lines = run({"command": "trap '' TERM; while true; do sleep 0.1; done", "shell": True, "timeout": 0.3})
    assert lines[0].endswith("found it still running, and ended it")


def _is_gone(pid: int) -> bool:
    for _ in range(100):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        threading.Event().wait(0.05)
    return False


def test_a_command_that_cannot_be_started_is_an_error_and_not_a_failure(run: Run, tmp_path: Path) -> None:
    with pytest.raises(CheckError, match="cannot run 'no-such-tool': no such command is installed here"):
        run({"command": "no-such-tool --x"})
    (tmp_path / "script").write_text("")
    with pytest.raises(CheckError, match=r"cannot run './script': Permission denied"):
        run({"command": "./script"})
    with pytest.raises(CheckError, match=r"cannot run 'true': the folder .* does not exist"):
        run_check(build_check({"command": "true"}), Context(tmp_path, tmp_path / "none"))
    with pytest.raises(CheckError, match=r"cannot run .* null byte"):
        run_check(build_check({"command": "echo '\0'"}), Context(tmp_path, tmp_path))


def test_a_number_from_a_command_is_compared(run: Run) -> None:
    number = {"metric": {"command": "echo TOTAL 1,083 87%", "pattern": r"(\d+)%", "op": ">=", "value": 80}}
    assert run(number) == []
    assert run({"metric": {"command": "echo size 1,083", "pattern": r"[\d,]+", "op": "==", "value": 1083}}) == []
    assert run({"metric": {"command": 'echo \'{"a": {"b": 1.5}}\'', "json": "a.b", "op": "<", "value": 2}}) == []


@pytest.mark.parametrize(
    ("ask", "line"),
    [
        ({"command": "echo 79", "pattern": r"\d+", "value": 80}, "expected a number >= 80 from `echo 79`, found 79"),
        (
            {"command": "echo x", "pattern": r"\d+", "value": 80},
            "expected a number >= 80 from `echo x`, found no match of '\\\\d+' in its output",
        ),
        (
            {"command": "echo nan", "pattern": r"\w+", "value": 80},
            "expected a number >= 80 from `echo nan`, found 'nan', which is not a finite number",
        ),
        (
            {"command": "echo inf", "pattern": r"\w+", "value": 80},
            "expected a number >= 80 from `echo inf`, found 'inf', which is not a finite number",
        ),
        (
            {"command": "echo x", "json": "a", "value": 80},
            "expected a number >= 80 from `echo x`, found output that is not JSON",
        ),
        (
            {"command": "echo '{}'", "json": "a", "value": 80},
            "expected a number >= 80 from `echo '{}'`, found null, which is not a finite number",
        ),
        (
            {"command": "echo true", "json": "@", "value": 0},
            "expected a number >= 0 from `echo true`, found true, which is not a finite number",
        ),
        ({"command": "false", "pattern": "x", "value": 80}, "expected exit code 0 of `false`, found exit code 1"),
    ],
)
def test_a_number_that_does_not_compare_says_what_was_found(run: Run, ask: dict[str, Any], line: str) -> None:
    assert run({"metric": ask}) == [line]


def test_output_is_kept_head_and_tail(tmp_path: Path) -> None:
    from pytest_loop.processes import child

    script = "print('head'); print('x' * 5_000_000); print('tail')"
    done = child.run_command(child.Command([PYTHON, "-c", script], tmp_path, 60, output_limit=2000))
    assert done.stdout.startswith("head\n")
    assert done.stdout.endswith("tail\n")
    assert "bytes left out ...]" in done.stdout
    assert len(done.stdout) < 3000


def test_files_are_found_by_globs(run: Run, tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    for name in ("src/a.py", "src/b.py", "x.tmp"):
        (tmp_path / name).write_text("")
    (tmp_path / "src" / "out.py").symlink_to("/etc/passwd")
    assert (
        run(
            {
                "files": {
                    "exist": ["src/*.py", "x.tmp"],
                    "absent": "*.bak",
                    "count": {"glob": "**/*.py", "min": 2, "max": 2},
                }
            }
        )
        == []
    )
    assert run({"files": {"exist": "*.rs"}})[0].endswith("expected a file '*.rs', found none")
    assert run({"files": {"absent": "*.tmp"}}) == ["x.tmp: expected no file '*.tmp', found one"]
    assert run({"files": {"count": {"glob": "src/*", "min": 3}}})[0].endswith(
        "expected at least 3 files 'src/*', found 2"
    )
    assert run({"files": {"count": {"glob": "src/*", "max": 0}}})[0].endswith(
        "expected at most 0 files 'src/*', found 2"
    )


@pytest.fixture
def judges(tmp_path: Path) -> None:
    (tmp_path / "my_judges.py").write_text(
        "def yes(artifact, workspace): return True\n"
        "def nothing(artifact, workspace): assert workspace.is_dir()\n"
        "def no(artifact, workspace): return False\n"
        "def odd(artifact, workspace): return 'ok'\n"
        "def says(artifact, workspace): assert False, f'{artifact.name} is bad'\n"
        "def where(artifact, workspace): assert False, 'x.py:3: too long'\n"
        "def several(artifact, workspace): assert False, 'x.py:3: f: expected 1, found 2;\\nmore'\n"
        "def unsure(artifact, workspace): from pytest_loop import CheckError; raise CheckError('no idea')\n"
        "def breaks(artifact, workspace): raise KeyError('x')\n"
        "value = 5\n"
    )


@pytest.mark.usefixtures("judges")
def test_a_function_judges_the_artifact(run: Run) -> None:
    path = list(sys.path)
    try:
        assert run({"python": "my_judges:yes"}) == []
        assert run({"python": "my_judges:nothing"}) == []
        assert run({"python": "my_judges:no"}) == ["expected True or None from my_judges:no, found false"]
        assert run({"python": "my_judges:odd"}) == ["expected True or None from my_judges:odd, found 'ok'"]
        assert run({"python": "my_judges:says"}) == ["expected my_judges:says to pass, found doc.md is bad"]
        assert run({"python": "my_judges:breaks"}) == ["expected my_judges:breaks to pass, found KeyError: 'x'"]
        assert run({"python": "my_judges:where"}) == ["x.py:3: expected my_judges:where to pass, found too long"]
        assert run({"python": "my_judges:several"}) == [
            "x.py:3: f: expected 1, found 2",
            "expected my_judges:several to pass, found more",
        ]
        with pytest.raises(CheckError, match="no idea"):
            run({"python": "my_judges:unsure"})
        with pytest.raises(CheckError, match="my_judges has no function value"):
            run({"python": "my_judges:value"})
        with pytest.raises(CheckError, match="cannot import no_such_module: ModuleNotFoundError"):
            run({"python": "no_such_module:f"})
    finally:
        sys.modules.pop("my_judges", None)
    assert sys.path == path


def test_what_nobody_can_judge_here_is_said(run: Run) -> None:
    with pytest.raises(CheckError, match="no agent to ask 'is it kind\\?'"):
        run({"judge": "is it kind?"})
    with pytest.raises(NotJudgedError, match="an assumption: nobody has confirmed 'is it kind\\?'"):
        run({"manual": "is it kind?"})
    with pytest.raises(NotJudgedError, match="a sentence that only an agent can judge: 'be kind'"):
        run("be kind")


YES, NO, MANUAL, BROKEN = {"command": "true"}, {"command": "false"}, {"manual": "ok?"}, {"command": "no-such-tool"}
WRONG = "expected exit code 0 of `false`, found exit code 1"


def test_checks_are_made_of_checks(run: Run) -> None:
    assert run([YES, YES]) == []
    assert run({"all": [YES, NO, NO]}) == [WRONG, WRONG]
    assert run({"any": [NO, YES]}) == []
    assert run({"any": [BROKEN, YES]}) == []
    assert run({"any": [NO, NO]}) == [WRONG, WRONG]
    assert run({"not": NO}) == []
    assert run({"not": YES}) == ["expected the check not to pass, found that it passed"]
    assert run({"all": [{"any": [NO, {"not": NO}]}, YES]}) == []


def test_what_one_check_cannot_judge_does_not_hide_what_another_finds(run: Run) -> None:
    assert run([MANUAL, NO]) == [WRONG]
    with pytest.raises(NotJudgedError):
        run([YES, MANUAL, MANUAL])
    with pytest.raises(NotJudgedError):
        run({"any": [NO, MANUAL]})
    with pytest.raises(CheckError):
        run({"any": [NO, BROKEN]})


@pytest.mark.parametrize("pattern", [r"(a+)+$", r"(a|aa)+$", r"^(a*)*b$"])
def test_a_pattern_cannot_hang_the_run(run: Run, monkeypatch: pytest.MonkeyPatch, pattern: str) -> None:
    monkeypatch.setattr(patterns, "DEADLINE_SECONDS", 0.2)
    started = time.monotonic()
    with pytest.raises(CheckError, match=r"the pattern .* did not end within 0\.2 s"):
        run({"matches": pattern}, "a" * 60 + "!")
    assert time.monotonic() - started < 30


def test_where_a_match_cannot_be_interrupted_a_process_can(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    results: list[Any] = []

    def elsewhere() -> None:
        results.append(run({"matches": "^b(.)", "min_matches": 2}, "ab\nbc\nbd"))
        monkeypatch.setattr(patterns, "DEADLINE_SECONDS", 0.5)
        try:
            run({"matches": r"(a+)+$"}, "a" * 60 + "!")
        except CheckError as error:
            results.append(str(error))

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert results == [[], "the pattern '(a+)+$' did not end within 0.5 s"]


def test_an_alarm_of_somebody_else_goes_on_counting() -> None:
    import signal

    rung: list[int] = []
    before = signal.signal(signal.SIGALRM, lambda *_: rung.append(1))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with deadline.enforce_deadline(0.05, "it"), pytest.raises(deadline.DeadlineError):
            threading.Event().wait(0.2)
        with deadline.enforce_deadline(60, "the outer alarm comes first"):
            while not rung:
                threading.Event().wait(0.01)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert rung == [1]


def test_outside_the_main_thread_a_deadline_does_nothing() -> None:
    done: list[bool] = []

    def elsewhere() -> None:
        with deadline.enforce_deadline(0.01, "it"):
            threading.Event().wait(0.05)
            done.append(True)

    thread = threading.Thread(target=elsewhere)
    thread.start()
    thread.join()
    assert done == [True]


class Answering(Check):
    answer: Any = None

    def run(self, context: Context) -> Any:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "lines"),
    [
        (None, []),
        (True, []),
        ([], []),
        (False, ["expected the check to pass, found that it did not"]),
        ("too sad", ["expected the check to pass, found too sad"]),
        (Finding(expected="x", found="y"), ["expected x, found y"]),
        ([Finding(expected="x", found="y", where="z:1")], ["z:1: expected x, found y"]),
        (AssertionError("bad"), ["expected the check to pass, found bad"]),
        (AssertionError(), ["expected the check to pass, found a failed assertion"]),
    ],
)
def test_whatever_a_third_party_answers_becomes_findings(tmp_path: Path, answer: object, lines: list[str]) -> None:
    assert [str(one) for one in run_check(Answering(answer=answer), Context(tmp_path, tmp_path))] == lines


def test_a_third_party_that_breaks_is_an_error(tmp_path: Path) -> None:
    context = Context(tmp_path, tmp_path)
    with pytest.raises(CheckError, match="the check broke: KeyError: 'x'"):
        run_check(Answering(answer=KeyError("x")), context)
    with pytest.raises(CheckError, match=r"Check has no run\(context\)"):
        run_check(Check(), context)
    with pytest.raises(CheckError, match="this check reads the artifact, and the rule file names none"):
        run_check(build_check({"contains": "x"}), context)


def test_what_is_shown_stays_short() -> None:
    assert format_value("x" * 200) == "'" + "x" * 76 + "..."
    assert [format_value(value) for value in (True, False, None, 1, "a")] == ["true", "false", "null", "1", "'a'"]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ({"command": "true"}, False),
        ({"command": "cat {artifact}"}, True),
        ({"metric": {"command": "wc {artifact}", "pattern": "x", "value": 1}}, True),
        ({"any": [{"manual": "x"}, {"not": {"contains": "x"}}]}, True),
        ("a sentence", False),
    ],
)
def test_which_checks_need_an_artifact(raw: object, expected: bool) -> None:
    assert needs_artifact(build_check(raw)) is expected


KINDS = ", ".join(sorted([*BUILT_IN_KINDS, "all", "any", "not"]))


@pytest.mark.parametrize(
    ("raw", "path", "text"),
    [
        (5, (), "expected a check (a mapping, a list or a sentence), found 5"),
        ("  ", (), "expected a check (a mapping, a list or a sentence), found '  '"),
        ([], (), "expected a check (a mapping, a list or a sentence), found []"),
        ({}, (), "expected a check (a mapping, a list or a sentence), found {}"),
        ({"contain": "x"}, ("contain",), f"expected one kind of check ({KINDS}), found `contain`"),
        (
            {"contains": "x", "absent": "y"},
            ("absent",),
            "expected one kind of check, found `contains` and `absent`: put them into `all`",
        ),
        ({"contains": 5}, ("contains",), "expected a list for `contains`, found 5"),
        ({"contains": [404]}, ("contains", 0), "expected text, found 404"),
        ({"contains": []}, ("contains",), "expected at least one entry for `contains`, found []"),
        (
            {"contains": "x", "ignorecase": True},
            ("ignorecase",),
            "expected `ignore_case`, found the unknown key `ignorecase`",
        ),
        (
            {"contains": "x", "zzz": 1},
            ("zzz",),
            "expected one of contains, ignore_case, max_matches, min_matches, section, found the unknown key `zzz`",
        ),
        ({"contains": "x", "min_matches": -1}, ("min_matches",), "expected a number >= 0 for `min_matches`, found -1"),
        (
            {"matches": "("},
            (),
            "expected a regular expression, found '(' (missing ), unterminated subpattern at position 0)",
        ),
        ({"matches": "a" * 10_001}, (), "expected a regular expression, found one of 10,001 characters"),
        (
            {"command": "x", "expect_output": "["},
            ("expect_output",),
            "expected a regular expression, found '[' (unterminated character set at position 0)",
        ),
        ({"command": ""}, ("command",), "expected a text that is not empty for `command`, found ''"),
        ({"command": " "}, (), "expected a command, found an empty text"),
        ({"command": "a && b"}, (), "expected a plain command, found the shell operator '&&': add `shell: true`"),
        ({"command": "cat < x"}, (), "expected a plain command, found the shell operator '<': add `shell: true`"),
        ({"command": "echo 'x"}, (), 'expected a command, found "echo \'x" (no closing quotation)'),
        ({"command": "true", "timeout": 0}, ("timeout",), "expected a number > 0 for `timeout`, found 0"),
        (
            {"command": "true", "timeout": float("nan")},
            ("timeout",),
            "expected a finite number for `timeout`, found nan",
        ),
        (
            {"command": "true", "expect_exit": "0"},
            ("expect_exit",),
            "expected a whole number for `expect_exit`, found '0'",
        ),
        ({"metric": {"command": "x", "value": 1}}, ("metric",), "expected either pattern or json, found none"),
        (
            {"metric": {"command": "x", "pattern": "a", "json": "b", "value": 1}},
            ("metric",),
            "expected either pattern or json, found both",
        ),
        ({"metric": {"command": "x", "pattern": "a"}}, ("metric", "value"), "expected the key `value`, found none"),
        (
            {"metric": {"command": "x", "pattern": "a", "value": 1, "unit": "s"}},
            ("metric", "unit"),
            "expected one of command, json, op, pattern, value, found the unknown key `unit`",
        ),
        (
            {"metric": {"command": "x", "pattern": "a", "value": 1, "op": "=>"}},
            ("metric", "op"),
            "expected '==', '!=', '>=', '>', '<=' or '<' for `op`, found '=>'",
        ),
        (
            {"query": {"path": "a[", "value": 1}},
            ("query", "path"),
            "expected a JMESPath expression, found 'a[' (Invalid jmespath expression: Incomplete expression)",
        ),
        (
            {"parses": "csv"},
            ("parses",),
            "expected 'auto', 'json', 'yaml', 'toml', 'python', 'markdown' or 'xml' for `parses`, found 'csv'",
        ),
        ({"sections": ["x", 5]}, ("sections", 1), "expected a mapping, found 5"),
        ({"size": {"lines": {"min": 5, "max": 1}}}, ("size", "lines"), "expected min <= max, found 5 > 1"),
        ({"files": {}}, ("files",), "expected exist, absent or count, found none of them"),
        (
            {"files": {"exist": "../x"}},
            ("files", "exist"),
            "expected a glob below the rule file's folder, found '../x'",
        ),
        ({"links": False}, ("links",), "expected True for `links`, found false"),
        ({"python": "x"}, ("python",), "expected module:function, found 'x'"),
        ({"tests": "a and"}, ("tests",), "expected node ids or an expression over marks, found 'a and'"),
        ({"tests": "a + b"}, ("tests",), "expected node ids or an expression over marks, found 'a + b'"),
        ({"all": "x"}, ("all",), "expected a list of checks for `all`, found 'x'"),
        ({"any": []}, ("any",), "expected a list of checks for `any`, found []"),
        ({"all": [{"contains": "x"}], "timeout": 5}, ("timeout",), "expected nothing beside `all`, found `timeout`"),
        (
            {"all": ["ok", {"any": [{"contains": 5}]}]},
            ("all", 1, "any", 0, "contains"),
            "expected a list for `contains`, found 5",
        ),
        ({"not": {"x": 1}}, ("not", "x"), f"expected one kind of check ({KINDS}), found `x`"),
        ({"any": [{"tests": "x"}]}, ("any",), "expected `tests` alone, in a list or in `all`, found it in `any`"),
        ({"not": {"tests": "x"}}, ("not",), "expected `tests` alone, in a list or in `all`, found it in `not`"),
        ({"type": "content"}, ("search",), "expected the key `search`, found none"),
        ({"type": "executable", "command": 5}, ("command",), "expected text for `command`, found 5"),
        ({"json_schema": 5}, ("json_schema",), "expected text for `json_schema`, found 5"),
    ],
)
def test_a_check_that_cannot_be_understood_says_why(raw: object, path: tuple[str | int, ...], text: str) -> None:
    with pytest.raises(InvalidCheckError) as caught:
        build_check(raw)
    (only,) = caught.value.problems
    assert (only.text, only.path) == (text, path)


def test_all_that_is_wrong_with_a_check_is_said_at_once() -> None:
    with pytest.raises(InvalidCheckError) as caught:
        build_check([{"contains": 5}, {"command": "x", "timeout": -1, "shell": "yes"}, 7])
    assert [one.path for one in caught.value.problems] == [(0, "contains"), (1, "timeout"), (1, "shell"), (2,)]


def test_a_judge_and_a_person_can_be_asked(tmp_path: Path) -> None:
    asked: list[str] = []

    def ask(question: str) -> Answer:
        asked.append(question)
        return Answer("kind" in question, "it is rude", "the words")

    context = Context(tmp_path, tmp_path, ask=ask, is_confirmed=True)
    assert run_check(build_check({"judge": "is it kind?"}), context) == ()
    (only,) = run_check(build_check("be brief"), context)
    assert (str(only), only.detail) == (
        "expected yes to 'Is this true of the document? be brief', found no: it is rude",
        "the words",
    )
    assert run_check(build_check({"manual": "ok?"}), context) == ()
    assert len(asked) == 2


def test_a_document_that_is_gone_is_not_read_from_memory(run: Run, tmp_path: Path) -> None:
    documents = Documents(tmp_path)
    (tmp_path / "doc.md").write_text("x")
    assert documents.read(tmp_path / "doc.md") is documents.read(tmp_path / "doc.md")
    (tmp_path / "doc.md").unlink()
    with pytest.raises(ContentError, match="expected a file, found none"):
        documents.read(tmp_path / "doc.md")


@pytest.mark.parametrize(
    ("reference", "found"),
    [
        ("checks:good", "checks.py"),
        ("deep.checks:good", "deep/checks.py"),
        ("deep:good", "deep/__init__.py"),
        ("json:loads", None),
    ],
)
def test_a_function_that_judges_stands_in_a_file_of_the_project_or_elsewhere(
    tmp_path: Path, reference: str, found: str | None
) -> None:
    for name in ("checks.py", "deep/__init__.py", "deep/checks.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    expected = tmp_path / found if found else None
    assert Python(python=reference).find_file(tmp_path / "rules", tmp_path) == expected
