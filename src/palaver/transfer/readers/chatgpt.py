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
from palaver.transfer.readers.archive import DamagedFile, get_base_name, open_export, read_small_file
from palaver.transfer.readers.chatgpt_content import convert_message
from palaver.transfer.readers.conversation_index import ConversationIndex, Identity
from palaver.transfer.readers.indexed_export import IndexedExport, open_conversation_files
from palaver.transfer.readers.json_stream import UnreadableItem, parse_json
from palaver.transfer.readers.message_tree import order_tree
from palaver.transfer.readers.values import Clock, as_dict, as_id, as_list, as_text, read_time, read_title

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from palaver.transfer.readers.archive import ExportFiles
    from palaver.transfer.readers.conversation_index import IndexedItem
    from palaver.transfer.readers.json_stream import ItemFile

HOW_TO_GET: Final = (
    "In ChatGPT, open Settings > Data controls > Export data. You get an e-mail with a link to a zip file: import that"
    " file, the folder that you unpacked it to, or the conversations.json in it."
)
_CONVERSATIONS = re.compile(r"conversations(?:-\d+)?\.json")
_FILE_ID = re.compile(r"file[-_][A-Za-z0-9]+")
_FILE_NAMES: Final = "conversation_asset_file_names.json"
_MAX_NAMES_BYTES: Final = 64_000_000
_PROJECT_PREFIX: Final = "g-p-"  # of the ids of projects; those of custom GPTs begin with g-


def open_reader(path: Path) -> ChatGptReader:
    """Open an export; raise InvalidImport, with how to get one, if it is none."""
    files = open_export(path, how_to_get=HOW_TO_GET)
    try:
        return ChatGptReader(files, open_conversation_files(files, path, _has_conversations, HOW_TO_GET))
    except BaseException:
        files.close()
        raise


def _has_conversations(name: str) -> bool:
    return _CONVERSATIONS.fullmatch(get_base_name(name)) is not None


class ChatGptReader(IndexedExport):
    format = "chatgpt"
    platform = Platform("chatgpt")

    def __init__(self, files: ExportFiles, conversations: list[ItemFile]) -> None:
        super().__init__(files, ConversationIndex(conversations, _identify))
        self._members = _find_members(files.names)
        self._names = _read_names(files)

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
        content = self._index.read(item)
        mapping = as_dict(content.get("mapping"))
        clock = Clock(item.created_at)
        calls: dict[str, str] = {}  # the tool call that a message is, or answers
        missing: list[str] = []
        for node_id, is_hidden in order_tree(_find_parents(mapping), _find_current(content)):
            node = as_dict(mapping[node_id])
            message = as_dict(node.get("message"))
            if not message:
                continue
            at = clock.read(message.get("create_time"), message.get("update_time"))
            call_id = calls.get(as_text(node.get("parent")))
            try:
                converted = convert_message(message, node_id, call_id, self._find_file)
            except RecursionError:
                yield ImportProblem(where=f"{item.where}, message {node_id}", what="It is nested too deeply.")
                continue
            if converted.is_call:
                calls[node_id] = node_id
            elif call_id is not None and as_dict(message.get("author")).get("role") == "tool":
                calls[node_id] = call_id  # one call may have several results
            missing += converted.missing_files
            for each in converted.messages:
                yield ImportedMessage(
                    message=each.message, at=at, hidden=is_hidden or converted.is_hidden, files=each.files
                )
        if missing:
            yield _report_missing(item, missing)

    def _find_file(self, file_id: str, name: str) -> ImportedFile | None:
        member = self._members.get(file_id)
        if member is None:
            return None
        base_name = get_base_name(member)
        shown = name or self._names.get(base_name) or base_name
        return ImportedFile(name=shown, open_chunks=lambda: self._files.read_chunks(member))


def _report_missing(item: IndexedItem, missing: list[str]) -> ImportProblem:
    listed = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
    return ImportProblem(
        where=item.where, what=f"These files are not in the export, so their messages only name them: {listed}."
    )


def _identify(content: dict[str, Any]) -> Identity | None:
    if not isinstance(content.get("mapping"), dict):
        return None
    origin_id = as_id(content.get("conversation_id")) or as_id(content.get("id"))
    created_at = read_time(content.get("create_time")) or _find_first_time(content)
    return Identity(origin_id, created_at, read_time(content.get("update_time")))


def _find_first_time(content: dict[str, Any]) -> datetime | None:
    messages = (as_dict(as_dict(node).get("message")) for node in content["mapping"].values())
    return min(filter(None, (read_time(message.get("create_time")) for message in messages)), default=None)


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
