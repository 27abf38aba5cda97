"""What a page shows of conversations, and how it begins them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig, Principal
from palaver.domain.errors import NoSuchSession, NotAllowed
from palaver.domain.keys import DmScope
from palaver.domain.person import Role
from palaver.services.conversations import Conversations, Wanted
from palaver.storage import accounts, session_lists
from palaver.storage.engines.base import Write
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from conftest import OpenStore
    from palaver import SessionSource, SessionStore
    from palaver.domain.person import Person
    from support.gateway import MakeSource


def test_a_long_list_in_which_little_fits_is_looked_through_part_by_part(
    store: SessionStore, dm: MakeSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_lists, "LOOKED_THROUGH", 4)
    monkeypatch.setattr(session_lists, "_AT_ONCE", 2)
    for number in range(9):
        said = store.record_user_message(dm("ada", thread_id=str(number)), "hello")
        if number == 0:
            store.rename_session(said.session_id, "The first")
    view = store.seen_by(store.person_for(dm("ada")).principal)
    pages = [view.overviews(text="first")]
    while pages[-1].cursor is not None:
        pages.append(view.overviews(text="first", cursor=pages[-1].cursor))
    assert [len(page) for page in pages] == [0, 0, 1]


def test_a_guest_may_not_choose_the_model_of_a_conversation(store: SessionStore, dm: MakeSource) -> None:
    session_id = store.record_user_message(dm(), "hello").session_id
    guest = Principal(store.person_for(dm()).id, Role.GUEST)
    with pytest.raises(NotAllowed):
        store.seen_by(guest).change(session_id, {"model": "large"})
    with pytest.raises(NotAllowed):
        store.seen_by(guest).change(session_id, {"toolsets": {"memory": True}})
    assert store.seen_by(guest).change(session_id, {"title": "Hello"}).session.title == "Hello"


def test_switches_of_two_who_do_not_know_of_each_other_both_hold(store: SessionStore, dm: MakeSource) -> None:
    session_id = store.record_user_message(dm(), "hello").session_id
    view = store.seen_by(Principal(store.person_for(dm()).id, Role.MEMBER))
    view.change(session_id, {"toolsets": {"memory": False}})
    assert view.change(session_id, {"toolsets": {"history": False}}).toolsets_off == ("history", "memory")
    assert view.change(session_id, {"toolsets": {"memory": True, "mcp:gone": True}}).toolsets_off == ("history",)
    assert view.overview(session_id).toolsets_off == ("history",)
    assert view.change(session_id, {"toolsets": None}).toolsets_off == ()


@pytest.mark.parametrize("scope", DmScope)
async def test_a_conversation_begun_on_a_page_is_ones_own_whatever_lanes_are_shared(
    open_store: OpenStore, dm: MakeSource, scope: DmScope
) -> None:
    store = open_store(GatewayConfig(dm_scope=scope))
    ada, bob = await signing_in(store, dm("ada")), await signing_in(store, dm("bob"))
    conversations = Conversations(store)
    first = await conversations.begin(ada, Wanted(title="Mine"))
    second = await conversations.begin(ada, Wanted())
    assert first.session.id != second.session.id
    assert not first.session.shared
    assert store.seen_by(ada.principal).get(first.session.id).ended_at is None
    with pytest.raises(NoSuchSession):
        store.seen_by(bob.principal).get(first.session.id)


async def signing_in(store: SessionStore, source: SessionSource) -> Person:
    """Somebody from a chat who may sign in."""
    person = await store.aio.person_for(source)
    await store.engine.arun(Write(lambda tx: accounts.open_account(tx, person, to_micros(store.clock.now()))))
    return person
