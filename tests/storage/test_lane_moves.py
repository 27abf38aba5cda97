"""Moves of a lane that cross: with other lanes, with deletions, with one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig
from palaver.domain.errors import NothingToRestore

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver import SessionSource, SessionStore

    Source = Callable[..., SessionSource]


def test_a_reset_after_a_switch_begins_in_the_lanes_own_place(store: SessionStore, dm: Source) -> None:
    """Otherwise the agent believes that it speaks to somebody else, and an answer to the origin goes astray."""
    theirs = store.record_user_message(dm("ada"), "mine")
    lane = store.record_user_message(dm("bob"), "hello")
    store.switch_session(lane.session_key, theirs.session_id)
    new = store.reset_session(lane.session_key)
    assert new.origin.chat_id == "bob"
    assert GatewayConfig().session_key(new.origin) == new.session_key == lane.session_key
    view = store.seen_by(store.person_for(dm("bob")).principal)
    assert view.get(new.session_id).id == new.session_id


def test_a_restore_does_not_lead_to_where_the_lane_is_already(store: SessionStore, dm: Source) -> None:
    first = store.record_user_message(dm(), "first")
    key = first.session_key
    store.reset_session(key)
    between = store.reset_session(key)
    store.switch_session(key, first.session_id)
    store.delete_session(between.session_id)  # and with it the two moves that led through it
    log = store.events(first.session_id)
    with pytest.raises(NothingToRestore):
        store.restore(key)
    assert store.events(first.session_id) == log


def test_a_session_two_lanes_are_on_ends_when_both_have_left(store: SessionStore, dm: Source) -> None:
    shared = store.record_user_message(dm("ada"), "ours")
    other = store.record_user_message(dm("bob"), "mine")
    store.switch_session(other.session_key, shared.session_id)
    store.reset_session(shared.session_key)
    assert store.get_session(shared.session_id).ended_at is None
    assert store.record_user_message(dm("bob"), "still here").session_id == shared.session_id
    store.reset_session(other.session_key)
    assert store.get_session(shared.session_id).ended_at is not None
    store.restore(shared.session_key)
    assert store.get_session(shared.session_id).ended_at is None


def test_the_next_title_of_a_long_line_is_free(store: SessionStore, dm: Source) -> None:
    """The number takes room from the title, which must not lead to a title that is taken already."""
    title = "T" * 100
    seen = set()
    for number in range(12):
        session_id = store.get_or_create_session(dm(thread_id=str(number))).session_id
        given = store.rename_session(session_id, store.next_title(session_id, title)).title
        assert given not in seen
        seen.add(given)
