"""The content of one message of ChatGPT, as our messages.

A message has a `content_type`, and its text is in a different place for each. A message of the assistant with a
recipient other than `all` is a tool call; the message of that tool which follows it is the result.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from palaver.transfer.readers.values import (
    as_dict,
    as_id,
    as_list,
    as_text,
    build_call,
    build_message,
    format_json,
    join_paragraphs,
    note_missing_file,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.sessions.message import Message
    from palaver.transfer.imported import ImportedFile

_ROLES: Final = frozenset({"system", "user", "assistant", "tool"})
_POINTER_KEYS: Final = ("asset_pointer", "audio_asset_pointer", "video_container_asset_pointer")
_HIDDEN_TYPES: Final = frozenset({"user_editable_context", "model_editable_context"})  # instructions and memories
_REASONING_TYPES: Final = frozenset({"thoughts", "reasoning_recap"})
_UNFINISHED: Final = frozenset({"in_progress", "finished_partial_completion"})


@dataclass(slots=True)
class ContentParts:
    """What a message consists of."""

    texts: list[str] = field(default_factory=list)
    files: list[ImportedFile] = field(default_factory=list)
    missing_files: list[str] = field(default_factory=list)

    @property
    def text(self) -> str:
        return join_paragraphs(*self.texts, *map(note_missing_file, self.missing_files))


@dataclass(frozen=True, slots=True)
class ConvertedMessage:
    message: Message
    files: tuple[ImportedFile, ...] = ()


@dataclass(slots=True)
class Conversion:
    """The messages that one message of ChatGPT becomes; none if it is empty."""

    messages: list[ConvertedMessage]
    is_hidden: bool = False
    is_call: bool = False
    missing_files: list[str] = field(default_factory=list)


def convert_message(
    message: dict[str, Any], node_id: str, call_id: str | None, find_file: Callable[[str, str], ImportedFile | None]
) -> Conversion:
    """Convert a message; `call_id` names the tool call that a result belongs to."""
    author, metadata = as_dict(message.get("author")), as_dict(message.get("metadata"))
    content = as_dict(message.get("content"))
    role = as_text(author.get("role"))
    kind = as_text(content.get("content_type"))
    parts = read_content(content, metadata, find_file)
    recipient = as_text(message.get("recipient")) or "all"
    conversion = Conversion([], missing_files=parts.missing_files)
    conversion.is_hidden = metadata.get("is_visually_hidden_from_conversation") is True or kind in _HIDDEN_TYPES
    if not parts.text.strip() and not parts.files and recipient == "all":
        return conversion  # the beginning of a tree, and messages that never got any text
    if role == "assistant" and recipient != "all":
        call = build_call(node_id, recipient, _read_arguments(content, parts.text))
        built = build_message("assistant", "", tool_calls=[call], model=as_text(metadata.get("model_slug")))
        conversion.is_call = True
        conversion.messages.append(ConvertedMessage(built, tuple(parts.files)))
    elif role == "tool":
        conversion.messages += _convert_result(parts, author, kind, call_id)
    else:
        our_role = role if role in _ROLES else "system"
        if kind in _HIDDEN_TYPES:
            our_role = "system"
        conversion.messages.append(_convert_text(our_role, parts, message, kind))
    return conversion


def _convert_text(role: str, parts: ContentParts, message: dict[str, Any], kind: str) -> ConvertedMessage:
    metadata = as_dict(message.get("metadata"))
    extra: dict[str, Any] = {"author": as_text(as_dict(message.get("author")).get("name"))}
    if role == "assistant":
        ended_by = as_text(as_dict(metadata.get("finish_details")).get("type"))
        extra["model"] = as_text(metadata.get("model_slug"))
        extra["interrupted"] = as_text(message.get("status")) in _UNFINISHED or ended_by == "interrupted"
        extra["author"] = ""
    if kind in _REASONING_TYPES:
        return ConvertedMessage(build_message(role, "", reasoning=parts.text, model=extra.get("model")))
    return ConvertedMessage(build_message(role, parts.text, **extra), tuple(parts.files))


def _convert_result(
    parts: ContentParts, author: dict[str, Any], kind: str, call_id: str | None
) -> list[ConvertedMessage]:
    """Convert the result of a tool. Images that it made are shown as the agent's, as ChatGPT does."""
    converted = []
    if parts.text.strip() or not parts.files:
        message = build_message(
            "tool",
            parts.text,
            tool_call_id=call_id,
            tool_name=as_text(author.get("name")) or "tool",
            is_error=kind == "system_error",
        )
        converted.append(ConvertedMessage(message))
    if parts.files:
        converted.append(ConvertedMessage(build_message("assistant", ""), tuple(parts.files)))
    return converted


