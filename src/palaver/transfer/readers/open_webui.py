"""Reads conversations of Open WebUI: an exported JSON file, or its database `webui.db`.

Both have the same chats: a tree of messages (`history.messages`), of which the path to `history.currentId` is shown.
The database has the conversations of all accounts, and only one account's are imported.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from palaver.core.foreign_sqlite import InvalidForeignDatabase, open_foreign_database
from palaver.core.source import Platform
from palaver.transfer.imported import (
    ImportedConversation,
    ImportedFile,
    ImportedMemory,
    ImportedProject,
    ImportProblem,
    InvalidImport,
)
from palaver.transfer.readers.archive import is_sqlite_file, open_export, read_path
from palaver.transfer.readers.indexed_export import ConversationIndex, Identity, IndexedExport, open_item_files
from palaver.transfer.readers.json_stream import MAX_ITEM_BYTES, UnreadableItem, parse_json
from palaver.transfer.readers.open_webui_chat import (
    find_first_time,
    find_model,
    get_chat,
    get_messages,
    read_messages,
    read_usage,
)
from palaver.transfer.readers.values import UNKNOWN_TIME, as_dict, as_id, as_text, format_count, read_time, read_title

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from palaver.core.foreign_sqlite import ForeignDatabase
    from palaver.transfer.imported import ImportedItem, ImportedMessage, ImportReader
    from palaver.transfer.readers.archive import ExportFiles
    from palaver.transfer.readers.indexed_export import IndexedItem


DATABASE_NAME: Final = "webui.db"
_UPLOADS: Final = "uploads"  # the folder beside the database with the files
_CHAT_COLUMNS: Final = ("id", "title", "created_at", "updated_at", "archived", "pinned", "folder_id")
# Columns of `chat_message`, and what the same values are called in a chat.
_MESSAGE_KEYS: Final = {
    "role": "role",
    "parent_id": "parentId",
    "content": "content",
    "output": "output",
    "model_id": "model",
    "files": "files",
    "done": "done",
    "error": "error",
    "usage": "usage",
    "created_at": "timestamp",
}
_JSON_COLUMNS: Final = frozenset({"content", "output", "files", "error", "usage"})
_MAX_CHAT_MESSAGES: Final = 200_000


def find_database(path: Path) -> Path | None:
    """Return the database that a path leads to: the file itself, or the one in Open WebUI's data folder."""
    if path.is_dir():
        return next((found for found in (path / DATABASE_NAME, path / "data" / DATABASE_NAME) if found.is_file()), None)
    return path if is_sqlite_file(path) else None


def open_database_reader(path: Path, account: str | None) -> OpenWebUiDatabase:
    """Open the database; raise InvalidImport if it is none, or if it is not clear whose conversations to import."""
    try:
        database = open_foreign_database(path)
    except InvalidForeignDatabase as error:
        raise InvalidImport(str(error), path=str(path)) from error
    try:
        if not database.has_table("chat"):
            raise InvalidImport(f"{path} is not the database of Open WebUI: it has no chats.", path=str(path))
        return OpenWebUiDatabase(database, path, _choose_account(database, account))
    except InvalidForeignDatabase as error:
        database.close()
        raise InvalidImport(str(error), path=str(path)) from error
    except BaseException:
        database.close()
        raise


def _choose_account(database: ForeignDatabase, account: str | None) -> str:
    """Return the id of the account whose chats come in."""
    owners = {as_id(row["user_id"]): row["n"] for row in database.query(_COUNT_CHATS)}
    users = {as_id(row["id"]): row for row in database.select("user", ("id", "email", "name"))}
    labels = {user_id: as_text(as_dict(users.get(user_id)).get("email")) or user_id for user_id in owners}
    listed = ", ".join(
        f"{labels[user_id]} ({format_count(count, 'conversation')})" for user_id, count in owners.items()
    )
    if account is not None:
        wanted = account.strip().casefold()
        for user_id, row in users.items():
            if wanted in {as_text(value).casefold() for value in row.values()}:
                return user_id
        if account in owners:
            return account
        raise InvalidImport(f"Open WebUI has no account {account}. It has: {listed}.", accounts=sorted(labels.values()))
    if len(owners) > 1:
        raise InvalidImport(
            f"This database has the conversations of several accounts. Choose one with --account: {listed}.",
            accounts=sorted(labels.values()),
        )
    return next(iter(owners), "")


_COUNT_CHATS: Final = "SELECT user_id, count(*) AS n FROM chat GROUP BY user_id ORDER BY n DESC, user_id"


