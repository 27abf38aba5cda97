"""Only owners read which setting keeps the agent from answering."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.async_api import expect

from browser.conftest import send_message
from palaver.core.errors import AgentRejected
from palaver.core.texts import say, tell_owner
from palaver.sessions.turn import FailureCode
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from browser.conftest import Visitors
    from palaver.agent.base import AgentRequest
    from support.web import StartWebServer


def refuse(_request: AgentRequest) -> str:
    text = say("model.no_key", "Set {setting}.", setting="providers.lab.api_key")
    others = say("model.not_ready", "The model isn't set up correctly.")
    raise AgentRejected(tell_owner(text, others), code=FailureCode.KEY_MISSING, detail="no key was sent")


async def test_a_member_does_not_read_which_setting_is_wrong(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(ScriptedAgent(refuse))
    for name, is_told in (("owner", True), ("ben", False)):
        page = await visitors.visit(web, name)
        await send_message(page, "hello")
        failure = page.locator(".event-block").last
        await expect(failure).to_contain_text("The agent couldn’t answer")
        shown = await failure.inner_text()
        assert ("providers.lab.api_key" in shown) is is_told
        assert ("an owner can fix it" in shown) is not is_told
        await expect(failure.get_by_text("no key was sent")).to_have_count(1 if is_told else 0)
