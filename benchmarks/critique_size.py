"""200 failing tests of five causes: what `pytest -q` prints about them, against the critique that an agent reads."""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

from side_by_side import pytest_command, table

from pytest_loop.agents import prompts
from pytest_loop.core.judging.assessment import assess
from pytest_loop.core.judging.critique import build_critique, render_critique
from pytest_loop.core.judging.draft import build_run_criteria
from pytest_loop.core.model.evaluation import Critique
from pytest_loop.core.model.rules import Phase
from pytest_loop.core.model.run_state import RunState, Task
from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.core.model.vocabulary import Step, Target
from pytest_loop.core.text.lengths import estimate_tokens
from pytest_loop.core.text.sanitizer import fence_text
from pytest_loop.session.runner import SubprocessSession

TARGET = 0.03
FAILING = 200
FILES = 20
NONCE = "5f3a9c01"

SHOP = '''
"""A shop with five mistakes."""

PRICES = {"tea": {"net": 250, "unit": "cent"}, "cup": {"net": 900, "unit": "cent"}}
RATES = {"full": 20, "less": 7}


def price(name):
    entry = PRICES[name]
    return entry["net"], entry["currency"]


def tax(net, rate="full"):
    return net * RATES[rate] // 100


def label(name, count):
    return f"{count} x {name.upper()}"


def total(items, rate, rounding):
    return sum(price(item)[0] for item in items) + rate * 0 + rounding


def connect(folder):
    raise ConnectionError(f"no answer from the stock in {folder}/stock.sock after 0.{len(str(folder))} s")
'''

CONFTEST = """
import pytest

import shop


@pytest.fixture
def stock(tmp_path):
    return shop.connect(tmp_path)
"""

# One test of each cause; {n} is another number in each. Files have the tests of one cause, as they have in life.
TESTS = {
    "labels": """
def test_label_{n}():
    lines = [shop.label("tea", {n}), shop.label("cup", {n} + 1)]
    assert lines == ["{n} x tea", f"{{{n} + 1}} x cup"]
""",
    "prices": """
def test_price_{n}():
    for name in ("tea", "cup"):
        net, currency = shop.price(name)
        assert (net > 0, currency) == (True, "EUR")
""",
    "stock": """
def test_stock_{n}(stock):
    before = stock.count("tea")
    stock.take("tea", {n})
    assert stock.count("tea") == before - {n}
""",
    "taxes": """
def test_tax_{n}():
    net = {n} * 100 + 1000
    assert shop.tax(net) == net * 19 // 100
""",
    "totals": """
def test_total_{n}():
    items = ["tea"] * {n}
    rate = 19
    assert shop.total(items, rate) == 250 * {n}
""",
}

# What has to stand in the critique for a cause to be named.
CAUSES = {
    "a wrong rate": "tax(",
    "a wrong text": "TEA",
    "a missing key": "KeyError: 'currency'",
    "another signature": "missing 1 required positional argument: 'rounding'",
    "a broken fixture": "ConnectionError: no answer from the stock",
}


def write_suite(folder: Path) -> None:
    """A package, a fixture, and 200 tests in 20 files that fail for one of five reasons."""
    (folder / "pytest.ini").write_text("[pytest]\npythonpath = .\n", encoding="utf-8")
    (folder / "shop.py").write_text(SHOP.lstrip(), encoding="utf-8")
    (folder / "conftest.py").write_text(CONFTEST.lstrip(), encoding="utf-8")
    each = FAILING // FILES
    for number in range(FILES):
        name = list(TESTS)[number * len(TESTS) // FILES]
        tests = (TESTS[name].format(n=number * each + one) for one in range(each))
        text = "import shop\n\n" + "\n".join(tests)
        (folder / f"test_{name}_{number:02}.py").write_text(text, encoding="utf-8")


def printed(folder: Path) -> str:
    """What a person, or an agent without this plugin, has to read."""
    words = pytest_command("-p", "no:agent_loop", "-p", "no:cacheprovider")
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    if f"{FAILING * 4 // 5} failed, {FAILING // 5} errors" not in done.stdout:
        raise SystemExit(f"expected {FAILING} failures, found:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")
    return done.stdout


def criticised(folder: Path) -> tuple[Critique, RunState]:
    """The critique of the same suite, judged as in a run, and the run that would ask for its repair."""
    words = pytest_command("-p", "no:cacheprovider")[3:]
    session = SubprocessSession(words, folder, 600, dict(os.environ), lambda _data: None)
    judgement = session.evaluate(SessionOrder())
    if judgement.plan is None or len(judgement.evidence) != FAILING:
        raise SystemExit(f"expected {FAILING} reports, found {len(judgement.evidence)}:\n{judgement.output[-4000:]}")
    criteria = build_run_criteria(judgement.plan, {}, {})
    one = assess(criteria, Phase.A, judgement.group_by_rule(), "")
    made = build_critique(criteria, one)
    state = RunState(
        run_id="green-1",
        task_alias="green",
        task=Task(prompt="fix until green"),
        target=Target.WORKSPACE,
        criteria=criteria,
        evaluation=one,
        critique=made,
    )
    return made, state


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="print the critique too")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_suite(folder)
        said = estimate_tokens(printed(folder))
        made, state = criticised(folder)
    text = fence_text(render_critique(made), NONCE)
    whole = prompts.build_prompt(Step.REFINE, state, NONCE)
    if asked.show:
        print(text, end="\n\n")
    rows = [
        [what, f"{count:,}", f"{100 * count / said:.2f}"]
        for what, count in (
            ("pytest -q", said),
            ("critique", estimate_tokens(text)),
            ("whole REFINE prompt", estimate_tokens(whole)),
        )
    ]
    print(f"{FAILING} failing tests of {len(CAUSES)} causes, in tokens")
    print(table(["", "tokens", "per cent"], rows))
    named = [cause for cause, words in CAUSES.items() if words in text]
    missing = ", ".join(cause for cause in CAUSES if cause not in named)
    print(f"causes named: {len(named)} of {len(CAUSES)}" + (f"; not named: {missing}" if missing else ""))
    print(f"targets: a critique of at most {100 * TARGET:g} per cent, and every cause named")


if __name__ == "__main__":
    main()
