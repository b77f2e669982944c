from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.core.model.rules import Finding
from pytest_loop.errors import CheckError, NotJudgedError
from pytest_loop.rules.checks.check import Check, Context, JudgeReply, find_obstacle, format_value, run_check
from pytest_loop.rules.checks.python_checks import Python
from pytest_loop.rules.checks.registry import build_check
from pytest_loop.rules.document import Documents
from pytest_loop.rules.syntax import ContentError

Run = Callable[..., list[str]]


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
def judge_module(tmp_path: Path) -> None:
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


@pytest.mark.usefixtures("judge_module")
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


@pytest.mark.parametrize(
    ("product", "check", "where"),
    [
        ("def total(:\n", "import shop", "shop.py:1"),
        ("import no_such_module\n", "import shop", "shop.py:1"),
        ("x = 1\n", "from shop import total", "shop.py:1"),
        ("x = 1\n", "import no_such_module", ""),
        ("x = 1\n", "def broken(:", ""),
    ],
)
def test_import_that_fails_in_the_product_fails_and_in_the_check_is_an_error(
    run: Run, tmp_path: Path, product: str, check: str, where: str
) -> None:
    (tmp_path / "shop.py").write_text(product)
    (tmp_path / "shop_judge.py").write_text(f"{check}\ndef judge(artifact, workspace): return True\n")
    try:
        if where:
            (line,) = run({"python": "shop_judge:judge"})
            assert line.startswith(f"{where}: expected shop_judge:judge to be importable, found ")
        else:
            with pytest.raises(CheckError, match="cannot import shop_judge: "):
                run({"python": "shop_judge:judge"})
    finally:
        sys.modules.pop("shop", None)
        sys.modules.pop("shop_judge", None)


def test_checks_without_a_judge_are_not_judged(run: Run) -> None:
    with pytest.raises(CheckError, match="no agent to ask 'is it kind\\?'"):
        run({"judge": "is it kind?"})
    with pytest.raises(NotJudgedError, match="not confirmed yet: 'is it kind\\?'"):
        run({"manual": "is it kind?"})
    with pytest.raises(NotJudgedError, match="a sentence that only an agent can judge: 'be kind'"):
        run("be kind")


YES, NO, MANUAL, BROKEN = {"command": "true"}, {"command": "false"}, {"manual": "ok?"}, {"command": "no-such-tool"}
WRONG = "expected exit code 0 of `false`, found exit code 1"


def test_checks_combine_with_all_any_and_not(run: Run) -> None:
    assert run([YES, YES]) == []
    assert run({"all": [YES, NO, NO]}) == [WRONG, WRONG]
    assert run({"any": [NO, YES]}) == []
    assert run({"any": [BROKEN, YES]}) == []
    assert run({"any": [NO, NO]}) == [WRONG]
    alternatives = [{"files": {"exist": ["a.md"]}}, {"files": {"exist": ["b.md"]}}]
    assert run({"any": alternatives})[0].endswith("expected a file 'a.md' or a file 'b.md', found none")
    assert run({"not": NO}) == []
    assert run({"not": YES}) == ["expected the check not to pass, found that it passed"]
    assert run({"all": [{"any": [NO, {"not": NO}]}, YES]}) == []


def test_an_unjudged_check_does_not_hide_findings_of_another(run: Run) -> None:
    assert run([MANUAL, NO]) == [WRONG]
    with pytest.raises(NotJudgedError):
        run([YES, MANUAL, MANUAL])
    with pytest.raises(NotJudgedError):
        run({"any": [NO, MANUAL]})
    with pytest.raises(CheckError):
        run({"any": [NO, BROKEN]})


class AnsweringCheck(Check):
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
def test_every_return_value_of_a_third_party_check_becomes_findings(
    tmp_path: Path, answer: object, lines: list[str]
) -> None:
    assert [str(finding) for finding in run_check(AnsweringCheck(answer=answer), Context(tmp_path, tmp_path))] == lines


