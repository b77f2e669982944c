"""Whatever changes between two sessions is seen by the second one, and a warm session judges as a cold one does."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

THOROUGH = pytest.mark.thorough
IS_EVERY = bool(os.environ.get("PYTEST_LOOP_EVERY_CHANGE"))
SHOP = """
    from pathlib import Path

    PRICES = Path(__file__).with_name("prices.txt").read_text().split()

    def total():
        return sum(map(int, PRICES))
"""
TESTS = """
    import os
    import shop

    def test_total():
        assert shop.total() == 6

    def test_fixture(number):
        assert number == 1

    def test_environment():
        assert os.environ.get("SHOP", "open") == "open"
"""
CONFTEST = """
    import pytest

    @pytest.fixture
    def number():
        return 1
"""
RULES = """
    criteria: prices
    artifact: prices.txt
    rules:
      - id: a.three
        description: There is a three
        check: {contains: "3"}
"""
PASSED = {"test_total": "passed", "test_fixture": "passed", "test_environment": "passed", "a.three": "passed"}


@pytest.fixture(params=[(), ("-n2",)] if IS_EVERY else [()], ids=["plain", "n2"] if IS_EVERY else ["plain"])
def workers(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Every story is told in one process; with `tox -e warm` also with two xdist workers."""
    return request.param  # type: ignore[no-any-return]


def shop(made: Any) -> Any:
    for name, text in (
        ("shop.py", SHOP),
        ("prices.txt", "1 2 3"),
        ("test_shop.py", TESTS),
        ("conftest.py", CONFTEST),
        ("shop.rules.yaml", RULES),
    ):
        made.write(name, text)
    return made


def edit(name: str, old: str, new: str) -> Callable[[Any], None]:
    def change(made: Any) -> None:
        path = made.path / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return change


def added(made: Any) -> None:
    made.write("test_more.py", "def test_more(): assert False\n")


def removed(made: Any) -> None:
    (made.path / "test_shop.py").unlink()


def unreadable(made: Any) -> None:
    made.write("shop.py", "def total(:\n")


@pytest.mark.parametrize(
    ("change", "expected", "is_same_server"),
    [
        pytest.param(edit("shop.py", "sum(", "1 + sum("), PASSED | {"test_total": "failed"}, True, id="source", marks=THOROUGH),
        pytest.param(edit("test_shop.py", "== 6", "== 7"), PASSED | {"test_total": "failed"}, True, id="test", marks=THOROUGH),
        pytest.param(edit("conftest.py", "return 1", "return 2"), PASSED | {"test_fixture": "failed"}, True, id="conftest", marks=THOROUGH),
        pytest.param(edit("shop.rules.yaml", '"3"', '"4"'), PASSED | {"a.three": "failed"}, True, id="rule file", marks=THOROUGH),
        pytest.param(edit("prices.txt", "2 3", "5 0"), PASSED | {"a.three": "failed"}, True, id="data file", marks=THOROUGH),
        pytest.param(added, PASSED | {"test_more": "failed"}, True, id="added test", marks=THOROUGH),
        pytest.param(removed, {"a.three": "passed"}, True, id="removed tests"),
        pytest.param(unreadable, {"test_shop.py": "problem", "a.three": "passed"}, True, id="a module that cannot be imported"),
        pytest.param(edit("pytest.ini", "[pytest]", "[pytest]\npython_functions = test_t*"), {"test_total": "passed", "a.three": "passed"}, False, id="ini file"),
        pytest.param(edit("pytest.ini", "[pytest]", "[pytest]\naddopts = -k total"), {"test_total": "passed"}, False, id="options in the ini file"),
    ],
)  # fmt: skip
def test_what_changes_in_the_project_is_seen_at_once(
    project: Callable[..., Any],
    workers: tuple[str, ...],
    change: Callable[[Any], None],
    expected: dict[str, str],
    is_same_server: bool,
) -> None:
    made = shop(project(*workers, "--continue-on-collection-errors"))
    assert made.outcomes() == PASSED
    before = made.server
    change(made)
    assert made.both() == expected
    assert (made.server == before) is is_same_server
    assert made.said == []


def test_one_change_after_the_other_is_seen_by_workers_too(project: Callable[..., Any]) -> None:
    made = shop(project("-n2"))
    assert made.outcomes() == PASSED
    for change, different in (
        (edit("shop.py", "sum(", "1 + sum("), {"test_total": "failed"}),
        (edit("test_shop.py", "== 6", "== 7"), {"test_total": "passed"}),
        (edit("conftest.py", "return 1", "return 2"), {"test_fixture": "failed"}),
        (edit("shop.rules.yaml", '"3"', '"4"'), {"a.three": "failed"}),
        (edit("prices.txt", "2 3", "2 4"), {"test_total": "failed", "a.three": "passed"}),
        (added, {"test_more": "failed"}),
    ):
        change(made)
        assert different.items() <= made.outcomes().items()
    made.both()


