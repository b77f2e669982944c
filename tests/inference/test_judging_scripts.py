"""Scripts and makefiles of a judging command belong to the judge; what they check does not."""

from __future__ import annotations

import pytest

from pytest_loop.inference.judging_scripts import find_judging_scripts

FILES = {
    "Makefile": "include config.mk\n\ntest:\n\t$(PYTHON) scripts/run_tests.py shop.py\n\t./check.sh\n",
    "config.mk": "-include more.mk missing.mk\nPYTHON = python\n",
    "more.mk": "include config.mk\n",
    "scripts/run_tests.py": "",
    "check.sh": "",
    "shop.py": "",
    "app/run": "",
    "sub/Makefile": "include other.mk\n",
    "other.mk": "",
    "tools/lint": "",
}


@pytest.mark.parametrize(
    ("left_out", "named", "expected"),
    [
        ((), (), ("check.sh", "config.mk", "more.mk", "scripts/run_tests.py")),
        (("Makefile", "config.mk", "more.mk"), (), ()),
        (
            ("Makefile", "config.mk", "more.mk"),
            ("tools/lint", "shop.py", "app/run", "gone.sh"),
            ("app/run", "tools/lint"),
        ),
    ],
    ids=["make", "nothing", "named"],
)
def test_scripts_of_commands_are_found(
    left_out: tuple[str, ...], named: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    files = {path: text for path, text in FILES.items() if path not in left_out}
    assert find_judging_scripts(files, named, lambda path: files[path]) == expected
