"""Moves of a lane that interfere with other lanes, with deletions, and with one another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig
from palaver.core.errors import NothingToRestore

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver import SessionSource, SessionStore

    MakeSource = Callable[..., SessionSource]

pytestmark = pytest.mark.both_engines


def test_a_reset_after_a_switch_starts_a_session_in_the_lanes_own_place(store: SessionStore, dm: MakeSource) -> None:
    """Otherwise the agent believes that it talks to another person, and an answer to the origin is sent elsewhere."""
    others_session = store.record_user_message(dm("ada"), "mine")
    lane = store.record_user_message(dm("bob"), "hello")
    store.switch_session(lane.session_key, others_session.session_id)
    new = store.reset_session(lane.session_key)
    assert new.origin.chat_id == "bob"
    assert GatewayConfig().build_session_key(new.origin) == new.session_key == lane.session_key
    view = store.seen_by(store.get_or_create_person(dm("bob")).principal)
    assert view.get(new.session_id).id == new.session_id


def test_restore_does_not_lead_to_the_session_that_the_lane_is_on(store: SessionStore, dm: MakeSource) -> None:
    first = store.record_user_message(dm(), "first")
    key = first.session_key
    store.reset_session(key)
    between = store.reset_session(key)
    store.switch_session(key, first.session_id)
    store.delete_session(between.session_id)  # and with it the two moves that led through it
    log = store.load_events(first.session_id)
    with pytest.raises(NothingToRestore):
        store.restore(key)
    assert store.load_events(first.session_id) == log


def test_a_session_that_two_lanes_are_on_ends_when_both_have_left(store: SessionStore, dm: MakeSource) -> None:
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
