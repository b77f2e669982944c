"""Changes between two sessions are seen by the second one, and warm sessions judge like cold ones."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.session.conftest import Environment, MakeProject, Project

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
    """The arguments for workers: none, and with `tox -e warm` also two workers."""
    return request.param  # type: ignore[no-any-return]


def write_shop(project: Project) -> Project:
    for name, text in (
        ("shop.py", SHOP),
        ("prices.txt", "1 2 3"),
        ("test_shop.py", TESTS),
        ("conftest.py", CONFTEST),
        ("shop.rules.yaml", RULES),
    ):
        project.write(name, text)
    return project


def edit(name: str, old: str, new: str) -> Callable[[Project], None]:
    def change(project: Project) -> None:
        path = project.path / name
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new))

    return change


def add_test(project: Project) -> None:
    project.write("test_more.py", "def test_more(): assert False\n")


def remove_tests(project: Project) -> None:
    (project.path / "test_shop.py").unlink()


def break_syntax(project: Project) -> None:
    project.write("shop.py", "def total(:\n")


@pytest.mark.parametrize(
    ("change", "expected", "is_same_server"),
    [
        pytest.param(edit("shop.py", "sum(", "1 + sum("), PASSED | {"test_total": "failed"}, True, id="source", marks=THOROUGH),
        pytest.param(edit("test_shop.py", "== 6", "== 7"), PASSED | {"test_total": "failed"}, True, id="test", marks=THOROUGH),
        pytest.param(edit("conftest.py", "return 1", "return 2"), PASSED | {"test_fixture": "failed"}, True, id="conftest", marks=THOROUGH),
        pytest.param(edit("shop.rules.yaml", '"3"', '"4"'), PASSED | {"a.three": "failed"}, True, id="rule file", marks=THOROUGH),
        pytest.param(edit("prices.txt", "2 3", "5 0"), PASSED | {"a.three": "failed"}, True, id="data file", marks=THOROUGH),
        pytest.param(add_test, PASSED | {"test_more": "failed"}, True, id="added test", marks=THOROUGH),
        pytest.param(remove_tests, {"a.three": "passed"}, True, id="removed tests"),
        pytest.param(break_syntax, {"test_shop.py": "problem", "a.three": "passed"}, True, id="a module that cannot be imported"),
        pytest.param(edit("pytest.ini", "[pytest]", "[pytest]\npython_functions = test_t*"), {"test_total": "passed", "a.three": "passed"}, False, id="ini file"),
        pytest.param(edit("pytest.ini", "[pytest]", "[pytest]\naddopts = -k total"), {"test_total": "passed"}, False, id="options in the ini file"),
    ],
)  # fmt: skip
def test_a_change_in_the_project_is_seen_by_the_next_session(
    make_project: MakeProject,
    workers: tuple[str, ...],
    change: Callable[[Project], None],
    expected: dict[str, str],
    is_same_server: bool,
) -> None:
    project = write_shop(make_project(*workers, "--continue-on-collection-errors"))
    assert project.find_outcomes() == PASSED
    before = project.server_pid
    change(project)
    assert project.compare_sessions() == expected
    assert (project.server_pid == before) is is_same_server
    assert project.lines == []


@pytest.mark.thorough
def test_changes_are_seen_by_workers_too(make_project: MakeProject) -> None:
    project = write_shop(make_project("-n2"))
    assert project.find_outcomes() == PASSED
    for change, different in (
        (edit("shop.py", "sum(", "1 + sum("), {"test_total": "failed"}),
        (edit("test_shop.py", "== 6", "== 7"), {"test_total": "passed"}),
        (edit("conftest.py", "return 1", "return 2"), {"test_fixture": "failed"}),
        (edit("shop.rules.yaml", '"3"', '"4"'), {"a.three": "failed"}),
        (edit("prices.txt", "2 3", "2 4"), {"test_total": "failed", "a.three": "passed"}),
        (add_test, {"test_more": "failed"}),
    ):
        change(project)
        assert different.items() <= project.find_outcomes().items()
    project.compare_sessions()


def test_a_changed_variable_is_seen_by_the_next_session(
    make_project: MakeProject, workers: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    project = write_shop(make_project(*workers))
    assert project.find_outcomes() == PASSED
    monkeypatch.setenv("SHOP", "closed")
    assert project.compare_sessions() == PASSED | {"test_environment": "failed"}
    monkeypatch.delenv("SHOP")
    assert project.compare_sessions() == PASSED


def test_a_session_starts_like_a_new_interpreter(make_project: MakeProject, workers: tuple[str, ...]) -> None:
    project = make_project(*workers)
    project.write("helper.py", "CALLS = []\n")
    project.write(
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
        assert set(project.find_outcomes().values()) == {"passed"}
    numbers = (project.path / "numbers").read_text().split()
    assert len(set(numbers)) == len(numbers) == 3


# -- installed modules

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
        Path("preloaded").write_text(str(library.PID != os.getpid()))
        assert library.VERSION == 1
"""


