"""The chats of Open WebUI, which are the same in its exports and in its database."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palaver.sessions.usage import TurnUsage
from palaver.transfer.imported import ImportedMessage, ImportProblem
from palaver.transfer.readers.message_tree import order_tree
from palaver.transfer.readers.open_webui_content import convert_message
from palaver.transfer.readers.values import Clock, as_count, as_dict, as_id, as_list, as_text, read_time

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from palaver.transfer.imported import ImportedFile


def get_chat(content: dict[str, Any]) -> dict[str, Any]:
    """Return the chat of an exported item; in old exports that is the item itself."""
    return as_dict(content.get("chat")) or content


def get_messages(chat: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the messages by their ids; very old chats have a list instead of a tree."""
    history = as_dict(as_dict(chat.get("history")).get("messages"))
    if history:
        return {message_id: as_dict(message) for message_id, message in history.items()}
    messages: dict[str, dict[str, Any]] = {}
    for number, message in enumerate(map(as_dict, as_list(chat.get("messages"))), 1):
        message_id = as_id(message.get("id"))
        previous = next(reversed(messages), None)
        key = message_id if message_id and message_id not in messages else f"#{number}"
        messages[key] = {**message, "parentId": previous}
    return messages


def find_first_time(chat: dict[str, Any]) -> datetime | None:
    times = (read_time(message.get("timestamp")) for message in get_messages(chat).values())
    return min(filter(None, times), default=None)


def find_model(chat: dict[str, Any]) -> str | None:
    return next((model for model in map(as_text, as_list(chat.get("models"))) if model), None)


def read_messages(
    chat: dict[str, Any], created_at: datetime, where: str, find_file: Callable[[str, str], ImportedFile | None]
) -> Iterator[ImportedMessage | ImportProblem]:
    """Read the messages of a chat, all versions of each."""
    messages = get_messages(chat)
    parents = {message_id: as_id(message.get("parentId")) or None for message_id, message in messages.items()}
    current = as_id(as_dict(chat.get("history")).get("currentId"))
    clock = Clock(created_at)
    missing: list[str] = []
    for message_id, is_hidden in order_tree(parents, current):
        message = messages[message_id]
        at = clock.read(message.get("timestamp"))
        try:
            converted = convert_message(message, message_id, find_file)
        except RecursionError:
            yield ImportProblem(where=f"{where}, message {message_id}", what="It is nested too deeply.")
            continue
        missing += converted.missing_files
        for number, built in enumerate(converted.messages, 1):
            is_last = number == len(converted.messages)
            files = tuple(converted.files) if is_last else ()
            yield ImportedMessage(message=built, at=at, hidden=is_hidden, files=files)
    if missing:
        listed = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
        yield ImportProblem(where=where, what=f"These files are not there, so their messages only name them: {listed}.")


def read_usage(chat: dict[str, Any], chat_id: str) -> tuple[TurnUsage, ...]:
    """Add up the tokens of all answers, one sum for each model."""
    totals: dict[str, list[int]] = {}
    for message in get_messages(chat).values():
        usage = as_dict(message.get("usage")) or as_dict(as_dict(message.get("info")).get("usage"))
        usage = usage or as_dict(message.get("info"))
        counts = [
            max(as_count(usage.get(key)) for key in keys)
            for keys in (
                ("input_tokens", "prompt_tokens", "prompt_eval_count"),
                ("output_tokens", "completion_tokens", "eval_count"),
            )
        ]
        if any(counts) and as_text(message.get("role")) == "assistant":
            total = totals.setdefault(as_text(message.get("model")), [0, 0])
            total[0] += counts[0]
            total[1] += counts[1]
    return tuple(
        TurnUsage(
            turn_id=f"open-webui:{chat_id}:{model}",
            model=model or None,
            input_tokens=min(sent, 10**12),
            output_tokens=min(received, 10**12),
        )
        for model, (sent, received) in totals.items()
    )
