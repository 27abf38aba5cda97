"""People and chats for tests of messages that jobs and the agent send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.delivery.chat_posts import ChatPost
from palaver.delivery.reachable_chats import list_reachable_chats, resolve_chat
from palaver.people import table as people
from palaver.people.model import Principal, Role
from palaver.sessions.sent_message import SenderKind, SentBy

if TYPE_CHECKING:
    from palaver import SessionSource, SessionStore
    from palaver.core.engines.base import Transaction
    from palaver.delivery.reachable_chats import ReachableChat

JOB_SENDER = SentBy(kind=SenderKind.JOB, name="Morning news", job_id="j_1", run_id="r_1", session_id=None)


def get_now(store: SessionStore) -> int:
    return to_micros(store._clock.now())


def add_writer(store: SessionStore, source: SessionSource, role: Role = Role.MEMBER, text: str = "hello") -> Principal:
    """Let a person write at a source, as the inbox stores it, and give them a role."""
    store.record_user_message(source, text)
    person = store.get_or_create_person(source)

    def run(tx: Transaction) -> None:
        people.set_role(tx, person.id, role)
        if source.chat_type == "dm":
            people.remember_dm_source(tx, source, None)

    store._engine.run(Write(run))
    return Principal(person.id, role)


def resolve(store: SessionStore, principal: Principal, target: str, **options: Any) -> ReachableChat:
    now = get_now(store)
    return store._engine.run(Read(lambda tx: resolve_chat(tx, principal, target, store._config, now, **options)))


def list_targets(store: SessionStore, principal: Principal, **options: Any) -> list[str]:
    chats = store._engine.run(Read(lambda tx: list_reachable_chats(tx, principal, store._config, **options)))
    return [chat.target for chat in chats]


def make_post(text: str = "Sunny, 20 degrees.", **fields: Any) -> ChatPost:
    return ChatPost(text=text, sent_by=JOB_SENDER, **fields)
