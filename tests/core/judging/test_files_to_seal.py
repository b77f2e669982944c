"""The judge owns the data that tests open and the modules that only help them; the product stays editable."""

from __future__ import annotations

import pytest

from pytest_loop.core.judging.files_to_seal import ReadFacts, find_files_to_seal

TEST = "tests/test_shop.py"
PYTEST = "import pytest\n"


def find(
    *reads: tuple[str, str],
    texts: dict[str, str] | None = None,
    plugins: tuple[str, ...] = (),
    files: tuple[str, ...] = (),
) -> list[str]:
    def is_test(path: str) -> bool:
        return path.startswith("tests/") or path.rpartition("/")[2].startswith("test_")

    texts = texts or {}
    sources = [path for path in texts if not is_test(path)]
    opened = [(path, owner) for path, owner in reads if not path.endswith("/")]
    listings = [(path.rstrip("/"), owner) for path, owner in reads if path.endswith("/")]
    facts = ReadFacts(
        opened, listings, files, is_test, sources, lambda path: texts.get(path, ""), plugins, packages=("src", "shop")
    )
    return list(find_files_to_seal(facts))


@pytest.mark.parametrize(
    ("path", "owner", "is_sealed"),
    [
        ("data/prices.json", TEST, True),
        (".env", TEST, True),
        (".env", "", True),
        ("shop/expected.json", "shop/test_total.py", True),
        ("shop/defaults.json", "shop/prices.py", False),
        ("shop.py", TEST, False),
        ("README.md", TEST, False),
        ("docs/guide.rst", TEST, False),
        ("cases/expected.md", TEST, True),
        ("web/index.html", TEST, False),
        ("pyproject.toml", TEST, False),
        (TEST, "", False),
        ("tests/data.json", TEST, False),
    ],
)
def test_data_that_test_code_opens_is_sealed(path: str, owner: str, is_sealed: bool) -> None:
    assert find((path, owner)) == ([path] if is_sealed else [])


@pytest.mark.parametrize(
    ("path", "texts", "is_sealed"),
    [
        ("support.py", {}, True),
        ("helpers.py", {}, True),
        ("shop_fixtures.py", {}, True),
        ("helpers/compare.py", {}, True),
        ("testing/__init__.py", {}, False),
        ("testing.py", {}, False),
        ("testing.py", {"testing.py": PYTEST}, True),
        ("checks.py", {"checks.py": PYTEST}, True),
        ("shop.py", {"shop.py": "x = 1\n"}, False),
        ("helpers.py", {"shop.py": "from helpers import add\n"}, False),
        ("helpers.py", {"shop.py": "import tools.helpers\n"}, False),
        ("helpers/__init__.py", {"shop.py": "import helpers\n"}, False),
        ("helpers.py", {"shop.py": "import helpers ("}, True),
        ("helpers.py", {TEST: "import helpers\n"}, True),
        ("src/helpers.py", {}, False),
        ("shop/testing.py", {"shop/testing.py": PYTEST}, False),
    ],
)
def test_module_that_only_helps_tests_is_sealed(path: str, texts: dict[str, str], is_sealed: bool) -> None:
    assert find((path, TEST), texts=texts) == ([path] if is_sealed else [])


def test_module_that_the_product_imports_first_is_product() -> None:
    assert find(("helpers.py", "shop.py")) == []


def test_plugin_is_sealed_wherever_it_lies_and_so_is_what_a_helper_opens() -> None:
    assert find(("shop/plugin.py", ""), plugins=("shop/plugin.py",)) == ["shop/plugin.py"]
    reads = (("helpers.py", TEST), ("cases.json", "helpers.py"))
    assert find(*reads) == ["cases.json", "helpers.py"]


def test_module_with_a_test_of_its_own_is_product_although_it_imports_pytest() -> None:
    texts = {"shop.py": PYTEST, "checking.py": PYTEST, "shop_helpers.py": PYTEST}
    reads = [(path, TEST) for path in texts]
    assert find(*reads, ("shop_helpers.py", "tests/test_shop_helpers.py"), texts=texts) == [
        "checking.py", "shop_helpers.py",
    ]  # fmt: skip


def test_folder_whose_files_a_test_opens_in_turn_is_sealed() -> None:
    files = ("cases/a.json", "cases/b.json", "cases/run.py", "cases/more/c.json", "data/d.json")
    reads = (("cases/a.json", TEST), ("cases/", TEST), ("data/", TEST), ("cases/more/", "shop.py"))
    assert find(*reads, files=files) == ["cases/a.json", "cases/b.json"]
