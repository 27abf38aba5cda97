"""Providers on loopback whose models reason, and that refuse what the real ones refuse.

Each answers a question with one call of a tool, and the result of the tool with text. What it streams has the shape of
the provider's API, which its real SDK reads, with reasoning that is signed or encrypted. A request gets status 400 if
it lacks reasoning that the provider wants back, has some of another model, or has changed what came before it.
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import json
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

TOOL = "search_conversations"
ARGUMENTS = {"query": "weather"}
DUMMY_SIGNATURE = base64.b64encode(b"skip_thought_signature_validator").decode()


class RefusedError(Exception):
    """The request is not valid."""


class ReasoningServer:
    """One provider: subclasses check its requests and make its answers."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[dict[str, Any]] = []
        self.refusals: list[str] = []
        self.issued: dict[str, str] = {}  # each signature, and what it is bound to
        self.answer_count = 0

    @asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        server = await asyncio.start_server(self._handle, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with server:
            yield

    async def _handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            lines = head.strip().split("\r\n")
            headers = {key.lower(): value.strip() for key, _, value in (line.partition(":") for line in lines[1:])}
            body = json.loads(await reader.readexactly(int(headers.get("content-length", 0))))
            path = lines[0].split()[1]
            body["path"] = path
            if "tools" in body:  # it is no title and no summary
                self.requests.append(body)
            try:
                self.check(body)
                count = len(self.issued)
                status, kind, text = 200, "text/event-stream", self.make_stream(body)
                if "tools" not in body:
                    self.forget(count)
            except RefusedError as error:
                self.refusals.append(str(error))
                status, kind, text = 400, "application/json", json.dumps(self.make_error(str(error)))
            data = text.encode()
            answer = f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(data)}\r\n"
            writer.write(f"{answer}connection: close\r\n\r\n".encode() + data)
            await writer.drain()
        finally:
            writer.close()

    def sign(self, model: str, prefix: object = None) -> str:
        self.answer_count += 1
        signature = base64.b64encode(f"{type(self).__name__}-{model}-{self.answer_count}".encode() * 3).decode()
        self.issued[signature] = f"{model} {make_digest(prefix)}"
        return signature

    def forget(self, count: int) -> None:
        """Forget the newest signatures: those of a title or a summary never come back."""
        self.issued = dict(list(self.issued.items())[:count])

    def check(self, body: dict[str, Any]) -> None:
        raise NotImplementedError

    def make_stream(self, body: dict[str, Any]) -> str:
        raise NotImplementedError

    def make_error(self, text: str) -> dict[str, Any]:
        return {"error": {"message": text, "type": "invalid_request_error", "code": None}}


def make_digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def require(condition: object, text: str) -> None:
    if not condition:
        raise RefusedError(text)


def format_events(events: list[dict[str, Any]], *, named: bool = True) -> str:
    return "".join(
        (f"event: {event['type']}\n" if named else "") + f"data: {json.dumps(event)}\n\n" for event in events
    )


# ---- Anthropic Messages ----------------------------------------------------------------------------------------------


def remove_cache_marks(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: remove_cache_marks(inner) for key, inner in value.items() if key != "cache_control"}
    if isinstance(value, list):
        return [remove_cache_marks(inner) for inner in value]
    return value


