"""The dialog in which an owner erases a person, and what others see of that person's messages afterwards."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.async_api import expect

from palaver import SessionSource
from palaver.core.engines.base import Write
from palaver.people import table as people
from palaver.people.model import Role
from palaver.sessions.events import EventKind
from palaver.sessions.inbound import Inbound

if TYPE_CHECKING:
    from browser.conftest import Visitors
    from support.web import StartWebServer


def make_group(user: str) -> SessionSource:
    return SessionSource("telegram", "club", chat_type="group", thread_id="7", user_id=user, user_name=user.title())


async def test_an_owner_erases_a_person_after_typing_their_name(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web()
    store = web.gateway.store
    private = SessionSource("telegram", "grace", user_id="grace", user_name="Grace")
    inbox = web.gateway.inbox
    await inbox.accept(Inbound(source=private, content="mine", message_id="1"))
    receipt = await inbox.accept(
        Inbound(source=make_group("grace"), content="the secret plan", message_id="2", is_addressed=True)
    )
    await inbox.accept(Inbound(source=make_group("mallory"), content="what plan?", message_id="3", is_addressed=True))
    grace = await store.aio.get_or_create_person(make_group("grace"))
    await store.engine.arun(Write(lambda tx: people.set_role(tx, grace.id, Role.MEMBER)))
    page = await visitors.visit(web, path="/people")
    await page.get_by_role("button", name="Actions for “Grace”").click()
    await page.get_by_role("menuitem", name="Erase…").click()
    dialog = page.get_by_role("dialog", name="Erase Grace?")
    await expect(dialog.get_by_text("Conversations: 1")).to_be_visible()
    await expect(dialog.get_by_text("Messages in those: 1")).to_be_visible()
    button = dialog.get_by_role("button", name="Erase permanently")
    await expect(button).to_be_disabled()
    await dialog.get_by_label("Type “Grace” to confirm").fill("Mallory")
    await expect(button).to_be_disabled()
    await dialog.get_by_label("Type “Grace” to confirm").fill("grace")
    await button.click()
    await expect(page.get_by_text("Grace was erased.")).to_be_visible()
    await expect(page.get_by_role("listitem").filter(has_text="Grace")).to_have_count(0)
    await expect(page.get_by_role("listitem").filter(has_text="Mallory")).to_have_count(1)
    log = await store.aio.load_events(receipt.session_id or "")
    assert next(event.facts for event in log if event.kind is EventKind.ERASED) == {"stored_kind": "message"}