NATIVE = """
    import os
    import _sqlite3
    VERSION = int(os.environ.get("FAST", "1"))
    PID = os.getpid()
    assert _sqlite3.connect
"""


def is_preloaded(project: Project) -> bool:
    path: Path = project.path / "preloaded"
    return path.exists() and path.read_text() == "True"


def preload_library(make_project: MakeProject, environment: Environment, *arguments: str) -> Project:
    """Return a project whose server has preloaded an installed module."""
    environment.install("library.py", LIBRARY)
    project = make_project(*arguments)
    project.write("test_it.py", USES)
    project.run_session()
    project.wait_until(lambda: is_preloaded(project))
    return project


def test_a_new_version_of_a_preloaded_module_is_seen(
    make_project: MakeProject, environment: Environment, workers: tuple[str, ...]
) -> None:
    project = preload_library(make_project, environment, *workers)
    before = project.server_pid
    assert project.find_outcomes() == {"test_version": "passed"}
    assert project.server_pid == before
    environment.install("library.py", LIBRARY.replace("= 1", "= 2"))
    assert project.compare_sessions() == {"test_version": "failed"}
    assert project.server_pid != before


def test_a_module_of_the_project_wins_over_a_preloaded_one(
    make_project: MakeProject, environment: Environment, workers: tuple[str, ...]
) -> None:
    project = preload_library(make_project, environment, *workers)
    project.write("library.py", LIBRARY.replace("= 1", "= 2"))
    assert project.compare_sessions() == {"test_version": "failed"}
    (project.path / "library.py").unlink()
    assert project.compare_sessions() == {"test_version": "passed"}


@THOROUGH
def test_a_preloaded_submodule_is_hidden_until_it_is_imported(
    make_project: MakeProject, environment: Environment
) -> None:
    environment.install("big/__init__.py", "")
    environment.install("big/part.py", LIBRARY)
    project = make_project()
    project.write("test_it.py", USES.replace("import library", "import big.part as library"))
    project.run_session()
    project.wait_until(lambda: is_preloaded(project))
    project.write("test_it.py", "import big\ndef test_version(): assert big.part.VERSION == 1\n")
    assert project.compare_sessions() == {"test_version": "failed"}


@THOROUGH
def test_a_variable_that_a_conftest_file_sets_is_seen_by_an_installed_module(
    make_project: MakeProject, environment: Environment
) -> None:
    environment.install("library.py", LIBRARY.replace("= 1", "= int(os.environ.get('LIBRARY', 1))"))
    project = make_project()
    project.write("test_it.py", USES)
    project.run_session()
    project.wait_until(lambda: is_preloaded(project))
    project.write("conftest.py", "import os\nos.environ['LIBRARY'] = '2'\n")
    assert project.compare_sessions() == {"test_version": "failed"}


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
def test_a_module_with_side_effects_is_not_preloaded(
    make_project: MakeProject, environment: Environment, noise: str
) -> None:
    environment.install("library.py", f"import os\n{noise}\nVERSION = 1\nPID = os.getpid()\n")
    environment.install("quiet.py", LIBRARY)
    project = make_project()
    project.write("helper.py", "")
    project.write(
        "test_it.py", USES + USES.replace("version", "quiet").replace("library", "quiet").replace("preloaded", "q")
    )
    assert project.compare_sessions() == {"test_version": "passed", "test_quiet": "passed"}
    project.wait_until(lambda: (project.path / "q").read_text() == "True")
    assert project.compare_sessions() == {"test_version": "passed", "test_quiet": "passed"}
    assert not is_preloaded(project)


