"""The transcript of one session of OpenClaw: lines of JSON, in a file or in the rows of a database.

Entries form a tree (`id`, `parentId`); the conversation is the path to the last entry. The transcript is read twice:
once for the tree, of which only ids and places are kept, and once for the messages.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import field, replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from palaver.core.dataclass import dataclass
from palaver.core.files import iterate_lines
from palaver.sessions.message import Author, Message
from palaver.sessions.usage import TurnUsage
from palaver.transfer.imported import ImportedCompaction, ImportedEntry, ImportedFile, ImportedMessage, ImportProblem
from palaver.transfer.reader_kit.export_files import MAX_ITEM_BYTES, DamagedFile, UnreadableItem, parse_json
from palaver.transfer.reader_kit.values import (
    Clock,
    as_count,
    as_dict,
    as_id,
    as_list,
    as_text,
    build_call,
    build_message,
    describe_read_error,
    join_paragraphs,
    join_result_parts,
    limit_tokens,
    make_base64_file,
    open_plain_file,
    order_tree,
    read_time,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime
    from pathlib import Path

    from palaver.core.foreign_sqlite import ForeignDatabase


_BLOCK = re.compile(r"\s*([A-Z][A-Za-z ]{2,60}) \(untrusted[^)\n]{0,60}\):\n```json\n")
_BLOCK_END: Final = "\n```"
_MAX_BLOCKS: Final = 16  # OpenClaw adds a handful
_HEADER = re.compile(r"\s*\[(?:[A-Z][A-Za-z]{1,20} )?[^\[\]\n]{0,200}?\d{4}-\d\d-\d\d[T ]\d\d:\d\d[^\[\]\n]{0,40}\] ?")
_LAST_LINE = re.compile(r"\n?\[message_id: ([^\]\n]{1,100})\]\s*\Z")
_REPLY_TAG = re.compile(r"\s*\[\[reply_to[^\]\n]{0,100}\]\]\s*")
_SILENT_ANSWERS: Final = frozenset({"NO_REPLY", "HEARTBEAT_OK"})  # OpenClaw sends them to no one
_HEARTBEAT: Final = "Read HEARTBEAT.md if it exists"  # with these words OpenClaw wakes the agent
_SAID: Final = frozenset({"tool_calls", "reasoning"})  # what a message may have besides text and files
_NO_ENTRIES: Final = frozenset({"session", "title", "leaf", "header"})  # they are not part of the tree
_STOPPED: Final = frozenset({"aborted", "error"})
_TOKEN_KEYS: Final = {
    "input_tokens": "input",
    "output_tokens": "output",
    "cache_read_tokens": "cacheRead",
    "cache_write_tokens": "cacheWrite",
}
_MAX_COST: Final = 1_000_000


_Converted = tuple[Message | None, list[ImportedFile], bool]  # with its files, and whether OpenClaw shows it to no one


class Transcript(Protocol):
    """The lines of a transcript; each has a place by which it is read again."""

    name: str

    def read_lines(self) -> Iterator[tuple[int, bytes | str | None]]:
        """Read the lines, with their places; None for one that is too long."""

    def read_line(self, place: int) -> bytes | str: ...


@dataclass(slots=True)
class FileTranscript:
    name: str
    path: Path

    def read_lines(self) -> Iterator[tuple[int, bytes | str | None]]:
        try:
            with open_plain_file(self.path) as file:
                for place, line in iterate_lines(file, MAX_ITEM_BYTES):
                    if line is None or line.strip():
                        yield place, line
        except OSError as error:
            raise DamagedFile(describe_read_error(error)) from error

    def read_line(self, place: int) -> bytes | str:
        try:
            with open_plain_file(self.path) as file:
                file.seek(place)
                return file.readline(MAX_ITEM_BYTES)
        except OSError as error:
            raise DamagedFile(describe_read_error(error)) from error


@dataclass(slots=True)
class StoredTranscript:
    name: str
    database: ForeignDatabase
    session_id: str

    def read_lines(self) -> Iterator[tuple[int, bytes | str | None]]:
        columns, order = ("seq", "event_json"), "WHERE session_id = ? ORDER BY seq"
        for row in self.database.select("transcript_events", columns, order, (self.session_id,)):
            yield row["seq"], row["event_json"]

    def read_line(self, place: int) -> bytes | str:
        order = "WHERE session_id = ? AND seq = ?"
        rows = self.database.select("transcript_events", ("event_json",), order, (self.session_id, place))
        return str(next(iter(rows))["event_json"])


@dataclass(slots=True)
class Outline:
    parents: dict[str, str | None] = field(default_factory=dict)
    places: dict[str, int] = field(default_factory=dict)
    current: str | None = None
    last_at: datetime | None = None
    title: str = ""
    message_count: int = 0
    usage: dict[tuple[str, str], Counter[str]] = field(default_factory=dict)  # by provider and model
    costs: dict[tuple[str, str], float] = field(default_factory=dict)
    problems: list[ImportProblem] = field(default_factory=list)


def read_outline(transcript: Transcript) -> Outline:
    outline = Outline()
    previous: str | None = None
    for number, (place, line) in enumerate(transcript.read_lines(), 1):
        where = f"{transcript.name}, line {number}"
        try:
            entry = parse_json(line)
        except UnreadableItem as error:
            outline.problems.append(ImportProblem(where=where, what=str(error)))
            continue
        if not isinstance(entry, dict):
            outline.problems.append(ImportProblem(where=where, what="It is not an entry of a conversation."))
            continue
        time = read_time(entry.get("timestamp"))
        outline.last_at = time or outline.last_at
        kind = as_text(entry.get("type"))
        if kind == "leaf":
            outline.current = as_id(entry.get("targetId")) or outline.current
        elif kind == "title":
            outline.title = as_text(entry.get("title")) or outline.title
        if kind in _NO_ENTRIES:
            continue
        entry_id = as_id(entry.get("id")) or f"#{number}"
        if entry_id in outline.parents:
            entry_id = f"{entry_id}#{number}"
        # Entries of old versions have no ids: each follows the one before it.
        outline.parents[entry_id] = as_id(entry["parentId"]) or None if "parentId" in entry else previous
        outline.places[entry_id] = place
        outline.current = previous = entry_id
        _count_entry(outline, entry, kind)
    return outline


def _count_entry(outline: Outline, entry: dict[str, Any], kind: str) -> None:
    if kind == "session_info":
        outline.title = as_text(entry.get("name")) or outline.title
    message = as_dict(entry.get("message"))
    outline.message_count += bool(message)
    usage = as_dict(message.get("usage"))
    if not usage:
        return
    key = as_text(message.get("provider")), as_text(message.get("model"))
    total = outline.usage.setdefault(key, Counter())
    total.update({counter: as_count(usage.get(name)) for counter, name in _TOKEN_KEYS.items()})
    cost = as_dict(usage.get("cost")).get("total")
    if isinstance(cost, int | float) and 0 <= cost < _MAX_COST:
        outline.costs[key] = outline.costs.get(key, 0.0) + cost


def build_usage(outline: Outline, session_id: str) -> tuple[TurnUsage, ...]:
    """Return the tokens and the cost of a session, one sum for each model."""
    return tuple(
        TurnUsage(
            turn_id=f"openclaw:{session_id}:{provider}/{model}",
            model=model or None,
            provider=provider or None,
            cost=f"{cost:.9f}" if 0 < (cost := outline.costs.get((provider, model), 0.0)) < _MAX_COST else None,
            **limit_tokens(total),
        )
        for (provider, model), total in outline.usage.items()
        if total["input_tokens"] or total["output_tokens"]
    )


def read_entries(
    transcript: Transcript, created_at: datetime, *, is_group: bool
) -> Iterator[ImportedEntry | ImportProblem]:
    outline = read_outline(transcript)
    yield from outline.problems
    clock = Clock(created_at)
    counts: dict[str, int] = {}  # how many visible messages came before an entry
    count = 0
    for entry_id, is_hidden in order_tree(outline.parents, outline.current):
        counts[entry_id] = count
        try:
            entry = as_dict(parse_json(transcript.read_line(outline.places[entry_id])))
            at = clock.read(as_dict(entry.get("message")).get("timestamp"), entry.get("timestamp"))
            if as_text(entry.get("type")) == "compaction":
                if not is_hidden:
                    kept = count - counts.get(as_id(entry.get("firstKeptEntryId")), count)
                    yield ImportedCompaction(summary=as_text(entry.get("summary")), at=at, kept_count=kept)
                continue
            message, files, is_silent = _convert_entry(entry, is_group=is_group)
        except (UnreadableItem, DamagedFile, RecursionError) as error:
            what = str(error) or "It is nested too deeply."
            yield ImportProblem(where=f"{transcript.name}, entry {entry_id}", what=what)
            continue
        if message is not None and (
            message.role == "tool" or message.text.strip() or files or _SAID & message.extra.keys()
        ):
            hidden = is_hidden or is_silent
            count += not hidden
            yield ImportedMessage(message=message, at=at, hidden=hidden, files=tuple(files))


def _convert_entry(entry: dict[str, Any], *, is_group: bool) -> _Converted:
    match as_text(entry.get("type")):
        case "message":
            return _convert_message(as_dict(entry.get("message")), is_group=is_group)
        case "custom_message":
            text, files = _read_parts(entry.get("content"))
            return build_message("system", text), files, entry.get("display") is False
        case "branch_summary":
            summary = as_text(entry.get("summary"))
            text = f"[Summary of another branch]\n{summary}" if summary.strip() else ""
            return build_message("system", text), [], False
        case _:
            return None, [], False  # changes of settings, and data of plug-ins


def _convert_message(message: dict[str, Any], *, is_group: bool) -> _Converted:
    role = as_text(message.get("role"))
    text, files = _read_parts(message.get("content"))
    if role == "user":
        sent = clean_user_text(text)
        author = Author(sent.sender, sent.sender_id or None) if is_group and sent.sender else None
        built = build_message("user", sent.text)
        built = replace(built, author=author, platform_message_id=sent.message_id or None)
        return built, files, sent.text.lstrip().startswith(_HEARTBEAT)
    if role == "assistant":
        built = _convert_answer(message, text)
        return built, files, built.text.strip() in _SILENT_ANSWERS and "tool_calls" not in built.extra
    if role in {"toolResult", "tool"}:
        parts = [part for part in as_list(message.get("content")) if as_dict(part).get("type") != "image"]
        built = build_message(
            "tool",
            join_result_parts(parts) or text,
            tool_call_id=as_id(message.get("toolCallId")),
            tool_name=as_text(message.get("toolName")) or "tool",
            is_error=message.get("isError") is True,
        )
        return built, [], False
    if role == "bashExecution":
        text = f"```\n$ {as_text(message.get('command'))}\n{as_text(message.get('output'))}\n```"
    return build_message("system", text), files, message.get("display") is False


def _convert_answer(message: dict[str, Any], text: str) -> Message:
    calls: list[dict[str, Any]] = []
    reasoning: list[str] = []
    for part in map(as_dict, as_list(message.get("content"))):
        kind = as_text(part.get("type"))
        if kind in {"toolCall", "tool_use", "toolUse"}:
            arguments = part.get("arguments", part.get("input")) or {}
            call_id = as_id(part.get("id")) or f"call-{len(calls)}"
            calls.append(build_call(call_id, as_text(part.get("name")), arguments))
        elif kind == "thinking":
            reasoning.append(as_text(part.get("thinking")))
    error = as_text(message.get("errorMessage"))
    tag = _REPLY_TAG.match(text)  # says which message it replies to
    answer = text[tag.end() :] if tag else text
    return build_message(
        "assistant",
        join_paragraphs(answer, f"[Error: {error}]" if error else ""),
        tool_calls=calls,
        reasoning=join_paragraphs(*reasoning),
        model=as_text(message.get("model")),
        interrupted=as_text(message.get("stopReason")) in _STOPPED,
    )


def _read_parts(content: object) -> tuple[str, list[ImportedFile]]:
    if isinstance(content, str):
        return as_text(content), []
    texts: list[str] = []
    files: list[ImportedFile] = []
    for part in map(as_dict, as_list(content)):
        if as_text(part.get("type")) == "image":
            source = as_dict(part.get("source"))
            data = as_text(part.get("data")) or as_text(source.get("data"))
            media_type = as_text(part.get("mimeType")) or as_text(source.get("media_type"))
            if file := make_base64_file(data, media_type):
                files.append(file)
            else:
                texts.append("[Image that OpenClaw did not keep]")
        elif text := as_text(part.get("text")):
            texts.append(text)
    return join_paragraphs(*texts), files


@dataclass(frozen=True, slots=True)
class SentText:
    text: str
    sender: str = ""
    sender_id: str = ""
    message_id: str = ""


def clean_user_text(text: str) -> SentText:
    """Return what the person wrote, and what the additions say about it."""
    facts: dict[str, Any] = {}
    for _ in range(_MAX_BLOCKS):
        found = _BLOCK.match(text)
        end = text.find(_BLOCK_END, found.end() - 1) if found else -1
        if found is None or end < 0:
            break
        try:
            block = as_dict(parse_json(text[found.end() : end]))
        except UnreadableItem:
            break
        facts = {**block, **facts} if found[1] in {"Conversation info", "Sender"} else facts
        text = text[end + len(_BLOCK_END) :].lstrip("\n")
    if header := _HEADER.match(text[:400]):
        text = text[header.end() :]
    message_id = as_id(facts.get("message_id"))
    if last_line := _LAST_LINE.search(text[-200:]):
        message_id = message_id or last_line[1]
        text = text[: len(text) - len(last_line[0])]
    sender = as_text(facts.get("name")) or as_text(facts.get("sender"))
    return SentText(text, sender, as_id(facts.get("sender_id")) or as_id(facts.get("id")), message_id)
