"""Inboxes on a test's store, without a worker: turns stay queued, and deliveries stay pending."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palaver import SessionSource
from palaver.agent.profiles import CurrentSettings
from palaver.config.agent_rules import TurnRules
from palaver.core.engines.base import Read, Write
from palaver.core.source import Platform
from palaver.inbox import Inbox
from palaver.sessions.inbound import Inbound
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from palaver import SessionStore
    from palaver.media.attachments import Attachments
    from palaver.sessions.events import Event
    from palaver.sessions.inbound import Receipt

TELEGRAM = Platform.TELEGRAM


def make_inbox(store: SessionStore, files: Attachments | None = None, **rules: Any) -> Inbox:
    rules.setdefault("open_platforms", frozenset({TELEGRAM}))
    return Inbox(store, CurrentSettings(ScriptedAgent(), TurnRules(**rules)), files=files)


def make_dm(user: str = "ada", **fields: Any) -> SessionSource:
    return SessionSource("telegram", user, user_id=user, user_name=user.title(), **fields)


def make_group(user: str = "ada", chat: str = "club", **fields: Any) -> SessionSource:
    return SessionSource("telegram", chat, chat_type="group", user_id=user, user_name=user.title(), **fields)


async def say(inbox: Inbox, source: SessionSource, text: str, message_id: str | None = None, **fields: Any) -> Receipt:
    return await inbox.accept(Inbound(source=source, content=text, message_id=message_id, **fields))


def answer(store: SessionStore, receipt: Receipt, text: str = "Done.") -> int:
    """Store an answer to a message, and end its turn."""
    message = {"role": "assistant", "content": text, "answers": receipt.seq}
    store.append_to_transcript(receipt.session_id or "", message)
    end = "UPDATE turn SET state = 'done', ended_at = 1, lease_owner = NULL WHERE id = $1"
    store.engine.run(Write(lambda tx: tx.execute(end, receipt.turn_id)))
    return store.load_events(receipt.session_id or "")[-1].seq


def list_rows(store: SessionStore, sql: str, *params: object) -> list[Any]:
    return store.engine.run(Read(lambda tx: tx.fetch_all(sql, *params)))


def list_notices(store: SessionStore) -> list[str]:
    return [content for (content,) in list_rows(store, "SELECT content FROM delivery ORDER BY no")]


def load_log(store: SessionStore, receipt: Receipt) -> list[Event]:
    return list(store.load_events(receipt.session_id or ""))


def list_kinds(store: SessionStore, receipt: Receipt) -> list[str]:
    return [event.kind.value for event in load_log(store, receipt)]
