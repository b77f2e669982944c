"""The projects that the scripted agents work on."""

from __future__ import annotations

from judge_rows.row import Action, clean_files, replace

SHOP = clean_files(
    {
        "shop.py": '''
        """A small shop."""


        def total(prices):
            return sum(prices) - 1


        def greeting(name):
            return f"Hello, {name}"
        ''',
        "tests/test_shop.py": """
        from pathlib import Path

        from shop import greeting, total


        def test_total():
            assert total([1, 2, 3]) == 6


        def test_total_of_more():
            assert total([10, 20]) == 30


        def test_greeting():
            assert greeting("Ada") == Path(__file__).with_name("golden.txt").read_text().strip()
        """,
        "tests/golden.txt": "Hello, Ada\n",
        "tests/conftest.py": "",
        "pytest.ini": "[pytest]\npythonpath = .\n",
    }
)
BUG = "sum(prices) - 1"
FIX: Action = replace("shop.py", BUG, "sum(prices)")
GREEN_SHOP = SHOP | {"shop.py": SHOP["shop.py"].replace(BUG, "sum(prices)")}
# A linter complains about one module; everything else passes.
LINT = clean_files(
    GREEN_SHOP
    | {
        "rates.py": '''
        """Rates of the shop."""

        import os


        def rate(price):
            return price * 2
        ''',
        "tests/test_rates.py": "from rates import rate\n\n\ndef test_rate():\n    assert rate(2) == 4\n",
        "pyproject.toml": '[tool.ruff]\nlint.select = ["F"]\n',
    }
)
RUFF = ("ruff", "check", ".")
# A type checker complains about one function.
TYPES = clean_files(
    GREEN_SHOP
    | {
        "rates.py": '''
        """Rates of the shop."""


        def rate(price: int) -> int:
            return str(price * 2)
        ''',
        "tests/test_rates.py": "from rates import rate\n\n\ndef test_rate():\n    assert rate(2) == '4'\n",
        "pyproject.toml": '[tool.mypy]\nstrict = true\nfiles = ["rates.py"]\n',
    }
)
MYPY = ("mypy",)
# No test calls half of the functions.
COVERAGE = clean_files(
    GREEN_SHOP
    | {
        "rates.py": '''
        """Rates of the shop."""


        def rate(price):
            return price * 2


        def rebate(price):
            if price > 100:
                return price * 0.9
            if price > 50:
                return price * 0.95
            return price
        ''',
        "tests/test_rates.py": "from rates import rate\n\n\ndef test_rate():\n    assert rate(2) == 4\n",
        "pyproject.toml": '[tool.coverage.run]\nsource = ["."]\nomit = ["tests/*"]\n',
    }
)
COVER = ("python", "-m", "pytest", "-q", "--cov=.", "--cov-fail-under=90")
# A suite that make runs with unittest.
MAKE = clean_files(
    {
        "shop.py": SHOP["shop.py"],
        "tests/__init__.py": "",
        "tests/test_shop.py": """
        import unittest

        from shop import total


        class TotalTest(unittest.TestCase):
            def test_total(self):
                self.assertEqual(total([1, 2, 3]), 6)

            def test_total_of_more(self):
                self.assertEqual(total([10, 20]), 30)
        """,
        "Makefile": "include config.mk\n\ntest:\n\t$(PYTHON) scripts/run_tests.py\n",
        "config.mk": "PYTHON = python\n",
        "scripts/run_tests.py": """
        import sys
        import unittest

        sys.path.insert(0, ".")
        suite = unittest.defaultTestLoader.discover("tests", top_level_dir=".")
        sys.exit(not unittest.TextTestRunner().run(suite).wasSuccessful())
        """,
    }
)
NODE = clean_files(
    {
        "package.json": '{"name": "shop", "version": "1.0.0", "type": "module", "scripts": {"test": "node --test"}}\n',
        "shop.js": "export function total(prices) {\n  return prices.reduce((a, b) => a + b, 0) - 1;\n}\n",
        "test/shop.test.js": """
        import assert from "node:assert";
        import test from "node:test";
        import { total } from "../shop.js";

        test("total", () => assert.equal(total([1, 2, 3]), 6));
        test("total of more", () => assert.equal(total([10, 20]), 30));
        """,
    }
)
NODE_BUG = "a + b, 0) - 1"
NPM = ("npm", "test")
GUIDE = clean_files(
    {
        "guide.rules.yaml": """
        rules:
          - {id: a.content.title, description: It has a title, check: {contains: "# Guide"}}
          - {id: a.content.steps, description: It names the steps, check: {command: "python checks/steps.py {artifact}"}}
          - {id: a.content.words, description: It says enough, check: {python: "wording:is_long"}}
        """,
        "checks/steps.py": "import sys\n\nsys.exit('Step 1' not in open(sys.argv[1]).read())\n",
        "wording.py": "def is_long(artifact, workspace):\n    return len(artifact.read_text().split()) > 8\n",
    }
)
