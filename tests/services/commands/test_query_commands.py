"""Looking: lists, searches, reasons, numbers, exports. None of it changes anything."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from palaver import GatewayConfig, ResetPolicy, SessionSource, TurnUsage
from palaver.domain.delivery import DeliveryState
from palaver.domain.events import EventKind
from palaver.domain.profile import TurnRules
from palaver.domain.turn import BusyPolicy
from palaver.storage import accounts, compactions, deliveries
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from collections.abc import Callable

    from commands.conftest import Chat
    from palaver.storage.engines.base import Transaction

    Source = Callable[..., SessionSource]


# ---- /sessions ---------------------------------------------------------------------------------------------


def test_sessions_are_listed_newest_first_page_by_page(chat: Chat, dm: Source) -> None:
    for number in range(12):
        chat(dm(), "/new")
        chat.say(dm(), f"talk {number}")
    first = chat(dm(), "/sessions")
    assert [each["preview"] for each in first.facts["sessions"]] == [f"talk {number}" for number in range(11, 1, -1)]
    assert "`/sessions 2` shows more" in first.text
    assert "“talk 11”, just now, 1 message, **here**" in first.text
    second = chat(dm(), "/sessions 2")
    assert [each["preview"] for each in second.facts["sessions"]] == ["talk 1", "talk 0"]
    assert "shows more" not in second.text
    assert "no page 3" in chat(dm(), "/sessions 3").text


def test_sessions_are_found_by_words_of_title_or_last_line(chat: Chat, dm: Source) -> None:
    chat(dm(), "/new Trip to Lisbon")
    lisbon = chat.say(dm(), "by train", "at night").session_id
    chat(dm(), "/new")
    chat.say(dm(), "something else")
    assert [each["id"] for each in chat(dm(), "/sessions LISBON night").facts["sessions"]] == [lisbon]
    assert "`/search words`" in chat(dm(), "/sessions Porto").text


@pytest.mark.parametrize("page", ["0", "51", "999", "9" * 5000])
def test_pages_have_their_limits(chat: Chat, dm: Source, page: str) -> None:
    assert "from 1 to 50" in chat.refused(dm(), f"/sessions {page}")


def test_no_conversations_are_said_to_be_none(chat: Chat, dm: Source) -> None:
    assert chat(dm(), "/sessions").text == "There are no conversations here yet."


# ---- /search -----------------------------------------------------------------------------------------------


def test_messages_are_found_with_title_age_and_the_way_back(chat: Chat, dm: Source) -> None:
    chat(dm(), "/new Trip")
    trip = chat.say(dm(), "the night train to Lisbon").session_id
    chat(dm(), "/new")
    chat.clock.advance(hours=2)
    chat.say(dm(), "is the train late?")
    text = chat(dm(), "/search train").text
    here, there = text.split("\n\n")[1].splitlines()
    assert "**here**" in here
    assert "late?" in here
    assert "**Trip**, 2 h ago" in there
    assert f"`/resume {trip}`" in there
    assert chat(dm(), f"/resume {trip}").session_id == trip


def test_a_search_finds_what_was_said_a_moment_ago(chat: Chat, dm: Source) -> None:
    chat.say(dm(), "just now")
    assert len(chat(dm(), "/search now").facts["hits"]) == 1


def test_only_the_newest_hits_are_shown(chat: Chat, dm: Source) -> None:
    chat.say(dm(), *("again" for _ in range(20)))
    reply = chat(dm(), "/search again")
    assert len(reply.facts["hits"]) == 8
    assert "Only the newest are shown." in reply.text


def test_a_search_needs_words_and_says_when_it_finds_nothing(chat: Chat, dm: Source) -> None:
    chat.say(dm(), "hello")
    for empty in ("/search", "/search ...", '/search ""'):
        assert "`/search words`" in chat.refused(dm(), empty)
    assert chat(dm(), "/search Porto").text == "Nothing was found for “Porto”."


# ---- /why --------------------------------------------------------------------------------------------------


def test_why_tells_how_the_first_conversation_began(chat: Chat, dm: Source) -> None:
    assert "nothing has been said" in chat.refused(dm(), "/why")
    chat.say(dm(), "hello")
    chat.clock.advance(hours=3)
    reply = chat(dm(), "/why")
    assert "the first message began this conversation" in reply.text
    assert "3 h ago" in reply.text
    assert reply.facts == {"reason": "first", "previous": None, "lately": []}


def test_why_explains_a_reset_and_names_what_came_before(
    open_chat: Callable[[GatewayConfig], Chat], dm: Source
) -> None:
    chat = open_chat(GatewayConfig(default_reset_policy=ResetPolicy(mode="idle", idle_minutes=120)))  # type: ignore[arg-type]
    chat(dm(), "/new Lisbon")
    old = chat.say(dm(), "hello").session_id
    chat.clock.advance(hours=3)
    chat.say(dm(), "again")
    text = chat(dm(), "/why").text
    assert "idle for more than 2 hours" in text
    assert "**Lisbon**" in text
    assert f"`/resume {old}`" in text


@pytest.mark.parametrize(("command", "words"), [("/new", "asked for a new"), ("/branch", "copied from “hi”")])
def test_why_tells_of_what_people_did(chat: Chat, dm: Source, command: str, words: str) -> None:
    chat.say(dm(), "hello", "hi")
    chat(dm(), command)
    assert words in chat(dm(), "/why").text


def test_why_says_nothing_of_a_conversation_that_was_deleted(chat: Chat, dm: Source) -> None:
    old = chat.say(dm(), "hello").session_id
    chat(dm(), "/new")
    chat.store.delete_session(old)
    assert chat(dm(), "/why").facts["previous"] is None


def test_why_tells_what_was_summed_up_interrupted_or_failed(chat: Chat, dm: Source) -> None:
    said = chat.say(dm(), *"abcdef")
    chat.note(said.session_id, EventKind.FAILED, error="the provider is down")
    chat.clock.advance(hours=1)
    chat.note(said.session_id, EventKind.INTERRUPTED)
    no, now = chat.number(said.session_id), to_micros(chat.clock.now())
    chat.write(lambda tx: compactions.compact(tx, no, "in short", kept_from=6, messages=4, now=now))
    reply = chat(dm(), "/why")
    assert "1 h ago: an answer failed (the provider is down)" in reply.text
    assert "just now: an answer was interrupted" in reply.text
    assert "a summary instead of the first 4 messages; /restore" in reply.text
    assert [each["kind"] for each in reply.facts["lately"]] == ["compacted", "interrupted", "failed"]


@pytest.mark.parametrize(
    ("state", "words"),
    [(DeliveryState.FAILED, "could not be delivered"), (DeliveryState.UNCERTAIN, "may or may not have arrived")],
)
def test_why_tells_of_an_answer_that_did_not_arrive(chat: Chat, dm: Source, state: DeliveryState, words: str) -> None:
    said = chat.say(dm(), "hello", "hi")
    no, now = chat.number(said.session_id), to_micros(chat.clock.now())

    def lose(tx: Transaction) -> None:
        deliveries.enqueue(tx, deliveries.Outgoing(address="telegram::ada", content="hi", session_no=no), now)
        (sending,) = deliveries.claim(tx, "w", now, now + 1, 1, "telegram")
        deliveries.end(tx, sending, state, now, error="the line broke")

    chat.write(lose)
    assert f"just now: “hi” {words} (the line broke)" in chat(dm(), "/why").text


# ---- /usage ------------------------------------------------------------------------------------------------


def test_usage_tells_tokens_cost_and_model(chat: Chat, dm: Source) -> None:
    said = chat.say(dm(), "hello")
    assert chat(dm(), "/usage").text == "Nothing has been used in this conversation yet."
    chat.store.update_session(
        said.session_id,
        TurnUsage(
            model="large",
            input_tokens=12000,
            output_tokens=345,
            reasoning_tokens=45,
            cost="0.0123",
            last_prompt_tokens=900,
        ),
    )
    text = chat(dm(), "/usage").text
    assert "12,000 in, 345 out (45 spent on thinking)" in text
    assert "$0.0123 (estimated)" in text
    assert "`large`" in text
    assert "900 tokens at the last answer" in text


def test_an_unknown_cost_is_said_to_be_unknown(chat: Chat, dm: Source) -> None:
    said = chat.say(dm(), "hello")
    chat.store.update_session(said.session_id, TurnUsage(input_tokens=10, output_tokens=1))
    assert "**Cost**: unknown: 1 turn without a known price" in chat(dm(), "/usage").text
    chat.store.update_session(said.session_id, TurnUsage(input_tokens=10, output_tokens=1, cost="0.00001"))
    assert "less than $0.0001 (estimated), and 1 turn whose price is unknown" in chat(dm(), "/usage").text


# ---- /status -----------------------------------------------------------------------------------------------


def test_status_tells_who_answers_and_what_is_going_on(open_chat: Callable[[GatewayConfig], Chat], dm: Source) -> None:
    policy = ResetPolicy(mode="both", idle_minutes=90, at_hour=4, timezone="Europe/Berlin")  # type: ignore[arg-type]
    chat = open_chat(GatewayConfig(default_reset_policy=policy))
    chat.rules = TurnRules(busy=BusyPolicy.STEER)
    fresh = chat(dm(), "/status").text
    assert "nothing has been said here yet" in fresh
    assert "an agent with two models" in fresh
    chat(dm(), "/new Lisbon")
    said = chat.say(dm(), "hello", "hi")
    chat.store.update_session(said.session_id, TurnUsage(last_prompt_tokens=4321))
    chat(dm(), "/model large")
    chat.wait(said.session_id)
    chat.work()
    chat.wait(said.session_id)
    reply = chat(dm(), "/status")
    for words in (
        "`large` (chosen for this conversation)",
        f"**Lisbon**, `{said.session_id}`, 2 messages",
        "4,321 tokens",
        "answering, 1 message waiting",
        "(`steer`)",
        "after 90 minutes without a message, and every day at 04:00 (Europe/Berlin)",
    ):
        assert words in reply.text
    assert reply.facts["running"] is True
    assert reply.facts["waiting"] == 1


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ({"mode": "none"}, "never by itself"),
        ({"mode": "idle", "idle_minutes": 1440}, "after 1 day without a message"),
        ({"mode": "idle", "idle_minutes": 120}, "after 2 hours without a message"),
        ({"mode": "daily", "at_hour": 5}, "every day at 05:00 (UTC)"),
    ],
)
def test_status_says_when_conversations_start_afresh(
    open_chat: Callable[[GatewayConfig], Chat], dm: Source, policy: dict[str, object], words: str
) -> None:
    chat = open_chat(GatewayConfig(default_reset_policy=ResetPolicy(**policy)))  # type: ignore[arg-type]
    assert f"**Starts afresh**: {words}" in chat(dm(), "/status").text


def test_on_the_page_the_rule_is_told_of_where_a_conversation_takes_place(
    open_chat: Callable[[GatewayConfig], Chat], dm: Source
) -> None:
    idle = ResetPolicy(mode="idle", idle_minutes=120)  # type: ignore[arg-type]
    chat = open_chat(GatewayConfig(default_reset_policy=idle))
    there = chat.say(dm(), "hello", "hi").session_id
    ada = chat.store.person_for(dm())
    chat.write(lambda tx: accounts.open_account(tx, ada, 0))
    page = SessionSource("web", "a-tab", user_id=ada.id)
    here = chat.say(page, "hello", "hi").session_id
    assert "**Starts afresh**: never by itself" in chat(page, "/status", shown=here).text
    assert "**Starts afresh**: after 2 hours" in chat(page, "/status", shown=there).text
    copy = chat.store.fork(there).id
    assert "**Starts afresh**: never by itself" in chat(page, "/status", shown=copy).text


def test_why_tells_the_rule_of_the_place_that_began_it_wherever_it_is_asked(
    open_chat: Callable[[GatewayConfig], Chat], dm: Source
) -> None:
    idle = ResetPolicy(mode="idle", idle_minutes=120)  # type: ignore[arg-type]
    chat = open_chat(GatewayConfig(default_reset_policy=idle))
    chat.say(dm(), "hello", "hi")
    chat.clock.advance(hours=3)
    began = chat.say(dm(), "hello again").session_id
    ada = chat.store.person_for(dm())
    chat.write(lambda tx: accounts.open_account(tx, ada, 0))
    page = SessionSource("web", "a-tab", user_id=ada.id)
    assert "idle for more than 2 hours" in chat(page, "/why", shown=began).text


# ---- /export -----------------------------------------------------------------------------------------------


def test_a_short_conversation_is_sent_to_a_chat_as_markdown(chat: Chat, dm: Source) -> None:
    said = chat.say(dm(), "hello *you*", "hi")
    chat.store.append_to_transcript(
        said.session_id,
        [
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [{"id": "c", "function": {"name": "look", "arguments": '{"at": "sky"}'}}],
            },
            {"role": "tool", "content": "blue ``` sky", "tool_call_id": "c", "tool_name": "look"},
            {"role": "user", "content": [{"type": "text", "text": "and this?"}, {"type": "image", "url": "x"}]},
        ],
    )
    text = chat(dm(), "/export").text
    assert text.startswith(f"# and this?\n\n- id: {said.session_id}\n")
    assert "## Ada, 2026-11-15 08:12 UTC\n\nhello *you*" in text
    assert "## agent, 2026-11-15 08:12 UTC\n\nhi" in text
    assert '→ look({"at": "sky"})' in text
    assert "````\nblue ``` sky\n````" in text
    assert "and this?\n\n[image]" in text


@pytest.mark.parametrize("form", ["", "json", "md"])
def test_what_does_not_fit_into_a_chat_is_to_be_had_elsewhere(chat: Chat, dm: Source, form: str) -> None:
    said = chat.say(dm(), "x" * 4000, "hi")
    reply = chat(dm(), f"/export {form}")
    assert f"`palaver sessions export {said.session_id}`" in reply.text
    assert "2 messages" in reply.text
    assert "document" not in reply.facts


@pytest.mark.parametrize("form", ["json", "markdown"])
def test_where_the_conversation_is_read_the_document_comes_as_facts(chat: Chat, form: str) -> None:
    source = SessionSource.local_cli()
    said = chat.say(source, "x" * 4000, "hi")
    reply = chat(source, f"/export {form}")
    assert f"Exported as {form}" in reply.text
    assert reply.facts["document"] == chat.store.export(said.session_id)
    assert json.loads(json.dumps(reply.facts)) == reply.facts
    assert ("x" * 4000 in reply.facts.get("text", "")) is (form == "markdown")


def test_what_cannot_be_exported_is_refused(chat: Chat, dm: Source) -> None:
    assert "nothing has been said" in chat.refused(dm(), "/export")
    chat.say(dm(), "hello")
    assert "`/export json`" in chat.refused(dm(), "/export pdf")


# ---- all of them -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "command",
    [
        *("/sessions", "/sessions a", "/why", "/usage", "/status", "/export", "/export json", "/resume", "/title"),
        *("/queue", "/model", "/busy", "/help", "/help undo"),
    ],
)
def test_looking_changes_nothing(chat: Chat, dm: Source, command: str) -> None:
    chat.say(dm(), *"abcdef")
    before = chat.everything()
    chat(dm(), command)
    assert chat.everything() == before


@pytest.mark.parametrize("name", ["why", "usage", "status"])
def test_a_command_that_stands_alone_takes_nothing_more(chat: Chat, dm: Source, name: str) -> None:
    chat.say(dm(), "hello")
    assert f"`/{name}` stands alone" in chat.refused(dm(), f"/{name} now")
