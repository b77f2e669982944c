"""`pytest-loop init manifest`: write the manifest of a workload from flags, and from answers at a terminal."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_loop.cli.command_parser import USAGE_ERROR, Parser
from pytest_loop.errors import LoopError, ManifestError
from pytest_loop.run.console import Console
from pytest_loop.run.questions import YES_BY_DEFAULT
from pytest_loop.workloads.manifest import MANIFEST_NAMES
from pytest_loop.workloads.new_manifest import FIELDS, ManifestField, NewManifest, ValueKind, list_named_fields
from pytest_loop.workloads.pipeline import MAX_CALIBRATIONS, Pipeline, calibrate

_SUFFIXES = (".yaml", ".yml", ".json")
_NONE = "none"


def main(words: Sequence[str]) -> int:
    """Write a manifest, and return the exit code."""
    values = _parse(words)
    try:
        dialogue = ManifestDialogue(_make_manifest(values), Console(sys.stdout), tries_case=not values.no_try)
        return 0 if dialogue.write() else 1
    except LoopError as error:
        print(f"ERROR: {error}", file=sys.stderr)
    except (KeyboardInterrupt, EOFError):
        print("\nnothing was written")
    return USAGE_ERROR


def _parse(words: Sequence[str]) -> argparse.Namespace:
    description = "Write the manifest of a workload. At a terminal, what no flag says is asked for."
    parser = Parser(prog="pytest-loop init", description=description, allow_abbrev=False)
    parser.add_argument("kind", choices=["manifest"], help="what to write")
    parser.add_argument("path", nargs="?", default="loop.manifest.yaml", help="the file (default: %(default)s)")
    for field in FIELDS:
        action = "append" if field.kind is ValueKind.LIST else "store"
        text = f"{field.description} (required)" if field.is_required else field.description
        parser.add_argument(field.flag, action=action, metavar=field.kind.value, help=text)
    parser.add_argument("--no-try", action="store_true", help="write it without running its first case")
    return parser.parse_args(words)


def _make_manifest(values: argparse.Namespace) -> NewManifest:
    """Return a manifest with the values of the flags; raise `LoopError` for values that cannot be used."""
    path = Path(values.path)
    if path.suffix not in _SUFFIXES:
        raise LoopError(f"expected a path that ends with {', '.join(_SUFFIXES)}, found {values.path!r}")
    if path.exists():
        raise LoopError(f"{path} exists: edit it, remove it, or name another file")
    if not path.parent.is_dir():
        raise LoopError(f"there is no folder {path.parent}: a manifest lies beside the files of its workload")
    manifest = NewManifest(path)
    for field in FIELDS:
        value = getattr(values, field.flag.removeprefix("--").replace("-", "_"))
        if value is not None:
            manifest.values[field.name] = value if isinstance(value, list) else field.kind.parse(value)
    problems = [
        f"{field.flag}: {problem}"
        for field in FIELDS
        if field.name in manifest.values
        for problem in manifest.find_problems(field.name)
    ]
    if problems:
        raise LoopError("\n".join(problems))
    return manifest


@dataclass
class ManifestDialogue:
    """Complete a manifest with answers, try its first case (with `tries_case`), show the manifest, and write it."""

    manifest: NewManifest
    console: Console
    tries_case: bool = True

    def write(self) -> bool:
        """Write the manifest unless the user declines, and return whether it was written.

        Raises `EOFError` at the end of the input.
        """
        if self.console.can_ask:
            self._ask_for_fields()
        else:
            self._require_fields()
        if not self._show_and_confirm(is_working=self._solve_problems()):
            self.console.print_line("nothing was written")
            return False
        self._write_file()
        return True

    def _require_fields(self) -> None:
        """Raise `LoopError` for required fields without a value; only the name of the workload has a default."""
        self.manifest.values.setdefault("workloadId", self.manifest.suggest("workloadId"))
        missing = [field.flag for field in FIELDS if field.is_required and not self.manifest.values.get(field.name)]
        if missing:
            raise LoopError(f"expected {', '.join(missing)}, found none (at a terminal, you are asked for them)")

    # -- questions

    def _ask_for_fields(self) -> None:
        self.console.print_line("Enter takes what stands in brackets, `none` leaves a field out.")
        self._ask_for_missing([field for field in FIELDS if field.question and not field.is_advanced])
        if not self.manifest.has_judge:
            question = "Nothing judges yet. What does a good output look like, for an agent that judges it? "
            if description := self._read(question):
                self.manifest.write_reviewer(description)
        if self.console.confirm("Name a second judge, prompts, documents or a limit of iterations?"):
            self._ask_for_missing([field for field in FIELDS if field.is_advanced])

    def _ask_for_missing(self, fields: Sequence[ManifestField]) -> None:
        for field in fields:
            if field.name not in self.manifest.values:
                self._ask_for(field, self.manifest.suggest(field.name))

    def _ask_for(self, field: ManifestField, default: str) -> None:
        """Ask for a field until its value can be used."""
        while True:
            answer = self._read(f"{field.question} [{default or _NONE}] ") or default
            if answer in ("", _NONE) and not field.is_required:
                self.manifest.values.pop(field.name, None)
                return
            self.manifest.values[field.name] = field.kind.parse(answer)
            problems = list(self.manifest.find_problems(field.name))
            if not problems:
                return
            self.console.print_lines(f"  {problem}" for problem in problems)

    def _read(self, question: str) -> str:
        answer = self.console.read_answer(question)
        if answer is None:
            raise EOFError
        return answer

    # -- problems and the end

    def _solve_problems(self) -> bool:
        """Try the first case, and ask again for the fields that its problems name; return whether it works."""
        for attempt in range(1, MAX_CALIBRATIONS + 1):
            problems = self._find_problems()
            self.console.print_lines(problems)
            if not problems:
                return True
            if not self.console.can_ask or attempt == MAX_CALIBRATIONS:
                break
            for field in list_named_fields(problems):
                self._ask_for(field, self.manifest.format_value(field.name))
        return False

    def _find_problems(self) -> list[str]:
        """Load the manifest and run its first case; return the problems."""
        try:
            workload = self.manifest.load()
        except ManifestError as error:
            return [problem.text for problem in error.problems]
        if not self.tries_case:
            return []
        case = workload.cases[0]
        self.console.print_line(f"calibrating with {case.id} ...")
        errors = calibrate(Pipeline(workload), case, tries=1).errors
        if not errors:
            self.console.print_line(f"Calibration with {case.id}: the pipeline works")
        return list(errors)

    def _show_and_confirm(self, *, is_working: bool) -> bool:
        """Show the manifest, and return whether to write it: one that does not work only if the user says so."""
        if is_working or self.console.can_ask:
            self.console.print_lines(["", *self.manifest.render().splitlines(), ""])
        if not self.console.can_ask:
            return is_working
        if not is_working:
            return self.console.confirm(f"It does not work yet. Write {self.manifest.path} all the same?")
        return self._read(f"Write {self.manifest.path}? [Y/n] ").lower() in YES_BY_DEFAULT

    def _write_file(self) -> None:
        path = self.manifest.path
        try:
            path.write_text(self.manifest.render(), encoding="utf-8")
        except OSError as error:
            raise LoopError(f"cannot write {path}: {error.strerror}") from None
        self.console.print_line(f"wrote {path}")
        judge = " --loop-judge NAME" if self.manifest.values.get("reviewerPrompt") else ""
        if path.name in MANIFEST_NAMES:
            self.console.print_line(f"judge every case: pytest {path}{judge}")
        self.console.print_line(f"tune it:          pytest --loop-manifest {path} --loop-agent NAME{judge}")