def test_another_environment_is_seen_at_once(
    project: Callable[..., Any], workers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    made = shop(project(*workers))
    assert made.outcomes() == PASSED
    monkeypatch.setenv("SHOP", "closed")
    assert made.both() == PASSED | {"test_environment": "failed"}
    monkeypatch.delenv("SHOP")
    assert made.both() == PASSED


def test_the_session_is_that_of_a_new_interpreter(project: Callable[..., Any], workers: tuple[str, ...]) -> None:
    made = project(*workers)
    made.write("helper.py", "CALLS = []\n")
    made.write(
        "test_it.py",
        """
        import os, random, sys, threading
        import helper

        def test_nothing_is_left():
            helper.CALLS.append(1)
            os.environ["LEFT"] = "behind"
            assert helper.CALLS == [1]

        def test_arguments():
            assert sys.argv[0] == "-c"
            assert threading.active_count() == 1 or "PYTEST_XDIST_WORKER" in os.environ

        def test_chance(request):
            path = request.config.rootpath / "numbers"
            with path.open("a") as file:
                print(random.random(), file=file)
        """,
    )
    for _ in range(3):
        assert set(made.outcomes().values()) == {"passed"}
    numbers = (made.path / "numbers").read_text().split()
    assert len(set(numbers)) == len(numbers) == 3


# -- what is installed

LIBRARY = """
    import os
    VERSION = 1
    PID = os.getpid()
"""
USES = """
    import os
    from pathlib import Path

    def test_version():
        import library
        Path("prepared").write_text(str(library.PID != os.getpid()))
        assert library.VERSION == 1
"""


NATIVE = """
    import os
    import _sqlite3
    VERSION = int(os.environ.get("FAST", "1"))
    PID = os.getpid()
    assert _sqlite3.connect
"""


def is_prepared(made: Any) -> bool:
    path: Path = made.path / "prepared"
    return path.exists() and path.read_text() == "True"


def prepared(project: Callable[..., Any], environment: Any, *words: str) -> Any:
    """A project whose sessions find an installed module loaded."""
    environment.install("library.py", LIBRARY)
    made = project(*words)
    made.write("test_it.py", USES)
    made.judge()
    made.until(lambda: is_prepared(made))
    return made


def test_an_installed_module_is_loaded_ahead_and_a_new_version_is_seen(
    project: Callable[..., Any], environment: Any, workers: tuple[str, ...]
) -> None:
    made = prepared(project, environment, *workers)
    before = made.server
    assert made.outcomes() == {"test_version": "passed"}
    assert made.server == before
    environment.install("library.py", LIBRARY.replace("= 1", "= 2"))
    assert made.both() == {"test_version": "failed"}
    assert made.server != before


def test_a_module_of_the_project_with_the_name_of_an_installed_one_comes_first(
    project: Callable[..., Any], environment: Any, workers: tuple[str, ...]
) -> None:
    made = prepared(project, environment, *workers)
    made.write("library.py", LIBRARY.replace("= 1", "= 2"))
    assert made.both() == {"test_version": "failed"}
    (made.path / "library.py").unlink()
    assert made.both() == {"test_version": "passed"}


@THOROUGH
def test_a_part_of_a_package_that_nobody_imports_any_more_is_missing(
    project: Callable[..., Any], environment: Any
) -> None:
    environment.install("big/__init__.py", "")
    environment.install("big/part.py", LIBRARY)
    made = project()
    made.write("test_it.py", USES.replace("import library", "import big.part as library"))
    made.judge()
    made.until(lambda: is_prepared(made))
    made.write("test_it.py", "import big\ndef test_version(): assert big.part.VERSION == 1\n")
    assert made.both() == {"test_version": "failed"}


@THOROUGH
def test_what_a_conftest_file_sets_is_seen_by_an_installed_module(
    project: Callable[..., Any], environment: Any
) -> None:
    environment.install("library.py", LIBRARY.replace("= 1", "= int(os.environ.get('LIBRARY', 1))"))
    made = project()
    made.write("test_it.py", USES)
    made.judge()
    made.until(lambda: is_prepared(made))
    made.write("conftest.py", "import os\nos.environ['LIBRARY'] = '2'\n")
    assert made.both() == {"test_version": "failed"}


@pytest.mark.parametrize(
    "noise",
    [
        pytest.param("import warnings; warnings.warn('old')", id="a warning"),
        pytest.param("print('hello')", id="output", marks=THOROUGH),
        pytest.param("import threading; threading.Thread(target=threading.Event().wait, daemon=True).start()", id="a thread", marks=THOROUGH),
        pytest.param("from pathlib import Path; assert Path('pytest.ini').read_text()", id="a file of the project"),
        pytest.param("import subprocess, sys; subprocess.run(['true'])", id="a program", marks=THOROUGH),
        pytest.param("os.environ['NOISE'] = '1'", id="the environment"),
        pytest.param("import sys; sys.path.append('/nowhere')", id="where to look for modules", marks=THOROUGH),
        pytest.param("import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN)", id="signals", marks=THOROUGH),
        pytest.param("import helper", id="a module of the project", marks=THOROUGH),
        pytest.param("environment = dict(os.environ)", id="all variables", marks=THOROUGH),
    ],
)  # fmt: skip
def test_a_module_that_does_more_than_to_load_is_not_loaded_ahead(
    project: Callable[..., Any], environment: Any, noise: str
) -> None:
    environment.install("library.py", f"import os\n{noise}\nVERSION = 1\nPID = os.getpid()\n")
    environment.install("quiet.py", LIBRARY)
    made = project()
    made.write("helper.py", "")
    made.write(
        "test_it.py", USES + USES.replace("version", "quiet").replace("library", "quiet").replace("prepared", "q")
    )
    assert made.both() == {"test_version": "passed", "test_quiet": "passed"}
    made.until(lambda: (made.path / "q").read_text() == "True")
    assert made.both() == {"test_version": "passed", "test_quiet": "passed"}
    assert not is_prepared(made)


@THOROUGH
def test_a_module_that_turns_up_is_found_by_an_installed_one(project: Callable[..., Any], environment: Any) -> None:
    text = "try:\n    from local_settings import VERSION\nexcept ImportError:\n    VERSION = 1\n"
    environment.install("library.py", f"import os\nPID = os.getpid()\n{text}")
    made = project()
    made.write("test_it.py", USES)
    made.judge()
    made.until(lambda: is_prepared(made))
    made.write("local_settings.py", "VERSION = 2\n")
    assert made.both() == {"test_version": "failed"}


def test_a_module_that_was_planted_during_the_run_is_not_loaded_ahead(
    project: Callable[..., Any], environment: Any
) -> None:
    environment.install("quiet.py", LIBRARY)
    made = project()
    environment.install("library.py", LIBRARY)
    made.write(
        "test_it.py", USES + USES.replace("version", "quiet").replace("library", "quiet").replace("prepared", "q")
    )
    made.judge()
    made.until(lambda: (made.path / "q").read_text() == "True")
    assert not is_prepared(made)


@THOROUGH
def test_a_package_that_lives_elsewhere_is_read_anew(
    project: Callable[..., Any], environment: Any, tmp_path: Path, workers: tuple[str, ...]
) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "library.py").write_text("import os\nVERSION = 1\nPID = os.getpid()\n")
    environment.install("editable.pth", f"{folder}\n")
    made = project(*workers)
    made.write("test_it.py", USES)
    assert made.outcomes() == {"test_version": "passed"}
    before = made.server
    (folder / "library.py").write_text("import os\nVERSION = 22\nPID = os.getpid()\n")
    assert made.both() == {"test_version": "failed"}
    assert made.server == before


