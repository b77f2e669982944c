"""The artifact is read with bounds, and edited in a copy."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from pytest_loop.errors import StateError
from pytest_loop.workspace import artifact as artifact_module
from pytest_loop.workspace.artifact import Artifact


@pytest.fixture
def artifact(tmp_path: Path) -> Artifact:
    return Artifact(tmp_path / "guide.md")


def test_missing_artifact_has_no_text_and_no_hash(artifact: Artifact) -> None:
    assert (artifact.read_text(), artifact.compute_hash()) == (None, "")


def test_text_is_decoded_leniently_and_the_hash_is_that_of_the_bytes(artifact: Artifact) -> None:
    artifact.path.write_bytes(b"caf\xe9")
    assert artifact.read_text() == "caf\ufffd"
    assert artifact.compute_hash() == hashlib.sha256(b"caf\xe9").hexdigest()


def test_folder_in_place_of_an_artifact_is_an_error(artifact: Artifact) -> None:
    artifact.path.mkdir()
    with pytest.raises(StateError, match="expected a file for the artifact, found something else"):
        artifact.read_text()


def test_too_large_artifact_is_an_error(artifact: Artifact, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifact_module, "MAX_SIZE", 1024**2)
    artifact.path.write_bytes(b"x" * (1024**2 + 1))
    with pytest.raises(StateError, match="expected at most 1 MB for the artifact, found more"):
        artifact.read_text()


def test_scratch_copy_has_the_same_name_and_leaves_the_artifact_alone(artifact: Artifact) -> None:
    artifact.path.write_text("original")
    with artifact.make_scratch_copy() as copy:
        assert (copy.name, copy.read_text()) == ("guide.md", "original")
        copy.write_text("edited")
    assert artifact.read_text() == "original"
    assert not copy.exists()


def test_scratch_copy_of_a_missing_artifact_does_not_exist(artifact: Artifact) -> None:
    with artifact.make_scratch_copy() as copy:
        assert not copy.exists()
