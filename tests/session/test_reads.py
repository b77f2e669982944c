"""A session reports which files of the project are read, and by which code of it."""

from __future__ import annotations

import pytest

from tests.session.conftest import MakeProject

TEST = """
    from pathlib import Path

    import shop
    import support


    def test_it(expected, tmp_path):
        assert Path("data/prices.json").read_text() == "6"
        assert Path("data/link.json").read_text() == "6"
        assert support.read() == shop.read() == "text"
        (tmp_path / "x").write_text("x")
        Path("out.txt").write_text("x")
    """
READ = "from pathlib import Path\n\n\ndef read():\n    return Path('{name}').read_text()\n"
PLUGIN = "import pytest\n\n\n@pytest.fixture\ndef expected():\n    return 6\n"


@pytest.mark.parametrize("kind", ["cold", "warm", "workers"])
def test_reads_have_an_owner(make_project: MakeProject, kind: str) -> None:
    project = make_project("-n2") if kind == "workers" else make_project()
    project.write("tests/test_it.py", TEST)
    project.write("conftest.py", "pytest_plugins = ['shop_plugin']\n")
    project.write("shop_plugin.py", PLUGIN)
    project.write("shop.py", READ.format(name="data/shop.txt"))
    project.write("support.py", READ.format(name="data/support.txt"))
    for name, text in {"prices.json": "6", "shop.txt": "text", "support.txt": "text"}.items():
        project.write(f"data/{name}", text)
    (project.path / "data/link.json").symlink_to("prices.json")
    result = project.run_session(is_warm=kind != "cold")
    test = "tests/test_it.py"
    expected = {
        ("data/prices.json", test),
        ("data/shop.txt", "shop.py"),
        ("data/support.txt", "support.py"),
        ("shop.py", test),
        ("support.py", test),
        ("conftest.py", ""),
    }
    assert expected <= result.reads
    assert not {path for path, _ in result.reads} & {"out.txt", "data/link.json"}
    assert "out.txt" in result.opened_to_write
    assert not result.opened_to_write & {path for path, _ in expected}
    assert result.plugin_files == {"conftest.py", "shop_plugin.py"}
    assert {"tests", "."} <= result.module_folders