@THOROUGH
def test_another_version_of_a_plugin_is_seen(
    project: Callable[..., Any], environment: Any, workers: tuple[str, ...]
) -> None:
    plugin = "import pytest\n@pytest.fixture\ndef size():\n    return 1\n"
    environment.install("sized.py", plugin)
    made = project(*workers, "-p", "sized")
    made.write("test_it.py", "def test_size(size): assert size == 1\n")
    assert made.outcomes() == {"test_size": "passed"}
    before = made.server
    environment.install("sized.py", plugin.replace("1", "2"))
    assert made.both() == {"test_size": "failed"}
    assert made.server != before


def test_a_plugin_that_was_installed_is_seen(
    project: Callable[..., Any], environment: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    monkeypatch.delenv("PYTEST_PLUGINS")
    made = project()
    made.write("test_it.py", "def test_size(size): assert size == 1\n")
    assert made.outcomes() == {"test_size": "error"}
    environment.install("sized.py", "import pytest\n@pytest.fixture\ndef size():\n    return 1\n")
    environment.install("sized-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: sized\nVersion: 1.0\n")
    environment.install("sized-1.0.dist-info/entry_points.txt", "[pytest11]\nsized = sized\n")
    assert made.both() == {"test_size": "passed"}


def test_a_module_that_is_no_python_can_be_imported_where_its_package_is_imported_anew(
    project: Callable[..., Any], environment: Any
) -> None:
    """Python loads such a module once in a process; the server has done so already."""
    environment.install("fast/__init__.py", NATIVE)
    made = project()
    made.write("test_it.py", USES.replace("import library", "import fast as library"))
    made.judge()
    made.until(lambda: is_prepared(made))
    made.write("conftest.py", "import os\nos.environ['FAST'] = '2'\n")
    assert made.both() == {"test_version": "failed"}
