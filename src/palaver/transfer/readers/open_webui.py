"""Reads conversations of Open WebUI: an exported JSON file, or its database `webui.db`.

Both have the same chats: a tree of messages (`history.messages`), of which the path to `history.currentId` is shown.
The database has the conversations of all accounts, and only one account's are imported.
"""

from __future__ import annotations

import html
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from palaver.core.foreign_sqlite import ForeignDatabase, InvalidForeignDatabase, open_foreign_database
from palaver.core.source import Platform
from palaver.sessions.usage import TurnUsage
from palaver.transfer.imported import (
    ImportedConversation,
    ImportedFile,
    ImportedItem,
    ImportedMemory,
    ImportedMessage,
    ImportedProject,
    ImportProblem,
    ImportReader,
    InvalidImport,
)
from palaver.transfer.reader_kit.export_files import (
    MAX_ITEM_BYTES,
    UnreadableItem,
    close_on_error,
    is_sqlite_file,
    parse_json,
    read_path,
)
from palaver.transfer.reader_kit.indexed_export import Identity, IndexedExport, IndexedItem
from palaver.transfer.reader_kit.values import (
    UNKNOWN_TIME,
    Clock,
    ConvertedMessage,
    TurnBuilder,
    as_count,
    as_dict,
    as_id,
    as_list,
    as_text,
    build_message,
    find_first_time,
    format_count,
    index_by_id,
    join_paragraphs,
    join_result_parts,
    limit_tokens,
    make_text_file,
    read_data_url,
    read_time,
    read_title,
    read_tree,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from datetime import datetime

    from palaver.sessions.message import Message


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


_COUNT_CHATS: Final = "SELECT user_id, count(*) AS n FROM chat GROUP BY user_id ORDER BY n DESC, user_id"
_DETAILS_START = re.compile(r'<details\s+type="(reasoning|tool_calls|code_interpreter)"([^<>]*)>', re.IGNORECASE)
_DETAILS_END: Final = "</details>"
_ATTRIBUTE = re.compile(r'(?<!\w)(\w{1,40})="([^"]*)"')
_SUMMARY = re.compile(r"\s*<summary>[^<]*</summary>", re.IGNORECASE)
_FILE_ADDRESS = re.compile(r"/files/([\w-]{8,64})(?:/|$)")
# What different versions call the same counters.
_TOKEN_KEYS: Final = {
    "input_tokens": ("input_tokens", "prompt_tokens", "prompt_eval_count"),
    "output_tokens": ("output_tokens", "completion_tokens", "eval_count"),
}


def open_reader(path: Path, account: str | None = None) -> ImportReader:
    """Open an export or a database; raise InvalidImport if it is none.

    `account` is the e-mail address, name or id of the account to import. It is needed if there are several: without
    it, InvalidImport lists them.
    """
    database = find_database(path)
    return open_database_reader(database, account) if database else OpenWebUiExport(path, account)


class OpenWebUiExport(IndexedExport):
    format = "open-webui"
    platform = Platform("open-webui")
    how_to_get = (
        "In Open WebUI, open Settings > Data Controls > Export Chats and import that JSON file; or import webui.db,"
        " which is in Open WebUI's data folder and has files, folders and memories too."
    )
    needed = f"neither a JSON file nor {DATABASE_NAME}"
    list_key = "chats"

    def __init__(self, path: Path, account: str | None) -> None:
        super().__init__(path)
        with close_on_error(self):
            # An administrator can export the chats of all accounts into one file.
            counts = Counter(sorted(item.group for item in self._list_conversations()))
            chosen = _choose_account(counts, account, {}, "file")
            self._items = [item for item in self._list_conversations() if item.group == chosen]

    def _choose_files(self, names: list[str]) -> list[str]:
        return [name for name in names if name.lower().endswith(".json")]

    def _identify(self, content: dict[str, Any]) -> Identity | None:
        chat = get_chat(content)
        if not isinstance(chat.get("history"), dict) and not isinstance(chat.get("messages"), list):
            return None
        created_at = read_time(content.get("created_at")) or read_time(chat.get("timestamp")) or find_start(chat)
        origin_id = as_id(content.get("id")) or as_id(chat.get("id"))
        return Identity(origin_id, created_at, read_time(content.get("updated_at")), as_id(content.get("user_id")))

    def _describe(self, item: IndexedItem, content: dict[str, Any]) -> ImportedConversation:
        chat = get_chat(content)
        folder_id = as_id(content.get("folder_id"))
        return ImportedConversation(
            origin_id=item.origin_id,
            open_entries=lambda: read_messages(
                get_chat(self._read(item)), item.created_at, item.where, lambda _id, _name: None
            ),
            created_at=item.created_at,
            # The export has the folder's id, but not its name.
            project=ImportedProject(name=f"Open WebUI folder {folder_id[:8]}") if folder_id else None,
            folded=item.folded,
            **describe_chat(content, chat, item.origin_id),
        )


def find_database(path: Path) -> Path | None:
    """Return the database that a path leads to: the file itself, or the one in Open WebUI's data folder."""
    if path.is_dir():
        return next((found for found in (path / DATABASE_NAME, path / "data" / DATABASE_NAME) if found.is_file()), None)
    return path if is_sqlite_file(path) else None


def open_database_reader(path: Path, account: str | None) -> OpenWebUiDatabase:
    """Open the database; raise InvalidImport if it is none, or if it is not clear whose conversations to import."""
    try:
        database = open_foreign_database(path)
        with close_on_error(database):
            if not database.has_table("chat"):
                raise InvalidImport(f"{path} is not the database of Open WebUI: it has no chats.", path=str(path))
            counts = {as_id(row["user_id"]): row["n"] for row in database.query(_COUNT_CHATS)}
            users = {as_id(row["id"]): row for row in database.select("user", ("id", "email", "name"))}
            return OpenWebUiDatabase(database, path, _choose_account(counts, account, users, "database"))
    except InvalidForeignDatabase as error:
        raise InvalidImport(str(error), path=str(path)) from error


def _choose_account(
    counts: Mapping[str, int], account: str | None, users: Mapping[str, Mapping[str, Any]], what: str
) -> str:
    """Return the id of the account whose chats come in. `counts` has the number of chats of each account."""
    labels = {user_id: as_text(users.get(user_id, {}).get("email")) or user_id for user_id in counts}
    listed = ", ".join(f"{labels[each]} ({format_count(count, 'conversation')})" for each, count in counts.items())
    if account is not None:
        wanted = account.strip().casefold()
        for user_id, row in users.items():
            if wanted in {as_text(value).casefold() for value in row.values()}:
                return user_id
        if account in counts:
            return account
        problem = f"There is no account {account} in this {what}. It has: {listed}."
    elif len(counts) > 1:
        problem = f"This {what} has the conversations of several accounts. Choose one with --account: {listed}."
    else:
        return next(iter(counts), "")
    raise InvalidImport(problem, accounts=sorted(labels.values()))


class OpenWebUiDatabase:
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
        created_at = read_time(row["created_at"]) or find_start(chat) or UNKNOWN_TIME
        return ImportedConversation(
            origin_id=chat_id,
            open_entries=lambda: read_messages(
                self._read_chat(chat_id), created_at, _name_chat(chat_id), self._find_file
            ),
            created_at=created_at,
            project=ImportedProject(name=folder) if folder else None,
            **describe_chat(row, chat, chat_id),
        )

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


def get_chat(content: dict[str, Any]) -> dict[str, Any]:
    """Return the chat of an exported item; in old exports that is the item itself."""
    return as_dict(content.get("chat")) or content


def get_messages(chat: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the messages by their ids; very old chats have a list instead of a tree."""
    history = as_dict(as_dict(chat.get("history")).get("messages"))
    if history:
        return {message_id: as_dict(message) for message_id, message in history.items()}
    messages = index_by_id(chat.get("messages"), "id")
    parents = [None, *messages]
    return {
        message_id: {**message, "parentId": parent}
        for parent, (message_id, message) in zip(parents, messages.items(), strict=False)
    }


def find_start(chat: dict[str, Any]) -> datetime | None:
    return find_first_time(message.get("timestamp") for message in get_messages(chat).values())


def describe_chat(row: dict[str, Any], chat: dict[str, Any], chat_id: str) -> dict[str, Any]:
    """Return what the row of a chat, or its item in an export, and the chat itself say about it."""
    return {
        "title": read_title(row.get("title")) or read_title(chat.get("title")),
        "active_at": read_time(row.get("updated_at")),
        "pinned": row.get("pinned") in (True, 1),
        "archived": row.get("archived") in (True, 1),
        "model": next(filter(None, map(as_text, as_list(chat.get("models")))), None),
        "usage": read_usage(chat, chat_id),
    }


def read_messages(
    chat: dict[str, Any], created_at: datetime, where: str, find_file: Callable[[str, str], ImportedFile | None]
) -> Iterator[ImportedMessage | ImportProblem]:
    messages = get_messages(chat)
    parents = {message_id: as_id(message.get("parentId")) or None for message_id, message in messages.items()}
    current = as_id(as_dict(chat.get("history")).get("currentId"))
    clock = Clock(created_at)

    def convert(message_id: str) -> tuple[datetime, ConvertedMessage]:
        at = clock.read(messages[message_id].get("timestamp"))
        return at, convert_message(messages[message_id], message_id, find_file)

    return read_tree(parents, current, convert, where, "These files are not there")


def read_usage(chat: dict[str, Any], chat_id: str) -> tuple[TurnUsage, ...]:
    """Add up the tokens of all answers, one sum for each model."""
    totals: dict[str, Counter[str]] = {}
    for message in get_messages(chat).values():
        info = as_dict(message.get("info"))
        usage = as_dict(message.get("usage")) or as_dict(info.get("usage")) or info
        counts = {name: max(as_count(usage.get(key)) for key in keys) for name, keys in _TOKEN_KEYS.items()}
        if any(counts.values()) and as_text(message.get("role")) == "assistant":
            totals.setdefault(as_text(message.get("model")), Counter()).update(counts)
    return tuple(
        TurnUsage(turn_id=f"open-webui:{chat_id}:{model}", model=model or None, **limit_tokens(total))
        for model, total in totals.items()
    )


def convert_message(
    message: dict[str, Any], message_id: str, find_file: Callable[[str, str], ImportedFile | None]
) -> ConvertedMessage:
    role = as_text(message.get("role"))
    role = role if role in {"user", "assistant"} else "system"
    files, missing = _read_files(message, find_file)
    text = _read_text(message.get("content"), files)
    if role == "assistant":
        messages = _convert_answer(message, message_id, text)
    else:
        messages = [build_message(role, text)] if text.strip() else []
    converted = ConvertedMessage(messages, files, missing)
    converted.name_missing_files(role)
    return converted


def _convert_answer(message: dict[str, Any], message_id: str, text: str) -> list[Message]:
    turn = TurnBuilder(message_id, model=as_text(message.get("model")))
    output = [as_dict(item) for item in as_list(message.get("output"))]
    if not sum([_add_step(turn, item) for item in output]):
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


def _add_step(turn: TurnBuilder, item: dict[str, Any]) -> bool:
    """Add a step; False if it is of a type that is not known."""
    match as_text(item.get("type")):
        case "message":
            turn.add_text(_join_parts(item.get("content")))
        case "reasoning":
            turn.add_reasoning(_join_parts(item.get("content")) or _join_parts(item.get("summary")))
        case "function_call":
            call_id = as_id(item.get("call_id")) or as_id(item.get("id"))
            turn.add_call(call_id, as_text(item.get("name")), item.get("arguments") or "")
        case "function_call_output":
            parts = item.get("output")
            if isinstance(parts, list):
                parts = [part for part in parts if as_dict(part).get("type") != "input_image"]
            turn.add_result(as_id(item.get("call_id")), "", join_result_parts(parts))
        case "open_webui:code_interpreter" | "code_interpreter":
            code = as_text(item.get("code")) or _join_parts(item.get("content"))
            turn.add_call(as_id(item.get("id")), "code_interpreter", {"code": code})
            if (output := item.get("output")) not in (None, "", [], {}):
                turn.add_result(as_id(item.get("id")), "code_interpreter", join_result_parts(output))
        case _:
            return False
    return True


def _join_parts(parts: object) -> str:
    return "".join(as_text(as_dict(part).get("text")) for part in as_list(parts))


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
        elif found := next(_find_files(entry, find_file), None):
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