def _read_arguments(content: dict[str, Any], text: str) -> object:
    """Return the arguments of a call: JSON, or the code that a tool ran."""
    if as_text(content.get("content_type")) != "code":
        return text
    code, language = as_text(content.get("text")), as_text(content.get("language"))
    if code.lstrip().startswith("{"):
        return code
    return {"code": code} | ({"language": language} if language not in {"", "unknown"} else {})


def read_content(
    content: dict[str, Any], metadata: dict[str, Any], find_file: Callable[[str, str], ImportedFile | None]
) -> ContentParts:
    """Read the text and the files of a message."""
    parts = ContentParts()
    names = {
        as_id(attachment.get("id")): as_text(attachment.get("name"))
        for attachment in map(as_dict, as_list(metadata.get("attachments")))
    }
    used: set[str] = set()

    def add_file(pointer: str, kind: str) -> None:
        file_id = read_file_id(pointer)
        if not file_id or file_id in used:
            return
        used.add(file_id)
        name = names.get(file_id, "")
        if file := find_file(file_id, name):
            parts.files.append(file)
        else:
            parts.missing_files.append(name or f"{kind} {file_id}")

    kind = as_text(content.get("content_type"))
    reader = _READERS.get(kind)
    if reader is not None:
        parts.texts.append(reader(content))
    elif isinstance(content.get("parts"), list):
        for part in content["parts"]:
            _read_part(part, parts, add_file)
    elif content:
        parts.texts.append(_read_unknown(content))
    for file_id, name in names.items():
        add_file(file_id, name or "file")
    return parts


def _read_part(part: object, parts: ContentParts, add_file: Callable[[str, str], None]) -> None:
    if isinstance(part, str):
        parts.texts.append(as_text(part))
        return
    if not isinstance(part, dict):
        return
    pointers = [part.get(key) for key in _POINTER_KEYS] + as_list(part.get("frames_asset_pointers"))
    has_pointer = False
    for value in pointers:
        pointer = as_text(as_dict(value).get("asset_pointer")) or as_text(value)
        if pointer:
            has_pointer = True
            kind = as_text(part.get("content_type"))
            add_file(pointer, "image" if "image" in kind else "recording" if "audio" in kind else "file")
    if text := as_text(part.get("text")):
        parts.texts.append(text)
    elif not has_pointer and part:
        parts.texts.append(format_json(part))


def read_file_id(pointer: str) -> str:
    """Return the id in an address such as `sediment://file_0000…` or `file-service://file-AbC…`."""
    return pointer.rpartition("://")[2].partition("#")[0].partition("?")[0].strip()


# ---- types of content ----------------------------------------------------------------------------------------


def _read_code(content: dict[str, Any]) -> str:
    text = as_text(content.get("text"))
    language = as_text(content.get("language"))
    fence = "````" if "```" in text else "```"
    return f"{fence}{'' if language == 'unknown' else language}\n{text}\n{fence}" if text else ""


def _read_output(content: dict[str, Any]) -> str:
    return as_text(content.get("text"))


def _read_page(content: dict[str, Any]) -> str:
    title, url = as_text(content.get("title")), as_text(content.get("url"))
    heading = f"{title} <{url}>" if title and url else title or url
    return join_paragraphs(heading, as_text(content.get("text")) or as_text(content.get("snippet")))


def _read_browsing(content: dict[str, Any]) -> str:
    return join_paragraphs(as_text(content.get("summary")), as_text(content.get("result")))


def _read_thoughts(content: dict[str, Any]) -> str:
    thoughts = content.get("thoughts")
    if isinstance(thoughts, str):
        return as_text(thoughts)
    return join_paragraphs(
        *(
            join_paragraphs(as_text(thought.get("summary")), as_text(thought.get("content")))
            for thought in map(as_dict, as_list(thoughts))
        )
    )


def _read_recap(content: dict[str, Any]) -> str:
    return as_text(content.get("content"))


def _read_instructions(content: dict[str, Any]) -> str:
    return join_paragraphs(as_text(content.get("user_profile")), as_text(content.get("user_instructions")))


def _read_memories(content: dict[str, Any]) -> str:
    return as_text(content.get("model_set_context")) or _read_unknown(content)


def _read_error(content: dict[str, Any]) -> str:
    return join_paragraphs(as_text(content.get("name")), as_text(content.get("text")))


def _read_unknown(content: dict[str, Any]) -> str:
    """Return the text of a type that did not exist when this was written."""
    for key in ("text", "content", "result"):
        if text := as_text(content.get(key)):
            return text
    rest = {key: value for key, value in content.items() if key != "content_type" and value not in (None, "", [], {})}
    return format_json(rest) if rest else ""


_READERS: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "code": _read_code,
    "execution_output": _read_output,
    "tether_quote": _read_page,
    "sonic_webpage": _read_page,
    "tether_browsing_display": _read_browsing,
    "thoughts": _read_thoughts,
    "reasoning_recap": _read_recap,
    "user_editable_context": _read_instructions,
    "model_editable_context": _read_memories,
    "system_error": _read_error,
}
