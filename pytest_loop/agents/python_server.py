"""The other end of a Python agent: imports the module, and calls the function for every request on standard input."""

from __future__ import annotations

import base64
import importlib
import json
import os
import sys
from collections.abc import Callable
from operator import attrgetter
from pathlib import Path
from typing import Any

from pytest_loop.agents.protocol import AgentError, AgentRequest, make_reply
from pytest_loop.core.model.evaluation import Issue

Function = Callable[[AgentRequest], Any]


def main(module: str, name: str) -> None:
    """Answer until standard input ends; the answers go through a pipe of their own, so that prints do no harm."""
    descriptor = int(os.environ.pop("PYTEST_LOOP_ANSWERS"))
    os.set_inheritable(descriptor, False)
    sys.path.insert(0, os.environ.pop("PYTEST_LOOP_ROOT"))
    requests = os.fdopen(os.dup(0), "rb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    function: Function | None = None
    with os.fdopen(descriptor, "wb") as answers:
        for line in requests:
            function, answer = _answer(function, module, name, line)
            sys.stdout.flush()
            answers.write(answer + b"\n")
            answers.flush()


def _answer(function: Function | None, module: str, name: str, line: bytes) -> tuple[Function | None, bytes]:
    """What the function says to a request; whatever it raises is an answer too."""
    try:
        function = function or _found(module, name)
        request = _request(json.loads(line))
        given = make_reply(function(request), has_schema=request.schema is not None)
        return function, json.dumps({"reply": given.model_dump(mode="json")}).encode()
    except _Missing as error:
        return None, _said("unavailable", str(error))
    except AgentError as error:
        return function, _said("error", str(error))
    except Exception as error:  # a user's function may raise anything
        return function, _said("error", f"{type(error).__name__}: {error}")


def _said(kind: str, text: str) -> bytes:
    return json.dumps({kind: text or "no reason given"}).encode()


class _Missing(Exception):  # noqa: N818 - never seen outside
    """There is no such function."""


def _found(module: str, name: str) -> Function:
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise _Missing(f"cannot import {module}: {error} (modules are found from the root of the project)") from error
    except Exception as error:  # whatever a module does when it is imported
        raise _Missing(f"cannot import {module}: {type(error).__name__}: {error}") from error
    try:
        function = attrgetter(name)(found)
    except AttributeError:
        function = None
    if not callable(function):
        raise _Missing(f"{module} has no callable {name}")
    return function  # type: ignore[no-any-return]


def _request(data: dict[str, Any]) -> AgentRequest:
    return AgentRequest(
        step=data["step"],
        prompt=base64.b64decode(data["prompt"]).decode("utf-8", "surrogatepass"),
        workspace=Path(data["workspace"]),
        artifact=Path(data["artifact"]) if data["artifact"] else None,
        iteration=data["iteration"],
        phase=data["phase"],
        critique=tuple(Issue.model_validate(issue) for issue in data["critique"]),
        schema=data["schema"],
        key=data["key"],
    )
