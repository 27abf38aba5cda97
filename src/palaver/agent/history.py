"""Building the messages for a model from the log of a conversation.

Pure and deterministic: the messages of a turn followed by its answer are, byte for byte, the beginning of the next
turn's messages, so that providers can cache them. What a model would reject (a call without a result, a result
without a call) is repaired here, in the messages, and never in the log.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from palaver.agent.base import estimate_message_tokens
from palaver.core.text import make_storable
from palaver.sessions.context import format_author_prefix
from palaver.sessions.events import Compaction, Event, EventKind
from palaver.sessions.quoted_messages import format_quotes, format_reaction, format_sender_note
from palaver.sessions.sent_message import find_sent_by

if TYPE_CHECKING:
    from palaver.sessions.message import Message

SUMMARY_HEADING = "[Summary of the conversation before this point]"
OMITTED_NOTICE = (
    "[Earlier messages of this conversation are omitted here because there are too many. "
    "Use search_conversations to find them.]"
)
DELETED_NOTICE = "[The message before this answer was deleted.]"
MISSING_RESULT_TEXT = "(no result: the run was interrupted)"
MIN_LONG_RESULT_CHARS: Final = 2000  # of a result that leaves the view when it is old
MAX_HEAD_CHARS: Final = 200  # of such a result that stay
READ_RESULT_TOOL: Final = "read_tool_result"
LEFT_OUT_RESULT_TEXT: Final = (
    "{head}…\n[The rest of this result is left out here because it is old; it has {count} characters in all. If you"
    f" need it, read it again with {READ_RESULT_TOOL}, number {{seq}}.]"
)
INTERRUPTED_SUFFIX = " […interrupted] (the answer stopped here)"


def build_messages(
    events: Sequence[Event],
    *,
    input_seq: int,
    compaction: Compaction | None,
    shared: bool,
    is_truncated: bool = False,
) -> list[dict[str, Any]]:
    """Build the messages for the turn that answers message `input_seq`, in the format of chat models."""
    built = []
    if compaction is not None and compaction.summary:
        built.append(build_summary_message(compaction.summary))
    if is_truncated or (compaction is not None and compaction.omitted_count):
        built.append({"role": "user", "content": OMITTED_NOTICE})
    ordered = order_events(events, input_seq)
    changed_seq = input_seq if is_truncated else 0 if compaction is None else compaction.seq
    messages = [
        (event.seq, _remove_reasoning(event.message) if event.seq < changed_seq else event.message)
        for event in ordered
        if event.message is not None
    ]
    notes = _format_reactions(events, ordered)
    first = messages[0][1] if messages else None
    if not built and first is not None and first.role == "assistant" and "answers" in first.extra:
        built.append(
            {"role": "user", "content": DELETED_NOTICE}
        )  # many providers want the first message to be a user's
    return built + _pair_calls_and_results(messages, notes, shared=shared)


def build_summary_message(summary: str) -> dict[str, Any]:
    """Build the message that replaces the messages of a summary."""
    return {"role": "user", "content": f"{SUMMARY_HEADING}\n{make_storable(summary)}"}


def _remove_reasoning(message: Message) -> Message:
    """Remove what the provider wants back with a message: what the model saw before it has changed since."""
    if "provider_reasoning" not in message.extra:
        return message
    return replace(message, extra={**message.extra, "provider_reasoning": None})


# ---- order ---------------------------------------------------------------------------------------------------


def order_events(events: Sequence[Event], input_seq: int, open_seqs: Collection[int] = ()) -> list[Event]:
    """Order the visible messages as the turn that answers message `input_seq` should see them.

    This is the order of the log, except that a message that arrived during another turn comes after that turn's
    answer, because the model had not seen it. The message to answer comes last, even if a later one was answered first,
    and so do the messages of `open_seqs`, whose turns have not ended.
    """
    visible = [event for event in events if event.message is not None and not event.hidden]
    user_seqs = {event.seq for event in visible if event.message is not None and event.message.role == "user"}
    answered_seqs = {event.seq: _get_answered_seq(event, user_seqs) for event in visible}
    # Messages with a turn of their own: the answer to another message does not pull them in.
    own_turn_seqs = {input_seq, *open_seqs, *answered_seqs.values()}
    ordered: list[Event] = []
    pending: list[Event] = []  # messages that no answer has followed yet
    for event in visible:
        answered_seq = answered_seqs[event.seq]
        if answered_seq is None:
            pending.append(event)
            continue
        still_pending: list[Event] = []
        for message in pending:
            is_before_answer = message.seq == answered_seq or (
                message.seq < answered_seq and message.seq not in own_turn_seqs
            )
            (ordered if is_before_answer else still_pending).append(message)
        ordered.append(event)
        pending = still_pending
    return ordered + [message for message in pending if message.seq <= input_seq]


def _get_answered_seq(event: Event, user_seqs: set[int]) -> int | None:
    """Return the number of the message that this one answers, or None.

    A number that does not exist here is ignored: a forked session has numbers of its own.
    """
    seq = event.message.extra.get("answers") if event.message is not None else None
    return seq if isinstance(seq, int) and seq < event.seq and seq in user_seqs else None


# ---- calls and results ---------------------------------------------------------------------------------------


def _format_reactions(events: Sequence[Event], ordered: Sequence[Event]) -> list[str]:
    """Return, for each message, the reactions that came before it and after the user's previous message."""
    reactions = deque(event for event in events if event.kind is EventKind.REACTION)
    notes = [""] * len(ordered)
    if not reactions:
        return notes
    answers = {event.seq for event in ordered if event.message is not None and event.message.role == "assistant"}
    for index, event in enumerate(ordered):
        while event.message is not None and event.message.role == "user" and reactions:
            if reactions[0].seq > event.seq:
                break
            facts = reactions.popleft().facts
            notes[index] += format_reaction({**facts, "is_answer": facts.get("seq") in answers})
    return notes