class OpenWebUiDatabase:
    """The database of Open WebUI, and one account in it."""

    format = "open-webui"
    platform = Platform("open-webui")

    def __init__(self, database: ForeignDatabase, path: Path, account_id: str) -> None:
        self._database = database
        self._path = path
        self._account_id = account_id

    def count_conversations(self) -> int:
        rows = self._database.query("SELECT count(*) AS n FROM chat WHERE user_id = ?", (self._account_id,))
        return int(next(iter(rows))["n"])

    def read_items(self) -> Iterator[ImportedItem]:
        folders = {
            as_id(row["id"]): read_title(row["name"])
            for row in self._database.select("folder", ("id", "name"), "WHERE user_id = ?", (self._account_id,))
        }
        yield from self._read_memories()
        order = "WHERE user_id = ? ORDER BY created_at, id"
        for row in self._database.select("chat", _CHAT_COLUMNS, order, (self._account_id,)):
            chat_id = as_id(row["id"])
            try:
                chat = self._read_chat(chat_id)
            except (UnreadableItem, RecursionError) as error:
                yield ImportProblem(where=_name_chat(chat_id), what=str(error) or "It is nested too deeply.")
                continue
            yield self._describe(row, chat, folders.get(as_id(row["folder_id"])))

    def close(self) -> None:
        self._database.close()

    def _read_memories(self) -> Iterator[ImportedMemory]:
        columns = ("id", "content", "created_at")
        order = "WHERE user_id = ? ORDER BY created_at, id"
        for row in self._database.select("memory", columns, order, (self._account_id,)):
            if text := as_text(row["content"]).strip():
                yield ImportedMemory(origin_id=as_id(row["id"]), text=text, at=read_time(row["created_at"]))

    def _describe(self, row: dict[str, Any], chat: dict[str, Any], folder: str | None) -> ImportedConversation:
        chat_id = as_id(row["id"])
        created_at = read_time(row["created_at"]) or find_first_time(chat) or UNKNOWN_TIME
        return ImportedConversation(
            origin_id=chat_id,
            open_entries=lambda: self._read_entries(chat_id, created_at),
            created_at=created_at,
            title=read_title(row["title"]) or read_title(chat.get("title")),
            active_at=read_time(row["updated_at"]),
            pinned=bool(row["pinned"]),
            archived=bool(row["archived"]),
            project=ImportedProject(name=folder) if folder else None,
            model=find_model(chat),
            usage=read_usage(chat, chat_id),
        )

    def _read_entries(self, chat_id: str, created_at: datetime) -> Iterator[ImportedMessage | ImportProblem]:
        return read_messages(self._read_chat(chat_id), created_at, _name_chat(chat_id), self._find_file)

    def _read_chat(self, chat_id: str) -> dict[str, Any]:
        """Return a chat with all its messages; newer versions keep them in a table of their own too."""
        size = next(iter(self._database.query("SELECT length(chat) AS n FROM chat WHERE id = ?", (chat_id,))))["n"] or 0
        if size > MAX_ITEM_BYTES:
            raise UnreadableItem(
                f"It has {size // 1_000_000} MB; at most {MAX_ITEM_BYTES // 1_000_000} MB can come in."
            )
        row = next(iter(self._database.query("SELECT chat FROM chat WHERE id = ?", (chat_id,))))
        chat = as_dict(_parse_column(row["chat"]))
        messages = get_messages(chat)
        order = f"WHERE chat_id = ? ORDER BY created_at, id LIMIT {_MAX_CHAT_MESSAGES}"
        for stored in self._database.select("chat_message", ("id", *_MESSAGE_KEYS), order, (chat_id,)):
            message_id = as_id(stored["id"]).removeprefix(f"{chat_id}-")
            if message_id not in messages:
                messages[message_id] = _read_stored_message(stored)
        history = as_dict(chat.get("history"))
        return {**chat, "history": {**history, "messages": messages}}

    def _find_file(self, file_id: str, name: str) -> ImportedFile | None:
        """Return an uploaded file. Only its name is taken from the database: the folder is the one beside it."""
        rows = self._database.select("file", ("filename", "path"), "WHERE id = ?", (file_id,))
        row = next(iter(rows), None)
        if row is None:
            return None
        stored_name = Path(as_text(row["path"]).replace("\\", "/")).name
        path = self._path.parent / _UPLOADS / stored_name
        if not stored_name or path.is_symlink() or not path.is_file():
            return None
        return ImportedFile(name=name or as_text(row["filename"]) or stored_name, open_chunks=lambda: read_path(path))


def _name_chat(chat_id: str) -> str:
    return f"{DATABASE_NAME}, chat {chat_id}"


def _read_stored_message(stored: dict[str, Any]) -> dict[str, Any]:
    message = {}
    for column, key in _MESSAGE_KEYS.items():
        value = stored[column]
        if value is not None:
            message[key] = _parse_column(value) if column in _JSON_COLUMNS else value
    message["done"] = stored["done"] not in (0, False)
    return message


def _parse_column(value: object) -> Any:
    """Return the value of a JSON column; text that is no JSON is the value itself."""
    if not isinstance(value, str | bytes):
        return value
    try:
        return parse_json(value)
    except UnreadableItem:
        if isinstance(value, bytes) or value[:1] in {"{", "["}:
            raise
        return value


# --------------------------------------------------------------------------------------------------

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
            self._account = _open_webui_choose_account(index, account)
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


def _open_webui_choose_account(index: ConversationIndex, account: str | None) -> str:
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
