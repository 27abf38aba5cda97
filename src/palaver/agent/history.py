"""The log of a conversation as a model is to see it.

Pure, and the same for everybody who asks: what one turn was shown, followed by what it answered, is how the next
turn's view begins, byte for byte, so that providers' caches hold. Whatever a model could not take (a call without a
result, a result without a call) is repaired here, in the view, and never in the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from palaver.domain.context import author_prefix
from palaver.domain.text import storable

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from palaver.domain.compaction import Compaction
    from palaver.domain.events import Event
    from palaver.domain.message import Message

SUMMARY = "[Summary of the conversation before this point]"
LEFT_OUT = (
    "[Earlier messages of this conversation are left out here, because there are so many; "
    "search_conversations finds them.]"
)
NO_RESULT = "(no result: the run was interrupted)"
INTERRUPTED = " […interrupted] (the answer was stopped here)"


def project(
    events: Sequence[Event],
    *,
    input_seq: int,
    compaction: Compaction | None,
    shared: bool,
    left_out: bool = False,
) -> list[dict[str, Any]]:
    """The conversation for the turn that answers message `input_seq`, in the shape chat models use."""
    found = []
    if compaction is not None:
        found.append(summarised(compaction.summary))
    if left_out:
        found.append({"role": "user", "content": LEFT_OUT})
    said = (event.message for event in in_order(events, input_seq) if event.message is not None)
    return found + _paired(said, shared=shared)


def summarised(summary: str) -> dict[str, Any]:
    """A summary as the message that stands for what it summarises."""
    return {"role": "user", "content": f"{SUMMARY}\n{storable(summary)}"}


# ---- order ---------------------------------------------------------------------------------------------------


def in_order(events: Sequence[Event], input_seq: int) -> list[Event]:
    """The visible messages in the order of the conversation, as far as the turn of message `input_seq` knows them.

    That is the order of the log, but what arrived while another turn was running stands after that turn's answer: the
    model had not seen it. What the turn is to answer comes last, also when a later message was answered first.
    """
    shown = [event for event in events if event.message is not None and not event.hidden]
    asked = {event.seq for event in shown if event.message is not None and event.message.role == "user"}
    answered = {event.seq: _answered(event, asked) for event in shown}
    waits = {input_seq, *answered.values()}  # for a turn of its own, so another's answer does not bring it along
    found: list[Event] = []
    pending: list[Event] = []
    for event in shown:
        answers = answered[event.seq]
        if answers is None:
            pending.append(event)
            continue
        still: list[Event] = []
        for each in pending:
            seen = each.seq == answers or (each.seq < answers and each.seq not in waits)
            (found if seen else still).append(each)
        found.append(event)
        pending = still
    return found + [each for each in pending if each.seq <= input_seq]


def _answered(event: Event, asked: set[int]) -> int | None:
    """The number of the message it answers; None when it names none that is there: a copy's numbers are its own."""
    answers = event.message.extra.get("answers") if event.message is not None else None
    return answers if isinstance(answers, int) and answers < event.seq and answers in asked else None


# ---- calls and results ---------------------------------------------------------------------------------------


def _paired(messages: Iterable[Message], *, shared: bool) -> list[dict[str, Any]]:
    """The messages as dicts; each call is followed by its result, wherever that stands in the log."""
    found: list[dict[str, Any]] = []
    unanswered: dict[str, deque[dict[str, Any]]] = {}
    for message in messages:
        if message.role == "assistant":
            calls = _calls(message)
            results = [_missing(call) for call in calls]
            unanswered |= {result["tool_call_id"]: deque[dict[str, Any]]() for result in results}
            for result in results:
                unanswered[result["tool_call_id"]].append(result)
            found += [*_assistant(message, calls), *results]
        elif message.role == "tool":
            waiting = unanswered.get(message.extra.get("tool_call_id", ""))
            if waiting:
                waiting.popleft()["content"] = _content(message)
        elif message.role == "user" and (shared or message.author is not None):
            name = message.author.name if message.author is not None else ""
            found.append({"role": "user", "content": _before(author_prefix(name), _content(message))})
        else:
            found.append({"role": message.role, "content": _content(message)})
    return found


def _calls(message: Message) -> list[Mapping[str, Any]]:
    """The calls of a message; what is not one, or has no id to be answered by, is left out."""
    calls = message.extra.get("tool_calls", ())
    return [call for call in calls if isinstance(call, Mapping) and isinstance(call.get("id"), str)]


def _missing(call: Mapping[str, Any]) -> dict[str, Any]:
    function = call.get("function")
    name = function.get("name") if isinstance(function, Mapping) else None
    return {"role": "tool", "tool_call_id": call["id"], "tool_name": name or "", "content": NO_RESULT}


def _assistant(message: Message, calls: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What the agent said and whom it called; nothing when it did neither."""
    content = _content(message)
    if isinstance(content, str) and not content.strip():
        content = ""
    if not content and not calls:
        return []
    if message.extra.get("interrupted") is True:
        content = _after(content, INTERRUPTED)
    said: dict[str, Any] = {"role": "assistant", "content": content or None}
    return [said | {"tool_calls": [dict(call) for call in calls]}] if calls else [said]


# ---- words ---------------------------------------------------------------------------------------------------


def _content(message: Message) -> str | list[Any]:
    """What was said, without what no provider takes."""
    if message.content is None or isinstance(message.content, str):
        return storable(message.content or "")
    return [_part(part) for part in message.content]


def _part(part: Any) -> Any:
    if isinstance(part, str):
        return storable(part)
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return {**part, "text": storable(part["text"])}
    return part


def _before(words: str, content: str | list[Any]) -> str | list[Any]:
    return words + content if isinstance(content, str) else [{"type": "text", "text": words}, *content]


def _after(content: str | list[Any], words: str) -> str | list[Any]:
    if isinstance(content, str):
        return (content + words).lstrip()
    return [*content, {"type": "text", "text": words}]
