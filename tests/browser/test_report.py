"""The report in a real browser: content, mouse and keyboard, both themes, and a phone.

Every test leaves a screenshot in its folder.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pytest_loop.show.html.report_page import render_report
from tests.browser.chromium import Page
from tests.show.runs import HOSTILE, RunStory, build_hostile_run, build_large_run, build_small_run

DESKTOP = (1100, 800)
PHONE = (390, 844)
DETAIL = "document.querySelector('#detail')"
Open = Callable[..., Page]


@pytest.fixture
def open_report(browser: Page, tmp_path: Path) -> Iterator[Open]:
    """Open the report of a run; afterwards there must be no errors and no other requests."""
    path = tmp_path / "report.html"

    def open_(story: RunStory, size: tuple[int, int] = DESKTOP, scheme: str = "light") -> Page:
        path.write_bytes(render_report(story.state, story.events).encode("utf-8", "replace"))
        browser.errors.clear()
        browser.requests.clear()
        browser.set_size(*size)
        browser.set_color_scheme(scheme)
        browser.open(path)
        return browser

    yield open_
    browser.run("localStorage.clear()")
    browser.take_screenshot(tmp_path / "page.png")
    assert browser.errors == []
    assert set(browser.requests) == {path.as_uri()}


def select_cell(rule: str, column: int) -> str:
    return f"[...document.querySelectorAll('#grid tbody tr')].find((row) => row.textContent.startsWith('{rule}')).querySelectorAll('button')[{column}]"


def test_verdict_is_visible_first(open_report: Open) -> None:
    page = open_report(build_small_run())
    assert page.run("document.querySelector('h1').innerText") == "Stopped without success"
    assert page.run("document.querySelector('h1').getBoundingClientRect().bottom") < DESKTOP[1] / 2
    assert page.run("document.querySelectorAll('#grid tbody tr').length") == 4


def test_click_on_a_cell_shows_expected_found_and_critique(open_report: Open, tmp_path: Path) -> None:
    page = open_report(build_small_run())
    page.run(f"{select_cell('a.totals', 0)}.click()")
    assert page.run(f"{DETAIL}.open")
    text = page.run(f"{DETAIL}.innerText")
    for words in (
        "a.totals",
        "iteration 1, phase A: fails",
        "expected\n12",
        "found\n11",
        "shop.py:3",
        "Critique",
        "fix\nMake",
    ):
        assert words in text
    page.take_screenshot(tmp_path / "detail.png")
    page.press("ArrowRight")
    assert "iteration 2, phase A: passes" in page.run(f"{DETAIL}.innerText")
    page.press("Escape")
    assert not page.run(f"{DETAIL}.open")


def test_keyboard_reaches_every_cell(open_report: Open) -> None:
    page = open_report(build_small_run())
    assert page.run("document.querySelectorAll('#grid tbody [tabindex=\"0\"]').length") == 1
    page.run("document.querySelector('#grid tbody [tabindex=\"0\"]').focus()")
    for key in ("ArrowDown", "ArrowDown", "ArrowLeft", "ArrowLeft"):
        page.press(key)
    assert page.run("document.activeElement.getAttribute('aria-label')") == "a.totals, iteration 1: fails"
    page.press("Enter")
    assert "iteration 1, phase A: fails" in page.run(f"{DETAIL}.innerText")
    page.press("Escape")
    assert page.run("document.activeElement.getAttribute('aria-label')") == "a.totals, iteration 1: fails"


def test_blocking_rule_links_to_its_finding(open_report: Open) -> None:
    page = open_report(build_small_run())
    page.run("document.querySelector('[data-rule]').click()")
    assert "found\n3 s" in page.run(f"{DETAIL}.innerText")


def test_filter_shows_only_matching_rules(open_report: Open) -> None:
    page = open_report(build_small_run())
    page.run(
        "const box = document.querySelector('#filter'); box.value = 'TOTALS are'; box.dispatchEvent(new Event('input'))"
    )
    assert page.run("document.querySelector('#grid tbody').innerText.trim()").startswith("a.totals")
    assert page.run("document.querySelector('#count').textContent") == "1 of 4 rules"
    page.run("box.value = ''; const which = document.querySelector('#which'); which.value = 'now'")
    page.run("which.dispatchEvent(new Event('change'))")
    assert page.run("document.querySelector('#count').textContent") == "2 of 4 rules"


CONTRAST = """
(() => {
  const light = (text) => {
    const [r, g, b] = text.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255)
      .map((part) => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const colour = getComputedStyle(at).backgroundColor;
      if (!/, 0\\)$/.test(colour)) return colour;
    }
    return "rgb(255, 255, 255)";
  };
  const bad = [];
  for (const one of document.querySelectorAll("main *, header *")) {
    if (![...one.childNodes].some((node) => node.nodeType === 3 && node.data.trim()) || one.closest("svg, script")) continue;
    if (!one.checkVisibility()) continue;
    const [a, b] = [light(getComputedStyle(one).color), light(behind(one))].sort((x, y) => y - x);
    if ((a + 0.05) / (b + 0.05) < 4.5) bad.push(`${one.tagName}.${one.className}: ${one.textContent.slice(0, 30)}`);
  }
  return bad;
})()
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_themes_are_readable(open_report: Open, scheme: str) -> None:
    page = open_report(build_small_run(), scheme=scheme)
    is_dark = "getComputedStyle(document.body).backgroundColor === 'rgb(13, 17, 23)'"
    assert page.run(is_dark) is (scheme == "dark")
    assert page.run(CONTRAST) == []


