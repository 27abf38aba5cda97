"""What OpenClaw adds to the messages of people before its model reads them, and how to take it away again.

Conversation info (untrusted metadata):      blocks of JSON, before the message
[Telegram Ada id:7 2026-03-01 10:00 UTC]     a header, in older versions
[message_id: 55]                             a last line
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from palaver.transfer.readers.json_stream import UnreadableItem, parse_json
from palaver.transfer.readers.values import as_dict, as_id, as_text

_BLOCK = re.compile(r"\s*([A-Z][A-Za-z ]{2,60}) \(untrusted[^)\n]{0,60}\):\n```json\n")
_BLOCK_END: Final = "\n```"
_MAX_BLOCKS: Final = 16  # OpenClaw adds a handful
_HEADER = re.compile(r"\s*\[(?:[A-Z][A-Za-z]{1,20} )?[^\[\]\n]{0,200}?\d{4}-\d\d-\d\d[T ]\d\d:\d\d[^\[\]\n]{0,40}\] ?")
_LAST_LINE = re.compile(r"\n?\[message_id: ([^\]\n]{1,100})\]\s*\Z")
_REPLY_TAG = re.compile(r"\s*\[\[reply_to[^\]\n]{0,100}\]\]\s*")
_SILENT_ANSWERS: Final = frozenset({"NO_REPLY", "HEARTBEAT_OK"})  # OpenClaw sends them to no one
_HEARTBEAT: Final = "Read HEARTBEAT.md if it exists"


@dataclass(frozen=True, slots=True)
class SentText:
    """A message as a person wrote it."""

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


def clean_answer(text: str) -> str:
    """Return an answer without the tag that says which message it replies to."""
    found = _REPLY_TAG.match(text)
    return text[found.end() :] if found else text


def is_silent(role: str, text: str) -> bool:
    """Whether OpenClaw shows this to no one: its heartbeat, and answers that say that there is none."""
    return text.strip() in _SILENT_ANSWERS if role == "assistant" else text.lstrip().startswith(_HEARTBEAT)
