"""Who reads what: the language of a person, commands as their platform takes them, and settings for owners alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from palaver import SessionSource
from palaver.core.engines.base import Write
from palaver.core.errors import AgentRejected
from palaver.core.source import BUILT_IN_PLATFORMS, Platform
from palaver.core.texts import tell_owner
from palaver.people import table as people
from palaver.people.model import Role
from palaver.platforms.loopback import LoopbackAdapter
from palaver.sessions.inbound import Outcome
from palaver.testing import ScriptedAgent
from support.gateway import wait_for_turn, wait_until
from support.inbox import TELEGRAM, list_rows, make_dm, make_group, make_inbox, say

if TYPE_CHECKING:
    from palaver import SessionStore
    from palaver.agent.base import AgentRequest
    from support.gateway import StartGateway

PREFIXES = {Platform.SLACK: "/palaver ", Platform.MATRIX: "!"}
PLATFORMS = (*BUILT_IN_PLATFORMS, Platform("irc"))


def make_role(store: SessionStore, source: SessionSource, role: Role) -> None:
    person = store.get_or_create_person(source)
    store.engine.run(Write(lambda tx: people.set_role(tx, person.id, role)))


# ---- commands ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("platform", sorted({*PLATFORMS} - {Platform.WEBHOOK, Platform.CRON}))
async def test_a_reply_names_commands_as_the_platform_takes_them(store: SessionStore, platform: Platform) -> None:
    inbox = make_inbox(store, open_platforms=frozenset(PLATFORMS))
    source = SessionSource(platform, "chat", user_id="ada")
    reply = (await say(inbox, source, "/xyzzy /retry")).reply or ""
    prefix = PREFIXES.get(platform, "/")
    assert reply == f"Unknown command `{prefix}xyzzy`. Use {prefix}help to list all commands."
    assert f"`{prefix}retry`" in ((await say(inbox, source, "/help")).reply or "")


async def test_in_a_thread_of_slack_there_are_no_slash_commands(store: SessionStore) -> None:
    inbox = make_inbox(store, open_platforms=frozenset({Platform.SLACK}))
    source = SessionSource(Platform.SLACK, "C1", chat_type="group", thread_id="1.2", user_id="ada")
    assert (await say(inbox, source, "/help undo")).reply.startswith("`!undo [n]`")  # type: ignore[union-attr]


async def test_what_people_wrote_keeps_its_slashes(store: SessionStore) -> None:
    inbox = make_inbox(store, open_platforms=frozenset({Platform.MATRIX}))
    source = SessionSource(Platform.MATRIX, "!r", user_id="@ada:x")
    await say(inbox, source, "/new /retry or not")
    reply = (await say(inbox, source, "/title /stop it")).reply or ""
    assert "**/stop it**" in reply
    assert "`!title /retry or not`" in reply  # what undoes it


# ---- languages -----------------------------------------------------------------------------------------------


@pytest.mark.both_engines
async def test_the_language_of_the_app_is_kept_and_a_chosen_one_wins(store: SessionStore) -> None:
    inbox = make_inbox(store)
    german = "Hier gibt es noch keine Nachrichten"
    assert german in ((await say(inbox, make_dm(), "/new", reported_language="de")).reply or "")
    assert german in ((await say(inbox, make_dm(), "/new")).reply or "")  # it does not always say it
    assert "no messages here yet" in ((await say(inbox, make_dm("ben"), "/new")).reply or "")
    chosen = await say(inbox, make_dm(), "/language en", reported_language="de")
    assert (chosen.reply, chosen.facts) == ("Language: English.", {"language": "en", "chosen": "en"})
    assert "no messages here yet" in ((await say(inbox, make_dm(), "/new", reported_language="de")).reply or "")
    shown = (await say(inbox, make_dm(), "/language")).reply or ""
    assert shown == "Language: English. To change it: `/language en`, `/language de`, `/language auto`."
    assert (await say(inbox, make_dm(), "/language auto")).reply == "Sprache: Deutsch."
    assert german in ((await say(inbox, make_dm(), "/new")).reply or "")
    wrong = await say(inbox, make_dm(), "/language klingon")
    assert wrong.outcome is Outcome.REJECTED
    assert "`/language de`" in (wrong.reply or "")


async def test_an_ordinary_message_changes_no_language(store: SessionStore) -> None:
    inbox = make_inbox(store)
    await say(inbox, make_dm(), "hello", reported_language="de")
    store.engine.run(Write(lambda tx: tx.execute("UPDATE identity SET language = 'xx'")))
    await say(inbox, make_dm(), "hello", reported_language="xx")  # as it is stored
    await say(inbox, make_dm(), "hello")
    assert list_rows(store, "SELECT language FROM identity") == [("xx",)]


async def test_a_person_in_a_group_is_answered_in_their_language(store: SessionStore) -> None:
    inbox = make_inbox(store)
    await say(inbox, make_dm(), "/language de")
    assert "Unbekannter Befehl" in ((await say(inbox, make_group(), "/xyzzy")).reply or "")
    assert "Unknown command" in ((await say(inbox, make_group("ben"), "/xyzzy")).reply or "")


async def test_a_stranger_gets_the_code_in_the_language_of_their_app(store: SessionStore) -> None:
    inbox = make_inbox(store, open_platforms=frozenset())
    reply = (await say(inbox, make_dm(), "hello", reported_language="de")).reply or ""
    assert "Ich kenne dich noch nicht" in reply
    assert list_rows(store, "SELECT 1 FROM person") == []


# ---- strangers -----------------------------------------------------------------------------------------------


@pytest.mark.both_engines
async def test_ignored_strangers_get_no_reply_and_leave_nothing(store: SessionStore) -> None:
    inbox = make_inbox(store, open_platforms=frozenset(), ignoring_platforms=frozenset({TELEGRAM}))
    for text in ("hello", "/help", "/start", "/link ABCD-EFGH"):
        for source in (make_dm("eve"), make_group("eve")):
            receipt = await say(inbox, source, text, message_id=f"{source.chat_id} {text}")
            assert (receipt.outcome, receipt.reply) == (Outcome.IGNORED, None)
    elsewhere = await say(inbox, replace(make_dm("eve"), platform=Platform.SIGNAL), "hello")
    assert "give this code" in (elsewhere.reply or "")
    store.engine.run(Write(lambda tx: tx.execute("DELETE FROM pairing_request")))
    store.engine.run(Write(lambda tx: tx.execute("DELETE FROM delivery")))
    for table in ("person", "identity", "pairing_request", "session", "event", "delivery", "inbound_message"):
        rows = list_rows(store, f"SELECT 1 FROM {table}")
        assert rows == [] or table == "inbound_message", table
    assert list_rows(store, "SELECT 1 FROM inbound_message WHERE platform = 'telegram'") == []


async def test_an_ignored_account_can_still_be_linked_with_a_code(store: SessionStore) -> None:
    inbox = make_inbox(store, open_platforms=frozenset(), ignoring_platforms=frozenset({TELEGRAM}))
    make_role(store, make_dm("ada"), Role.MEMBER)
    facts = (await say(inbox, make_dm("ada"), "/link")).facts or {}
    reply = (await say(inbox, make_dm("ada2"), f"/link {facts['code']}")).reply or ""
    assert "Nothing is shared yet" in reply


# ---- settings are for owners ---------------------------------------------------------------------------------


def list_texts(loopback: LoopbackAdapter, chat: str) -> list[str]:
    return [sent.body for sent in loopback.sent if sent.address.chat_id == chat]


def fail(_request: AgentRequest) -> str:
    raise AgentRejected(tell_owner("Set providers.lab.api_key.", "The model can't be used right now."))


@pytest.mark.both_engines
async def test_only_an_owner_alone_reads_which_setting_to_change(start_gateway: StartGateway) -> None:
    loopback = LoopbackAdapter()
    gateway = await start_gateway(ScriptedAgent(fail), loopback=loopback)
    sources = [loopback.get_source("olga"), loopback.get_source("ben")]
    make_role(gateway.store, sources[0], Role.OWNER)
    make_role(gateway.store, sources[1], Role.MEMBER)
    owners = await loopback.say("hello", user="olga")
    await wait_for_turn(gateway, owners.turn_id)
    await wait_until(lambda: list_texts(loopback, "olga") == ["I couldn't answer. Set providers.lab.api_key."])
    for _ in range(2):
        members = await loopback.say("hello", user="ben")
        await wait_for_turn(gateway, members.turn_id)
    refusal = "I couldn't answer. The model can't be used right now. The owner was told."
    await wait_until(lambda: list_texts(loopback, "ben") == [refusal, refusal])
    in_group = await loopback.say("hello", user="olga", chat="club")
    await wait_for_turn(gateway, in_group.turn_id)
    await wait_until(lambda: list_texts(loopback, "club") == [refusal])  # others read it, too
    told = "An answer to another person failed. Set providers.lab.api_key."
    await wait_until(lambda: list_texts(loopback, "olga")[1:] == [told])  # once, not for each message
    whys = [(await loopback.say("/why", user=user)).reply or "" for user in ("olga", "ben")]
    assert ["api_key" in why for why in whys] == [True, False]
    assert "can't be used right now" in whys[1]
