"""The status, usage and history of a conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig, Platform, ResetPolicy, SessionSource, TurnUsage
from palaver.config.agent_rules import AgentProfile, Profile, TurnRules
from palaver.core.clock import to_micros
from palaver.core.source import ChatType
from palaver.delivery import table as deliveries
from palaver.people import account_table as accounts
from palaver.people.model import Role
from palaver.sessions import versions_table as compactions
from palaver.sessions.delivery import DeliveryState
from palaver.sessions.events import EventKind
from palaver.sessions.turn import BusyPolicy

if TYPE_CHECKING:
    from collections.abc import Callable

    from commands.conftest import Chat
    from palaver.core.engines.base import Transaction

    Source = Callable[..., SessionSource]


# ---- /why --------------------------------------------------------------------------------------------------


def test_why_explains_the_first_conversation(chat: Chat, dm: Source) -> None:
    assert "no messages here yet" in chat.expect_error(dm(), "/why")
    chat.add_messages(dm(), "hello")
    chat.clock.advance(hours=3)
    reply = chat.run(dm(), "/why")
    assert "started with the first message here" in reply.text
    assert "3 h ago" in reply.text
    assert reply.data == {"reason": "first", "end_reason": None, "previous_id": None, "recent_events": []}


def test_why_explains_a_reset_and_names_the_previous_conversation(
    open_chat: Callable[[GatewayConfig], Chat], dm: Source
) -> None:
    chat = open_chat(GatewayConfig(default_reset_policy=ResetPolicy(mode="idle", idle_minutes=120)))  # type: ignore[arg-type]
    chat.run(dm(), "/new Lisbon")
    old = chat.add_messages(dm(), "hello").session_id
    chat.clock.advance(hours=3)
    chat.add_messages(dm(), "again")
    text = chat.run(dm(), "/why").text
    assert "idle for more than 2 hours" in text
    assert "**Lisbon**" in text
    assert f"`/resume {old}`" in text


@pytest.mark.parametrize(("command", "words"), [("/new", "asked for a new"), ("/branch", "copied from **hello**")])
def test_why_explains_what_people_did(chat: Chat, dm: Source, command: str, words: str) -> None:
    chat.add_messages(dm(), "hello", "hi")
    chat.run(dm(), command)
    assert words in chat.run(dm(), "/why").text


def test_status_tells_the_owner_which_platforms_are_not_connected(
    open_chat: Callable[[GatewayConfig], Chat], dm: Source
) -> None:
    chat = open_chat(GatewayConfig(connected_platforms=(Platform.TELEGRAM,)))
    assert "Telegram" not in chat.run(dm(), "/status").text
    reply = chat.run(dm(), "/status", role=Role.OWNER)
    assert "**Not connected**: Telegram." in reply.text
    assert reply.data["unconnected_platforms"] == ["telegram"]


def test_why_leaves_out_a_deleted_conversation(chat: Chat, dm: Source) -> None:
    old = chat.add_messages(dm(), "hello").session_id
    chat.run(dm(), "/new")
    chat.store.delete_session(old)
    assert chat.run(dm(), "/why").data["previous_id"] is None


def test_why_lists_summaries_interruptions_and_failures(chat: Chat, dm: Source) -> None:
    recorded = chat.add_messages(dm(), *"abcdef")
    chat.append_event(recorded.session_id, EventKind.TURN_FAILED, error="the provider is down")
    chat.clock.advance(hours=1)
    chat.append_event(recorded.session_id, EventKind.TURN_INTERRUPTED)
    no, now = chat.get_session_no(recorded.session_id), to_micros(chat.clock.now())
    new = compactions.NewCompaction(summary="in short", first_kept_seq=6, last_replaced_seq=5, message_count=4)
    chat.write(lambda tx: compactions.create(tx, no, new, now))
    reply = chat.run(dm(), "/why")
    assert "1 h ago: an answer failed (the provider is down)" in reply.text
    assert "just now: an answer was interrupted" in reply.text
    assert "The agent sees a summary of the first 4 messages; you still see them." in reply.text
    assert [each["kind"] for each in reply.data["recent_events"]] == ["compacted", "turn_interrupted", "turn_failed"]


@pytest.mark.parametrize(
    ("state", "words"),
    [(DeliveryState.FAILED, "wasn't delivered"), (DeliveryState.UNCERTAIN, "may not have been delivered")],
)
def test_why_lists_delivery_problems(chat: Chat, dm: Source, state: DeliveryState, words: str) -> None:
    recorded = chat.add_messages(dm(), "hello", "hi")
    no, now = chat.get_session_no(recorded.session_id), to_micros(chat.clock.now())

    def lose(tx: Transaction) -> None:
        deliveries.enqueue(tx, "telegram::ada", "hi", now, session_no=no)
        (sending,) = deliveries.claim_due(tx, "w", now, now + 1, 1, (Platform.TELEGRAM, ""))
        deliveries.finish(tx, sending, state, now, error="the line broke")

    chat.write(lose)
    assert f"just now: “hi” {words} (the line broke)" in chat.run(dm(), "/why").text


# ---- /usage ------------------------------------------------------------------------------------------------


@pytest.mark.both_engines
def test_usage_shows_tokens_cost_and_model(chat: Chat, dm: Source) -> None:
    recorded = chat.add_messages(dm(), "hello")
    assert chat.run(dm(), "/usage").text == "This conversation hasn't used any tokens yet."
    chat.store.update_session(
        recorded.session_id,
        TurnUsage(
            model="large",
            input_tokens=12000,
            output_tokens=345,
            reasoning_tokens=45,
            cost="0.0123",
            last_prompt_tokens=900,
        ),
    )
    text = chat.run(dm(), "/usage").text
    assert "12,000 in, 345 out (45 for reasoning)" in text
    assert "$0.0123 (estimated)" in text
    assert "`large`" in text
    assert "900 tokens at the last answer" in text


@pytest.mark.both_engines
def test_usage_shows_an_unknown_cost_as_unknown(chat: Chat, dm: Source) -> None:
    recorded = chat.add_messages(dm(), "hello")
    chat.store.update_session(recorded.session_id, TurnUsage(input_tokens=10, output_tokens=1))
    assert "**Cost**: unknown (1 turn without a known price)" in chat.run(dm(), "/usage").text
    chat.store.update_session(recorded.session_id, TurnUsage(input_tokens=10, output_tokens=1, cost="0.00001"))
    assert "less than $0.0001 (estimated), plus 1 turn without a known price" in chat.run(dm(), "/usage").text


# ---- /status -----------------------------------------------------------------------------------------------


def test_status_shows_the_agent_and_what_is_going_on(open_chat: Callable[[GatewayConfig], Chat], dm: Source) -> None:
    policy = ResetPolicy(mode="both", idle_minutes=90, at_hour=4, timezone="Europe/Berlin")  # type: ignore[arg-type]
    chat = open_chat(GatewayConfig(default_reset_policy=policy))
    chat.rules = TurnRules(busy_policy=BusyPolicy.STEER)
    fresh = chat.run(dm(), "/status").text
    assert "no messages yet" in fresh
    assert "an agent with two models" in fresh
    chat.run(dm(), "/new Lisbon")
    recorded = chat.add_messages(dm(), "hello", "hi")
    chat.store.update_session(recorded.session_id, TurnUsage(last_prompt_tokens=4321))
    chat.run(dm(), "/model large")
    chat.queue_turn(recorded.session_id)
    chat.claim_turns()
    chat.queue_turn(recorded.session_id)
    reply = chat.run(dm(), "/status")
    for words in (
        "`large` (chosen for this conversation)",
        f"**Lisbon**, `{recorded.session_id}`, 2 messages",
        "4,321 tokens",
        "responding, 1 message queued",
        "(`steer`)",
        "after 90 minutes without messages, and every day at 04:00 (Europe/Berlin)",
    ):
        assert words in reply.text
    assert reply.data["running"] is True
    assert reply.data["queued"] == 1


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ({"mode": "none"}, "never"),
        ({"mode": "idle", "idle_minutes": 1440}, "after 1 day without messages"),
        ({"mode": "idle", "idle_minutes": 120}, "after 2 hours without messages"),
        ({"mode": "daily", "at_hour": 5}, "every day at 05:00 (UTC)"),
    ],
)
def test_status_shows_when_conversations_restart(
    open_chat: Callable[[GatewayConfig], Chat], dm: Source, policy: dict[str, object], words: str
) -> None:
    chat = open_chat(GatewayConfig(default_reset_policy=ResetPolicy(**policy)))  # type: ignore[arg-type]
    assert f"**Automatic restart**: {words}" in chat.run(dm(), "/status").text


@pytest.mark.both_engines
def test_status_and_why_name_who_set_the_reset_policy(open_chat: Callable[[GatewayConfig], Chat], dm: Source) -> None:
    idle = ResetPolicy(mode="idle", idle_minutes=120)  # type: ignore[arg-type]
    chat = open_chat(GatewayConfig(reset_by_type={ChatType.DM: idle}, reset_by_profile={"work": ResetPolicy()}))
    chat.profile = AgentProfile(profiles={"work": Profile()})
    chat.add_messages(dm(), "hello", "hi")
    assert "after 2 hours without messages (set for direct messages)" in chat.run(dm(), "/status").text
    chat.run(dm(), "/profile work")
    status = chat.run(dm(), "/status")
    assert "**Automatic restart**: never (set for the profile “work”)" in status.text
    assert status.data["reset_setting"] == "profiles.work.session_reset"
    chat = open_chat(GatewayConfig(reset_by_profile={"work": idle}))
    chat.profile = AgentProfile(profiles={"work": Profile()})
    session_id = chat.add_messages(dm("ben"), "hello", "hi").session_id
    chat.clock.advance(hours=3)
    assert "**Automatic restart**: never (default)" in chat.run(dm("ben"), "/status").text
    chat.run(dm("ben"), "/profile work")
    assert chat.add_messages(dm("ben"), "hello").session_id == session_id  # the silence before it does not count
    chat.clock.advance(hours=3)
    chat.add_messages(dm("ben"), "again")
    assert "The conversation with the profile “work” was idle for more than 2 hours" in chat.run(dm("ben"), "/why").text


@pytest.mark.both_engines
def test_status_on_the_page_shows_the_reset_policy_of_the_chat(
    open_chat: Callable[[GatewayConfig], Chat], dm: Source
) -> None:
    idle = ResetPolicy(mode="idle", idle_minutes=120)  # type: ignore[arg-type]
    chat = open_chat(GatewayConfig(default_reset_policy=idle))
    there = chat.add_messages(dm(), "hello", "hi").session_id
    ada = chat.store.get_or_create_person(dm())
    chat.write(lambda tx: accounts.open_account(tx, ada, 0))
    page = SessionSource("web", "a-tab", user_id=ada.id)
    here = chat.add_messages(page, "hello", "hi").session_id
    assert "**Automatic restart**: never" in chat.run(page, "/status", session_id=here).text
    assert "**Automatic restart**: after 2 hours" in chat.run(page, "/status", session_id=there).text
    copy = chat.store.fork(there).id
    assert "**Automatic restart**: never" in chat.run(page, "/status", session_id=copy).text


def test_why_on_the_page_explains_the_reset_policy_of_the_chat(
    open_chat: Callable[[GatewayConfig], Chat], dm: Source
) -> None:
    idle = ResetPolicy(mode="idle", idle_minutes=120)  # type: ignore[arg-type]
    chat = open_chat(GatewayConfig(default_reset_policy=idle))
    chat.add_messages(dm(), "hello", "hi")
    chat.clock.advance(hours=3)
    began = chat.add_messages(dm(), "hello again").session_id
    ada = chat.store.get_or_create_person(dm())
    chat.write(lambda tx: accounts.open_account(tx, ada, 0))
    page = SessionSource("web", "a-tab", user_id=ada.id)
    assert "idle for more than 2 hours" in chat.run(page, "/why", session_id=began).text