def _pair_calls_and_results(
    messages: Sequence[tuple[int, Message]], notes: Sequence[str], *, shared: bool
) -> list[dict[str, Any]]:
    """Convert messages to dicts; each call is followed by its result, wherever that is in the log.

    `notes` are put before the messages, one before each. A long result has its number, see `leave_out_old_results`.
    """
    built: list[dict[str, Any]] = []
    open_results: dict[str, deque[dict[str, Any]]] = {}
    for (seq, message), note in zip(messages, notes, strict=True):
        if message.role == "assistant":
            built += _build_sender_note(message)
            calls = [call for call in message.extra.get("tool_calls", ()) if _is_valid_call(call)]
            results = [
                {
                    "role": "tool",
                    "tool_call_id": call["id"],
                    "tool_name": call["function"]["name"],
                    "content": MISSING_RESULT_TEXT,
                }
                for call in calls
            ]
            open_results |= {result["tool_call_id"]: deque[dict[str, Any]]() for result in results}
            for result in results:
                open_results[result["tool_call_id"]].append(result)
            built += [*_build_assistant_messages(message, calls), *results]
        elif message.role == "tool":
            results_of_call = open_results.get(message.extra.get("tool_call_id", ""))
            if results_of_call:
                results_of_call.popleft().update(_build_result(message, seq))
        else:
            content, prefix = _clean_content(message), ""
            if message.role == "user":
                prefix = note + make_storable(format_quotes(message.extra))
            if message.role == "user" and (shared or message.author is not None):
                prefix += format_author_prefix(message.author.name if message.author is not None else "")
            if prefix and isinstance(content, str):
                content = prefix + content
            elif prefix:
                content = [{"type": "text", "text": prefix}, *content]
            built.append({"role": message.role, "content": content})
    return built


def _build_result(message: Message, seq: int) -> dict[str, Any]:
    content = _clean_content(message)
    result: dict[str, Any] = {"content": content}
    if message.extra.get("is_error") is True:
        result["is_error"] = True
    if isinstance(content, str) and len(content) > MIN_LONG_RESULT_CHARS:
        result["seq"] = seq
    return result


def _build_sender_note(message: Message) -> list[dict[str, Any]]:
    """Build what comes before a message that a job or another conversation made the agent send, and is no answer.

    It is a message of its own, so that the agent does not imitate the note, and a user's, because many providers want
    the first message to be a user's and the agent's messages to follow one.
    """
    sent_by = find_sent_by(message.extra)
    return [] if sent_by is None else [{"role": "user", "content": make_storable(format_sender_note(sent_by))}]