def test_a_crash_of_a_third_party_check_is_an_error(tmp_path: Path) -> None:
    context = Context(tmp_path, tmp_path)
    with pytest.raises(CheckError, match="the check broke: KeyError: 'x'"):
        run_check(AnsweringCheck(answer=KeyError("x")), context)
    with pytest.raises(CheckError, match=r"Check has no run\(context\)"):
        run_check(Check(), context)
    with pytest.raises(CheckError, match="this check reads the artifact, and the rule file names none"):
        run_check(build_check({"contains": "x"}), context)


def test_formatted_values_are_short() -> None:
    assert format_value("x" * 200) == "'" + "x" * 76 + "..."
    assert [format_value(value) for value in (True, False, None, 1, "a")] == ["true", "false", "null", "1", "'a'"]


def test_judge_and_person_answer_checks(tmp_path: Path) -> None:
    questions: list[str] = []

    def ask(question: str) -> JudgeReply:
        questions.append(question)
        return JudgeReply("kind" in question, "it is rude", "the words")

    context = Context(tmp_path, tmp_path, ask=ask, is_confirmed=True)
    assert run_check(build_check({"judge": "is it kind?"}), context) == ()
    (finding,) = run_check(build_check("be brief"), context)
    assert (str(finding), finding.detail) == (
        "expected yes to 'Is this true of the document? be brief', found no: it is rude",
        "the words",
    )
    assert run_check(build_check({"manual": "ok?"}), context) == ()
    assert len(questions) == 2


def test_a_deleted_document_is_not_read_from_the_cache(run: Run, tmp_path: Path) -> None:
    documents = Documents(tmp_path)
    (tmp_path / "doc.md").write_text("x")
    assert documents.read(tmp_path / "doc.md") is documents.read(tmp_path / "doc.md")
    (tmp_path / "doc.md").unlink()
    with pytest.raises(ContentError, match="expected a file, found none"):
        documents.read(tmp_path / "doc.md")


@pytest.mark.parametrize(
    ("reference", "file_name"),
    [
        ("checks:good", "checks.py"),
        ("deep.checks:good", "deep/checks.py"),
        ("deep:good", "deep/__init__.py"),
        ("json:loads", None),
    ],
)
def test_the_file_of_a_python_check_is_found_in_the_project_only(
    tmp_path: Path, reference: str, file_name: str | None
) -> None:
    for name in ("checks.py", "deep/__init__.py", "deep/checks.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    expected = tmp_path / file_name if file_name else None
    assert Python(python=reference).find_file(tmp_path / "rules", tmp_path) == expected


@pytest.mark.parametrize(
    ("check", "obstacle"),
    [
        ({"command": "true"}, ""),
        ({"command": "no-such-tool x"}, "cannot run 'no-such-tool': no such command is installed here"),
        ({"command": "./build.sh"}, ""),
        ({"command": "no-such-tool x", "shell": True}, ""),
        ({"json_schema": "nowhere.json"}, "there is no schema nowhere.json"),
        ({"json_schema": {"type": "object"}}, ""),
        ({"python": "nowhere.deep:f"}, "cannot import nowhere: there is no such module"),
        ({"python": "json.nowhere:f"}, ""),
        ({"contains": "x"}, ""),
        ([{"contains": "x"}, {"json_schema": "nowhere.json"}], "there is no schema nowhere.json"),
        ({"any": [{"contains": "x"}, {"json_schema": "nowhere.json"}]}, ""),
        ({"any": [{"json_schema": "nowhere.json"}]}, "there is no schema nowhere.json"),
    ],
)
def test_obstacle_is_found_without_running_the_check(tmp_path: Path, check: Any, obstacle: str) -> None:
    assert find_obstacle(build_check(check), Context(tmp_path, tmp_path, Path("doc.md"))) == obstacle


def test_check_of_a_third_party_has_no_known_obstacle(tmp_path: Path) -> None:
    assert find_obstacle(object(), Context(tmp_path, tmp_path)) == ""
