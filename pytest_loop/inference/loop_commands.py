"""Recognize a text that asks for a command about runs: `pause the loop` is no task."""

from __future__ import annotations

import re
from dataclasses import dataclass

_NAME = r"[a-z0-9]+(?:-[a-z0-9]+)+"
_WHICH = r"(?:(?:the|this|that|my|all|current|active|agent|ralph|external|background)\s+){0,4}"
_LOOP = rf"{_WHICH}(?:agent-loop|loops?|runs?|ralph)"
_RUN = rf"\s+(?:(?:{_LOOP}\s+)?{_NAME}|{_LOOP})"
_RUN_OR_IT = rf"(?:{_RUN}|\s+(?:it|that|this))?"
_NEXT_TASK = r"(?:[\s,;]+(?:(?:and|then)\s+)?(?:just|instead)\s+(?P<task>.+?))?"
# Patterns of each command, in words and as other loop tools name it.
_WORDS = {
    "stop": rf"(?:stop|abort|cancel|quit|halt|kill){_RUN_OR_IT}|end{_RUN}|ralph-abort\s+{_NAME}",
    "pause": rf"(?:pause|suspend|interrupt){_RUN_OR_IT}",
    "resume": rf"(?:resume|continue|unpause){_RUN_OR_IT}|go on with{_RUN}|ralph-resume(?:\s+{_NAME})?",
    "attach": rf"(?:re)?attach(?:\s+to{_RUN_OR_IT})?|follow{_RUN}",
    "list": rf"list|(?:list|show)(?:\s+me)?\s+{_LOOP}|ralph-status\s+--all",
    "history": rf"(?:(?:show|tell)\s+)?(?:me\s+)?(?:the\s+)?history(?:\s+{_NAME}|\s+of{_RUN_OR_IT})?",
    "status": rf"(?:(?:show|check|get)\s+)?(?:the\s+)?(?:(?:loop|run|ralph)\s+)?status(?:\s+of{_RUN_OR_IT})?"
    rf"|check(?:\s+on)?{_RUN}|ralph-status(?:\s+{_NAME})?",
}
_PATTERNS = {
    name: re.compile(
        rf"(?:(?:please|actually|ok|okay)[\s,]+)?(?:aiwg\s+)?(?:{words})(?:\s+now)?{_NEXT_TASK}[\s.!?]*", re.IGNORECASE
    )
    for name, words in _WORDS.items()
}
_OTHER_COMMAND = re.compile(r"ralph-(?:abort|resume|status)")


@dataclass(frozen=True)
class LoopCommand:
    """A command about runs; `alias` is the run that it names, `next_task` a task that the text asks for as well."""

    name: str
    alias: str = ""
    next_task: str = ""

    @property
    def line(self) -> str:
        """The command line to type."""
        return f"pytest-loop {self.name}" + (f" --run {self.alias}" if self.alias else "")


def find_loop_command(text: str) -> LoopCommand | None:
    """Return the command that a text asks for, None if it is a task: `stop the loop in worker.py` is one."""
    for name, pattern in _PATTERNS.items():
        if match := pattern.fullmatch(text.strip()):
            task = match["task"] or ""
            words = _OTHER_COMMAND.sub("", text.strip()[: match.start("task")] if task else text)
            alias = re.search(rf"(?<![\w-]){_NAME}(?![\w-])", words)
            return LoopCommand(name, alias[0] if alias and alias[0] != "agent-loop" else "", task)
    return None
