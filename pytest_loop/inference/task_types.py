"""Detect the type of document that a task asks for: an API specification, docs, configuration, or a file of code."""

from __future__ import annotations

import re
from dataclasses import dataclass

API_SPEC, CODE, DOCS, CONFIG = "api-spec", "code", "docs", "config"
_FILE = r"[\w./-]*\w"
_SPEC = r"spec(?:s|ifications?)?"
_DESCRIPTION = "description|definition|contract|schema"
_API = r"open\s?api|swagger"
# Nouns that name a document of each type; the last words of a phrase decide: a config loader is no config.
_NOUNS: dict[str, str] = {
    API_SPEC: rf"(?:{_API})(?:\s+v?\d[\d.]*)?(?:\s+(?:{_SPEC}|{_DESCRIPTION}|document|ya?ml|json))?"
    rf"|api\s+(?:{_SPEC}|{_DESCRIPTION}|design)|(?:{_API})\.(?:ya?ml|json)",
    DOCS: r"docs?|documentation|readme|guide|tutorial|how-?to|handbook|manual|change\s?log|release notes|runbook"
    r"|playbook|faqs?|reference|cheat\s?sheet|walkthrough|quick\s?start|wiki page|article|blog post"
    rf"|architecture decision record|adr|{_FILE}\.(?:md|markdown)",
    CONFIG: r"config(?:s|uration|urations)?|settings file|docker[ -]compose|dockerfile"
    r"|(?:kubernetes|k8s|helm) (?:manifest|chart|values|deployment)s?|(?:actions|ci) (?:workflow|pipeline)"
    rf"|\.env(?:\.\w+)?|{_FILE}\.(?:ya?ml|toml|ini|cfg|conf|json)",
}
_CODE = (
    r"script|function|class|module|program|library|cli|command[- ]line tool|parser|loader|client|server|algorithm"
    rf"|snippet|decorator|{_FILE}\.(?:py|[cm]?[jt]sx?|go|rs|java|rb|php|c|cpp|sh)"
)
_WRITING = (
    "write|create|draft|compose|prepare|produce|generate|author|design|provide|rewrite|need|want|give"
    r"|make(?= (?:an?|me|us)\b)"
)
_CHANGING = "add|update|extend|improve|polish|complete|expand|revise"
_CODING = "write|create|draft|generate|implement|develop|build"
_POLITE = (
    r"(?:(?:please|can you|could you|i want(?: you to| to)?|(?:i|we) need to|i|we|let'?s|help me(?: to)?|also)\s+)*"
)
_SENTENCE = re.compile(
    rf"\W*{_POLITE}(?:(?:{_WRITING}|(?P<change>{_CHANGING}))\s+(?:(?:me|us)\s+)?)?(?P<phrase>\S.*)",
    re.IGNORECASE | re.DOTALL,
)
_DOCUMENTING = re.compile(rf"\W*{_POLITE}(?P<words>(?:document|describe|explain)\s+\w.*)", re.IGNORECASE | re.DOTALL)
_CODE_PHRASE = re.compile(
    rf"\W*{_POLITE}(?:{_CODING})\s+(?:an?\s+|(?:new|python|go|rust|bash|shell|javascript|typescript)\s+)"
    rf"(?P<words>[\w./+# -]{{0,60}}?\b(?:{_CODE}))\b",
    re.IGNORECASE,
)
# The end of a noun phrase, and the words that add another one to it.
_END = re.compile(
    r"\s+(?:for|of|about|on|to|that|which|who|with|without|from|in|into|at|as|so|until|using|by|covering|describing"
    r"|explaining|including|containing|listing)\b|[;:.(](?:\s|$)|\n|\s[-\u2013\u2014]\s",
    re.IGNORECASE,
)
_JOINED = re.compile(r"\s*(?:\+|&|,|\band\b|\bplus\b|\bas well as\b)\s*(?:(?:and|also|then)\s+)?", re.IGNORECASE)
# Words that begin no noun phrase: at the beginning of one, they are verbs for other work.
_OTHER_VERBS = re.compile(
    r"(?:fix|repair|mend|debug|resolve|refactor|clean|simplify|rename|move|migrate|upgrade|convert|port|bump|implement"
    r"|build|make|get|let|keep|run|test|check|verify|validate|lint|format|parse|load|read|review|remove|delete|drop"
    r"|replace|split|merge|publish|deploy|release|install|use|translate|speed|increase|reduce|support|handle|ensure"
    r"|loop|iterate|ralph|find|search|show|print|copy|sort|respect|change|switch|set|turn|enable|disable)\b",
    re.IGNORECASE,
)
_DETERMINER = re.compile(r"\s(?:the|an?|our|my|your|its|this|that|all|every)\s", re.IGNORECASE)
_NAMED = re.compile(rf"readme|change\s?log|{_API}|\.(?:md|markdown)$", re.IGNORECASE)
_ABOUT_API = re.compile(r"\bapis?\b|\bendpoints?\b|\brest\b", re.IGNORECASE)
_BARE_SPEC = re.compile(rf"\b{_SPEC}$", re.IGNORECASE)


