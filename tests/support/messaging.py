"""People and chats for tests of messages that jobs and the agent send."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.delivery.chat_posts import ChatPost
from palaver.delivery.reachable_chats import MAX_REACHABLE_CHATS, ReachableChats
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


def resolve(
    store: SessionStore, principal: Principal, target: str, *, is_from_agent: bool = False, **options: Any
) -> ReachableChat:
    def run(tx: Transaction) -> ReachableChat:
        chats = ReachableChats(tx, principal, store._config, get_now(store), **options)
        return chats.resolve(target, is_from_agent=is_from_agent)

    return store._engine.run(Read(run))


def list_targets(
    store: SessionStore, principal: Principal, search: str = "", limit: int = MAX_REACHABLE_CHATS, **options: Any
) -> list[str]:
    def run(tx: Transaction) -> list[str]:
        chats = ReachableChats(tx, principal, store._config, **options)
        return [chat.target for chat in chats.list_chats(search, limit)]

    return store._engine.run(Read(run))


def make_post(text: str = "Sunny, 20 degrees.", **fields: Any) -> ChatPost:
    return ChatPost(text=text, sent_by=JOB_SENDER, **fields)
