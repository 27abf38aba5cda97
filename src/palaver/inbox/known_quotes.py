"""Cuts out of a message what it quotes of its own conversation, before it is accepted.

Whether something is cut depends only on the session that the message goes to. If that can't be found out, or a new
session starts with the message, nothing is cut: the agent would not have it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from palaver.accounts import sender_merge
from palaver.core.engines.base import Read, Transaction
from palaver.inbox.message_queue import list_context
from palaver.sessions import lanes_table as lanes, log_table as events, table as sessions
from palaver.sessions.inbound import Inbound, KnownText
from palaver.sessions.quoted_messages import CONTEXT_KEY

if TYPE_CHECKING:
    from palaver.core.source import SessionSource
    from palaver.sessions.message import Message
    from palaver.sessions.store import SessionStore

MAX_KNOWN_MESSAGES: Final = 60  # the newest ones of the session
MAX_KNOWN_CHARS: Final = 400_000

log = logging.getLogger(__name__)


async def cut_known_quotes(store: SessionStore, inbound: Inbound, *, has_context: bool) -> Inbound:
    """Return the message without what it quotes of its session.

    `has_context` says whether it carries what was said in its group since the agent was last addressed there.
    """
    if inbound.cut_quotes is None:
        return inbound
    known = await store.engine.arun(Read(lambda tx: _list_known_texts(tx, store, inbound, has_context=has_context)))
    try:
        content = await asyncio.to_thread(inbound.cut_quotes, known)
    except Exception:  # anyone can write anything: whatever it breaks, the message is accepted as it came
        log.exception("quotes_not_cut", extra={"platform": str(inbound.source.platform)})
        return inbound
    return replace(inbound, content=content, cut_quotes=None)


def _list_known_texts(
    tx: Transaction, store: SessionStore, inbound: Inbound, *, has_context: bool
) -> Sequence[KnownText]:
    source = sender_merge.find_merged_source(tx, inbound.source)
    entry = None if source is None else lanes.find_open_entry(tx, store.build_arrival(source))
    known: list[KnownText] = []
    if source is not None and has_context:
        lane_key = lanes.resolve_key(tx, store.build_arrival(source))
        context, _ = list_context(tx, replace(inbound, source=source), lane_key)
        known += [KnownText(each["text"], (each["author"],)) for each in context]
    if source is not None and entry is not None:
        known += _read_session(tx, sessions.get_no(tx, entry.session_id), source)
    return known


def _read_session(tx: Transaction, session_no: int, source: SessionSource) -> Iterator[KnownText]:
    """Yield the texts of the newest messages; those of one answer also as one text, as it was sent."""
    answer: list[str] = []
    chars_left = MAX_KNOWN_CHARS
    for count, event in enumerate(events.iterate_newest_messages(tx, session_no)):
        message = event.message
        if count >= MAX_KNOWN_MESSAGES or chars_left <= 0:
            break
        if message is None or message.role not in {"user", "assistant"}:
            continue
        chars_left -= len(message.text)
        if message.role == "assistant":
            answer.append(message.text)
            yield KnownText(message.text)
            continue
        if len(answer) > 1:
            yield KnownText("\n\n".join(reversed(answer)))
        answer = []
        yield from _read_message(message, source)
    if len(answer) > 1:
        yield KnownText("\n\n".join(reversed(answer)))


def _read_message(message: Message, source: SessionSource) -> Iterator[KnownText]:
    author = message.author
    names = (source.user_id, source.user_name) if author is None else (author.id, author.name)
    yield KnownText(message.text, tuple(name for name in names if name) or ("",))
    context = message.extra.get(CONTEXT_KEY)
    for entry in context if isinstance(context, Sequence) else ():
        if isinstance(entry, Mapping):
            yield KnownText(str(entry.get("text", "")), (str(entry.get("author", "")),))
