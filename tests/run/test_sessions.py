"""The factory of sessions: what they share, and what a new one begins with."""

from __future__ import annotations

from pathlib import Path

from pytest_loop.run.sessions import SessionFactory
from pytest_loop.session.runner import ColdLauncher
from pytest_loop.settings.options import JudgingSettings
from pytest_loop.settings.settings import make_default_settings


def make_factory(root: Path, lines: list[str]) -> SessionFactory:
    judging = JudgingSettings(session="cold", session_timeout=7.0)
    return SessionFactory(make_default_settings(root, judging=judging), lines.append)


def test_sessions_share_launcher_and_history(tmp_path: Path) -> None:
    factory = make_factory(tmp_path, [])
    first, second = factory.make(("-q",), 0.0), factory.make(("-x",), 0.0)
    assert isinstance(first.launcher, ColdLauncher)
    assert first.launcher is second.launcher
    assert first.history is second.history
    assert (second.arguments, second.folder, second.timeout) == (("-x",), tmp_path, 7.0)
    factory.close()


def test_bytecode_is_cached_from_the_call_on_until_the_factory_closes(tmp_path: Path) -> None:
    factory = make_factory(tmp_path, [])
    assert factory.make((), 0.0).bytecode is None
    cache = factory.cache_bytecode(is_new=True)
    assert factory.make((), 0.0).bytecode is cache
    folder = cache.prepare(is_cold=False)
    assert folder.is_dir()
    factory.close()
    assert not folder.exists()


def test_messages_go_to_the_current_printer(tmp_path: Path) -> None:
    early: list[str] = []
    late: list[str] = []
    factory = make_factory(tmp_path, early)
    factory.print_line = late.append
    factory._print("no fork server")
    assert (early, late) == ([], ["no fork server"])
