from __future__ import annotations

from collections.abc import Iterator

from pytest_loop import Check, Context, Finding


class LongestLine(Check):
    """Check that no line of the artifact is longer than `longest_line` characters."""

    reads_artifact = True

    longest_line: int
    ignore_links: bool = False

    def run(self, context: Context) -> Iterator[Finding]:
        document = context.document()
        for number, line in enumerate(document.text.splitlines(), start=1):
            if len(line) > self.longest_line and not (self.ignore_links and "://" in line):
                expected = f"at most {self.longest_line} characters"
                yield Finding(expected=expected, found=f"{len(line)}", where=document.line(number))


def pytest_loop_checks() -> dict[str, type[Check]]:
    return {"longest_line": LongestLine}
