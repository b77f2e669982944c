"""What every session writes beside sealed files is output; what one of them wrote may be a snapshot."""

from __future__ import annotations

from pathlib import Path

from pytest_loop.workspace.seal import build_seal_patterns
from pytest_loop.workspace.sealed_files import SealedFiles
from pytest_loop.workspace.session_outputs import OutputWatch


def test_files_that_the_second_session_wrote_are_outputs(tmp_path: Path) -> None:
    def write(*names: str) -> None:
        for name in names:
            (tmp_path / "tests" / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "tests" / name).write_text("text\n")

    write("test_it.py", "data.txt", "counter.txt")
    project = SealedFiles(tmp_path, tmp_path / ".loop/run", build_seal_patterns(["tests/test_it.py"]))
    project.record_start()
    write("snapshots/a.txt", "log.txt", "out/0.txt", "made.py")
    (tmp_path / "tests/counter.txt").write_text("1")
    before = project.start
    project.record_start()
    watch = OutputWatch(project, before)
    write("log.txt", "out/1.txt", "made.py")
    (tmp_path / "tests/counter.txt").write_text("2")
    outputs = watch.find_outputs()
    assert outputs == ("tests/counter.txt", "tests/log.txt", "tests/out/")
    project.extend_seal((), outputs)
    project.record_start()
    write("out/2.txt", "log.txt")
    (tmp_path / "tests/counter.txt").write_text("3")
    (tmp_path / "tests/snapshots/a.txt").write_text("other")
    assert [finding.path for finding in project.enforce_seal()] == ["tests/snapshots/a.txt"]
    project.close()
