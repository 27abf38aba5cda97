"""The content of one message of Open WebUI, as our messages.

An answer with tools or reasoning has its steps in `output`; older versions wrote them into the text, as
`<details type="reasoning">` and `<details type="tool_calls">`.
"""

from __future__ import annotations

import html
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from palaver.transfer.readers.block_messages import TurnBuilder
from palaver.transfer.readers.json_stream import UnreadableItem, parse_json
from palaver.transfer.readers.values import (
    as_dict,
    as_id,
    as_list,
    as_text,
    build_message,
    join_paragraphs,
    join_result_parts,
    make_text_file,
    note_missing_file,
    read_data_url,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
