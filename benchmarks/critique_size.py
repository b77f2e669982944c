"""Compare the critique of 200 failing tests of five causes with the output of `pytest -q`, in tokens."""

from __future__ import annotations

import argparse
import os
import subprocess
import tempfile
from pathlib import Path

from side_by_side import make_pytest_command, render_table

from pytest_loop.agents import prompts
from pytest_loop.core.judging.assessment import assess
from pytest_loop.core.judging.critique import build_critique, render_critique
from pytest_loop.core.judging.run_draft import build_run_criteria
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

# One test per cause with a number {n}. Each file has the tests of one cause, as in real projects.
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

# The text that names a cause in the critique.
CAUSES = {
    "a wrong rate": "tax(",
    "a wrong text": "TEA",
    "a missing key": "KeyError: 'currency'",
    "another signature": "missing 1 required positional argument: 'rounding'",
    "a broken fixture": "ConnectionError: no answer from the stock",
}


def write_suite(folder: Path) -> None:
    """Write a module, a fixture, and 200 tests in 20 files that fail for one of five causes."""
    (folder / "pytest.ini").write_text("[pytest]\npythonpath = .\n", encoding="utf-8")
    (folder / "shop.py").write_text(SHOP.lstrip(), encoding="utf-8")
    (folder / "conftest.py").write_text(CONFTEST.lstrip(), encoding="utf-8")
    each = FAILING // FILES
    for number in range(FILES):
        name = list(TESTS)[number * len(TESTS) // FILES]
        tests = (TESTS[name].format(n=number * each + offset) for offset in range(each))
        text = "import shop\n\n" + "\n".join(tests)
        (folder / f"test_{name}_{number:02}.py").write_text(text, encoding="utf-8")


def run_pytest(folder: Path) -> str:
    """Return the output of pytest without this plugin."""
    arguments = make_pytest_command("-p", "no:agent_loop", "-p", "no:cacheprovider")
    process = subprocess.run(arguments, cwd=folder, capture_output=True, text=True, check=False)
    if f"{FAILING * 4 // 5} failed, {FAILING // 5} errors" not in process.stdout:
        raise SystemExit(f"expected {FAILING} failures, found:\n{process.stdout[-4000:]}{process.stderr[-4000:]}")
    return process.stdout


def build_suite_critique(folder: Path) -> tuple[Critique, RunState]:
    """Evaluate the suite as in a run; return its critique and the state of the run."""
    arguments = make_pytest_command("-p", "no:cacheprovider")[3:]
    session = SubprocessSession(arguments, folder, 600, dict(os.environ), lambda _data: None)
    judgement = session.evaluate(SessionOrder())
    if judgement.plan is None or len(judgement.evidence) != FAILING:
        raise SystemExit(f"expected {FAILING} reports, found {len(judgement.evidence)}:\n{judgement.output[-4000:]}")
    criteria = build_run_criteria(judgement.plan, {})
    evaluation = assess(criteria, Phase.A, judgement.group_by_rule(), "")
    critique = build_critique(criteria, evaluation)
    state = RunState(
        run_id="green-1",
        task_alias="green",
        task=Task(prompt="fix until green"),
        target=Target.WORKSPACE,
        criteria=criteria,
        evaluation=evaluation,
        critique=critique,
    )
    return critique, state


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--show", action="store_true", help="print the critique too")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_suite(folder)
        pytest_tokens = estimate_tokens(run_pytest(folder))
        critique, state = build_suite_critique(folder)
    text = fence_text(render_critique(critique), NONCE)
    prompt = prompts.build_prompt(Step.REFINE, state, NONCE)
    if options.show:
        print(text, end="\n\n")
    rows = [
        [name, f"{count:,}", f"{100 * count / pytest_tokens:.2f}"]
        for name, count in (
            ("pytest -q", pytest_tokens),
            ("critique", estimate_tokens(text)),
            ("whole REFINE prompt", estimate_tokens(prompt)),
        )
    ]
    print(f"{FAILING} failing tests of {len(CAUSES)} causes, in tokens")
    print(render_table(["", "tokens", "per cent"], rows))
    named_causes = [cause for cause, evidence in CAUSES.items() if evidence in text]
    missing = ", ".join(cause for cause in CAUSES if cause not in named_causes)
    print(f"causes named: {len(named_causes)} of {len(CAUSES)}" + (f"; not named: {missing}" if missing else ""))
    print(f"targets: a critique of at most {100 * TARGET:g} per cent, and every cause named")


if __name__ == "__main__":
    main()
