"""Two slow rules among many cheap ones, judged as a run judges them: `-n 2` against `-n0`."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median

from side_by_side import arguments, clean_environment, pytest_command, spread, table

from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.session.runner import SubprocessSession
from pytest_loop.session.warm.launcher import WarmLauncher

TARGET = 1.8
SECONDS = 3
CHEAP = 100
WAYS = ("-n0", "-n2")


def write(folder: Path) -> None:
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (folder / "artifact.md").write_text("ready\n", encoding="utf-8")
    lines = ["criteria: mixed", "artifact: artifact.md", "rules:"]
    for number in range(2):
        lines += [f"  - {{id: a.slow.{number}, description: It is slow, check: {{command: sleep {SECONDS}}}}}"]
    for number in range(CHEAP):
        lines += [f"  - {{id: a.cheap.{number:03}, description: It is cheap, check: {{contains: ready}}}}"]
    (folder / "mixed.rules.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def session(folder: Path, *words: str) -> SubprocessSession:
    command = pytest_command(*words, "-p", "no:cacheprovider")
    given = (*command[3:], "--rootdir", str(folder), "-c", str(folder / "pytest.ini"))
    warm = WarmLauncher(given, folder, time.time())
    return SubprocessSession(given, folder, 600.0, clean_environment(), lambda _data: None, launcher=warm)


def seconds(one: SubprocessSession, count: int) -> float:
    started = time.perf_counter()
    found = one.evaluate(SessionOrder())
    assert found.exit_status == 0, found.output
    assert len(found.evidence) == count
    return time.perf_counter() - started


def main() -> None:
    asked = arguments(__doc__, rounds=15).parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        write(folder)
        sessions = {way: session(folder, way) for way in WAYS}
        times: dict[str, list[float]] = {way: [] for way in WAYS}
        for number in range(asked.rounds + 1):
            for way, one in sessions.items():
                took = seconds(one, CHEAP + 2)
                if number:  # the first one starts its server
                    times[way].append(took)
        for one in sessions.values():
            if one.launcher:
                one.launcher.close()
    rows = [[way, f"{median(times[way]):.2f}"] for way in WAYS]
    faster = [slow / quick for slow, quick in zip(times["-n0"], times["-n2"], strict=True)]
    rows.append(["times faster (quartiles)", spread(faster)])
    print(f"2 rules of {SECONDS} s and {CHEAP} cheap ones, {asked.rounds} rounds")
    print(table(["", "wall s"], rows))
    print(f"target: at least {TARGET} times faster")


if __name__ == "__main__":
    main()
