"""Settings are read from the command line first, then from the ini file, and have a default."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

import pytest

from pytest_loop.settings.command_line import NO_VALUE
from pytest_loop.settings.limit_options import LimitSettings
from pytest_loop.settings.options import GROUPS, HELP_GROUPS, OPTIONS, CommandSettings, JudgingSettings, StartSettings
from pytest_loop.settings.settings import make_default_settings, read_settings
from pytest_loop.settings.values import parse_limits
from pytest_loop.settings.workload_options import WorkloadSettings


def test_every_name_is_declared_once() -> None:
    flags = [option.flag for option in OPTIONS if option.flag]
    keys = [option.key for option in OPTIONS if option.ini is not None]
    assert len(set(flags)) == len(flags)
    assert len(set(keys)) == len(keys)
    assert all(option.flag or option.ini is not None or option.old_key for option in OPTIONS)


def test_every_ini_default_can_be_parsed() -> None:
    parsed = {option.key: option.parse(option.ini) for option in OPTIONS if option.ini and not option.is_repeatable}
    assert parsed["loop_max_iterations"] == 4
    assert parsed["loop_ask"] == "shape"


def test_at_most_25_ini_keys_and_no_name_has_two_meanings() -> None:
    keys = {option.key for option in OPTIONS if option.ini is not None}
    assert len(keys) <= 25
    flags_alone = {option.key for option in OPTIONS if option.flag and option.ini is None}
    assert not keys & flags_alone


def test_settings_are_frozen_and_unknown_names_are_refused() -> None:
    limits = LimitSettings(max_iterations=7)
    assert (limits.max_iterations, limits.budget) == (7, None)
    with pytest.raises(AttributeError, match="frozen"):
        limits.max_iterations = 8
    with pytest.raises(TypeError, match="unknown settings: max_iteration"):
        LimitSettings(max_iteration=7)


def parse(pytester: pytest.Pytester, *arguments: str) -> tuple[pytest.Config, argparse.Namespace]:
    config = pytester.parseconfig(*arguments)
    return config, config.option


def test_command_line_comes_before_ini_file_and_default(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nloop_max_iterations = 9\nloop_budget = 3\nloop_agent = a 'b c'\nloop_memory = yes\n")
    settings = read_settings(*parse(pytester, "--loop-budget=1.5", "--loop-threshold", "a=0.8,B=1", "tests"))
    assert (settings.limits.budget, settings.limits.max_iterations, settings.limits.max_tokens) == (1.5, 9, None)
    assert (settings.agents.agent, settings.agents.memory) == (("a", "b c"), True)
    assert settings.judging.threshold == {"A": "0.8", "B": "1"}
    assert settings.flags == {"--loop-budget", "--loop-threshold"}
    assert (settings.paths, settings.root) == (("tests",), pytester.path)


def test_alias_has_a_second_flag(pytester: pytest.Pytester) -> None:
    settings = read_settings(*parse(pytester, "--loop-id", "ralph-fix-tests-a1b2c3d4"))
    assert settings.start.alias == "ralph-fix-tests-a1b2c3d4"
    assert settings.flags == {"--loop-alias"}


def test_only_test_paths_that_exist_are_used(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    pytester.makeini("[pytest]\ntestpaths = tests unit*\n")
    assert read_settings(*parse(pytester)).test_paths == ()
    for name in ("unit_b", "unit_a"):
        pytester.mkdir(name)
    assert read_settings(*parse(pytester)).test_paths == ("unit_a", "unit_b")
    monkeypatch.chdir("unit_a")
    assert read_settings(*parse(pytester)).test_paths == (
        str(pytester.path / "unit_a"),
        str(pytester.path / "unit_b"),
    )


def test_bad_value_in_the_ini_file_is_a_usage_error(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nloop_max_iterations = many\n")
    with pytest.raises(pytest.UsageError, match="loop_max_iterations: expected a whole number >= 1, found 'many'"):
        read_settings(*parse(pytester))


def test_empty_ini_value_means_no_limit(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nloop_budget =\n")
    assert read_settings(*parse(pytester)).limits.budget is None


@pytest.mark.parametrize(
    ("groups", "command"),
    [
        ({}, None),
        ({"start": StartSettings(task="x")}, None),
        ({"commands": CommandSettings(resume="x")}, None),
        ({"commands": CommandSettings(status=NO_VALUE)}, "status"),
        ({"commands": CommandSettings(list=True)}, "list"),
        ({"commands": CommandSettings(restore=3)}, "restore"),
        ({"flags": frozenset(["--loop-report"])}, "report"),
        ({"flags": frozenset(["--loop-report"]), "start": StartSettings(task="x")}, None),
        ({"workload": WorkloadSettings(debrief="x.md")}, "debrief"),
        ({"workload": WorkloadSettings(debrief="x.md", manifest="x.json")}, None),
    ],
)
def test_command_is_found_by_its_flag(tmp_path: Path, groups: dict[str, Any], command: str | None) -> None:
    assert make_default_settings(tmp_path, **groups).command == command


def test_two_commands_are_refused(tmp_path: Path) -> None:
    settings = make_default_settings(tmp_path, commands=CommandSettings(list=True, watch=True))
    with pytest.raises(pytest.UsageError, match="expected one command, found --loop-list and --loop-watch"):
        _ = settings.command


def test_default_settings_have_every_group(tmp_path: Path) -> None:
    settings = make_default_settings(tmp_path, judging=JudgingSettings(session="cold"))
    assert settings.judging.session == "cold"
    assert settings.location_arguments[:2] == ("--rootdir", str(tmp_path))
    assert all(isinstance(getattr(settings, name), group) for name, group in GROUPS.items())


# -- limits and help


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("5 USD, 20 min, 200k tokens", {"budget": 5, "max_seconds": 1200, "max_tokens": 200_000}),
        ("0.5$", {"budget": 0.5}),
        ("2h", {"max_seconds": 7200}),
        ("1M tokens, 90 s", {"max_tokens": 1_000_000, "max_seconds": 90}),
        ("", {}),
    ],
)
def test_limits_are_amounts_with_units(text: str, expected: dict[str, float]) -> None:
    assert parse_limits(text) == expected


@pytest.mark.parametrize("text", ["5", "5 apples", "USD", "0 USD"])
def test_limit_without_a_known_unit_or_amount_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="expected "):
        parse_limits(text)


def test_one_flag_sets_every_limit(pytester: pytest.Pytester) -> None:
    settings = read_settings(*parse(pytester, "--loop-limit", "5 USD, 2 min"))
    assert (settings.limits.budget, settings.limits.max_seconds, settings.limits.max_tokens) == (5, 120, None)
    assert {"--loop-budget", "--loop-max-seconds"} <= settings.flags


def test_help_shows_at_most_30_flags_in_four_groups(pytester: pytest.Pytester) -> None:
    text = pytester.runpytest("--help").stdout.str()
    assert 20 < len(re.findall(r"^  --loop-", text, re.MULTILINE)) <= 30
    assert re.findall(r"^agent loops: (.+?)(?: \(|:$)", text, re.MULTILINE) == list(HELP_GROUPS)
    assert "--loop-status" not in text