class AnthropicServer(ReasoningServer):
    """Thinking blocks are signed, belong to one model, and are bound to everything before them."""

    def check(self, body: dict[str, Any]) -> None:
        require(body["path"].startswith("/v1/messages"), f"unknown path {body['path']}")
        messages = remove_cache_marks(body["messages"])
        last_question = max(
            index
            for index, message in enumerate(messages)
            if message["role"] == "user" and any(block["type"] != "tool_result" for block in to_blocks(message))
        )
        for index, message in enumerate(messages):
            if message["role"] != "assistant":
                continue
            blocks = to_blocks(message)
            is_call = any(block["type"] == "tool_use" for block in blocks)
            if index > last_question and is_call:
                found = blocks[0]["type"]
                require(
                    found in {"thinking", "redacted_thinking"},
                    f"messages.{index}.content.0: Expected `thinking` or `redacted_thinking`, but found `{found}`.",
                )
            for number, block in enumerate(blocks):
                if block["type"] in {"thinking", "redacted_thinking"}:
                    self._check_block(body, messages[:index], block, f"messages.{index}.content.{number}")

    def _check_block(self, body: dict[str, Any], before: list[Any], block: dict[str, Any], where: str) -> None:
        bound = self.issued.get(block.get("signature") or block.get("data") or "")
        model, _, digest = (bound or "").partition(" ")
        require(bound is not None and model == body["model"], f"{where}: Invalid `signature` in `thinking` block")
        is_bound_elsewhere = digest != make_digest(self._get_prefix(body, before))
        if is_bound_elsewhere and body.get("thinking", {}).get("block_binding"):
            dropped = {"type": "thinking_dropped", "path": where, "reason": "prefix_binding_mismatch"}
            body.setdefault("input_transformations", []).append(dropped)
            return
        require(not is_bound_elsewhere, f"{where}: The block is bound to a different conversation")
        if block["type"] == "thinking":
            require(block["thinking"].startswith("Thought "), f"{where}: `thinking` blocks cannot be modified.")

    def _get_prefix(self, body: dict[str, Any], messages: list[Any]) -> object:
        return remove_cache_marks([body.get("system"), body.get("tools"), messages])

    def make_stream(self, body: dict[str, Any]) -> str:
        signature = self.sign(body["model"], self._get_prefix(body, remove_cache_marks(body["messages"])))
        hidden = self.sign(body["model"], self._get_prefix(body, remove_cache_marks(body["messages"])))
        has_result = "tools" not in body or to_blocks(body["messages"][-1])[0]["type"] == "tool_result"
        usage = {"input_tokens": 100, "output_tokens": 1, "cache_read_input_tokens": 80}
        start = {"id": "msg_1", "type": "message", "role": "assistant", "model": body["model"], "content": []}
        blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = [
            (
                {"type": "thinking", "thinking": "", "signature": ""},
                [
                    {"type": "thinking_delta", "thinking": "Thought "},
                    {"type": "thinking_delta", "thinking": f"about it, {self.answer_count}."},
                    {"type": "signature_delta", "signature": signature},
                ],
            ),
            ({"type": "redacted_thinking", "data": hidden}, []),
            (
                {"type": "text", "text": ""},
                [{"type": "text_delta", "text": "It is "}, {"type": "text_delta", "text": "sunny."}],
            ),
        ]
        if not has_result:
            call = {"type": "tool_use", "id": f"toolu_{self.answer_count}", "name": TOOL, "input": {}}
            blocks.append((call, [{"type": "input_json_delta", "partial_json": json.dumps(ARGUMENTS)}]))
        if "input_transformations" in body:
            start["input_transformations"] = body["input_transformations"]
        events: list[dict[str, Any]] = [
            {"type": "message_start", "message": start | {"stop_reason": None, "stop_sequence": None, "usage": usage}}
        ]
        for index, (block, deltas) in enumerate(blocks):
            events.append({"type": "content_block_start", "index": index, "content_block": block})
            events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas]
            events.append({"type": "content_block_stop", "index": index})
        stop = {"stop_reason": "end_turn" if has_result else "tool_use", "stop_sequence": None}
        events.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": 40}})
        return format_events([*events, {"type": "message_stop"}])

    def make_error(self, text: str) -> dict[str, Any]:
        return {"type": "error", "error": {"type": "invalid_request_error", "message": text}}


