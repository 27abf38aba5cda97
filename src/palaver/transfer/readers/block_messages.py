"""Building our messages from one answer that consists of blocks: text, reasoning, tool calls and their results.

Claude and Open WebUI keep a whole turn in one message. We keep what a model and its tools said as messages in order:
text and calls of the agent, the results, more text, …
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palaver.transfer.readers.values import build_call, build_message, join_paragraphs

if TYPE_CHECKING:
    from palaver.sessions.message import Message


class TurnBuilder:
    """Collects the blocks of one answer, in order."""

    def __init__(self, message_id: str, *, model: str = "") -> None:
        self._message_id = message_id
        self._model = model
        self._messages: list[Message] = []
        self._texts: list[str] = []
        self._reasoning: list[str] = []
        self._calls: list[dict[str, Any]] = []
        self._call_count = 0
        self._names: dict[str, str] = {}
        self._open_calls: dict[str, None] = {}  # without a result so far, the oldest first

    def add_text(self, text: str) -> None:
        if self._calls:
            self._flush()  # text after a call belongs to the next step
        self._texts.append(text)

    def add_reasoning(self, text: str) -> None:
        if self._calls or any(map(str.strip, self._texts)):
            self._flush()
        self._reasoning.append(text)

    def add_call(self, call_id: str, name: str, arguments: object) -> None:
        self._call_count += 1
        call_id = call_id or f"{self._message_id}-{self._call_count}"
        self._calls.append(build_call(call_id, name, arguments))
        self._names[call_id] = name
        self._open_calls[call_id] = None

    def add_result(self, call_id: str, name: str, text: str, *, is_error: bool = False) -> None:
        """Add the result of a call; without an id it belongs to the oldest call that has none."""
        self._flush()
        call_id = call_id or next(iter(self._open_calls), "")
        self._open_calls.pop(call_id, None)
        self._messages.append(
            build_message(
                "tool",
                text,
                tool_call_id=call_id,
                tool_name=name or self._names.get(call_id) or "tool",
                is_error=is_error,
            )
        )

    def build(self, *, is_interrupted: bool = False) -> list[Message]:
        """Return the messages; none if there was nothing in the blocks."""
        self._flush(is_interrupted=is_interrupted)
        return self._messages

    def _flush(self, *, is_interrupted: bool = False) -> None:
        text = join_paragraphs(*self._texts)
        reasoning = join_paragraphs(*self._reasoning)
        if text.strip() or reasoning.strip() or self._calls:
            self._messages.append(
                build_message(
                    "assistant",
                    text,
                    reasoning=reasoning,
                    tool_calls=self._calls,
                    model=self._model,
                    interrupted=is_interrupted,
                )
            )
        self._texts, self._reasoning, self._calls = [], [], []
