"""Connect to an agent that speaks the Agent Client Protocol (`acp:WORDS`), in a separate process.

What this protocol calls a session is one conversation. Every request starts a new bridge process, so that its deadline
ends bridge and agent. The bridge reads the prompt from standard input, and prints the agent's messages as JSON lines
(see `transcripts.read_acp`).
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

from pytest_loop.agents.presets import AccessMode, Preset

Data = dict[str, Any]
PROTOCOL = 1
_NO_METHOD = -32601
_NO_LOGIN = -32000
_SAVING_SECONDS = 5.0
_READ_ONLY_MODES = ("plan", "read-only", "readonly", "ask", "chat")
# Not `-m`, which puts the working folder first on the path.
_BRIDGE = (
    "import sys; sys.path[:] = [path for path in sys.path if path]; "
    "from pytest_loop.agents.acp_bridge import main; sys.exit(main(sys.argv[1:]))"
)


def make_preset() -> Preset:
    """Return the preset that starts the bridge; the agent's command takes the place of the model's name."""
    return Preset(
        program=sys.executable,
        tested_version=f"protocol {PROTOCOL}",
        format="acp",
        start=("-c", _BRIDGE),
        resume=("-c", _BRIDGE, "--session", "{session}"),
        edit=AccessMode(arguments=("--edit",)),
        model=("--", "{model}"),
    )


class RefusedError(Exception):
    """The agent answered with an error."""

    def __init__(self, error: Data) -> None:
        data = error.get("data")
        details = data if isinstance(data, str) else json.dumps(data) if data else ""
        super().__init__(": ".join(filter(None, (str(error.get("message") or ""), details))) or "no reason given")
        self.status = 401 if error.get("code") == _NO_LOGIN else _find_status(error)


def main(arguments: list[str]) -> int:
    """Pass one request to an agent; return exit code 0 if it answered."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--session", default="")
    parser.add_argument("--edit", action="store_true")
    parser.add_argument("command", nargs="+")
    options = parser.parse_args(arguments)
    prompt = sys.stdin.buffer.read().decode("utf-8", "replace")
    try:
        with subprocess.Popen(options.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            try:
                _Conversation(process, may_edit=options.edit).run(prompt, options.session)
            finally:
                _end_agent(process)
    except RefusedError as error:
        _print_event(type="failed", message=str(error), status=error.status)
        return 1
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:  # the agent may send anything
        _print_event(type="failed", message=str(error), status=None)
        return 1
    return 0


def _end_agent(process: subprocess.Popen[bytes]) -> None:
    """Close the agent's input, and give it time to save its conversation."""
    with contextlib.suppress(OSError):
        process.stdin.close()  # type: ignore[union-attr]  # a pipe
    try:
        process.wait(_SAVING_SECONDS)
    except subprocess.TimeoutExpired:
        process.terminate()


def _find_status(error: Data) -> int | None:
    """Return the HTTP status in the data of an error, or else its code; None if neither is a status."""
    data: Any = error.get("data")
    statuses = [data.get(key) for key in ("status", "statusCode", "code")] if isinstance(data, dict) else []
    values = [*statuses, error.get("code")]
    return next((value for value in values if isinstance(value, int) and 400 <= value < 600), None)


class _Conversation:
    """One conversation with the agent in JSON-RPC, one message per line in both directions."""

    def __init__(self, process: subprocess.Popen[bytes], *, may_edit: bool) -> None:
        self._process = process
        self._may_edit = may_edit
        self._numbers = itertools.count(1)
        self._is_prompted = False

    def run(self, prompt: str, session: str) -> None:
        agent = self._request("initialize", {"protocolVersion": PROTOCOL, "clientCapabilities": {}})
        can_load = (agent.get("agentCapabilities") or {}).get("loadSession")
        session, options = self._open_session(session if can_load else "")
        _print_event(type="session", session=session)
        if not self._may_edit:
            method, parameters = _find_read_only_mode(options)
            self._request(method, {"sessionId": session, **parameters})
        self._is_prompted = True  # earlier updates are ignored: a loaded conversation is repeated from its start
        result = self._request("session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": prompt}]})
        _print_event(type="done", reason=result.get("stopReason"))

    def _open_session(self, session: str) -> tuple[str, Data]:
        """Load the conversation with this id, or else a new one; return the id and the agent's options."""
        parameters: Data = {"cwd": str(Path.cwd()), "mcpServers": []}
        if session:
            with contextlib.suppress(RefusedError):
                return session, self._request("session/load", {**parameters, "sessionId": session})
        options = self._request("session/new", parameters)
        return str(options["sessionId"]), options

    def _request(self, method: str, parameters: Data) -> Data:
        number = next(self._numbers)
        self._send({"id": number, "method": method, "params": parameters})
        for message in self._read_messages():
            if message.get("id") == number and "method" not in message:
                if message.get("error"):
                    raise RefusedError(message["error"])
                return message.get("result") or {}
            self._handle_message(message)
        raise ValueError(f"the agent ended before it answered {method}")

    def _read_messages(self) -> Iterator[Data]:
        for line in self._process.stdout:  # type: ignore[union-attr]  # a pipe
            if line.lstrip().startswith(b"{"):
                yield json.loads(line)

    def _handle_message(self, message: Data) -> None:
        parameters = message.get("params") or {}
        if message.get("method") == "session/update" and self._is_prompted:
            _print_update(parameters.get("update") or {})
        elif message.get("method") == "session/request_permission":
            self._send({"id": message.get("id"), "result": {"outcome": _choose_permission(parameters, self._may_edit)}})
        elif "method" in message and "id" in message:
            self._send({"id": message["id"], "error": {"code": _NO_METHOD, "message": "there is no such method here"}})

    def _send(self, message: Data) -> None:
        pipe = self._process.stdin
        pipe.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")  # type: ignore[union-attr]  # a pipe
        pipe.flush()  # type: ignore[union-attr]  # a pipe


def _find_read_only_mode(session: Data) -> tuple[str, Data]:
    """Return the method and parameters that switch an agent to read-only; raise ValueError if it has no such mode."""
    modes = [mode.get("id") for mode in (session.get("modes") or {}).get("availableModes") or ()]
    if mode := next((mode for mode in _READ_ONLY_MODES if mode in modes), None):
        return "session/set_mode", {"modeId": mode}
    for option in session.get("configOptions") or ():
        values = [choice.get("value") for choice in option.get("options") or ()]
        mode = next((mode for mode in _READ_ONLY_MODES if mode in values), None)
        if mode and option.get("category") == "mode":
            return "session/set_config_option", {"configId": option.get("id"), "value": mode}
    raise ValueError("the agent names no mode in which it edits nothing, so it can neither plan nor judge")


def _choose_permission(parameters: Data, may_edit: bool) -> Data:
    kind = "allow_once" if may_edit else "reject_once"
    options = parameters.get("options") or ()
    choice = next((option.get("optionId") for option in options if option.get("kind") == kind), None)
    return {"outcome": "selected", "optionId": choice} if choice else {"outcome": "cancelled"}


def _print_update(update: Data) -> None:
    kind = update.get("sessionUpdate")
    if kind == "agent_message_chunk":
        _print_event(type="words", text=(update.get("content") or {}).get("text") or "")
    elif kind == "tool_call":
        _print_event(type="tool", name="tool", input={"title": str(update.get("title"))})


def _print_event(**event: Any) -> None:
    print(json.dumps(event), flush=True)
