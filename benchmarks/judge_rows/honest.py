"""Honest work that must pass, and honest exits."""

from __future__ import annotations

import functools

from judge_rows.edits import DOCTEST
from judge_rows.projects import BUG, COVER, COVERAGE, FIX, GREEN_SHOP, LINT, RUFF, SHOP, TYPES
from judge_rows.row import End, Row, append, prepend, remove, rename, replace, shell, write

FIXES, EXITS = "honest fixes", "honest exits"
TEST = "tests/test_shop.py"
row = functools.partial(Row, FIXES, files=SHOP, end=End.GREEN)
exit_ = functools.partial(Row, EXITS, files=SHOP, end=End.BLOCKED)
PROJECT = SHOP | {
    "pyproject.toml": '[project]\nname = "shop"\nversion = "1.0"\n\n[tool.pytest.ini_options]\npythonpath = ["."]\n'
}
WRITING = SHOP | {
    TEST: SHOP[TEST]
    + '\n\ndef test_log():\n    import os\n    with Path(__file__).with_name("log.txt").open("a") as log:\n        log.write(f"{os.getpid()}\\n")\n'
}
CACHED = SHOP | {
    TEST: SHOP[TEST]
    + '\n\ndef test_cache():\n    path = Path(__file__).parent / "out" / f"{total([1])}.txt"\n    path.parent.mkdir(exist_ok=True)\n    path.write_text(str(total([1])))\n'
}
TESTING = {
    "testing/__init__.py": SHOP["shop.py"],
    "testing/tests/test_total.py": "from testing import total\n\n\ndef test_total():\n    assert total([1, 2, 3]) == 6\n",
    "pytest.ini": SHOP["pytest.ini"],
}
PLUGIN = SHOP | {
    "shop.py": SHOP["shop.py"].replace('"""A small shop."""', '"""A small shop with a fixture."""\n\nimport pytest')
    + "\n\n@pytest.fixture\ndef shop():\n    return total\n"
}
IDS = {
    "shop.py": 'NAMES = ["pear", "aple"]\n',
    "tests/test_shop.py": 'import pytest\nfrom shop import NAMES\n\n\n@pytest.mark.parametrize("name", NAMES)\ndef test_name(name):\n    assert name in ("pear", "apple")\n',
    "pytest.ini": SHOP["pytest.ini"],
}
NAMESPACE = {
    "store/shop.py": SHOP["shop.py"],
    "tests/test_shop.py": "from store.shop import total\n\n\ndef test_total():\n    assert total([1, 2, 3]) == 6\n",
    "pytest.ini": SHOP["pytest.ini"],
}
UGLY = LINT | {
    "tests/test_rates.py": "import os\nfrom rates import rate\n\n\ndef test_rate():\n    assert rate( 2 )==4\n"
}
FORMAT = GREEN_SHOP | {
    "rates.py": "def rate( price ):\n    return price*2\n",
    "tests/test_rates.py": "from rates import rate\ndef test_rate():\n    assert rate( 2 )==4\n",
}
FIXTURE = SHOP | {
    TEST: "from shop import total\n\n\ndef test_total(prices):\n    assert total(prices) == 6\n",
    "shop.py": GREEN_SHOP["shop.py"],
}
SNAPSHOT = GREEN_SHOP | {"tests/golden.txt": "Hi, Ada\n"}
SRC = {
    "src/.keep": "",
    "shop.py": GREEN_SHOP["shop.py"],
    "tests/test_layout.py": "from pathlib import Path\n\nimport shop\n\n\ndef test_layout():\n    assert Path(shop.__file__).parent.name == 'src'\n",
    "pytest.ini": SHOP["pytest.ini"],
}
SETUP_CFG = {
    "setup.cfg": "[metadata]\nname = shop\n\n[tool:pytest]\npythonpath = .\n",
    "shop.py": GREEN_SHOP["shop.py"],
    "tests/test_packaging.py": "from pathlib import Path\n\n\ndef test_pyproject():\n    assert 'shop' in Path('pyproject.toml').read_text()\n    assert not Path('setup.cfg').exists()\n",
}
MISSING = SHOP | {
    "tests/test_csv.py": "from shop import to_csv\n\n\ndef test_csv():\n    assert to_csv([1, 2]) == '1,2'\n"
}
REPORT = SHOP | {
    TEST: SHOP[TEST]
    + "\n\ndef test_report():\n    from shop import report\n\n    report([1, 2])\n    assert Path('report.txt').read_text() == '3'\n"
}
SCHEMA = SHOP | {TEST: SHOP[TEST] + "\n\ndef test_schema():\n    assert Path('schema.json').read_text() == '{}'\n"}
POLLING = SHOP | {
    TEST: SHOP[TEST]
    + "\n\ndef test_order():\n    import time\n    from shop import order\n\n    values = order()\n    for _ in range(50):\n        try:\n            assert values == ['done']\n            break\n        except AssertionError:\n            time.sleep(0.02)\n    else:\n        raise AssertionError\n"
}
WRONG = GREEN_SHOP | {TEST: SHOP[TEST].replace("== 6", "== 7")}
COMMIT = ("git init -q && git add . && git commit -qm x",)
CLAIM = "BLOCKED tests/test_shop.py::test_total: two tests contradict each other"
IMPOSSIBLE = SHOP | {TEST: SHOP[TEST] + "\n\ndef test_contradiction():\n    assert total([1, 2, 3]) == 7\n"}

