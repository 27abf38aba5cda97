"""Every public value is the same after `to_dict`, JSON text and `from_dict`, and ignores keys it does not know."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, strategies as st

from palaver import (
    Event,
    GatewayConfig,
    HomeChannel,
    Message,
    Principal,
    ResetPolicy,
    Role,
    Session,
    SessionContext,
    SessionEntry,
    SessionSource,
    TurnUsage,
)
from palaver.core.errors import InvalidInput
from palaver.core.ids import JobId, PersonId, ProjectId, SessionId, SessionKey
from palaver.core.source import ChatType, Platform
from palaver.sessions.events import EventKind
from palaver.sessions.keys import DmScope
from palaver.sessions.model import EndReason, StartReason
from palaver.sessions.policy import ResetMode
from palaver.sessions.usage import CostStatus, UsageTotals

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

texts = st.text(max_size=20)
names = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)
optional_names = st.none() | names
counts = st.integers(0, 10**12)
times = st.integers(0, 4 * 10**15).map(lambda micros: EPOCH + timedelta(microseconds=micros))
platforms = st.sampled_from(["telegram", "web", "local", "my-plugin_1"]).map(Platform)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)

sources = st.builds(
    SessionSource,
    platforms,
    texts,
    chat_name=optional_names,
    chat_type=st.sampled_from(ChatType),
    user_id=optional_names,
    user_name=optional_names,
    thread_id=optional_names,
    chat_topic=optional_names,
    user_id_alt=optional_names,
    chat_id_alt=optional_names,
)
totals = st.builds(
    UsageTotals,
    input_tokens=counts,
    output_tokens=counts,
    cache_read_tokens=counts,
    cache_write_tokens=counts,
    reasoning_tokens=counts,
    cost_nanos=st.none() | counts,
    cost_status=st.sampled_from(CostStatus),
    cost_source=optional_names,
    unpriced_turns=counts,
)


def build_session(source: SessionSource, **fields: Any) -> Session:
    source_json = json.dumps(source.to_dict(), separators=(",", ":"))
    return Session(platform=source.platform, chat_type=source.chat_type, source_json=source_json, **fields)


sessions = st.builds(
    build_session,
    sources,
    id=names.map(SessionId),
    key=names.map(SessionKey),
    title=optional_names,
    auto_title=optional_names,
    preview=texts,
    shared=st.booleans(),
    message_count=counts,
    tool_call_count=counts,
    created_at=times,
    active_at=st.none() | times,
    last_message_at=st.none() | times,
    last_human_at=st.none() | times,
    ended_at=st.none() | times,
    end_reason=st.none() | st.sampled_from(EndReason),
    start_reason=st.sampled_from(StartReason),
    previous_had_messages=st.booleans(),
    is_first_contact=st.booleans(),
    pinned=st.booleans(),
    archived=st.booleans(),
    project_id=optional_names.map(lambda name: None if name is None else ProjectId(name)),
    parent_id=optional_names.map(lambda name: None if name is None else SessionId(name)),
    model=optional_names,
    model_provider=optional_names,
    last_prompt_tokens=counts,
    usage=totals,
)
messages = st.fixed_dictionaries(
    {
        "role": st.sampled_from(["system", "user", "assistant", "tool"]),
        "content": st.none()
        | texts
        | st.lists(texts | st.fixed_dictionaries({"type": st.just("text"), "text": texts})),
    },
    optional={
        "author": st.fixed_dictionaries({"name": texts}, optional={"id": names}),
        "platform_message_id": names,
        "tool_calls": st.lists(st.dictionaries(names, json_values, max_size=2), min_size=1, max_size=3),
        "tool_call_id": texts,
        "tool_name": texts,
        "reasoning": texts,
        "interrupted": st.just(True),
        "is_error": st.just(True),
        "duration_ms": counts,
        "answers": counts,
        "x_vendor": json_values.filter(lambda value: value is not None),
    },
).map(Message.from_dict)
events = st.builds(
    Event,
    seq=counts,
    kind=st.sampled_from(EventKind),
    at=times,
    message=st.none() | messages,
    facts=st.dictionaries(texts, json_values, max_size=3),
    person_id=optional_names.map(lambda name: None if name is None else PersonId(name)),
    hidden=st.booleans(),
)
policies = st.builds(
    ResetPolicy,
    mode=st.sampled_from(ResetMode),
    idle_minutes=st.integers(1, 10_000),
    at_hour=st.integers(0, 23),
    timezone=st.sampled_from(["UTC", "Europe/Berlin"]),
    notify=st.booleans(),
)
homes = st.builds(HomeChannel, platforms, names, texts, optional_names)
configs = st.builds(
    GatewayConfig,
    connected_platforms=st.lists(platforms, max_size=3).map(tuple),
    home_channels=st.lists(homes, max_size=3).map(lambda channels: {each.platform: each for each in channels}),
    default_reset_policy=policies,
    reset_by_type=st.dictionaries(st.sampled_from(ChatType), policies, max_size=2),
    reset_by_platform=st.dictionaries(platforms, policies, max_size=2),
    group_sessions_per_user=st.booleans(),
    thread_sessions_per_user=st.booleans(),
    dm_scope=st.sampled_from(DmScope),
    agent=st.sampled_from(["main", "helper-2"]),
    redact_pii=st.booleans(),
)
contexts = st.builds(
    SessionContext,
    source=sources,
    connected_platforms=st.lists(platforms, max_size=3).map(tuple),
    home_channels=st.lists(homes, max_size=3).map(tuple),
    shared=st.booleans(),
    dm_scope=st.sampled_from(DmScope),
    can_send=st.booleans(),
    is_first_contact=st.booleans(),
    session_id=optional_names,
    session_key=optional_names,
    created_at=st.none() | times,
    workspace=optional_names,
)
usages = st.builds(
    TurnUsage,
    turn_id=optional_names,
    model=optional_names,
    provider=optional_names,
    input_tokens=counts,
    output_tokens=counts,
    cost=st.none() | st.integers(0, 10**12).map(lambda nanos: Decimal(nanos) / 10**9),
    cost_status=st.none() | st.sampled_from(CostStatus),
    cost_source=optional_names,
    last_prompt_tokens=st.none() | counts,
)
principals = st.builds(
    Principal,
    names.map(PersonId),
    st.sampled_from(Role),
    optional_names.map(lambda name: None if name is None else JobId(name)),
)
entries = st.builds(SessionEntry, names.map(SessionKey), sessions, st.booleans())
STRATEGIES = [sources, sessions, messages, events, policies, homes, configs, contexts, usages, principals, entries]
IDS = ["source", "session", "message", "event", "policy", "home", "config", "context", "usage", "principal", "entry"]


@pytest.mark.parametrize("strategy", STRATEGIES, ids=IDS)
@given(data=st.data())
def test_a_value_is_the_same_after_a_round_trip_through_json(strategy: st.SearchStrategy[Any], data: Any) -> None:
    value = data.draw(strategy)
    text = json.dumps(value.to_dict())
    assert type(value).from_dict(json.loads(text)) == value
    if not isinstance(value, Message):  # a message keeps the keys that it does not know
        assert type(value).from_dict(value.to_dict() | {"added_later": {"x": 1}}) == value


@given(sessions, st.data())
def test_an_invalid_session_is_refused_with_its_key(session: Session, data: st.DataObject) -> None:
    fields = session.to_dict()
    key = data.draw(st.sampled_from(["id", "key", "created_at", "message_count", "start_reason", "usage", "shared"]))
    with pytest.raises(InvalidInput, match=key):
        Session.from_dict({**fields, key: object()})
    with pytest.raises(InvalidInput, match=key):
        Session.from_dict({name: value for name, value in fields.items() if name != key})


@pytest.mark.parametrize("data", [[], None, "x", {"seq": 1}, {"seq": True}, {"seq": 1, "kind": "party"}])
def test_an_invalid_event_is_refused(data: Any) -> None:
    with pytest.raises(InvalidInput):
        Event.from_dict(data)