def _is_valid_call(call: object) -> bool:
    """Whether a call has a name, and an id, which its result refers to."""
    if not isinstance(call, Mapping) or not isinstance(call.get("id"), str):
        return False
    function = call.get("function")
    return isinstance(function, Mapping) and isinstance(function.get("name"), str)


def _build_assistant_messages(message: Message, calls: list[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Build the agent's message, or nothing if it has neither text nor calls."""
    content = _clean_content(message)
    if isinstance(content, str) and not content.strip():
        content = ""
    if not content and not calls:
        return []
    reasoning: dict[str, Any] = {}
    if message.extra.get("provider_reasoning"):  # goes back with the message as it was, and with no other
        reasoning = {key: message.extra[key] for key in ("reasoning", "provider_reasoning") if key in message.extra}
    if message.extra.get("interrupted") is True:
        reasoning = {}
        if isinstance(content, str):
            content = (content + INTERRUPTED_SUFFIX).lstrip()
        else:
            content = [*content, {"type": "text", "text": INTERRUPTED_SUFFIX}]
    built: dict[str, Any] = {"role": "assistant", "content": content or None}
    return [built | ({"tool_calls": [dict(call) for call in calls]} if calls else {}) | reasoning]


# ---- results that leave the view -----------------------------------------------------------------------------


def leave_out_old_results(
    messages: Sequence[Mapping[str, Any]], *, max_tokens: int, min_tokens: int, keep_exchanges: int
) -> tuple[list[Mapping[str, Any]], int]:
    """Replace long results of tools before the last exchanges by their beginning, where the messages have become many.

    This happens in steps: at a question before which there are more than `max_tokens`, and only if it frees at least
    `min_tokens`. Whether there is a step at a question depends on what came before it alone, so between two steps the
    messages of a turn are still the beginning of the next turn's. Returns also how many tokens the step at the last
    question has freed. What a provider wants back with messages after a changed one is left out, too.
    """
    view = list(messages)
    starts: list[int] = []  # of exchanges
    total = freed = 0
    first_open = 0  # all long results before it were replaced
    for index, message in enumerate(messages):
        if message["role"] == "user" and (index == 0 or messages[index - 1]["role"] != "user"):
            first_kept = starts[-keep_exchanges] if len(starts) >= keep_exchanges else 0
            is_due = total > max_tokens  # else nothing is looked at again: there are many questions
            old = [number for number in range(first_open, first_kept) if "seq" in view[number]] if is_due else []
            stubs = {number: _shorten_result(view[number]) for number in old}
            freed = sum(_estimate(view[number]) - _estimate(stub) for number, stub in stubs.items())
            if freed >= min_tokens and stubs:
                view[old[0] : index] = [
                    stubs.get(number) or without_reasoning(view[number]) for number in range(old[0], index)
                ]
                total -= freed
                first_open = first_kept
            else:
                freed = 0
            starts.append(index)
        total += _estimate(message)
    return view, freed


def _estimate(message: Mapping[str, Any]) -> int:
    return estimate_message_tokens([message])


def _shorten_result(message: Mapping[str, Any]) -> dict[str, Any]:
    content, seq = str(message["content"]), message["seq"]
    text = LEFT_OUT_RESULT_TEXT.format(head=content[:MAX_HEAD_CHARS], count=len(content), seq=seq)
    return {key: value for key, value in message.items() if key != "seq"} | {"content": text}


def without_reasoning(message: Mapping[str, Any]) -> Mapping[str, Any]:
    if "provider_reasoning" not in message:
        return message
    return {key: value for key, value in message.items() if key not in {"reasoning", "provider_reasoning"}}


# ---- content -------------------------------------------------------------------------------------------------


def _clean_content(message: Message) -> str | list[Any]:
    """Return the content without characters that no provider accepts."""
    if message.content is None or isinstance(message.content, str):
        return make_storable(message.content or "")
    return [_clean_part(part) for part in message.content]


def _clean_part(part: Any) -> Any:
    if isinstance(part, str):
        return make_storable(part)
    if isinstance(part, Mapping) and isinstance(part.get("text"), str):
        return {**part, "text": make_storable(part["text"])}
    return part
