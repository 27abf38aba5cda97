"""Conversations on the page: lists of summaries, settings, and starting a conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig, Principal
from palaver.core.clock import to_micros
from palaver.core.engines.base import Write
from palaver.core.errors import NotAllowed, SessionNotFound
from palaver.people import account_table as accounts
from palaver.people.model import Role
from palaver.sessions import list_table as session_lists
from palaver.sessions.conversations import Conversations
from palaver.sessions.keys import DmScope

if TYPE_CHECKING:
    from conftest import OpenStore
    from palaver import SessionSource, SessionStore
    from palaver.people.model import Person
    from support.gateway import MakeSource


def test_a_long_list_with_few_matches_is_searched_page_by_page(
    store: SessionStore, dm: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_lists, "MAX_SESSIONS_EXAMINED", 4)
    monkeypatch.setattr(session_lists, "_ROWS_PER_READ", 2)
    for number in range(9):
        recorded = store.record_user_message(dm("ada", thread_id=str(number)), "hello")
        if number == 0:
            store.rename_session(recorded.session_id, "The first")
    view = store.seen_by(store.get_or_create_person(dm("ada")).principal)
    pages = [view.summaries.list(text="first")]
    while pages[-1].cursor is not None:
        pages.append(view.summaries.list(text="first", cursor=pages[-1].cursor))
    assert [len(page) for page in pages] == [0, 0, 1]


def test_a_guest_cannot_choose_the_model_or_toolsets_of_a_conversation(store: SessionStore, dm: MakeSource) -> None:
    session_id = store.record_user_message(dm(), "hello").session_id
    guest = Principal(store.get_or_create_person(dm()).id, Role.GUEST)
    with pytest.raises(NotAllowed):
        store.seen_by(guest).update(session_id, {"model": "large"})
    with pytest.raises(NotAllowed):
        store.seen_by(guest).update(session_id, {"toolsets": {"memory": True}})
    assert store.seen_by(guest).update(session_id, {"title": "Hello"}).session.title == "Hello"


@pytest.mark.both_engines
def test_two_changes_of_toolsets_do_not_overwrite_each_other(store: SessionStore, dm: MakeSource) -> None:
    session_id = store.record_user_message(dm(), "hello").session_id
    view = store.seen_by(Principal(store.get_or_create_person(dm()).id, Role.MEMBER))
    view.update(session_id, {"toolsets": {"memory": False}})
    assert view.update(session_id, {"toolsets": {"history": False}}).disabled_toolsets == ("history", "memory")
    assert view.update(session_id, {"toolsets": {"memory": True, "mcp:gone": True}}).disabled_toolsets == ("history",)
    assert view.summaries.get(session_id).disabled_toolsets == ("history",)
    assert view.update(session_id, {"toolsets": None}).disabled_toolsets == ()


@pytest.mark.parametrize("scope", DmScope)
async def test_a_conversation_started_on_the_page_is_private_whatever_lanes_are_shared(
    open_store: OpenStore, dm: MakeSource, scope: DmScope
) -> None:
    store = open_store(GatewayConfig(dm_scope=scope))
    ada, bob = await create_account(store, dm("ada")), await create_account(store, dm("bob"))
    conversations = Conversations(store)
    first = await conversations.start(ada, {"title": "Mine"})
    second = await conversations.start(ada, {})
    assert first.session.id != second.session.id
    assert not first.session.shared
    assert store.seen_by(ada.principal).get(first.session.id).ended_at is None
    with pytest.raises(SessionNotFound):
        store.seen_by(bob.principal).get(first.session.id)


async def create_account(store: SessionStore, source: SessionSource) -> Person:
    """Let the person behind a chat account sign in."""
    person = await store.aio.get_or_create_person(source)
    await store.engine.arun(Write(lambda tx: accounts.open_account(tx, person, to_micros(store.clock.now()))))
    return person