def to_blocks(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


# ---- OpenAI Responses ------------------------------------------------------------------------------------------------


class ResponsesServer(ReasoningServer):
    """Reasoning items are encrypted, belong to one model, and are followed by the item that they led to."""

    def check(self, body: dict[str, Any]) -> None:
        require(body["path"] == "/v1/responses", f"unknown path {body['path']}")
        require(body.get("store") is False, "the conversation would be stored")
        items = body["input"]
        for index, item in enumerate(items):
            kind = item.get("type", "message")
            if kind == "reasoning":
                bound = self.issued.get(item.get("encrypted_content") or "", "")
                require(bound.startswith(f"{body['model']} "), "The encrypted content could not be verified.")
                after = items[index + 1].get("type", "message") if index + 1 < len(items) else "nothing"
                require(
                    after in {"function_call", "message"} and items[index + 1].get("role", "assistant") == "assistant",
                    f"Item '{item['id']}' of type 'reasoning' was provided without its required following item.",
                )
            elif str(item.get("id", "")).startswith(("fc_", "msg_")):
                before = items[index - 1].get("type") if index else "nothing"
                require(
                    before in {"reasoning", "message"},
                    f"Item '{item['id']}' of type '{kind}' was provided without its required 'reasoning' item.",
                )

    def make_stream(self, body: dict[str, Any]) -> str:
        encrypted = self.sign(body["model"])
        number = self.answer_count
        has_result = "tools" not in body or body["input"][-1].get("type") == "function_call_output"
        text = f"Thought about it, {number}."
        reasoning = {
            "id": f"rs_{number}",
            "type": "reasoning",
            "summary": [{"type": "summary_text", "text": text}],
            "encrypted_content": encrypted,
        }
        where: dict[str, Any] = {"item_id": f"rs_{number}", "output_index": 0, "summary_index": 0}
        empty: dict[str, Any] = reasoning | {"summary": []}
        events: list[dict[str, Any]] = [
            {"type": "response.output_item.added", "output_index": 0, "item": empty},
            {"type": "response.reasoning_summary_part.added", **where, "part": {"type": "summary_text", "text": ""}},
            {"type": "response.reasoning_summary_text.delta", **where, "delta": text},
            {"type": "response.reasoning_summary_text.done", **where, "text": text},
            {"type": "response.output_item.done", "output_index": 0, "item": reasoning},
        ]
        item: dict[str, Any]
        if has_result:
            content = {"type": "output_text", "text": "It is sunny.", "annotations": []}
            item = {"id": f"msg_{number}", "type": "message", "role": "assistant", "status": "completed"}
            item |= {"content": [content]}
            where = {"item_id": item["id"], "output_index": 1, "content_index": 0}
            events += [
                {"type": "response.output_item.added", "output_index": 1, "item": item | {"content": []}},
                {"type": "response.content_part.added", **where, "part": content | {"text": ""}},
                {"type": "response.output_text.delta", **where, "delta": "It is sunny.", "logprobs": []},
                {"type": "response.output_text.done", **where, "text": "It is sunny.", "logprobs": []},
                {"type": "response.content_part.done", **where, "part": content},
            ]
        else:
            arguments = json.dumps(ARGUMENTS)
            item = {"id": f"fc_{number}", "type": "function_call", "status": "completed", "name": TOOL}
            item |= {"call_id": f"call_{number}", "arguments": arguments}
            where = {"item_id": item["id"], "output_index": 1}
            events += [
                {"type": "response.output_item.added", "output_index": 1, "item": item | {"arguments": ""}},
                {"type": "response.function_call_arguments.delta", **where, "delta": arguments},
                {"type": "response.function_call_arguments.done", **where, "arguments": arguments, "name": TOOL},
            ]
        events.append({"type": "response.output_item.done", "output_index": 1, "item": item})
        response = {
            "id": f"resp_{number}",
            "object": "response",
            "created_at": 1,
            "model": body["model"],
            "status": "in_progress",
            "output": [],
            "parallel_tool_calls": True,
            "tool_choice": "auto",
            "tools": [],
        }
        usage = {"input_tokens": 100, "input_tokens_details": {"cached_tokens": 80}, "output_tokens": 40}
        usage |= {"output_tokens_details": {"reasoning_tokens": 20}, "total_tokens": 140}
        done = response | {"status": "completed", "output": [reasoning, item], "usage": usage}
        events = [
            {"type": "response.created", "response": response},
            *events,
            {"type": "response.completed", "response": done},
        ]
        return format_events([event | {"sequence_number": index} for index, event in enumerate(events)])


# ---- Gemini ----------------------------------------------------------------------------------------------------------


class GeminiServer(ReasoningServer):
    """The first call of a tool is signed; a signature of another model is refused, and so is a call without any."""

    def check(self, body: dict[str, Any]) -> None:
        require(":streamGenerateContent" in body["path"], f"unknown path {body['path']}")
        model = self._get_model(body)
        for content in body["contents"]:
            calls = [part for part in content["parts"] if "functionCall" in part]
            for part in content["parts"]:
                signature = part.get("thoughtSignature")
                known = self.issued.get(signature or "", "")
                require(
                    signature in {None, DUMMY_SIGNATURE} or known.startswith(f"{model} "), "Invalid thought signature."
                )
            if calls:
                require("thoughtSignature" in calls[0], "Function call is missing a thought_signature.")

    def _get_model(self, body: dict[str, Any]) -> str:
        return str(body["path"]).partition("/models/")[2].partition(":")[0]

    def make_stream(self, body: dict[str, Any]) -> str:
        model = self._get_model(body)
        signature = self.sign(model)
        has_result = "tools" not in body or any("functionResponse" in part for part in body["contents"][-1]["parts"])
        last: dict[str, Any] = {"text": "sunny."}
        if not has_result:
            last = {"functionCall": {"name": TOOL, "args": ARGUMENTS}}
        parts: list[dict[str, Any]] = [
            {"text": f"Thought about it, {self.answer_count}.", "thought": True},
            {"text": "It is "},
            last | {"thoughtSignature": signature},
        ]
        usage = {"promptTokenCount": 100, "candidatesTokenCount": 20, "thoughtsTokenCount": 20, "totalTokenCount": 140}
        chunks = [
            {
                "candidates": [
                    {"content": {"role": "model", "parts": [part]}, "index": 0}
                    | ({"finishReason": "STOP"} if part is parts[-1] else {})
                ],
                "usageMetadata": usage,
                "modelVersion": model,
                "responseId": f"r{self.answer_count}",
            }
            for part in parts
        ]
        return format_events(chunks, named=False)

    def make_error(self, text: str) -> dict[str, Any]:
        return {"error": {"code": 400, "message": text, "status": "INVALID_ARGUMENT"}}


# ---- chat completions as DeepSeek has them ---------------------------------------------------------------------------


class DeepSeekServer(ReasoningServer):
    """Plain reasoning, wanted back as long as the tools of the same turn run."""

    def check(self, body: dict[str, Any]) -> None:
        require(body["path"] == "/v1/chat/completions", f"unknown path {body['path']}")
        messages = body["messages"]
        last_question = max(index for index, message in enumerate(messages) if message["role"] == "user")
        for index, message in enumerate(messages):
            if message["role"] == "assistant" and message.get("tool_calls") and index > last_question:
                require(message.get("reasoning_content"), f"Missing `reasoning_content` field in message index {index}")

    def make_stream(self, body: dict[str, Any]) -> str:
        self.answer_count += 1
        has_result = "tools" not in body or body["messages"][-1]["role"] == "tool"
        deltas: list[dict[str, Any]] = [
            {"role": "assistant", "content": None, "reasoning_content": ""},
            {"content": None, "reasoning_content": f"Thought about it, {self.answer_count}."},
        ]
        function = {"name": TOOL, "arguments": json.dumps(ARGUMENTS)}
        call = {"index": 0, "id": f"call_{self.answer_count}", "type": "function", "function": function}
        deltas.append({"content": "It is sunny."} if has_result else {"tool_calls": [call]})
        base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": body["model"]}
        chunks = [base | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
        usage = {"prompt_tokens": 100, "completion_tokens": 40, "total_tokens": 140}
        end = {"index": 0, "delta": {}, "finish_reason": "stop" if has_result else "tool_calls"}
        chunks.append(base | {"choices": [end], "usage": usage})
        return format_events(chunks, named=False) + "data: [DONE]\n\n"
