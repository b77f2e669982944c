"""A model that says what it was told to say, over the four protocols that agent clients speak, on loopback only."""

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
    """One answer of the model: words, calls of tools, or an error. `asks` is a tool that the request must offer."""

    text: str = ""
    tools: tuple[tuple[str, Body], ...] = ()
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    asks: str = ""
    tokens: tuple[int, int] = (100, 10)
    hangs: bool = False


@dataclass(frozen=True)
class Asked:
    """A request as it came."""

    path: str
    headers: Mapping[str, str]
    body: Body

    def offers(self, tool: str) -> bool:
        return not tool or f'"name": "{tool}"' in json.dumps(self.body.get("tools", []))

    @property
    def is_streamed(self) -> bool:
        return bool(self.body.get("stream")) or "streamGenerateContent" in self.path


class ModelServer:
    """Takes the turns of its script in their order, each for the first request that it fits; the last one stays.

    Clients ask for titles and memories on the side. Such a request, which fits no turn, is answered with a word.
    """

    def __init__(self, *script: Turn) -> None:
        self.script = list(script)
        self.asked: list[Asked] = []
        self._lock = threading.Lock()
        self._closed = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self.url = f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> ModelServer:
        threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._closed.set()
        self._http.shutdown()
        self._http.server_close()

    def turn(self, asked: Asked) -> Turn:
        """What the model says to this request."""
        with self._lock:
            self.asked.append(asked)
            fitting = [one for one in self.script if asked.offers(one.asks)]
            found = fitting[0] if fitting else Turn("ok")
            if len(fitting) > 1:
                self.script.remove(found)
        if found.hangs:
            self._closed.wait(60)
        return found


def _handler(server: ModelServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._give(200, "application/json", b'{"object": "list", "data": [], "models": []}')

        def do_POST(self) -> None:
            data = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            asked = Asked(self.path, dict(self.headers), json.loads(data or b"{}"))
            turn = server.turn(asked)
            if turn.status != 200:
                error = {"message": "no", "type": "error", "code": turn.status}
                self._give(turn.status, "application/json", json.dumps({"error": error}).encode(), turn.headers)
            elif asked.is_streamed:
                self._give(200, "text/event-stream", b"".join(map(_line, _events(asked, turn))))
            else:
                self._give(200, "application/json", json.dumps(_whole(asked, turn)).encode())

        def _give(self, status: int, kind: str, body: bytes, headers: Mapping[str, str] | None = None) -> None:
            try:
                self.send_response(status)
                for name, value in {"Content-Type": kind, "Content-Length": len(body), **(headers or {})}.items():
                    self.send_header(name, str(value))
                self.end_headers()
                self.wfile.write(body)
            except OSError:
                pass  # the client has ended meanwhile

        def log_message(self, *_: object) -> None:
            """Nobody reads it."""

    return Handler


def _line(event: tuple[str, Body]) -> bytes:
    name, data = event
    return (f"event: {name}\n" if name else "").encode() + b"data: " + json.dumps(data).encode() + b"\n\n"


def _events(asked: Asked, turn: Turn) -> Events:
    if asked.path.endswith("/responses"):
        return _responses_events(turn)
    if asked.path.endswith("/chat/completions"):
        return _chat_events(turn)
    if "/messages" in asked.path:
        return _messages_events(turn)
    return iter([("", _gemini(turn))])


def _whole(asked: Asked, turn: Turn) -> Body:
    if asked.path.endswith("/responses"):
        return _responses(turn)
    if asked.path.endswith("/chat/completions"):
        return _chat(turn)
    if asked.path.endswith("/count_tokens"):
        return {"input_tokens": turn.tokens[0]}
    return _messages(turn) if "/messages" in asked.path else _gemini(turn)


def _responses(turn: Turn) -> Body:
    words = {"type": "message", "id": "m", "role": "assistant", "content": [{"type": "output_text", "text": turn.text}]}
    calls = [
        {"type": "function_call", "id": f"f{n}", "call_id": f"c{n}", "name": name, "arguments": json.dumps(arguments)}
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


def _responses_events(turn: Turn) -> Events:
    whole = _responses(turn)
    yield "response.created", {"type": "response.created", "response": {"id": "r"}}
    for number, item in enumerate(whole["output"]):
        kind = "response.output_item.done"
        yield kind, {"type": kind, "output_index": number, "item": item}
    yield "response.completed", {"type": "response.completed", "response": whole}


def _chat(turn: Turn, part: str = "message", kind: str = "chat.completion") -> Body:
    calls = [
        {
            "index": n,
            "id": f"c{n}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for n, (name, arguments) in enumerate(turn.tools)
    ]
    said = {"role": "assistant", "content": turn.text or None, **({"tool_calls": calls} if calls else {})}
    usage = {"prompt_tokens": turn.tokens[0], "completion_tokens": turn.tokens[1], "total_tokens": sum(turn.tokens)}
    choice = {"index": 0, part: said, "finish_reason": "tool_calls" if calls else "stop"}
    return {"id": "c", "object": kind, "created": 1, "model": "scripted", "choices": [choice], "usage": usage}


def _chat_events(turn: Turn) -> Events:
    whole = _chat(turn, "delta", "chat.completion.chunk")
    yield "", {**whole, "usage": None, "choices": [{**whole["choices"][0], "finish_reason": None}]}
    yield "", {**whole, "usage": None, "choices": [{**whole["choices"][0], "delta": {}}]}
    yield "", {**whole, "choices": []}


def _messages(turn: Turn) -> Body:
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


def _messages_events(turn: Turn) -> Events:
    whole = _messages(turn)
    yield "message_start", {"type": "message_start", "message": {**whole, "content": [], "stop_reason": None}}
    for n, block in enumerate(whole["content"]):
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
    stop = {"stop_reason": whole["stop_reason"], "stop_sequence": None}
    yield "message_delta", {"type": "message_delta", "delta": stop, "usage": {"output_tokens": turn.tokens[1]}}
    yield "message_stop", {"type": "message_stop"}


def _gemini(turn: Turn) -> Body:
    parts = [{"text": turn.text}] if turn.text else []
    calls = [{"functionCall": {"name": name, "args": arguments}} for name, arguments in turn.tools]
    usage = {
        "promptTokenCount": turn.tokens[0],
        "candidatesTokenCount": turn.tokens[1],
        "totalTokenCount": sum(turn.tokens),
    }
    answer = {"index": 0, "content": {"role": "model", "parts": parts + calls}, "finishReason": "STOP"}
    return {"candidates": [answer], "usageMetadata": usage, "modelVersion": "scripted"}
