"""Bad input gets one clear line without a traceback, and the other rules are still judged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import WORKERS_IF_THOROUGH

Write = Callable[..., Path]

GOOD = "rules: [{id: a.x.fine, description: Fine, check: {command: 'true'}}]"
BAD: dict[str, tuple[str | bytes, str]] = {
    "duplicate.rules.yaml": (
        "rules:\n- {id: a.x, description: x, check: y}\n- {id: a.x, description: x, check: y}",
        "duplicate.rules.yaml:3: expected each id once, found 'a.x' again (first in line 2)",
    ),
    "key.rules.json": (
        '{"rules": [{"id": "a.x", "description": "x", "check": "y",\n"sevrity": "warn"}]}',
        "key.rules.json:2: expected `severity`, found the unknown key `sevrity`",
    ),
    "twice.rules.json": (
        '{"rules": [{"id": "a.x", "description": "x",\n"description": "y", "check": "y"}]}',
        "twice.rules.json:2: expected each key once, found 'description' twice",
    ),
    "type.rules.toml": (
        '[[rules]]\nid = "a.x"\ndescription = "x"\nweight = "heavy"\ncheck = "y"',
        "type.rules.toml:4: expected a number for `weight`, found 'heavy'",
    ),
    "tabs.rules.yaml": ("rules:\n\t- id: x", "tabs.rules.yaml:2: expected spaces for indentation, found a tab"),
    "bomb.rules.yaml": (
        "a: &a [x,x,x,x,x,x,x,x,x,x]\n"
        + "".join(f"{chr(98 + n)}: &{chr(98 + n)} [{','.join(['*' + chr(97 + n)] * 10)}]\n" for n in range(8)),
        "bomb.rules.yaml:1: expected at most 1,000,000 values, found aliases that expand to more",
    ),
    "latin.rules.yaml": (b"rules:\n  - id: \xe9t\xe9", "latin.rules.yaml:2: expected UTF-8 text, found the byte 0xe9"),
    "wide.rules.yaml": (GOOD.encode("utf-16"), "wide.rules.yaml:1: expected UTF-8 text, found the byte 0xff"),
    "large.rules.yaml": (b"#" * 10 * 1024 * 1024, "large.rules.yaml:1: expected at most 8 MB, found 10.0 MB"),
    "deep.rules.yaml": ("[" * 200_000, "deep.rules.yaml:1: expected at most 100 levels, found deeper nesting"),
    "away.rules.yaml": (
        f"artifact: ../../etc/passwd\n{GOOD}",
        "away.rules.yaml:1: expected a path inside the project for `artifact`, found '../../etc/passwd'",
    ),
    "regex.rules.yaml": (
        "artifact: x\nrules:\n- {id: a.x, description: x, check: {matches: '('}}",
        "regex.rules.yaml:3: expected a regular expression, found '(' (missing ), unterminated subpattern at position 0)",
    ),
    "empty.rules.yaml": ("", "empty.rules.yaml:1: expected a mapping with `rules`, found an empty file"),
    "nul.rules.yaml": (b"rules:\n- \0", "nul.rules.yaml:2: expected YAML, found the character U+0000"),
}


def test_every_bad_rule_file_gets_one_clear_line_and_the_others_run(
    pytester: pytest.Pytester, write_rule_file: Write, workers: tuple[str, ...]
) -> None:
    write_rule_file(GOOD, "fine.rules.yaml")
    pytester.makepyfile(test_it="def test_it(): pass")
    for name, (content, _) in BAD.items():
        (pytester.path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    result = pytester.runpytest(*workers)
    text = result.stdout.str()
    for _, line in BAD.values():
        assert text.count(f"\n{line}\n") == 1, text
    result.assert_outcomes(passed=2, errors=len(BAD))
    assert result.ret != 0
    assert "Traceback" not in text
    assert "INTERNALERROR" not in text
    result.stdout.fnmatch_lines(["fine  PASS  1 (2 of 2) >= 0.9 in phase B, 1 rule: 1 passed"])


def test_broken_test_module_interrupts_the_session(pytester: pytest.Pytester, write_rule_file: Write) -> None:
    write_rule_file(GOOD, "fine.rules.yaml")
    write_rule_file("rules: 5", "bad.rules.yaml")
    pytester.makepyfile(test_it="import no_such_module")
    result = pytester.runpytest()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.assert_outcomes(errors=2)


def test_folder_named_like_a_rule_file_is_collected_as_a_folder(
    pytester: pytest.Pytester, write_rule_file: Write
) -> None:
    write_rule_file(GOOD, "folder.rules.yaml/fine.rules.yaml")
    pytester.runpytest().assert_outcomes(passed=1)
    assert pytester.runpytest("folder.rules.yaml").ret == 0


@WORKERS_IF_THOROUGH
def test_pattern_that_does_not_end_is_an_error_of_its_rule(
    pytester: pytest.Pytester, write_rule_file: Write, workers: tuple[str, ...]
) -> None:
    (pytester.path / "doc.md").write_text("a" * 60 + "!")
    write_rule_file(
        """
        artifact: doc.md
        rules:
          - {id: a.x.bomb, description: Bomb, check: {matches: "(a+)+$"}}
          - {id: a.x.fine, description: Fine, check: {contains: aaa}}
        """
    )
    result = pytester.runpytest(*workers)
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(["ERROR it.rules.yaml::a.x.bomb - the pattern '(a+)+$' did not end within 5 s"])


def test_unreadable_artifact_fails_every_rule_that_reads_it(pytester: pytest.Pytester, write_rule_file: Write) -> None:
    (pytester.path / "large.md").write_bytes(b"x" * 10 * 1024 * 1024)
    (pytester.path / "folder").mkdir()
    (pytester.path / "binary").write_bytes(b"\x00\xff")
    (pytester.path / "away").symlink_to("/etc")
    for artifact in ("large.md", "folder", "binary", "none", "away/passwd"):
        write_rule_file(
            f"artifact: {artifact}\nrules: [{{id: a.x.y, description: x, check: {{contains: x}}}}]",
            f"{artifact[:4]}.rules.yaml",
        )
    (pytester.path / "away.rules.yaml").unlink()
    result = pytester.runpytest()
    result.assert_outcomes(failed=4)
    result.stdout.fnmatch_lines_random(
        [
            "large.md:1: expected at most 8 MB, found 10.0 MB",
            "folder:1: expected a file, found a directory",
            "binary:1: expected UTF-8 text, found the byte 0xff",
            "none:1: expected a file, found none",
        ]
    )


def test_rule_file_outside_of_the_root_uses_its_folder_as_project(
    pytester: pytest.Pytester, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("elsewhere")
    (folder / "doc.md").write_text("hello")
    (folder / "it.rules.yaml").write_text(
        "artifact: doc.md\nrules: [{id: a.x.y, description: x, check: {contains: hello}}]"
    )
    pytester.runpytest(f"--rootdir={pytester.path}", str(folder / "it.rules.yaml")).assert_outcomes(passed=1)