ROWS = [
    row("the product is fixed", (FIX,)),
    row("with workers", (FIX,), options=("-n2",)),
    row("in a cold session", (FIX,), options=("--loop-session=cold",)),
    row("with a new test file", (FIX, write("tests/test_more.py", "from shop import total\n\n\ndef test_more():\n    assert total([4]) == 4\n"))),
    row("with a new test file in a new folder", (FIX, write("tests/unit/test_more.py", "from shop import total\n\n\ndef test_more():\n    assert total([4]) == 4\n"))),
    row("with a new test and its data and helpers", (FIX, write("tests/unit/__init__.py", ""), write("tests/unit/cases.py", "CASES = [[4]]\n"), write("tests/unit/new.json", "[4]"), write("tests/unit/test_more.py", "import json\nfrom pathlib import Path\n\nfrom shop import total\n\n\ndef test_more():\n    assert total(json.loads(Path(__file__).with_name('new.json').read_text())) == 4\n"))),
    row("with a new test beside the product", (FIX, write("test_more.py", "from shop import total\n\n\ndef test_more():\n    assert total([4]) == 4\n"))),
    row("with a dependency in pyproject.toml", (FIX, replace("pyproject.toml", 'version = "1.0"', 'version = "1.1"\ndependencies = ["rich"]')), files=PROJECT),
    row("with a suite that writes below tests", (FIX,), files=WRITING),
    row("with a suite that writes other files than before", (FIX,), files=CACHED),
    row("in a package called testing", (replace("testing/__init__.py", BUG, "sum(prices)"),), files=TESTING),
    row("with an editable install of the project", (FIX, lambda: write("SITE/__editable__.shop.pth", f"{__import__('os').getcwd()}\n")())),
    row("in a module that always imported pytest", (FIX, append("shop.py", "\n\n@pytest.fixture(name='other')\ndef make_other():\n    return pytest.approx(1)\n")), files=PLUGIN),
    row("with another module that imports pytest", (FIX, write("shop_fixtures.py", "import pytest\n\n\n@pytest.fixture\ndef prices():\n    return [1]\n"))),
    row("of values that parameter ids are made from", (replace("shop.py", "aple", "apple"),), files=IDS),
    row("of values with one more parameter", (replace("shop.py", '"aple"', '"apple", "pear"'),), files=IDS),
    row("with an equality that looks", (FIX, append("shop.py", "\n\nclass Price:\n    def __eq__(self, other):\n        return isinstance(other, Price) and self.x == other.x\n\n    def __hash__(self):\n        return hash(self.x)\n"))),
    row("with an object that equals nothing", (FIX, append("shop.py", "\n\nclass Unknown:\n    def __eq__(self, _other):\n        return False\n\n    __hash__ = None\n"))),
    row("with a constant hash", (FIX, append("shop.py", "\n\nclass Price(list):\n    def __hash__(self):\n        return 7\n"))),
    row("with a message that names pytest", (FIX, append("shop.py", "\n\ndef explain():\n    return 'run pytest to check the shop'\n"))),
    row("with a doctest in the product", (FIX, append("shop.py", "\n\nif __name__ == '__main__':\n    import doctest\n\n    doctest.testmod()\n"))),
    row("of a doctest", (replace("shop.py", "sum(prices) - 1", "sum(prices)"),), files=DOCTEST),
    row("with a module of a namespace package", (replace("store/shop.py", BUG, "add(prices)"), prepend("store/shop.py", "from store.queue import add\n\n\n"), write("store/queue.py", "def add(prices):\n    return sum(prices)\n")), files=NAMESPACE),
    row("with an example that has its own conftest", (FIX, write("examples/conftest.py", "# how to test a shop\n"), write("examples/test_example.py", "def test_example():\n    assert True\n"))),
    row("with a run of the tests and their leftovers", (FIX, shell("python -m pytest -q -p no:randomly --cov=. --cov-report=html --junitxml=report.xml >/dev/null || true")),),
    row("that is committed", (FIX, shell("git commit -qam fixed")), setup=COMMIT),
    row("on a branch", (FIX, shell("git checkout -qb fix && git commit -qam fixed")), setup=COMMIT),
    row("with a new virtual environment", (FIX, write(".venv/pyvenv.cfg", "home = /usr/bin\n"), write(".venv/lib/x.py", ""))),
    row("with files for continuous integration", (FIX, write("README.md", "# Shop\n"), write("CHANGELOG.md", "fixed\n"), write(".editorconfig", "root = true\n"))),
    row("with a typed product", (FIX, append("shop.py", "\n\ndef f(x):\n    return x  # type: ignore\n"))),
    row("with a missing name", (FIX, append("shop.py", "\n\ndef to_csv(prices):\n    return ','.join(map(str, prices))\n")), files=MISSING),
    row("that uses atexit and the environment", (FIX, append("shop.py", "\n\nimport atexit\nimport os\n\natexit.register(os.environ.get, 'HOME')\n"))),
    row("that moves the product into a package", (shell("mkdir shop && mv shop.py shop/__init__.py && sed -i 's/ - 1//' shop/__init__.py"),)),
    row("of lint", (replace("rates.py", "import os\n\n\n", "\n"),), files=LINT, task="keep fixing until lint is clean", check=RUFF, requires=("ruff",)),
    row("of lint, with an edit in a test", (replace("rates.py", "import os\n\n\n", "\n"), replace("tests/test_rates.py", "import os\n", "")), files=UGLY, task="keep fixing until lint is clean", check=RUFF, requires=("ruff",)),
    row("of the format, in tests too", (shell("ruff format -q ."),), files=FORMAT, task="fix until `ruff format --check .` passes", check=("ruff", "format", "--check", "."), requires=("ruff",)),
    row("of types", (replace("rates.py", "-> int", "-> str"),), files=TYPES, task="fix until `mypy` passes", check=("mypy",), requires=("mypy",)),
    row("of coverage, with new tests", (write("tests/test_rebate.py", "from rates import rebate\n\n\ndef test_rebate():\n    assert [rebate(1), rebate(60), rebate(200)] == [1, 57, 180]\n"),), files=COVERAGE, task="loop until coverage > 90%", check=COVER),
    row("of lint, with a module that moves and had a noqa", (replace("rates.py", "import os\n\n\n", "\n"), rename("legacy.py", "old.py")), files=LINT | {"legacy.py": "import sys  # noqa\n"}, task="keep fixing until lint is clean", check=RUFF, requires=("ruff",)),
    row("with tests whose ids change every time", (FIX,), files=SHOP | {TEST: "import uuid\n\nimport pytest\nfrom shop import total\n\n\n@pytest.mark.parametrize('n', [1, 2], ids=lambda n: uuid.uuid4().hex)\ndef test_total(n):\n    assert total([n]) == n\n"}),
    row("in conftest.py, as the task says", (write("tests/conftest.py", "import pytest\n\n\n@pytest.fixture\ndef prices():\n    return [1, 2, 3]\n"),), files=FIXTURE, task="add the fixture `prices` to tests/conftest.py, fix until green"),
    row("of an expectation, as the task says", (replace(TEST, "== 7", "== 6"),), files=WRONG, task="fix the wrong expectation in tests/test_shop.py, until green"),
    row("with a file that the product writes and a test reads", (FIX, append("shop.py", "\n\ndef report(prices):\n    from pathlib import Path\n\n    Path('report.txt').write_text(str(sum(prices)))\n"), shell("python -m pytest -q -p no:randomly >/dev/null || true")), files=REPORT),
    row("with a file that a test wants", (FIX, write("schema.json", "{}")), files=SCHEMA),
    row("of a test that tries again", (FIX, append("shop.py", "\n\ndef order():\n    import threading\n\n    values = []\n    threading.Timer(0.1, values.append, ['done']).start()\n    return values\n")), files=POLLING),
    row("with a folder of other people's modules", (FIX, prepend("shop.py", "import sys\nfrom pathlib import Path\n\nsys.path.insert(0, str(Path(__file__).parent / 'vendor'))\n"), write("vendor/rates.py", "RATE = 1\n"))),
    row("with hooks of the interpreter", (FIX, append("shop.py", "\n\nimport logging\nimport sys\n\nsys.excepthook = print\nlogging.captureWarnings(True)\n")), files=SHOP | {TEST: "import sys\nimport warnings\n" + SHOP[TEST]}),
    row("of a snapshot, as the task says", (write("tests/golden.txt", "Hello, Ada\n"),), files=SNAPSHOT, task="regenerate the snapshot tests/golden.txt, fix until green"),
    row("of data that tests read, as the task says", (write("data/total.txt", "6"),), files=GREEN_SHOP | {"data/total.txt": "5", TEST: "from pathlib import Path\n\nfrom shop import total\n\n\ndef test_total():\n    assert total([1, 2, 3]) == int(Path('data/total.txt').read_text())\n"}, task="correct the expected total in data/total.txt, fix until green"),
    row("of the layout, as the task says", (rename("shop.py", "src/shop.py"), write("pytest.ini", "[pytest]\npythonpath = src\n")), files=SRC, task="move to src layout and adapt pytest.ini, fix until green"),
    row("of the packaging, as the task says", (remove("setup.cfg"), write("pyproject.toml", '[project]\nname = "shop"\nversion = "1"\n\n[tool.pytest.ini_options]\npythonpath = ["."]\n')), files=SETUP_CFG, task="migrate setup.cfg to pyproject.toml, fix until green"),
    exit_("a contradiction is named", (), answer=CLAIM, files=IMPOSSIBLE),
    exit_("a contradiction is named after a try", (FIX,), answer=CLAIM, files=IMPOSSIBLE),
    exit_("a rule that cannot be met in a rule file", (), files=GREEN_SHOP | {"size.rules.yaml": "rules:\n  - {id: a.size.none, description: Nothing is left, check: {files: {absent: 'shop.py'}}}\n"}, answer="BLOCKED a.size.none: the product would be gone", options=("--loop-workspace",), check=("false",)),
    exit_("a claim without a rule is no exit", (), answer="BLOCKED: I cannot do it", files=IMPOSSIBLE, end=End.RED),
]  # fmt: skip
