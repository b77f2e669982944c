"""Search the project and the last session of an evaluation for evidence of tampering."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from pytest_loop.core.judging.doctests import find_changed_doctests
from pytest_loop.core.judging.files_to_seal import is_product_file
from pytest_loop.core.judging.run_draft import find_changed_checks
from pytest_loop.core.judging.tampering import (
    UNVERIFIED,
    ChangedSource,
    find_copied_literals,
    find_suspicious_changes,
    find_test_machinery,
)
from pytest_loop.core.model.evaluation import Seal, SealFinding
from pytest_loop.core.model.rules import SessionPlan
from pytest_loop.core.model.run_state import RunState
from pytest_loop.core.model.vocabulary import Target
from pytest_loop.run.context import RunContext
from pytest_loop.session.interference import CAUGHT_FAILURE, EXECUTES_TEXT
from pytest_loop.session.result import SessionResult
from pytest_loop.workspace.environment import find_opened_site_folders, hash_outer_configuration, hash_site_files
from pytest_loop.workspace.ignored_files import find_ignored_sources
from pytest_loop.workspace.path_patterns import PathPatterns
from pytest_loop.workspace.project_changes import ProjectChanges
from pytest_loop.workspace.seal import is_test_module
from pytest_loop.workspace.sealed_files import SealedFiles


@dataclass
class TamperingSearch:
    """Search the files and the result of one session; changes of sealed files are found by `SealedFiles`."""

    context: RunContext
    state: RunState
    session_result: SessionResult

    @property
    def project(self) -> SealedFiles:
        return self.context.project

    @property
    def seal(self) -> Seal:
        """The seal of the run, or an empty one."""
        return self.state.setup.seal or Seal()

    @cached_property
    def changes(self) -> ProjectChanges:
        return ProjectChanges(self.project)

    @cached_property
    def sources(self) -> list[ChangedSource]:
        return self.changes.list_sources()

    def find(self) -> Iterator[SealFinding]:
        """Yield evidence of tampering in the files and the session, beside edits of sealed files."""
        yield from self._find_session_evidence()
        yield from self._find_new_support()
        yield from self._find_interference()
        yield from self._find_changed_checks()
        yield from self._find_changed_environment()
        yield from self._find_outer_configuration()
        yield from self._find_outer_links()
        yield from self._find_suspicious_code()
        yield from self._find_ignored_sources()

    def _find_session_evidence(self) -> Iterator[SealFinding]:
        """Yield evidence of tampering in the reports of the session."""
        result = self.session_result
        if result.exit_status is not None and not (result.canaries and all(result.canaries)):
            yield SealFinding(kind="canary", rule="the canary", detail="a test that must fail did not fail")
        for text in result.list_contradictions():
            yield SealFinding(kind="contradiction", rule="the session", detail=text)
        replaced = self._list_replaced_tests()
        if replaced:
            detail = f"tests are not what their files say: {', '.join(replaced[:3])}"
            yield SealFinding(kind="replaced", rule="the tests", detail=detail)

    def _find_new_support(self) -> Iterator[SealFinding]:
        """Yield new files that the session read in sealed places, and new files that a test read elsewhere.

        Yield those elsewhere as unverified: they may be part of the task.
        """
        reads, project, is_sealed = self.session_result.reads, self.project, self.project.sealed.matches
        read_paths = {path for path, _ in reads}
        read_by_tests = {path for path, owner in reads if is_sealed(owner) and not is_product_file(path)}
        for path in project.changes.added if reads and not project.allow else ():
            if path in read_paths and is_sealed(path):
                detail = "is new, and a test that decides reads it: remove it"
                yield SealFinding(kind="sealed", path=path, detail=detail)
            elif path in read_by_tests - self.session_result.opened_to_write:
                yield SealFinding(kind=UNVERIFIED, path=path, detail="it is new, and a test reads it")

    def _find_changed_checks(self) -> Iterator[SealFinding]:
        """Yield the rules whose checks differ from those at the start of the run."""
        for rule in find_changed_checks(self.state.criteria, self.session_result.plan or SessionPlan()):
            if not self.project.is_unsealed(rule.source):
                detail = "its check is not the one that the run began with"
                yield SealFinding(kind="sealed", rule=rule.id, detail=detail)

    def _find_changed_environment(self) -> Iterator[SealFinding]:
        """Yield new plugins and changed startup files, unless the user lets agents install packages."""
        seal, opened = self.seal, self.context.fence.opened
        new = [] if seal.plugins is None else sorted(self.session_result.plugins - set(seal.plugins))
        if new and not find_opened_site_folders((*seal.opened, *opened)):
            yield SealFinding(kind="plugin", rule="plugins", detail=f"there are new ones: {', '.join(new[:3])}")
        is_opened_later = find_opened_site_folders(set(opened).difference(seal.opened))
        if hash_site_files(seal.opened, self.project.root) != seal.site and not is_opened_later:
            detail = "what every interpreter or pytest loads first changed"
            yield SealFinding(kind="site", rule="the environment", detail=detail)

    def _find_outer_configuration(self) -> Iterator[SealFinding]:
        """Yield configuration above the project or in the home folder that is not as it was."""
        now = hash_outer_configuration(self.project.root)
        before = now if self.seal.outer is None else self.seal.outer
        changed = (path for path in now.keys() | before.keys() if now.get(path) != before.get(path))
        for path in sorted(path for path in changed if not path.startswith(self.context.fence.opened)):
            detail = "configuration outside of the project changed: put it back as it was"
            yield SealFinding(kind="site", rule=path, detail=detail)

    def _find_outer_links(self) -> Iterator[SealFinding]:
        """Yield new links that lead out of the project: what they lead to is not part of the change."""
        for path, target in self.changes.list_outer_links():
            yield SealFinding(kind="link", path=path, detail=f"leads out of the project, to {target}")

    def _find_suspicious_code(self) -> Iterator[SealFinding]:
        """Yield changes of code that let tests pass without doing the work."""
        changes, sources = self.changes, self.sources
        if sources and not self._is_document_test_module:
            texts = changes.read_start_sources(is_sealed=False)
            machinery = frozenset(name for text in texts for name in find_test_machinery(text))
            suspects = filter(self._can_interfere, sources)
            yield from find_suspicious_changes(suspects, machinery, is_linted=self._is_linted)
            yield from self._find_changed_doctests()
            yield from find_copied_literals(sources, changes.read_start_sources(is_sealed=True))
            yield from self._find_read_tests()

    def _can_interfere(self, source: ChangedSource) -> bool:
        """Return whether code of a source may have run in the session; a command may run whatever it likes."""
        if PathPatterns(self.seal.named).matches(source.path):
            return False  # the task names it as a file to edit
        reads = {path for path, _ in self.session_result.reads}
        is_new_test = source.before is None and is_test_module(source.path)
        return source.path in reads or not reads or (self._is_linted and not is_new_test)

    def _find_read_tests(self) -> Iterator[SealFinding]:
        """Yield changed sources that read a test: they may copy expected values from it."""
        changed = {source.path for source in self.sources}
        for path, owner in sorted(self.session_result.reads):
            if owner in changed and is_test_module(path) and not is_test_module(owner):
                yield SealFinding(kind=UNVERIFIED, path=owner, detail=f"it reads {path}")

    def _find_changed_doctests(self) -> Iterator[SealFinding]:
        """Yield the modules of the product whose doctests were changed; their tests decide, so they must stay."""
        for source in self.sources:
            if source.path in self.seal.doctest_sources:
                for name in find_changed_doctests(source.before or "", source.after):
                    detail = f"the doctest of {name} was changed: write it as it was"
                    yield SealFinding(kind="doctest", path=source.path, detail=detail)

    def _find_interference(self) -> Iterator[SealFinding]:
        """Yield interference of new or changed code with the session that did not occur at the baseline."""
        changed = {source.path for source in self.sources}
        for path, text in sorted(self.session_result.interference.difference(self.seal.interference)):
            is_known = path in self.project.start.entries and path not in changed
            if text == CAUGHT_FAILURE:  # may be legitimate: a test may try again
                yield SealFinding(kind=UNVERIFIED, path=path, detail=text)
            elif not is_known and (self._is_linted or text != EXECUTES_TEXT):
                yield SealFinding(kind="interference", path=path, rule="" if path else "the session", detail=text)

    def _find_ignored_sources(self) -> Iterator[SealFinding]:
        """Yield the source files that are newly ignored, so that a linter leaves them out."""
        if not self._is_linted:
            return
        project = self.project
        paths = [path for path in project.start.entries if path in project.current.entries]
        for path in find_ignored_sources(project.root, paths):
            if path not in self.seal.ignored:
                detail = "an ignore file newly names it, so that linters leave it out"
                yield SealFinding(kind="ratchet", path=path, detail=detail)

    @property
    def _is_linted(self) -> bool:
        """Whether rules check more than tests, so that a linter that sees less could raise the score."""
        return not self.state.criteria.has_tests_only

    def _list_replaced_tests(self) -> list[str]:
        """Return tests that code replaces now, but did not replace at the baseline.

        Leave out tests of new files and of modules that could not be imported: for these, the baseline is unknown.
        """
        unknown = {rule.id for rule in self.state.criteria.rules if rule.is_module}
        files = self.project.start.entries.keys() - unknown
        before = frozenset(self.seal.replaced_tests)
        names = (name for name in self.session_result.replaced_tests if name not in before)
        return [name for name in names if name.partition("::")[0] in files]

    @property
    def _is_document_test_module(self) -> bool:
        """Whether the document of the run is a test module, whose code may name internals of pytest."""
        return self.state.setup.target is Target.ARTIFACT and is_test_module(self.context.artifact.path.name)
