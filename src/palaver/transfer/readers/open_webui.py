"""Reads conversations of Open WebUI: an exported JSON file, or its database `webui.db`.

Both have the same chats: a tree of messages (`history.messages`), of which the path to `history.currentId` is shown.
The database has the conversations of all accounts, and only one account's are imported.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from palaver.core.source import Platform
from palaver.transfer.imported import ImportedConversation, ImportedProject, InvalidImport
from palaver.transfer.readers.archive import open_export
from palaver.transfer.readers.conversation_index import ConversationIndex, Identity, open_item_files
from palaver.transfer.readers.indexed_export import IndexedExport
from palaver.transfer.readers.open_webui_chat import find_first_time, find_model, get_chat, read_messages, read_usage
from palaver.transfer.readers.open_webui_database import DATABASE_NAME, find_database, open_database_reader
from palaver.transfer.readers.values import as_id, format_count, read_time, read_title

if TYPE_CHECKING:
    from pathlib import Path

    from palaver.transfer.imported import ImportReader
    from palaver.transfer.readers.archive import ExportFiles
    from palaver.transfer.readers.conversation_index import IndexedItem

HOW_TO_GET: Final = (
    "In Open WebUI, open Settings > Data Controls > Export Chats and import that JSON file; or import webui.db, which"
    " is in Open WebUI's data folder and has files, folders and memories too."
)


def open_reader(path: Path, account: str | None = None) -> ImportReader:
    """Open an export or a database; raise InvalidImport if it is none.

    `account` is the e-mail address, name or id of the account to import. It is needed if there are several: without
    it, InvalidImport lists them.
    """
    if database := find_database(path):
        return open_database_reader(database, account)
    files = open_export(path, how_to_get=HOW_TO_GET)
    try:
        names = [name for name in files.names if name.lower().endswith(".json")]
        if files.names == [path.name]:
            names = files.names  # a single file may have any name
        if not names:
            raise InvalidImport(
                f"{path.name} has neither a JSON file nor {DATABASE_NAME}. {HOW_TO_GET}", path=str(path)
            )
        index = ConversationIndex(open_item_files(files, names, ("chats",), HOW_TO_GET), _identify)
        return OpenWebUiExport(files, index, account)
    except BaseException:
        files.close()
        raise


class OpenWebUiExport(IndexedExport):
    """An exported JSON file."""

    format = "open-webui"
    platform = Platform("open-webui")

    def __init__(self, files: ExportFiles, index: ConversationIndex, account: str | None) -> None:
        super().__init__(files, index)
        try:
            index.build()
            self._account = _choose_account(index, account)
        except BaseException:
            index.close()
            raise

    def _list_conversations(self) -> list[IndexedItem]:
        return [item for item in self._index.items if item.group == self._account]

    def _describe(self, item: IndexedItem, content: dict[str, Any]) -> ImportedConversation:
        chat = get_chat(content)
        folder_id = as_id(content.get("folder_id"))
        return ImportedConversation(
            origin_id=item.origin_id,
            open_entries=lambda: read_messages(
                get_chat(self._index.read(item)), item.created_at, item.where, lambda _id, _name: None
            ),
            created_at=item.created_at,
            title=read_title(content.get("title")) or read_title(chat.get("title")),
            active_at=item.updated_at,
            pinned=content.get("pinned") is True,
            archived=content.get("archived") is True,
            # The export has the folder's id, but not its name.
            project=ImportedProject(name=f"Open WebUI folder {folder_id[:8]}") if folder_id else None,
            model=find_model(chat),
            usage=read_usage(chat, item.origin_id),
            folded=item.folded,
        )


def _choose_account(index: ConversationIndex, account: str | None) -> str:
    """Return the account whose chats come in. An administrator can export those of all accounts into one file."""
    counts: dict[str, int] = {}
    for item in index.items:
        counts[item.group] = counts.get(item.group, 0) + 1
    if account is not None and account in counts:
        return account
    listed = ", ".join(
        f"{user_id} ({format_count(count, 'conversation')})" for user_id, count in sorted(counts.items())
    )
    if account is not None:
        raise InvalidImport(f"There is no account {account} in this file. It has: {listed}.", accounts=sorted(counts))
    if len(counts) > 1:
        raise InvalidImport(
            f"This file has the conversations of several accounts. Choose one by its id, with --account: {listed}.",
            accounts=sorted(counts),
        )
    return next(iter(counts), "")


def _identify(content: dict[str, Any]) -> Identity | None:
    chat = get_chat(content)
    if not isinstance(chat.get("history"), dict) and not isinstance(chat.get("messages"), list):
        return None
    created_at = read_time(content.get("created_at")) or read_time(chat.get("timestamp")) or find_first_time(chat)
    origin_id = as_id(content.get("id")) or as_id(chat.get("id"))
    return Identity(origin_id, created_at, read_time(content.get("updated_at")), as_id(content.get("user_id")))
