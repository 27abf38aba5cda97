"""The chats of Open WebUI, which are the same in its exports and in its database."""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from palaver.sessions.usage import TurnUsage
from palaver.transfer.imported import ImportedMessage, ImportProblem
from palaver.transfer.readers.json_stream import UnreadableItem, parse_json
from palaver.transfer.readers.values import (
    Clock,
    TurnBuilder,
    as_count,
    as_dict,
    as_id,
    as_list,
    as_text,
    build_message,
    join_paragraphs,
    join_result_parts,
    make_text_file,
    note_missing_file,
    order_tree,
    read_data_url,
    read_time,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime

    from palaver.sessions.message import Message
    from palaver.transfer.imported import ImportedFile


_DETAILS_START = re.compile(r'<details\s+type="(reasoning|tool_calls|code_interpreter)"([^<>]*)>', re.IGNORECASE)
_DETAILS_END: Final = "</details>"
_ATTRIBUTE = re.compile(r'(?<!\w)(\w{1,40})="([^"]*)"')
_SUMMARY = re.compile(r"\s*<summary>[^<]*</summary>", re.IGNORECASE)
_FILE_ADDRESS = re.compile(r"/files/([\w-]{8,64})(?:/|$)")


@dataclass(slots=True)
class ConvertedAnswer:
    messages: list[Message]
    files: list[ImportedFile] = field(default_factory=list)
    missing_files: list[str] = field(default_factory=list)


def convert_message(
    message: dict[str, Any], message_id: str, find_file: Callable[[str, str], ImportedFile | None]
) -> ConvertedAnswer:
    """Convert a message; `find_file` looks up a file by its id and name."""
    role = as_text(message.get("role"))
    files, missing = _read_files(message, find_file)
    text = _read_text(message.get("content"), files)
    if role == "assistant":
        messages = _convert_answer(message, message_id, text)
    else:
        messages = [build_message(role if role in {"user", "system"} else "system", text)] if text.strip() else []
    if missing:
        last = messages.pop() if messages else build_message(role if role in {"user", "assistant"} else "system", "")
        noted = join_paragraphs(last.text, *map(note_missing_file, missing))
        messages.append(build_message(last.role, noted, **last.extra))
    if files and not messages:
        messages.append(build_message(role if role in {"user", "assistant"} else "system", ""))
    return ConvertedAnswer(messages, files, missing)


def _convert_answer(message: dict[str, Any], message_id: str, text: str) -> list[Message]:
    turn = TurnBuilder(message_id, model=as_text(message.get("model")))
    output = [as_dict(item) for item in as_list(message.get("output"))]
    if any(as_text(item.get("type")) in _OUTPUT_READERS for item in output):
        for item in output:
            if reader := _OUTPUT_READERS.get(as_text(item.get("type"))):
                reader(turn, item)
    else:
        _add_text(turn, text)
    if merged := as_text(as_dict(message.get("merged")).get("content")):
        turn.add_text(merged)
    error = message.get("error")
    error_text = as_text(error) or as_text(as_dict(error).get("content")) or as_text(as_dict(error).get("message"))
    if error_text:
        turn.add_text(f"[Error: {error_text}]")
    return turn.build(is_interrupted=message.get("done") is False)


def _add_text(turn: TurnBuilder, text: str) -> None:
    """Add a text, with the steps that are written in it as HTML."""
    position = 0
    while start := _DETAILS_START.search(text, position):
        end = text.find(_DETAILS_END, start.end())
        if end < 0:
            break
        turn.add_text(text[position : start.start()].strip())
        body = text[start.end() : end]
        if summary := _SUMMARY.match(body):
            body = body[summary.end() :]
        _add_details(turn, start[1].lower(), dict(_ATTRIBUTE.findall(start[2])), html.unescape(body).strip())
        position = end + len(_DETAILS_END)
    turn.add_text(text[position:].strip() if position else text)


def _add_details(turn: TurnBuilder, kind: str, attributes: dict[str, str], body: str) -> None:
    if kind == "reasoning":
        turn.add_reasoning("\n".join(line.removeprefix(">").removeprefix(" ") for line in body.split("\n")))
        return
    if kind == "tool_calls":
        call_id, name = attributes.get("id", ""), attributes.get("name", "") or "tool"
        turn.add_call(call_id, name, _unquote(html.unescape(attributes.get("arguments", ""))))
        result = _unquote(html.unescape(attributes.get("result", "")) or body)
    else:
        turn.add_call("", "code_interpreter", {"code": body})
        call_id, name = "", "code_interpreter"
        result = _unquote(html.unescape(attributes.get("output", "")))
    if result or attributes.get("done") == "true":
        turn.add_result(call_id, name, result)


def _unquote(text: str) -> str:
    """Return a text that was written as a JSON string, as some versions do."""
    if not text.startswith('"'):
        return text
    try:
        return as_text(parse_json(text)) or text
    except UnreadableItem:
        return text


# ---- steps of an answer ------------------------------------------------------------------------------------------


def _join_parts(item: dict[str, Any]) -> str:
    return "".join(as_text(as_dict(part).get("text")) for part in as_list(item.get("content")))


def _add_message(turn: TurnBuilder, item: dict[str, Any]) -> None:
    turn.add_text(_join_parts(item))


def _add_reasoning(turn: TurnBuilder, item: dict[str, Any]) -> None:
    summary = "".join(as_text(as_dict(part).get("text")) for part in as_list(item.get("summary")))
    turn.add_reasoning(_join_parts(item) or summary)


def _add_call(turn: TurnBuilder, item: dict[str, Any]) -> None:
    turn.add_call(
        as_id(item.get("call_id")) or as_id(item.get("id")), as_text(item.get("name")), item.get("arguments") or ""
    )


def _add_result(turn: TurnBuilder, item: dict[str, Any]) -> None:
    parts = item.get("output")
    if isinstance(parts, list):
        parts = [part for part in parts if as_dict(part).get("type") != "input_image"]
    turn.add_result(as_id(item.get("call_id")), "", join_result_parts(parts))


def _add_code(turn: TurnBuilder, item: dict[str, Any]) -> None:
    turn.add_call(as_id(item.get("id")), "code_interpreter", {"code": as_text(item.get("code")) or _join_parts(item)})
    if (output := item.get("output")) not in (None, "", [], {}):
        turn.add_result(as_id(item.get("id")), "code_interpreter", join_result_parts(output))


_OUTPUT_READERS: Final[dict[str, Callable[[TurnBuilder, dict[str, Any]], None]]] = {
    "message": _add_message,
    "reasoning": _add_reasoning,
    "function_call": _add_call,
    "function_call_output": _add_result,
    "open_webui:code_interpreter": _add_code,
    "code_interpreter": _add_code,
}


# ---- text and files ----------------------------------------------------------------------------------------------


def _read_text(content: object, files: list[ImportedFile]) -> str:
    """Return the text of a message; images among its parts are added to the files."""
    if isinstance(content, str):
        return as_text(content)
    texts = []
    for part in map(as_dict, as_list(content)):
        url = part.get("image_url")
        address = as_text(url) or as_text(as_dict(url).get("url"))
        if file := read_data_url(address):
            files.append(file)
        elif text := as_text(part.get("text")) or address:
            texts.append(text)
    return join_paragraphs(*texts)


def _read_files(
    message: dict[str, Any], find_file: Callable[[str, str], ImportedFile | None]
) -> tuple[list[ImportedFile], list[str]]:
    """Return the files of a message, and the names of those that are not there."""
    files: list[ImportedFile] = []
    missing: list[str] = []
    for entry in map(as_dict, as_list(message.get("files"))):
        kind = as_text(entry.get("type"))
        if kind in {"collection", "note", "chat", "folder"}:
            missing.append(_read_name(entry) or kind)  # knowledge that the answer used, no file
            continue
        found = next((file for file in _find_files(entry, find_file)), None)
        if found is not None:
            files.append(found)
        else:
            missing.append(_read_name(entry) or kind or "file")
    return files, missing


def _find_files(entry: dict[str, Any], find_file: Callable[[str, str], ImportedFile | None]) -> Iterator[ImportedFile]:
    name = _read_name(entry)
    url = as_text(entry.get("url"))
    if file := read_data_url(url, name):
        yield file
    inner = as_dict(entry.get("file"))
    address = _FILE_ADDRESS.search(url[:500])
    for file_id in (as_id(entry.get("id")), as_id(inner.get("id")), address[1] if address else url[:100]):
        if file_id and (file := find_file(file_id, name)):
            yield file
    # The text that Open WebUI took from a file is better than nothing.
    for data in (inner.get("data"), entry.get("data"), entry):
        if text := as_text(as_dict(data).get("content")):
            yield make_text_file(f"{name or 'file'}.txt" if not name.endswith(".txt") else name, text)


def _read_name(entry: dict[str, Any]) -> str:
    inner = as_dict(entry.get("file"))
    meta = as_dict(inner.get("meta"))
    return as_text(entry.get("name")) or as_text(inner.get("filename")) or as_text(meta.get("name"))


# --------------------------------------------------------------------------------------------------


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
