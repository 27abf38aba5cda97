"""Reads the data export of ChatGPT: a zip file with `conversations.json`, or with `conversations-000.json`, … .

A conversation is a tree (`mapping`), of which ChatGPT shows the path to `current_node`. Files are beside it, under
names that begin with the id by which messages refer to them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from palaver.core.source import Platform
from palaver.transfer.imported import (
    ImportedConversation,
    ImportedFile,
    ImportedMessage,
    ImportedProject,
    ImportProblem,
)
from palaver.transfer.reader_kit.export_files import (
    DamagedFile,
    ExportFiles,
    UnreadableItem,
    get_base_name,
    parse_json,
    read_small_file,
)
from palaver.transfer.reader_kit.indexed_export import Identity, IndexedExport, IndexedItem
from palaver.transfer.reader_kit.values import (
    Clock,
    ConvertedMessage,
    as_dict,
    as_id,
    as_list,
    as_text,
    build_call,
    build_message,
    drop_empty,
    find_first_time,
    format_json,
    format_missing_file,
    join_paragraphs,
    read_time,
    read_title,
    read_tree,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from datetime import datetime
    from pathlib import Path


_CONVERSATIONS = re.compile(r"(?:.*[/\\])?conversations(?:-\d+)?\.json", re.DOTALL)
_FILE_ID = re.compile(r"file[-_][A-Za-z0-9]+")
_FILE_NAMES: Final = "conversation_asset_file_names.json"
_MAX_NAMES_BYTES: Final = 64_000_000
_PROJECT_PREFIX: Final = "g-p-"  # of the ids of projects; those of custom GPTs begin with g-
_ROLES: Final = frozenset({"system", "user", "assistant", "tool"})
_POINTER_KEYS: Final = ("asset_pointer", "audio_asset_pointer", "video_container_asset_pointer")
_HIDDEN_TYPES: Final = frozenset({"user_editable_context", "model_editable_context"})  # instructions and memories
_REASONING_TYPES: Final = frozenset({"thoughts", "reasoning_recap"})
_UNFINISHED: Final = frozenset({"in_progress", "finished_partial_completion"})
# Types of content whose text is in these keys.
_TEXT_KEYS: Final = {
    "execution_output": ("text",),
    "tether_browsing_display": ("summary", "result"),
    "reasoning_recap": ("content",),
    "user_editable_context": ("user_profile", "user_instructions"),
    "system_error": ("name", "text"),
}


class ChatGptReader(IndexedExport):
    format = "chatgpt"
    platform = Platform("chatgpt")
    how_to_get = (
        "In ChatGPT, open Settings > Data controls > Export data. You get an e-mail with a link to a zip file: import"
        " that file, the folder that you unpacked it to, or the conversations.json in it."
    )

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._members = _find_members(self._files.names)
        self._names = _read_names(self._files)

    def _choose_files(self, names: list[str]) -> list[str]:
        return sorted(filter(_CONVERSATIONS.fullmatch, names))

    def _identify(self, content: dict[str, Any]) -> Identity | None:
        if not isinstance(content.get("mapping"), dict):
            return None
        origin_id = as_id(content.get("conversation_id")) or as_id(content.get("id"))
        messages = (as_dict(as_dict(node).get("message")) for node in content["mapping"].values())
        first_time = find_first_time(message.get("create_time") for message in messages)
        created_at = read_time(content.get("create_time")) or first_time
        return Identity(origin_id, created_at, read_time(content.get("update_time")))

    def _describe(self, item: IndexedItem, content: dict[str, Any]) -> ImportedConversation:
        return ImportedConversation(
            origin_id=item.origin_id,
            open_entries=lambda: self._read_entries(item),
            created_at=item.created_at,
            title=read_title(content.get("title")),
            active_at=item.updated_at,
            pinned=content.get("is_starred") is True or read_time(content.get("pinned_time")) is not None,
            archived=content.get("is_archived") is True,
            project=_read_project(content),
            model=_find_model(content),
            folded=item.folded,
        )

    def _read_entries(self, item: IndexedItem) -> Iterator[ImportedMessage | ImportProblem]:
        content = self._read(item)
        mapping = as_dict(content.get("mapping"))
        clock = Clock(item.created_at)
        calls: dict[str, str] = {}  # the tool call that a message is, or answers

        def convert(node_id: str) -> tuple[datetime, ConvertedMessage]:
            node = as_dict(mapping[node_id])
            message = as_dict(node.get("message"))
            at = clock.read(message.get("create_time"), message.get("update_time"))
            call_id = calls.get(as_text(node.get("parent")))
            converted = convert_message(message, node_id, call_id, self._find_file)
            if any("tool_calls" in each.extra for each in converted.messages):
                calls[node_id] = node_id
            elif call_id is not None and as_dict(message.get("author")).get("role") == "tool":
                calls[node_id] = call_id  # one call may have several results
            return at, converted

        parents, current = _find_parents(mapping), _find_current(content)
        return read_tree(parents, current, convert, item.where, "These files are not in the export")

    def _find_file(self, file_id: str, name: str) -> ImportedFile | None:
        member = self._members.get(file_id)
        if member is None:
            return None
        base_name = get_base_name(member)
        shown = name or self._names.get(base_name) or base_name
        return ImportedFile(name=shown, open_chunks=lambda: self._files.read_chunks(member))


open_reader = ChatGptReader


def _find_parents(mapping: dict[str, Any]) -> dict[str, str | None]:
    """Return the message before each message; some exports have only one of `parent` and `children`."""
    parents: dict[str, str | None] = {
        node_id: as_text(as_dict(node).get("parent")) or None for node_id, node in mapping.items()
    }
    for node_id, node in mapping.items():
        for child in as_list(as_dict(node).get("children")):
            if isinstance(child, str) and child != node_id and child in parents and parents[child] not in mapping:
                parents[child] = node_id
    return parents


def _find_current(content: dict[str, Any]) -> str | None:
    """Return the last message that is shown; the newest one if the export does not say."""
    mapping = content["mapping"]
    current = as_text(content.get("current_node"))
    if current in mapping:
        return current
    times = (
        (read_time(as_dict(as_dict(node).get("message")).get("create_time")), node_id)
        for node_id, node in mapping.items()
    )
    return max(((time, node_id) for time, node_id in times if time), default=(None, None))[1]


def _read_project(content: dict[str, Any]) -> ImportedProject | None:
    """Return the project; the export has its id, but not its name."""
    for key in ("gizmo_id", "conversation_template_id"):
        project_id = as_text(content.get(key))
        if project_id.startswith(_PROJECT_PREFIX):
            return ImportedProject(name=f"ChatGPT project {project_id.removeprefix(_PROJECT_PREFIX)[:8]}")
    return None


def _find_model(content: dict[str, Any]) -> str | None:
    node = as_dict(content["mapping"].get(_find_current(content)))
    slug = as_text(as_dict(as_dict(node.get("message")).get("metadata")).get("model_slug"))
    return slug or as_text(content.get("default_model_slug")) or None


def _find_members(names: list[str]) -> dict[str, str]:
    """Return the file in the export for each id.

    They are called `file-AbC-photo.png`, `file_0000ab-sanitized.png` or `file_0000ab.dat`.
    """
    members: dict[str, str] = {}
    for name in names:
        if found := _FILE_ID.match(get_base_name(name)):
            known = members.get(found[0])
            if known is None or len(name) < len(known):
                members[found[0]] = name
    return members


def _read_names(files: ExportFiles) -> dict[str, str]:
    """Return the original names of files that are called `file_….dat` in the export."""
    for name in files.names:
        if get_base_name(name) == _FILE_NAMES:
            try:
                table = as_dict(parse_json(read_small_file(files, name, _MAX_NAMES_BYTES)))
            except (DamagedFile, UnreadableItem):
                return {}  # without the names, files come in under their ids
            return {get_base_name(key): as_text(value) for key, value in table.items() if as_text(value)}
    return {}


def convert_message(
    message: dict[str, Any], node_id: str, call_id: str | None, find_file: Callable[[str, str], ImportedFile | None]
) -> ConvertedMessage:
    """Convert a message; `call_id` names the tool call that a result belongs to."""
    author, metadata = as_dict(message.get("author")), as_dict(message.get("metadata"))
    content = as_dict(message.get("content"))
    role, kind = as_text(author.get("role")), as_text(content.get("content_type"))
    model = as_text(metadata.get("model_slug"))
    is_hidden = metadata.get("is_visually_hidden_from_conversation") is True or kind in _HIDDEN_TYPES
    converted = ConvertedMessage([], is_hidden=is_hidden)
    texts = _read_content(content, metadata, converted, find_file)
    text = join_paragraphs(*texts, *map(format_missing_file, converted.missing_files))
    recipient = as_text(message.get("recipient")) or "all"
    if not text.strip() and not converted.files and recipient == "all":
        return converted  # the beginning of a tree, and messages that never got any text
    if role == "assistant" and recipient != "all":
        call = build_call(node_id, recipient, _read_arguments(content, text))
        converted.messages.append(build_message("assistant", "", tool_calls=[call], model=model))
    elif role == "tool":
        if text.strip() or not converted.files:
            name, is_error = as_text(author.get("name")) or "tool", kind == "system_error"
            built = build_message("tool", text, tool_call_id=call_id, tool_name=name, is_error=is_error)
            converted.messages.append(built)
        if converted.files:  # images that a tool made are shown as the agent's, as ChatGPT does
            converted.messages.append(build_message("assistant", ""))
    else:
        our_role = role if role in _ROLES and kind not in _HIDDEN_TYPES else "system"
        is_answer = our_role == "assistant"
        if kind in _REASONING_TYPES:
            converted.files = []
            built = build_message(our_role, "", reasoning=text, model=model if is_answer else None)
        elif is_answer:
            ended_by = as_text(as_dict(metadata.get("finish_details")).get("type"))
            is_interrupted = as_text(message.get("status")) in _UNFINISHED or ended_by == "interrupted"
            built = build_message(our_role, text, model=model, interrupted=is_interrupted)
        else:
            built = build_message(our_role, text, author=as_text(author.get("name")))
        converted.messages.append(built)
    return converted


def _read_arguments(content: dict[str, Any], text: str) -> object:
    """Return the arguments of a call: JSON, or the code that a tool ran."""
    if as_text(content.get("content_type")) != "code":
        return text
    code, language = as_text(content.get("text")), as_text(content.get("language"))
    if code.lstrip().startswith("{"):
        return code
    return {"code": code} | ({"language": language} if language not in {"", "unknown"} else {})


def _read_content(
    content: dict[str, Any],
    metadata: dict[str, Any],
    converted: ConvertedMessage,
    find_file: Callable[[str, str], ImportedFile | None],
) -> list[str]:
    texts: list[str] = []
    names = {
        as_id(attachment.get("id")): as_text(attachment.get("name"))
        for attachment in map(as_dict, as_list(metadata.get("attachments")))
    }
    used: set[str] = set()

    def add_file(pointer: str, kind: str) -> None:
        # `sediment://file_0000…` or `file-service://file-AbC…`
        file_id = pointer.rpartition("://")[2].partition("#")[0].partition("?")[0].strip()
        if not file_id or file_id in used:
            return
        used.add(file_id)
        name = names.get(file_id, "")
        if file := find_file(file_id, name):
            converted.files.append(file)
        else:
            converted.missing_files.append(name or f"{kind} {file_id}")

    kind = as_text(content.get("content_type"))
    if kind in _TEXT_KEYS:
        texts += (as_text(content.get(key)) for key in _TEXT_KEYS[kind])
    elif kind in _READERS:
        texts.append(_READERS[kind](content))
    elif isinstance(content.get("parts"), list):
        texts += (_read_part(part, add_file) for part in content["parts"])
    elif content:
        texts.append(_read_unknown(content))
    for file_id, name in names.items():
        add_file(file_id, name or "file")
    return texts


def _read_part(part: object, add_file: Callable[[str, str], None]) -> str:
    if not isinstance(part, dict):
        return as_text(part)
    pointers = [part.get(key) for key in _POINTER_KEYS] + as_list(part.get("frames_asset_pointers"))
    has_pointer = False
    for value in pointers:
        pointer = as_text(as_dict(value).get("asset_pointer")) or as_text(value)
        if pointer:
            has_pointer = True
            kind = as_text(part.get("content_type"))
            add_file(pointer, "image" if "image" in kind else "recording" if "audio" in kind else "file")
    text = as_text(part.get("text"))
    return text or (format_json(part) if part and not has_pointer else "")


def _read_code(content: dict[str, Any]) -> str:
    text = as_text(content.get("text"))
    language = as_text(content.get("language"))
    fence = "````" if "```" in text else "```"
    return f"{fence}{'' if language == 'unknown' else language}\n{text}\n{fence}" if text else ""


def _read_page(content: dict[str, Any]) -> str:
    title, url = as_text(content.get("title")), as_text(content.get("url"))
    heading = f"{title} <{url}>" if title and url else title or url
    return join_paragraphs(heading, as_text(content.get("text")) or as_text(content.get("snippet")))


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


def _read_unknown(content: dict[str, Any]) -> str:
    """Return the text of a type that did not exist when this was written."""
    for key in ("text", "content", "result"):
        if text := as_text(content.get(key)):
            return text
    rest = drop_empty({**content, "content_type": None})
    return format_json(rest) if rest else ""


_READERS: Final[dict[str, Callable[[dict[str, Any]], str]]] = {
    "code": _read_code,
    "tether_quote": _read_page,
    "sonic_webpage": _read_page,
    "thoughts": _read_thoughts,
    "model_editable_context": lambda content: as_text(content.get("model_set_context")) or _read_unknown(content),
}
