"""Find files that the task says to edit, which are unsealed, and scripts of judging commands, which are sealed."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator

# -- files to edit

_VERBS = (
    "add|append|put|regenerate|update|refresh|rewrite|rename|move|migrate|convert|adapt|edit|change|extend|adjust|"
    "create|replace|remove|delete|drop|bump|configure|correct|modify|mark|tighten|relax|re-?record"
    # To fix a test usually means to edit the product; to fix its expectations or fixtures means to edit the test.
    r"|(?:fix|repair)(?=\s(?:\S+\s){0,3}(?:expectations?|expected \w+|assertions?|fixtures?|typos?) in\b)"
)
# After these verbs, "to" precedes a file to edit; after the others, it precedes the purpose of the edit.
_MOVING = re.compile(r"add|append|put|rename|move|migrate|convert", re.I)
_PURPOSE = re.compile(r"\bto\b", re.I)
# After these words, a clause names a condition or a reason, not a file to edit.
_CLAUSE_END = re.compile(
    r"[;\n]|[,.:]\s|\b(?:until|so that|such that|because|while|when|for|if|then|and fix"
    r"|according|to (?:satisfy|match|fit|follow|meet)|based on|against|like|per|that|as"
    r"|(?:described|expected|needed|required|tested|used) (?:by|in))\b",
    re.I,
)
_VERB = re.compile(rf"\b(?:{_VERBS})\b", re.I)
_COMMAND = re.compile(r"`[^`]*\s[^`]*`")
_PATH = re.compile(r"(?<![\w./-])(?:[\w.-]+/)*\.?[\w-][\w.-]*\.\w+(?!\S*\s+(?:pass|is\b|are\b|succeed|green))")
# Words for files that a program writes: a task may name their folder alone.
_RECORDED = re.compile(r"\b(?:snapshots?|golden|cassettes?|recordings?|expected (?:files?|outputs?|results?))\b", re.I)
_FOLDER = re.compile(r"(?<![\w./-])(?:[\w.-]+/)+[\w-]+/?(?![\w./])")
# Phrases for work whose files a task rarely names, with patterns of these files.
_PHRASES = {
    re.compile(r"\bsrc[ -]?layout\b", re.I): ("pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml"),
    re.compile(rf"\b(?:{_VERBS})\b[^,.;]*\bsnapshots?\b", re.I): ("__snapshots__/", "*.snap", "*.ambr"),
}


def find_named_files(task: str) -> tuple[str, ...]:
    """Return patterns of the files that a task says to edit; a file that only has to pass is not among them."""
    patterns = [pattern for phrase, names in _PHRASES.items() if phrase.search(task) for pattern in names]
    for clause in _CLAUSE_END.split(_COMMAND.sub(" ", task)):
        if verb := _VERB.search(clause):
            edited = clause[verb.end() :]
            if not _MOVING.fullmatch(verb[0]):
                edited = _PURPOSE.split(edited)[0]
            paths = [match[0].rstrip(".") for match in _PATH.finditer(edited)]
            if not paths and _RECORDED.search(edited):
                # A pattern that ends with `/**` has the priority of a file, one that ends with `/` a lower one.
                paths = [f"{folder.rstrip('/')}/**" for folder in _FOLDER.findall(edited)]
            patterns += [f"/{path}" if "/" in path else path for path in paths]
    return tuple(dict.fromkeys(patterns))


# -- scripts that judge

# Files that say what a command like `make test` or `npm test` does.
_COMMAND_FILES = re.compile(
    r"(?:GNU)?[mM]akefile|.*\.mk|\.?[jJ]ustfile|package\.json|tox\.ini|noxfile\.py|mise\.toml|Rakefile"
)
_INCLUDE = re.compile(r"^[-s]?include[ \t]+(.+)$", re.MULTILINE)
_SOURCED = re.compile(r"^\s*(?:\.|source)[ \t]+([\w./-]*[./][\w./-]*)", re.MULTILINE)
_WORD = re.compile(r"[\w./-]+")
_SCRIPT = re.compile(r".*\.(?:sh|bash|py|js|mjs|cjs|ts|rb|pl)|(?:.*/)?[^./]+")
# Folders and names of scripts that check the product; other scripts may be the product.
_SCRIPT_FOLDERS = frozenset(
    {"scripts", "script", "tools", "bin", "ci", ".ci", ".github", "hack", "dev", "build", "make"}
)
_SCRIPT_NAME = re.compile(r"(?:.*[_-])?(?:tests?|checks?|lint|ci|verify|run)(?:[_-].*|\..*)?")


def find_judging_scripts(
    files: Collection[str], command_words: Iterable[str], read_text: Callable[[str], str]
) -> tuple[str, ...]:
    """Return the scripts that commands or makefiles call, and all files that these scripts and makefiles include.

    A file of the product that a command only names is left out. An included file need not exist: one that appears later
    would judge, too.
    """
    makefiles = {path for path in files if "/" not in path and _COMMAND_FILES.fullmatch(path)}
    included_makefiles = _follow(makefiles, lambda path: _find_includes(read_text(path)))
    recipe_words = (
        word.removeprefix("./") for path in makefiles | included_makefiles for word in _WORD.findall(read_text(path))
    )
    scripts = {path for path in (*command_words, *recipe_words) if path in files and _is_checking_script(path)}
    sourced_scripts = _follow(scripts, lambda path: _SOURCED.findall(read_text(path)))
    return tuple(sorted(included_makefiles | scripts | sourced_scripts))


def _follow(paths: Collection[str], list_references: Callable[[str], Iterable[str]]) -> set[str]:
    """Return the files that these files refer to, directly or through others."""
    queue, visited, references = [*paths], {*paths}, set[str]()
    while queue:
        names = {name.removeprefix("./") for name in list_references(queue.pop())}
        references |= names
        queue += names - visited
        visited |= names
    return references


def _find_includes(makefile: str) -> Iterator[str]:
    """Yield the files that a makefile includes; names with variables and patterns are unknown."""
    for match in _INCLUDE.finditer(makefile):
        yield from filter(_WORD.fullmatch, match[1].split())


def _is_checking_script(path: str) -> bool:
    """Return whether a script's folder or name suggests that it checks the product."""
    *folders, name = path.split("/")
    return bool(_SCRIPT.fullmatch(path)) and (
        not _SCRIPT_FOLDERS.isdisjoint(folders) or bool(_SCRIPT_NAME.fullmatch(name))
    )