def test_theme_switch_overrides_the_system_and_is_stored(open_report: Open) -> None:
    page = open_report(build_small_run(), scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    for word, colour in (("light", "rgb(255, 255, 255)"), ("dark", "rgb(13, 17, 23)")):
        page.run("document.querySelector('#theme').click()")
        assert page.run("document.querySelector('#theme').textContent") == f"Theme: {word}"
        assert page.run(background) == colour
    assert open_report(build_small_run(), scheme="light").run(background) == "rgb(13, 17, 23)"


@pytest.mark.parametrize("story", [build_small_run(), build_hostile_run("x" * 300)], ids=["small", "long words"])
def test_phone_needs_no_horizontal_scrolling(open_report: Open, story: RunStory) -> None:
    page = open_report(story, PHONE)
    assert page.run("document.documentElement.scrollWidth") == PHONE[0]
    page.run("document.querySelector('#grid tbody button').click()")
    assert page.run(f"{DETAIL}.getBoundingClientRect().right") <= PHONE[0]


def test_phone_shows_the_end_of_a_long_chart_first(open_report: Open) -> None:
    page = open_report(build_large_run(20, 12), PHONE)
    best = page.run("document.querySelector('.chart .best').getBoundingClientRect().right")
    assert 0 < best < PHONE[0]
    assert page.run("document.querySelector('.scroll').scrollLeft") > 0


def test_foreign_scripts_never_run(open_report: Open) -> None:
    text = "".join(HOSTILE) + "<img src=x onerror='window.hurt = 1'><script>window.hurt = 1</script>"
    page = open_report(build_hostile_run(text))
    page.run("document.querySelector('#grid tbody button').click()")
    assert page.run("typeof window.hurt") == "undefined"
    assert page.run("document.querySelectorAll('img, iframe, script').length") == 2
    assert "<script>window.hurt = 1</script>" in page.run(f"{DETAIL}.innerText")


def test_rows_are_drawn_when_they_become_visible(open_report: Open, capsys: pytest.CaptureFixture[str]) -> None:
    page = open_report(build_large_run(2_000, 50))
    milliseconds = page.run("performance.getEntriesByType('navigation')[0].loadEventEnd")
    with capsys.disabled():
        print(f"\n2,000 rules x 50 iterations: loaded in {milliseconds:.0f} ms")
    assert page.run("document.querySelector('#count').textContent") == "2,000 of 2,000 rules"
    assert page.run("document.querySelectorAll('#grid tbody tr').length") < 60
    box, row = ("document.querySelector('#grid').clientHeight", "document.querySelector('#grid tbody tr').offsetHeight")
    assert page.run("document.querySelectorAll('#grid tbody [data-column=\"0\"]').length") > page.run(f"{box} / {row}")
    page.run("document.querySelector('#grid').scrollTop = 1e9")
    page.run("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    assert page.run("document.querySelector('#grid tbody tr:last-child').getAttribute('aria-rowindex')") == "2001"


def test_search_opens_folded_parts_and_counts_matches(open_report: Open) -> None:
    page = open_report(build_small_run())
    page.run(
        "const box = document.querySelector('#search'); box.value = 'looked for'; box.dispatchEvent(new Event('input'))"
    )
    assert page.run("document.querySelector('#search-count').textContent") == "1 found"
    page.run("box.focus()")
    page.press("Enter")
    assert page.run("document.querySelector('#search-count').textContent") == "1 of 1"
    assert page.run(
        "[...document.querySelectorAll('pre')].find((each) => each.textContent.startsWith('looked')).checkVisibility()"
    )


def test_copy_button_says_that_it_copied(open_report: Open) -> None:
    page = open_report(build_small_run())
    page.run("document.querySelector('.copyable .copy').click()")
    page.run("new Promise((done) => setTimeout(done, 200))")
    assert page.run("document.querySelector('.copyable .copy').textContent") == "Copied"


def test_phone_stacks_tables_instead_of_cropping_them(open_report: Open) -> None:
    page = open_report(build_small_run(), PHONE)
    script = "[...document.querySelectorAll('main table')].filter((table) => table.getBoundingClientRect().right > 390).length"
    assert page.run(script) == 0
