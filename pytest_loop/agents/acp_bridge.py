"""`acp:WORDS`: any agent that speaks the Agent Client Protocol; this is the process between it and us.

It is started anew for every request, so that deadlines end both. The prompt comes on standard input, and what the agent
does goes to standard output as JSON lines of our own.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pytest_loop.agents.presets import Mode, Preset

Data = dict[str, Any]
PROTOCOL = 1
_NO_METHOD = -32601
_NO_LOGIN = -32000
_READING = ("plan", "read-only", "readonly", "ask", "chat")
# Not `-m`: the working folder comes first in its path then.
_BRIDGE = (
    "import sys; sys.path[:] = [path for path in sys.path if path]; "
    "from pytest_loop.agents.acp_bridge import main; sys.exit(main(sys.argv[1:]))"
)


def make_preset() -> Preset:
    """How this process is called; what stands where others have a model is the agent's command."""
    return Preset(
        program=sys.executable,
        checked=f"protocol {PROTOCOL}",
        format="acp",
        start=("-c", _BRIDGE),
        resume=("-c", _BRIDGE, "--session", "{session}"),
        edit=Mode(arguments=("--edit",)),
        model=("--", "{model}"),
    )


class RefusedError(Exception):
    """The agent answered with an error."""

    def __init__(self, error: Data) -> None:
        super().__init__(str(error.get("message") or "no reason given"))
        self.code = error.get("code")


def main(arguments: list[str]) -> int:
    """One request to an agent; 0 when it has answered."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--session", default="")
    parser.add_argument("--edit", action="store_true")
    parser.add_argument("command", nargs="+")
    asked = parser.parse_args(arguments)
    prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        with subprocess.Popen(asked.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            try:
                _Conversation(process, may_edit=asked.edit).hold(prompt, asked.session)
            finally:
                process.terminate()
    except RefusedError as error:
        _tell(type="failed", message=str(error), status=401 if error.code == _NO_LOGIN else None)
        return 1
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:  # whatever the agent may say
        _tell(type="failed", message=str(error), status=None)
        return 1
    return 0


class _Conversation:
    """JSON-RPC in lines, in both directions."""

    def __init__(self, process: subprocess.Popen[bytes], *, may_edit: bool) -> None:
        self._process = process
        self._may_edit = may_edit
        self._numbers = itertools.count(1)
        self._is_heard = False

    def hold(self, prompt: str, session: str) -> None:
        known = self._ask("initialize", {"protocolVersion": PROTOCOL, "clientCapabilities": {}})
        can_load = (known.get("agentCapabilities") or {}).get("loadSession")
        session, found = self._opened(session if can_load else "")
        _tell(type="session", session=session)
        if not self._may_edit:
            method, parameters = _reading(found)
            self._ask(method, {"sessionId": session, **parameters})
        self._is_heard = True  # a conversation that is loaded is told again from its beginning
        done = self._ask("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": prompt}]})
        _tell(type="done", reason=done.get("stopReason"))

    def _opened(self, session: str) -> tuple[str, Data]:
        """The conversation that was, or a new one where it cannot be had again."""
        where: Data = {"cwd": str(Path.cwd()), "mcpServers": []}
        if session:
            with contextlib.suppress(RefusedError):
                return session, self._ask("session/load", {**where, "sessionId": session})
        found = self._ask("session/new", where)
        return str(found["sessionId"]), found

    def _ask(self, method: str, parameters: Data) -> Data:
        number = next(self._numbers)
        self._send({"id": number, "method": method, "params": parameters})
        for message in self._messages():
            if message.get("id") == number and "method" not in message:
                if message.get("error"):
                    raise RefusedError(message["error"])
                return message.get("result") or {}
            self._react(message)
        raise ValueError(f"the agent ended before it answered {method}")

    def _messages(self) -> Iterator[Data]:
        for line in self._process.stdout:  # type: ignore[union-attr]
            if line.lstrip().startswith(b"{"):
                yield json.loads(line)

    def _react(self, message: Data) -> None:
        parameters = message.get("params") or {}
        if message.get("method") == "session/update" and self._is_heard:
            _report(parameters.get("update") or {})
        elif message.get("method") == "session/request_permission":
            self._send({"id": message.get("id"), "result": {"outcome": _permission(parameters, self._may_edit)}})
        elif "method" in message and "id" in message:
            self._send({"id": message["id"], "error": {"code": _NO_METHOD, "message": "there is no such method here"}})

    def _send(self, message: Data) -> None:
        pipe = self._process.stdin
        pipe.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")  # type: ignore[union-attr]
        pipe.flush()  # type: ignore[union-attr]


def _reading(session: Data) -> tuple[str, Data]:
    """The request that keeps an agent from editing: a mode, or an option that is one. Raises where it has neither."""
    modes = [one.get("id") for one in (session.get("modes") or {}).get("availableModes") or ()]
    if mode := next((one for one in _READING if one in modes), None):
        return "session/set_mode", {"modeId": mode}
    for option in session.get("configOptions") or ():
        values = [one.get("value") for one in option.get("options") or ()]
        if option.get("category") == "mode" and (mode := next((one for one in _READING if one in values), None)):
            return "session/set_config_option", {"configId": option.get("id"), "value": mode}
    raise ValueError("the agent names no mode in which it edits nothing, so it can neither plan nor judge")


def _permission(parameters: Data, may_edit: bool) -> Data:
    wanted = "allow_once" if may_edit else "reject_once"
    options = parameters.get("options") or ()
    found = next((one.get("optionId") for one in options if one.get("kind") == wanted), None)
    return {"outcome": "selected", "optionId": found} if found else {"outcome": "cancelled"}


def _report(update: Data) -> None:
    kind = update.get("sessionUpdate")
    if kind == "agent_message_chunk":
        _tell(type="words", text=(update.get("content") or {}).get("text") or "")
    elif kind == "tool_call":
        _tell(type="tool", name="tool", input={"title": str(update.get("title"))})


def _tell(**event: Any) -> None:
    print(json.dumps(event), flush=True)
