"""Divide the trials of an engine among workers, outside of a run."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from pytest_loop.cluster.cluster_session import ClusterSession
from pytest_loop.core.text.wording import PrintLine
from pytest_loop.repair.engine_process import RunShares
from pytest_loop.session.runner import SubprocessSession
from pytest_loop.workspace.sealed_files import SealedFiles


@contextmanager
def open_shares(folder: Path, address: str, seconds: float, print_line: PrintLine) -> Iterator[RunShares]:
    """Connect to workers that have the files of a folder; raise `ClusterError` if there are none."""
    with ExitStack() as cleanup:
        home = Path(cleanup.enter_context(tempfile.TemporaryDirectory(prefix="pytest-loop-")))
        project = SealedFiles(folder, home, ())
        cleanup.callback(project.close)
        project.record_start()
        local = SubprocessSession((), folder, seconds, os.environ, lambda _data: None)
        session = ClusterSession(local, project, address, print_line)
        cleanup.callback(session.close)
        session.connect()
        yield session.run_shares
