"""A scripted model server on loopback, for the four protocols of agent clients."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Body = dict[str, Any]
Events = Iterator[tuple[str, Body]]


@dataclass(frozen=True)
class Turn:
    """One answer of the model: text, tool calls, or an error. `asks` is a tool that the request must offer.

    The tool of an MCP server is named `SERVER/TOOL` in the Responses protocol.
    """

    text: str = ""
    tools: tuple[tuple[str, Body], ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    asks: str = ""
    tokens: tuple[int, int] = (100, 10)
    hangs: bool = False


@dataclass(frozen=True)
class ModelRequest:
    """One HTTP request."""

    path: str
    headers: Mapping[str, str]
    body: Body

    def has_tool(self, tool: str) -> bool:
        return not tool or f'"name": "{tool}"' in json.dumps(self.body.get("tools", []))

    @property
    def is_streamed(self) -> bool:
        return bool(self.body.get("stream")) or "streamGenerateContent" in self.path


class ModelServer:
    """Answer with the turns of a script in order, each for the first request that fits; the last one repeats.

    Clients ask for titles and memories on the side. Such a request, which fits no turn, is answered with a word.
    """

    def __init__(self, *script: Turn) -> None:
        self.script = list(script)
        self.requests: list[ModelRequest] = []
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _make_handler(self))
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> ModelServer:
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._http.shutdown()
        self._http.server_close()

    def take_turn(self, request: ModelRequest) -> Turn:
        """Return the answer to a request."""
        with self._lock:
            self.requests.append(request)
            fitting = [turn for turn in self.script if request.has_tool(turn.asks)]
            turn = fitting[0] if fitting else Turn("ok")
            if len(fitting) > 1:
                self.script.remove(turn)
        if turn.hangs:
            self._closed.wait(60)
        return turn


def _make_handler(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(200, "application/json", b'{"object": "list", "data": [], "models": []}')

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            request = ModelRequest(self.path, dict(self.headers), json.loads(data or b"{}"))
            turn = server.take_turn(request)
            if turn.status != 200:
                error = {"message": "no", "type": "error", "code": turn.status}
                self._send(turn.status, "application/json", json.dumps({"error": error}).encode(), turn.headers)
            elif request.is_streamed:
                self._send(200, "text/event-stream", b"".join(map(_encode_event, _make_events(request, turn))))
            else:
                self._send(200, "application/json", json.dumps(_make_body(request, turn)).encode())

        def _send(self, status: int, kind: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
            try:
                self.send_response(status)
                for name, value in {"Content-Type": kind, "Content-Length": len(body), **(headers or {})}.items():
                    self.send_header(name, str(value))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                pass  # the client has ended meanwhile

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    return Handler


def _encode_event(event: tuple[str, Body]) -> bytes:
    name, data = event
    return (f"event: {name}\n" if name else "").encode() + b"data: " + json.dumps(data).encode() + b"\n\n"


def _make_events(request: ModelRequest, turn: Turn) -> Events:
    if request.path.endswith("/responses"):
        return _make_responses_events(turn)
    if request.path.endswith("/chat/completions"):
        return _make_chat_events(turn)
    if "/messages" in request.path:
        return _make_messages_events(turn)
    return iter([("", _make_gemini(turn))])


def _make_body(request: ModelRequest, turn: Turn) -> Body:
    if request.path.endswith("/responses"):
        return _make_responses(turn)
    if request.path.endswith("/chat/completions"):
        return _make_chat(turn)
    if request.path.endswith("/count_tokens"):
        return {"input_tokens": turn.tokens[0]}
    return _make_messages(turn) if "/messages" in request.path else _make_gemini(turn)


def _make_responses(turn: Turn) -> Body:
    words = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": turn.text}]}
    calls = [
        {
            "type": "function_call",
            "id": f"f{n}",
            "call_id": f"c{n}",
            "name": name.rpartition("/")[2],
            "arguments": json.dumps(arguments),
            **({"namespace": name.partition("/")[0]} if "/" in name else {}),
        }
        for n, (name, arguments) in enumerate(turn.tools)
    ]
    usage = {
        "input_tokens": turn.tokens[0],
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens": turn.tokens[1],
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": sum(turn.tokens),
    }
    output = ([words] if turn.text else []) + calls
    return {"id": "r", "object": "response", "status": "completed", "output": output, "usage": usage}


def _make_responses_events(turn: Turn) -> Events:
    body = _make_responses(turn)
    yield "response.created", {"type": "response.created", "response": {"id": "r"}}
    for number, item in enumerate(body["output"]):
        kind = "response.output_item.done"
        yield kind, {"type": kind, "output_index": number, "item": item}
    yield "response.completed", {"type": "response.completed", "response": body}


def _make_chat(turn: Turn, part: str = "message", kind: str = "chat.completion") -> Body:
    calls = [
        {
            "index": n,
            "id": f"c{n}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for n, (name, arguments) in enumerate(turn.tools)
    ]
    message = {"role": "assistant", "content": turn.text or None, **({"tool_calls": calls} if calls else {})}
    usage = {"prompt_tokens": turn.tokens[0], "completion_tokens": turn.tokens[1], "total_tokens": sum(turn.tokens)}
    choice = {"index": 0, part: message, "finish_reason": "tool_calls" if calls else "stop"}
    return {"id": "c", "object": kind, "created": 1, "model": "scripted", "choices": [choice], "usage": usage}


def _make_chat_events(turn: Turn) -> Events:
    body = _make_chat(turn, "delta", "chat.completion.chunk")
    yield "", {**body, "usage": None, "choices": [{**body["choices"][0], "finish_reason": None}]}
    yield "", {**body, "usage": None, "choices": [{**body["choices"][0], "delta": {}}]}
    yield "", {**body, "choices": []}


def _make_messages(turn: Turn) -> Body:
    calls = [
        {"type": "tool_use", "id": f"toolu_{n}", "name": name, "input": arguments}
        for n, (name, arguments) in enumerate(turn.tools)
    ]
    return {
        "id": "msg",
        "type": "message",
        "role": "assistant",
        "model": "scripted",
        "content": ([{"type": "text", "text": turn.text}] if turn.text else []) + calls,
        "stop_reason": "tool_use" if calls else "end_turn",
        "stop_sequence": None,
        "usage": {"input_tokens": turn.tokens[0], "output_tokens": turn.tokens[1]},
    }


def _make_messages_events(turn: Turn) -> Events:
    body = _make_messages(turn)
    yield "message_start", {"type": "message_start", "message": {**body, "content": [], "stop_reason": None}}
    for n, block in enumerate(body["content"]):
        is_text = block["type"] == "text"
        empty = {**block, "text": ""} if is_text else {**block, "input": {}}
        delta = (
            {"type": "text_delta", "text": block["text"]}
            if is_text
            else {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        )
        yield "content_block_start", {"type": "content_block_start", "index": n, "content_block": empty}
        yield "content_block_delta", {"type": "content_block_delta", "index": n, "delta": delta}
        yield "content_block_stop", {"type": "content_block_stop", "index": n}
    stop = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": stop, "usage": {"output_tokens": turn.tokens[1]}}
    yield "message_stop", {"type": "message_stop"}


def _make_gemini(turn: Turn) -> Body:
    parts = [{"text": turn.text}] if turn.text else []
    calls = [{"functionCall": {"name": name, "args": arguments}} for name, arguments in turn.tools]
    usage = {
        "promptTokenCount": turn.tokens[0],
        "candidatesTokenCount": turn.tokens[1],
        "totalTokenCount": sum(turn.tokens),
    }
    answer = {"index": 0, "content": {"role": "model", "parts": parts + calls}, "finishReason": "STOP"}
    return {"candidates": [answer], "usageMetadata": usage, "modelVersion": "scripted"}
