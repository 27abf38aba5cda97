"""Reads the data export of Claude: a zip file with `conversations.json`, projects and memories.

A message consists of blocks. Each message names the one before it (older exports do not), and the export does not say
which version is shown: it is the path to the newest message.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from palaver.core.source import Platform
from palaver.transfer.imported import (
    ImportedConversation,
    ImportedFile,
    ImportedMemory,
    ImportedMessage,
    ImportedProject,
    ImportProblem,
)
from palaver.transfer.reader_kit.export_files import (
    MAX_ITEM_BYTES,
    DamagedFile,
    UnreadableItem,
    parse_json,
    read_small_file,
)
from palaver.transfer.reader_kit.indexed_export import Identity, IndexedExport, IndexedItem
from palaver.transfer.reader_kit.values import (
    UNKNOWN_TIME,
    Clock,
    ConvertedMessage,
    TurnBuilder,
    as_dict,
    as_id,
    as_list,
    as_text,
    build_message,
    drop_empty,
    find_first_time,
    format_count,
    format_json,
    index_by_id,
    join_paragraphs,
    join_result_parts,
    make_text_file,
    read_notes,
    read_time,
    read_title,
    read_tree,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from palaver.sessions.message import Message

_CONVERSATIONS = re.compile(r"(?:.*[/\\])?conversations(?:[-_]\d+)?\.json", re.DOTALL)
_ONE_CONVERSATION = re.compile(r".*conversations/.*\.json", re.DOTALL)
_IN_FOLDER = re.compile(r"(?:^|/)(projects|memories|design_chats)/[^/]+\.json$|(?:^|/)(projects|memories)\.json$")
_HIDDEN_BLOCKS: Final = frozenset({"flag", "token_budget", "redacted_thinking"})  # nothing that anyone has seen


class ClaudeReader(IndexedExport):
    format = "claude"
    platform = Platform("claude")
    how_to_get = (
        "In Claude, open Settings > Privacy > Export data. You get an e-mail with a link to a zip file: import that"
        " file, the folder that you unpacked it to, or the conversations.json in it."
    )

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self._projects: dict[str, str] = {}  # names by id

    def _choose_files(self, names: list[str]) -> list[str]:
        """Choose one file or a few with all conversations, or else a folder with one for each."""
        found = sorted(filter(_CONVERSATIONS.fullmatch, names))
        return found or sorted(filter(_ONE_CONVERSATION.fullmatch, names))

    def _identify(self, content: dict[str, Any]) -> Identity | None:
        if not isinstance(content.get("chat_messages"), list):
            return None
        first_time = find_first_time(as_dict(each).get("created_at") for each in content["chat_messages"])
        created_at = read_time(content.get("created_at")) or first_time
        return Identity(as_id(content.get("uuid")), created_at, read_time(content.get("updated_at")))

    def _describe(self, item: IndexedItem, content: dict[str, Any]) -> ImportedConversation:
        return ImportedConversation(
            origin_id=item.origin_id,
            open_entries=lambda: self._read_entries(item),
            created_at=item.created_at,
            title=read_title(content.get("name")) or read_title(content.get("title")),
            active_at=item.updated_at,
            pinned=content.get("is_starred") is True,
            archived=content.get("is_archived") is True,
            project=self._find_project(content),
            model=as_text(content.get("model")) or None,
            folded=item.folded,
        )

    def _find_project(self, content: dict[str, Any]) -> ImportedProject | None:
        project = as_dict(content.get("project"))
        project_id = as_id(content.get("project_uuid")) or as_id(project.get("uuid"))
        name = as_text(project.get("name")) or self._projects.get(project_id, "")
        return ImportedProject(name=name) if name else None

    def _read_entries(self, item: IndexedItem) -> Iterator[ImportedMessage | ImportProblem]:
        content = self._read(item)
        messages = index_by_id(content.get("chat_messages"), "uuid")
        clock = Clock(item.created_at)

        def convert(message_id: str) -> tuple[datetime, ConvertedMessage]:
            message = messages[message_id]
            at = clock.read(message.get("created_at"), message.get("updated_at"))
            converted = ConvertedMessage(_build_messages(message, message_id), *_read_files(message))
            converted.name_missing_files(_read_role(message))
            return at, converted

        parents, current = _find_parents(messages), _find_current(content, messages)
        return read_tree(parents, current, convert, item.where, "Claude does not export uploaded files")

    def _read_other_items(self) -> Iterator[ImportProblem | ImportedMemory]:
        """Read the names of projects and the memories; report what has no place here."""
        chat_count = 0
        for name in self._files.names:
            if not (found := _IN_FOLDER.search(name)):
                continue
            kind = found[1] or found[2]
            if kind == "design_chats":
                chat_count += 1
                continue
            try:
                content = parse_json(read_small_file(self._files, name, MAX_ITEM_BYTES))
            except (DamagedFile, UnreadableItem) as error:
                yield ImportProblem(where=name, what=str(error))
                continue
            for entry in content if isinstance(content, list) else [content]:
                yield from self._read_project(entry, name) if kind == "projects" else self._read_memories(entry)
        if chat_count:
            yield ImportProblem(where="design_chats", what=f"Not imported: {format_count(chat_count, 'design chat')}.")

    def _read_project(self, entry: object, where: str) -> Iterator[ImportProblem]:
        project = as_dict(entry)
        name = read_title(project.get("name"))
        if not name:
            return
        self._projects[as_id(project.get("uuid"))] = name
        doc_count = len(as_list(project.get("docs")))
        kept_out = [format_count(doc_count, "document")] if doc_count else []
        if as_text(project.get("prompt_template")).strip():
            kept_out.append("the instructions")
        if kept_out:
            yield ImportProblem(
                where=f"{where}, project {name}", what=f"Not imported from this project: {' and '.join(kept_out)}."
            )

    def _read_memories(self, entry: object) -> Iterator[ImportedMemory]:
        memories = as_dict(entry)
        texts = [as_text(memories.get("conversations_memory"))]
        texts += map(as_text, as_dict(memories.get("project_memories")).values())
        for text in texts:
            yield from read_notes(text)


open_reader = ClaudeReader


def _find_parents(messages: dict[str, dict[str, Any]]) -> dict[str, str | None]:
    """Return the message before each; in exports that do not say, the one before it in the list.

    The first message of a conversation names one that does not exist.
    """
    parents: dict[str, str | None] = {}
    previous: str | None = None
    for message_id, message in messages.items():
        parent = as_id(message.get("parent_message_uuid"))
        if parent in messages and parent != message_id:
            parents[message_id] = parent
        else:
            is_root = not previous or parent.startswith("00000000-0000-")
            parents[message_id] = None if is_root else previous
        previous = message_id
    return parents


def _find_current(content: dict[str, Any], messages: dict[str, dict[str, Any]]) -> str | None:
    """Return the last message that is shown: the newest one, unless the export says which."""
    current = as_id(content.get("current_leaf_message_uuid"))
    if current in messages:
        return current
    times = [
        (read_time(message.get("created_at")) or UNKNOWN_TIME, number, message_id)
        for number, (message_id, message) in enumerate(messages.items())
    ]
    return max(times)[2] if times else None


def _read_role(message: dict[str, Any]) -> str:
    sender = as_text(message.get("sender")) or as_text(message.get("role"))
    return {"human": "user", "user": "user", "assistant": "assistant"}.get(sender, "system")


def _build_messages(message: dict[str, Any], message_id: str) -> list[Message]:
    role = _read_role(message)
    blocks = [as_dict(block) for block in as_list(message.get("content"))]
    if role != "assistant":
        text = join_paragraphs(*(_read_text(block) for block in blocks)) or as_text(message.get("text"))
        return [build_message(role, text)] if text.strip() else []
    turn = TurnBuilder(message_id, model=as_text(message.get("model")))
    for block in blocks:
        _add_block(turn, block)
    built = turn.build(is_interrupted=as_text(message.get("stop_reason")) == "user_canceled")
    if not built and (text := as_text(message.get("text"))).strip():
        return [build_message(role, text)]
    return built


def _add_block(turn: TurnBuilder, block: dict[str, Any]) -> None:
    match as_text(block.get("type")):
        case "thinking":
            turn.add_reasoning(as_text(block.get("thinking")) or as_text(block.get("text")))
        case "tool_use":
            turn.add_call(as_id(block.get("id")), as_text(block.get("name")), block.get("input") or {})
        case "tool_result":
            turn.add_result(
                as_id(block.get("tool_use_id")),
                as_text(block.get("name")),
                join_result_parts(block.get("content")),
                is_error=block.get("is_error") is True,
            )
        case _:
            turn.add_text(_read_text(block))


def _read_text(block: dict[str, Any]) -> str:
    """Return the text of a block of any other type; one that has none is kept as data."""
    kind = as_text(block.get("type"))
    text = as_text(block.get("text"))
    if text or kind in {"text", ""} or kind in _HIDDEN_BLOCKS:
        return text
    return join_paragraphs(as_text(block.get("title")), as_text(block.get("transcript"))) or format_json(
        drop_empty(block)
    )


def _read_files(message: dict[str, Any]) -> tuple[list[ImportedFile], list[str]]:
    """Return the attachments, of which the export has the text, and the names of the files that it does not have."""
    files, missing = [], []
    for attachment in map(as_dict, as_list(message.get("attachments"))):
        name = as_text(attachment.get("file_name"))
        if text := as_text(attachment.get("extracted_content")):
            files.append(make_text_file(_make_text_name(name), text))
        elif name:
            missing.append(name)
    seen: set[str] = set()
    for file in map(as_dict, as_list(message.get("files")) + as_list(message.get("files_v2"))):
        name = as_text(file.get("file_name"))
        key = as_id(file.get("file_uuid")) or name
        if name and key not in seen:
            missing.append(name)
        seen.add(key)
    return files, missing


def _make_text_name(name: str) -> str:
    """Return a name for the text that Claude took from a file: it is text, whatever the file was."""
    ending = name.rpartition(".")[2].lower()
    return f"{name}.txt" if ending in {"pdf", "docx", "doc", "xlsx", "pptx", "odt", "rtf", "epub"} else name
