"""Serve a Python agent: import the module, and call the function for every request on standard input."""

from __future__ import annotations

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
    """Answer requests until standard input ends; write answers to a separate pipe, because the function may print."""
    descriptor = int(os.environ.pop("PYTEST_LOOP_ANSWERS"))
    os.set_inheritable(descriptor, False)
    sys.path.insert(0, os.environ.pop("PYTEST_LOOP_ROOT"))
    requests = os.fdopen(os.dup(0), "rb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]  # a text file here
    function: Function | None = None
    with os.fdopen(descriptor, "wb") as answers:
        for line in requests:
            try:
                function = function or _import_function(module, name)
                answer = _answer(function, line)
            except _MissingFunctionError as error:
                answer = {"unavailable": str(error)}
            sys.stdout.flush()
            answers.write(json.dumps(answer).encode() + b"\n")
            answers.flush()


def _answer(function: Function, line: bytes) -> dict[str, Any]:
    """Call the function, and return its reply, or its exception as an error."""
    try:
        request = _decode_request(json.loads(line))
        reply = make_reply(function(request), has_schema=request.schema is not None)
        return {"reply": reply.model_dump(mode="json")}
    except AgentError as error:
        return {"error": str(error) or "no reason given"}
    except Exception as error:  # the user's function may raise anything
        return {"error": f"{type(error).__name__}: {error}"}


class _MissingFunctionError(Exception):
    """The module has no such function, or cannot be imported."""


def _import_function(module: str, name: str) -> Function:
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise _MissingFunctionError(
            f"cannot import {module}: {error} (modules are found from the root of the project)"
        ) from error
    except Exception as error:  # a module may raise anything when it is imported
        raise _MissingFunctionError(f"cannot import {module}: {type(error).__name__}: {error}") from error
    try:
        function: Function | None = attrgetter(name)(imported)
    except AttributeError:
        function = None
    if not callable(function):
        raise _MissingFunctionError(f"{module} has no callable {name}")
    return function


def _decode_request(data: dict[str, Any]) -> AgentRequest:
    data["workspace"] = Path(data["workspace"])
    data["artifact"] = Path(data["artifact"]) if data["artifact"] else None
    data["critique"] = tuple(Issue.model_validate(issue) for issue in data["critique"])
    return AgentRequest(**data)
