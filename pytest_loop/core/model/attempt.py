"""The iterations of a run so far, as its state keeps them."""

from __future__ import annotations

from pydantic import Field

from pytest_loop.core.model.rules import Phase, Value


class Failing(Value):
    """A rule that does not pass: the signature of its message, and the iteration since which it is the same."""

    signature: str = ""
    since: int


class Attempt(Value):
    """The result of one iteration.

    - `unchanged`: whether the artifact is that of the attempt before.
    - `rewritten`, `rewrites`: the file that an agent wrote most often, and how often.
    - `message`: the message of the first rule that does not pass.
    - `open`, `unmet`: the names of the first rules that do not pass, and the number of all rules that do not.
    - `fixed`, `broken`: the numbers of rules that began and ceased to pass.
    - `failing`: all rules that do not pass; only the last attempt keeps them.
    - `same_since`: the iteration since which the same rules do not pass.
    """

    iteration: int
    phase: Phase
    score: float
    passed: bool
    void: bool = False
    artifact_hash: str = ""
    unchanged: bool = False
    rewrites: int = 0
    rewritten: str = ""
    message: str = ""
    open: tuple[str, ...] = ()
    unmet: int = 0
    fixed: int = 0
    broken: int = 0
    failing: dict[str, Failing] = Field(default_factory=dict)
    same_since: int = 1


class Best(Value):
    """The best evaluation of the current phase that is not void."""

    iteration: int
    score: float
    phase: Phase = Phase.A
