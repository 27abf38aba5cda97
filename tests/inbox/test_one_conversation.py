"""One person on two chat platforms and the page, with a running gateway: one conversation, and nothing for others."""

from __future__ import annotations

from typing import TYPE_CHECKING

from palaver import GatewayConfig, Platform, SessionStore
from palaver.config.agent_rules import AgentProfile, TurnRules
from palaver.core.clock import to_micros
from palaver.core.engines.base import Write
from palaver.gateway.gateway import Gateway
from palaver.people import account_table as accounts, table as people
from palaver.people.model import Role
from palaver.platforms.loopback import LoopbackAdapter
from palaver.sessions.conversations import build_person_source
from palaver.sessions.inbound import Inbound
from palaver.sessions.keys import DmScope
from palaver.testing import ScriptedAgent
from support.gateway import load_texts, wait_for_turn, wait_until
from support.people import find_code

if TYPE_CHECKING:
    from palaver.core.engines.base import Transaction
    from palaver.people.model import Person


class OtherLoopback(LoopbackAdapter):
    """A second platform."""

    platform = Platform("otherchat")


async def add_member(store: SessionStore, name: str) -> Person:
    def run(tx: Transaction) -> Person:
        now = to_micros(store.clock.now())
        person = people.add_person(tx, name, Role.MEMBER, now).person
        accounts.open_account(tx, person, now)
        return person

    return await store.engine.arun(Write(run))


async def test_one_conversation_on_two_platforms_and_the_page(store_url: str) -> None:
    first, second = LoopbackAdapter(), OtherLoopback()
    with SessionStore.open(store_url, config=GatewayConfig(dm_scope=DmScope.PERSON)) as store:
        gateway = Gateway(store, ScriptedAgent(), profile=AgentProfile(), rules=TurnRules(), adapters=[first, second])
        async with gateway.run(grace_seconds=5):
            ada = await add_member(store, "Ada")
            page = build_person_source(ada)
            for adapter in (first, second):
                code = find_code((await gateway.inbox.accept(Inbound(source=page, content="/link"))).reply)
                await adapter.say(f"/link {code}", user="ada")
                await gateway.inbox.accept(Inbound(source=page, content="/link confirm"))
                assert "Linked" in ((await adapter.say("/link confirm", user="ada")).reply or "")
            begun = await first.say("on the first", user="ada")
            await wait_for_turn(gateway, begun.turn_id)
            continued = await second.say("on the second", user="ada")
            await wait_for_turn(gateway, continued.turn_id)
            written = await gateway.inbox.accept(
                Inbound(source=page, content="on the page", session_id=begun.session_id)
            )
            await wait_for_turn(gateway, written.turn_id)
            assert begun.session_id == continued.session_id == written.session_id
            assert [text for role, text in load_texts(store, begun.session_id) if role == "user"] == [
                *("on the first", "on the second", "on the page")
            ]
            await wait_until(lambda: second.sent and "continues on the web page" in second.sent[-1].body)
            assert [message.body for message in second.sent if message.body == "Done."] == ["Done."]
            assert [message.body for message in first.sent].count("Done.") == 1

            stranger = await second.say("let me in", user="mallory")
            assert find_code(stranger.reply)
            bob = await add_member(store, "Bob")
            code = find_code(
                (await gateway.inbox.accept(Inbound(source=build_person_source(bob), content="/link"))).reply
            )
            await second.say(f"/link {code}", user="bob")
            await gateway.inbox.accept(Inbound(source=build_person_source(bob), content="/link confirm"))
            await second.say("/link confirm", user="bob")
            for command in (
                "/sessions",
                "/search first",
                f"/resume {begun.session_id}",
                "/whoami",
                "/handoff loopback",
            ):
                reply = (await second.say(command, user="bob")).reply or ""
                assert "Ada" not in reply
                assert "on the" not in reply.replace("on the web page", "")
            assert list(await store.aio.seen_by(bob.principal).list()) == []
