"""Several settings share one ini key; names of earlier releases still work, with a hint."""

from __future__ import annotations

import pytest

from pytest_loop.settings.old_names import list_hints, list_idle_flags
from pytest_loop.settings.settings import Settings, read_settings


def read(pytester: pytest.Pytester, ini: str, *arguments: str) -> tuple[Settings, list[str]]:
    pytester.makeini(f"[pytest]\n{ini}\n")
    config = pytester.parseconfig(*arguments)
    return read_settings(config, config.option), list(list_hints(config, config.option))


def test_one_key_holds_all_breakers(pytester: pytest.Pytester) -> None:
    settings, hints = read(pytester, "loop_stop_when = stuck 7, same_error=0, min_gain: 0.5, rules_fail yes")
    breakers = settings.breakers
    assert (breakers.stuck, breakers.same_error, breakers.min_gain, breakers.stagnation) == (7, 0, 0.5, 2)
    assert settings.control.auto_retry_on_test_fail is False
    assert settings.control.auto_retry_on_review_reject is True
    assert hints == []


def test_timeouts_may_have_units(pytester: pytest.Pytester) -> None:
    settings, _ = read(pytester, "loop_timeouts = agent 2 min, gate 30")
    assert (settings.agents.agent_timeout, settings.commands.gate_timeout) == (120, 30)
    assert settings.judging.session_timeout == 3600


@pytest.mark.parametrize(
    ("ini", "hint"),
    [
        ("loop_stuck = 2", "loop_stop_when = stuck 2"),
        ("loop_auto_retry_on_test_fail = no", "loop_stop_when = rules_fail yes"),
        ("loop_confirm = never", "loop_ask = never"),
        ("loop_plan = agent", "loop_planner = agent"),
        ("loop_budget = 3", "loop_limit = 3 USD"),
        ("loop_estimated_cost = count", "loop_limit = estimates"),
        ("loop_phase = A", "addopts = --loop-phase=A"),
        ("loop_focus = a b", "focus: a b in the manifest, or --loop-workload 'focus a b'"),
        ("loop_on_plateau = stop", "onPlateau: stop in the manifest, or --loop-workload 'on_plateau stop'"),
    ],
)
def test_old_key_works_and_says_its_new_name(pytester: pytest.Pytester, ini: str, hint: str) -> None:
    _, hints = read(pytester, ini)
    assert hints == [f"hint: {ini.split()[0]} is an old name, write: {hint}"]


def test_old_keys_keep_their_values(pytester: pytest.Pytester) -> None:
    ini = "loop_stuck = 2\nloop_confirm = never\nloop_auto_retry_on_test_fail = no\nloop_focus = a b\nloop_phase = A"
    settings, hints = read(pytester, ini)
    assert (settings.breakers.stuck, settings.start.ask, settings.workload.focus) == (2, "never", ("a", "b"))
    assert (settings.control.auto_retry_on_test_fail, settings.judging.phase) == (False, "A")
    assert len(hints) == 5


def test_old_flag_works_and_says_its_new_name(pytester: pytest.Pytester) -> None:
    settings, hints = read(pytester, "", "--loop-budget=2.5", "--loop-mode=custom")
    assert (settings.limits.budget, settings.workload.mode) == (2.5, "custom")
    assert hints == [
        "hint: --loop-budget is an old name, write: --loop-limit '2.5 USD'",
        "hint: --loop-mode is an old name, write: --loop-workload 'mode custom'",
    ]


def test_workload_flag_overrides_settings_of_a_manifest(pytester: pytest.Pytester) -> None:
    settings, _ = read(pytester, "", "--loop-workload", "mode custom, focus a.txt b.txt, case_timeout 2 min")
    workload = settings.workload
    assert (workload.mode, workload.focus, workload.case_timeout) == ("custom", ("a.txt", "b.txt"), 120)


@pytest.mark.parametrize(
    ("ini", "message"),
    [
        ("loop_stop_when = stuk 2", r"loop_stop_when: there is no 'stuk' \(did you mean stuck\?\)"),
        ("loop_stop_when = zzz 2", r"there is no 'zzz' \(expected stuck, same_error"),
        ("loop_stop_when = stuck", "loop_stop_when: expected names with values, such as 'a 5, b 3', found 'stuck'"),
        ("loop_stop_when = stuck many", "loop_stop_when: stuck: expected a whole number >= 0, found 'many'"),
    ],
)
def test_bad_part_is_a_usage_error(pytester: pytest.Pytester, ini: str, message: str) -> None:
    with pytest.raises(pytest.UsageError, match=message):
        read(pytester, ini)


def test_unknown_part_of_the_workload_flag_is_a_usage_error(pytester: pytest.Pytester) -> None:
    with pytest.raises(pytest.UsageError, match="there is no 'mod'"):
        read(pytester, "", "--loop-workload", "mod custom")


def test_own_flag_comes_before_the_limit_of_the_ini_file(pytester: pytest.Pytester) -> None:
    settings, _ = read(pytester, "loop_limit = 9 USD, 2 min, 7 iterations, estimates", "--loop-max-iterations=3")
    limits = settings.limits
    assert (limits.budget, limits.max_seconds, limits.max_iterations, limits.estimated_cost) == (9, 120, 3, "count")


def test_a_default_limit_can_be_taken_away(pytester: pytest.Pytester) -> None:
    assert read(pytester, "")[0].limits.budget == 25
    assert read(pytester, "loop_limit = no USD")[0].limits.budget is None


def test_flags_that_only_runs_read_are_idle_in_a_session() -> None:
    assert list_idle_flags(["--loop-agent", "codex", "--loop-phase=A", "-q"]) == ["--loop-agent"]


def test_session_says_that_a_flag_has_no_effect(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("def test_a(): pass")
    pytester.makeini("[pytest]\nloop_phase = A\n")
    result = pytester.runpytest("-q", "--loop-agent=codex", "--strict-config")
    result.stdout.fnmatch_lines(
        [
            "hint: loop_phase is an old name, write: addopts = --loop-phase=A",
            "hint: --loop-agent has no effect without --loop-task: no run is started",
        ]
    )
    assert result.ret == 0
    result = pytester.runpytest("-q", "--loop-json=result.json")
    result.stdout.fnmatch_lines(["hint: --loop-json has no *: no run is started (--junitxml or --loop-save-baseline *"])


def test_help_leaves_old_keys_out(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("--help")
    result.stdout.fnmatch_lines(["*loop_stop_when (string):*"])
    result.stdout.no_fnmatch_line("*loop_stuck*")