@dataclass(frozen=True)
class TaskType:
    """The template for a task, and the words that name it.

    A type that is not certain counts only if the project does not say when the task is done. An exact one was named
    with a flag: no rules are made of the task's words.
    """

    template: str
    words: str = ""
    is_certain: bool = True
    is_exact: bool = False


def detect_task_type(task: str) -> TaskType | None:
    """Return the type of the document that a task asks for; None if it asks for none, or for several documents."""
    types = list_document_types(task)
    if types:
        return types[0] if len(types) == 1 else None
    if code := _CODE_PHRASE.match(task):
        return TaskType(CODE, code["words"].strip(), is_certain=False)
    if documenting := _DOCUMENTING.match(task):
        return TaskType(DOCS, _END.split(documenting["words"])[0], is_certain=False)
    return None


def list_document_types(task: str) -> list[TaskType]:
    """Return the types of the documents that a task certainly asks for."""
    return list(filter(None, (_classify_phrase(phrase, task) for phrase in _list_phrases(task))))


def is_edit_of_existing(task: str) -> bool:
    """Return whether a task changes a document that exists: `extend the README`."""
    sentence = _SENTENCE.match(task)
    return sentence is not None and sentence["change"] is not None


def _list_phrases(task: str) -> list[str]:
    """Return the noun phrases of what a task writes: `a README`, `OpenAPI 3.1 spec`; empty for other work."""
    sentence = _SENTENCE.match(task)
    if sentence is None:
        return []
    phrase = _END.split(sentence["phrase"])[0]
    parts = [part for part in _JOINED.split(phrase) if part]
    if any(_OTHER_VERBS.match(part) for part in parts):
        return []
    if sentence["change"]:  # a change of a document must name it; settings belong to the project
        return [part for part in parts if _NAMED.search(part)]
    has_unknown_verb = sentence.start("phrase") == 0 and _DETERMINER.search(f" {_drop_article(phrase)} ")
    return [] if has_unknown_verb else parts


def _drop_article(phrase: str) -> str:
    return re.sub(r"^(?:the|an?|our|my|your|its)\s+", "", phrase, flags=re.IGNORECASE)


def _classify_phrase(phrase: str, task: str) -> TaskType | None:
    """Return the type of the document that the last words of a phrase name."""
    words = _drop_article(phrase).strip(" .!?\"'`")
    if _BARE_SPEC.search(words) and _ABOUT_API.search(task):
        return TaskType(API_SPEC, words)
    for template, nouns in _NOUNS.items():
        if re.search(rf"(?<![\w.-])(?:{nouns})(?:\s+(?:file|document|page|section)s?)?$", words, re.IGNORECASE):
            return TaskType(template, words)
    return None
