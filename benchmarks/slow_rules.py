"""Compare `-n 2` with `-n0` on two slow rules among many cheap ones, in warm sessions."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from statistics import median

from side_by_side import format_spread, make_environment, make_parser, make_pytest_command, render_table

from pytest_loop.core.model.session_order import SessionOrder
from pytest_loop.session.runner import SubprocessSession
from pytest_loop.session.warm.launcher import WarmLauncher

TARGET = 1.8
SECONDS = 3
CHEAP = 100
WORKER_OPTIONS = ("-n0", "-n2")


def write_rules(folder: Path) -> None:
    (folder / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    (folder / "artifact.md").write_text("ready\n", encoding="utf-8")
    lines = ["criteria: mixed", "artifact: artifact.md", "rules:"]
    for number in range(2):
        lines += [f"  - {{id: a.slow.{number}, description: It is slow, check: {{command: sleep {SECONDS}}}}}"]
    for number in range(CHEAP):
        lines += [f"  - {{id: a.cheap.{number:03}, description: It is cheap, check: {{contains: ready}}}}"]
    (folder / "mixed.rules.yaml").write_text("\n".join(lines) + "\n", encoding="utf-8")


def make_session(folder: Path, *options: str) -> SubprocessSession:
    command = make_pytest_command(*options, "-p", "no:cacheprovider")
    arguments = (*command[3:], "--rootdir", str(folder), "-c", str(folder / "pytest.ini"))
    warm = WarmLauncher(arguments, folder, time.time())
    return SubprocessSession(arguments, folder, 600.0, make_environment(), lambda _data: None, launcher=warm)


def measure_session(session: SubprocessSession, count: int) -> float:
    started = time.perf_counter()
    result = session.evaluate(SessionOrder())
    assert result.exit_status == 0, result.output
    assert len(result.evidence) == count
    return time.perf_counter() - started


def main() -> None:
    options = make_parser(__doc__, rounds=15).parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name).resolve()
        write_rules(folder)
        sessions = {option: make_session(folder, option) for option in WORKER_OPTIONS}
        times: dict[str, list[float]] = {option: [] for option in WORKER_OPTIONS}
        for number in range(options.rounds + 1):
            for option, session in sessions.items():
                seconds = measure_session(session, CHEAP + 2)
                if number:  # the first round starts the servers
                    times[option].append(seconds)
        for session in sessions.values():
            if session.launcher:
                session.launcher.close()
    rows = [[option, f"{median(times[option]):.2f}"] for option in WORKER_OPTIONS]
    speedups = [slow / quick for slow, quick in zip(times["-n0"], times["-n2"], strict=True)]
    rows.append(["times faster (quartiles)", format_spread(speedups)])
    print(f"2 rules of {SECONDS} s and {CHEAP} cheap ones, {options.rounds} rounds")
    print(render_table(["", "wall s"], rows))
    print(f"target: at least {TARGET} times faster")


if __name__ == "__main__":
    main()
