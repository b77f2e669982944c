"""Find verification commands of Rust, Go, Java and Ruby, whose tools are the same in every project."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from pytest_loop.inference.command_candidate import CommandCandidate, Layer, SourceLine
from pytest_loop.inference.project_files import Project, get_folder, is_in_folder, join_folder
from pytest_loop.inference.tool_purposes import Purpose

_Offer = tuple[str, Purpose, SourceLine]


def find_toolchain_candidates(project: Project) -> Iterator[CommandCandidate]:
    """Yield the commands that each manifest of these languages implies."""
    for family, manifests, list_offers in _FAMILIES:
        for path in project.find_by_name(*manifests):
            for rank, (command, purpose, source) in enumerate(list_offers(project, path)):
                yield CommandCandidate(command, purpose, Layer.MANIFESTS, source, get_folder(path), family, rank=rank)


def _list_rust_offers(project: Project, path: str) -> Iterator[_Offer]:
    source = project.locate(path, r"^\[(?:package|workspace)\]")
    scope = " --workspace" if "workspace" in project.data.get(path, {}) else ""
    yield f"cargo test{scope}", Purpose.TEST, source
    yield f"cargo build{scope}", Purpose.BUILD, source
    yield f"cargo clippy{scope} -- -D warnings", Purpose.LINT, source
    yield f"cargo check{scope}", Purpose.TYPES, source
    yield f"cargo llvm-cov{scope} --summary-only", Purpose.COVERAGE, source
    yield f"cargo doc{scope} --no-deps", Purpose.DOCS, source


def _list_go_offers(project: Project, path: str) -> Iterator[_Offer]:
    source = project.locate(path, r"^module\b")
    yield "go test ./...", Purpose.TEST, source
    yield "go build ./...", Purpose.BUILD, source
    for suffix in ("yml", "yaml", "toml"):
        settings = join_folder(get_folder(path), f".golangci.{suffix}")
        if settings in project.files:
            yield "golangci-lint run", Purpose.LINT, SourceLine(settings)
    yield "go vet ./...", Purpose.LINT, source
    yield "go vet ./...", Purpose.TYPES, source
    yield "go test -coverprofile=cover.out ./... && go tool cover -func=cover.out", Purpose.COVERAGE, source


def _list_maven_offers(project: Project, path: str) -> Iterator[_Offer]:
    maven = "./mvnw" if project.has_file(get_folder(path), "mvnw") else "mvn"
    source = project.locate(path, r"<project\b")
    yield f"{maven} -q test", Purpose.TEST, source
    yield f"{maven} -q -DskipTests package", Purpose.BUILD, source
    for plugin, goal in (("maven-checkstyle-plugin", "checkstyle:check"), ("spotless-maven-plugin", "spotless:check")):
        pattern = rf"<artifactId>\s*{plugin}\s*</artifactId>"
        if re.search(pattern, project.texts[path]):
            yield f"{maven} -q {goal}", Purpose.LINT, project.locate(path, pattern)
    yield f"{maven} -q compile", Purpose.TYPES, source


_GRADLE_LINTERS = {
    "spotless": "spotlessCheck",
    "checkstyle": "checkstyleMain",
    "ktlint": "ktlintCheck",
    "detekt": "detekt",
}


def _list_gradle_offers(project: Project, path: str) -> Iterator[_Offer]:
    gradle = "./gradlew" if project.has_file(get_folder(path), "gradlew") else "gradle"
    yield f"{gradle} test", Purpose.TEST, SourceLine(path)
    yield f"{gradle} assemble", Purpose.BUILD, SourceLine(path)
    for plugin, task in _GRADLE_LINTERS.items():
        if plugin in project.texts[path]:
            yield f"{gradle} {task}", Purpose.LINT, project.locate(path, plugin)
    yield f"{gradle} classes", Purpose.TYPES, SourceLine(path)


def _list_ruby_offers(project: Project, path: str) -> Iterator[_Offer]:
    gem = r"^\s*gem\s+[\"']"
    gems = re.findall(rf"{gem}(rspec|rubocop)", project.texts[path], re.MULTILINE)  # also rspec-rails
    folder = get_folder(path)
    if "rspec" in gems or any(is_in_folder(name, join_folder(folder, "spec")) for name in project.files):
        yield "bundle exec rspec", Purpose.TEST, project.locate(path, f"{gem}rspec")
    else:
        yield "bundle exec rake test", Purpose.TEST, project.locate(path, f"{gem}(?:rake|minitest)")
    if "rubocop" in gems or project.has_file(folder, ".rubocop.yml"):
        yield "bundle exec rubocop", Purpose.LINT, project.locate(path, f"{gem}rubocop")


_FAMILIES: tuple[tuple[str, tuple[str, ...], Callable[[Project, str], Iterator[_Offer]]], ...] = (
    ("rust", ("Cargo.toml",), _list_rust_offers),
    ("go", ("go.mod",), _list_go_offers),
    ("java", ("pom.xml",), _list_maven_offers),
    ("java", ("build.gradle", "build.gradle.kts"), _list_gradle_offers),
    ("ruby", ("Gemfile",), _list_ruby_offers),
)