@THOROUGH
def test_an_optional_module_that_appears_is_found_by_an_installed_one(
    make_project: MakeProject, environment: Environment
) -> None:
    text = "try:\n    from local_settings import VERSION\nexcept ImportError:\n    VERSION = 1\n"
    environment.install("library.py", f"import os\nPID = os.getpid()\n{text}")
    project = make_project()
    project.write("test_it.py", USES)
    project.run_session()
    project.wait_until(lambda: is_preloaded(project))
    project.write("local_settings.py", "VERSION = 2\n")
    assert project.compare_sessions() == {"test_version": "failed"}


def test_a_module_that_was_installed_during_the_run_is_not_preloaded(
    make_project: MakeProject, environment: Environment
) -> None:
    environment.install("quiet.py", LIBRARY)
    project = make_project()
    environment.install("library.py", LIBRARY)
    project.write(
        "test_it.py", USES + USES.replace("version", "quiet").replace("library", "quiet").replace("preloaded", "q")
    )
    project.run_session()
    project.wait_until(lambda: (project.path / "q").read_text() == "True")
    assert not is_preloaded(project)


@THOROUGH
def test_a_change_of_an_editable_package_is_seen(
    make_project: MakeProject, environment: Environment, tmp_path: Path, workers: tuple[str, ...]
) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    (folder / "library.py").write_text("import os\nVERSION = 1\nPID = os.getpid()\n")
    environment.install("editable.pth", f"{folder}\n")
    project = make_project(*workers)
    project.write("test_it.py", USES)
    assert project.find_outcomes() == {"test_version": "passed"}
    before = project.server_pid
    (folder / "library.py").write_text("import os\nVERSION = 22\nPID = os.getpid()\n")
    assert project.compare_sessions() == {"test_version": "failed"}
    assert project.server_pid == before


@THOROUGH
def test_a_new_version_of_a_plugin_is_seen(
    make_project: MakeProject, environment: Environment, workers: tuple[str, ...]
) -> None:
    plugin = "import pytest\n@pytest.fixture\ndef size():\n    return 1\n"
    environment.install("sized.py", plugin)
    project = make_project(*workers, "-p", "sized")
    project.write("test_it.py", "def test_size(size): assert size == 1\n")
    assert project.find_outcomes() == {"test_size": "passed"}
    before = project.server_pid
    environment.install("sized.py", plugin.replace("1", "2"))
    assert project.compare_sessions() == {"test_size": "failed"}
    assert project.server_pid != before


def test_a_newly_installed_plugin_is_seen(
    make_project: MakeProject, environment: Environment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD")
    monkeypatch.delenv("PYTEST_PLUGINS")
    project = make_project()
    project.write("test_it.py", "def test_size(size): assert size == 1\n")
    assert project.find_outcomes() == {"test_size": "error"}
    environment.install("sized.py", "import pytest\n@pytest.fixture\ndef size():\n    return 1\n")
    environment.install("sized-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: sized\nVersion: 1.0\n")
    environment.install("sized-1.0.dist-info/entry_points.txt", "[pytest11]\nsized = sized\n")
    assert project.compare_sessions() == {"test_size": "passed"}


def test_an_extension_module_can_be_imported_if_its_package_is_imported_again(
    make_project: MakeProject, environment: Environment
) -> None:
    """A process loads an extension module once, and the server has done so."""
    environment.install("fast/__init__.py", NATIVE)
    project = make_project()
    project.write("test_it.py", USES.replace("import library", "import fast as library"))
    project.run_session()
    project.wait_until(lambda: is_preloaded(project))
    project.write("conftest.py", "import os\nos.environ['FAST'] = '2'\n")
    assert project.compare_sessions() == {"test_version": "failed"}
