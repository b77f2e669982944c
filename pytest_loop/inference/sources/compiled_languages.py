"""Rust, Go, Java and Ruby: languages whose tools are the same in every project."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pytest_loop.inference.command_candidate import Candidate, Layer, Source
from pytest_loop.inference.project_files import Project, get_folder
from pytest_loop.inference.tool_purposes import Purpose

_Offer = tuple[str, Purpose, Source]


def find_candidates(project: Project) -> Iterator[Candidate]:
    """What each manifest of these languages implies."""
    for family, manifests, offers in (
        ("rust", ("Cargo.toml",), _rust),
        ("go", ("go.mod",), _go),
        ("java", ("pom.xml",), _maven),
        ("java", ("build.gradle", "build.gradle.kts"), _gradle),
        ("ruby", ("Gemfile",), _ruby),
    ):
        for path in project.find_named(*manifests):
            for rank, (command, purpose, source) in enumerate(offers(project, path)):
                yield Candidate(command, purpose, Layer.MANIFESTS, source, get_folder(path), family, rank=rank)


def _rust(project: Project, path: str) -> Iterator[_Offer]:
    data = project.data.get(path, {})
    source = project.locate(path, r"^\[(?:package|workspace)\]")
    scope = " --workspace" if "workspace" in data else ""
    yield f"cargo test{scope}", Purpose.TEST, source
    yield f"cargo build{scope}", Purpose.BUILD, source
    yield f"cargo clippy{scope} -- -D warnings", Purpose.LINT, source
    yield f"cargo check{scope}", Purpose.TYPES, source
    yield f"cargo llvm-cov{scope} --summary-only", Purpose.COVERAGE, source
    yield f"cargo doc{scope} --no-deps", Purpose.DOCS, source


def _go(project: Project, path: str) -> Iterator[_Offer]:
    source = project.locate(path, r"^module\b")
    yield "go test ./...", Purpose.TEST, source
    yield "go build ./...", Purpose.BUILD, source
    folder = get_folder(path)
    linter = next(
        (name for name in (".golangci.yml", ".golangci.yaml", ".golangci.toml") if project.has_file(folder, name)), ""
    )
    if linter:
        yield "golangci-lint run", Purpose.LINT, Source(f"{folder}/{linter}" if folder else linter)
    yield "go vet ./...", Purpose.LINT, source
    yield "go vet ./...", Purpose.TYPES, source
    profile = "cover.out"
    yield f"go test -coverprofile={profile} ./... && go tool cover -func={profile}", Purpose.COVERAGE, source


def _maven(project: Project, path: str) -> Iterator[_Offer]:
    maven = "./mvnw" if project.has_file(get_folder(path), "mvnw") else "mvn"
    source = project.locate(path, r"<project\b")
    yield f"{maven} -q test", Purpose.TEST, source
    yield f"{maven} -q -DskipTests package", Purpose.BUILD, source
    for plugin, goal in (("maven-checkstyle-plugin", "checkstyle:check"), ("spotless-maven-plugin", "spotless:check")):
        pattern = rf"<artifactId>\s*{plugin}\s*</artifactId>"
        if re.search(pattern, project.texts[path]):
            yield f"{maven} -q {goal}", Purpose.LINT, project.locate(path, pattern)
    yield f"{maven} -q compile", Purpose.TYPES, source


def _gradle(project: Project, path: str) -> Iterator[_Offer]:
    gradle = "./gradlew" if project.has_file(get_folder(path), "gradlew") else "gradle"
    source = Source(path)
    yield f"{gradle} test", Purpose.TEST, source
    yield f"{gradle} assemble", Purpose.BUILD, source
    for word, task in (
        ("spotless", "spotlessCheck"),
        ("checkstyle", "checkstyleMain"),
        ("ktlint", "ktlintCheck"),
        ("detekt", "detekt"),
    ):
        if word in project.texts[path]:
            yield f"{gradle} {task}", Purpose.LINT, project.locate(path, word)
    yield f"{gradle} classes", Purpose.TYPES, source


def _ruby(project: Project, path: str) -> Iterator[_Offer]:
    folder = get_folder(path)
    start = f"{folder}/" if folder else ""
    has_specs = any(name.startswith(f"{start}spec/") for name in project.files)
    rspec = r"^\s*gem\s+[\"']rspec"
    if re.search(rspec, project.texts[path], re.MULTILINE) or has_specs:
        yield "bundle exec rspec", Purpose.TEST, project.locate(path, rspec)
    else:
        yield "bundle exec rake test", Purpose.TEST, project.locate(path, r"^\s*gem\s+[\"'](?:rake|minitest)")
    rubocop = r"^\s*gem\s+[\"']rubocop"
    if re.search(rubocop, project.texts[path], re.MULTILINE) or project.has_file(folder, ".rubocop.yml"):
        yield "bundle exec rubocop", Purpose.LINT, project.locate(path, rubocop)
