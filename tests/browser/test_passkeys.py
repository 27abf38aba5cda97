"""Passkeys, with an authenticator that Chromium plays."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from playwright.async_api import expect

from browser.conftest import link_for
from palaver.agent.demo import DemoAgent

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page

    from browser.conftest import Visitors
    from support.web import StartWeb, Web

_AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}


@dataclass
class Laptop:
    """Somebody's machine: a browser, and what keeps their keys."""

    page: Page
    device: CDPSession
    authenticator: str
    address: str

    async def agrees(self, agrees: bool) -> None:
        """From now on whoever sits there shows the device who they are, or does not."""
        given = {"authenticatorId": self.authenticator, "isUserVerified": agrees}
        await self.device.send("WebAuthn.setUserVerified", given)

    async def make(self, name: str) -> None:
        """Ask for a passkey in the settings."""
        await self.page.goto(f"{self.address}/settings")
        await self.page.get_by_role("button", name="Add a passkey").click()
        await self.page.get_by_label("What to call it").fill(name)
        await self.page.get_by_role("dialog").get_by_role("button", name="Add a passkey").click()

    async def sign_out(self) -> None:
        await self.page.goto(self.address)
        await self.page.locator(".account").click()
        await self.page.get_by_role("menuitem", name="Sign out").click()
        await expect(self.page.get_by_role("button", name="Use a passkey")).to_be_visible()


async def laptop(visitors: Visitors, web: Web, person: str = "owner") -> Laptop:
    """Somebody signed in by a link, where the page has a name: passkeys belong to names."""
    address = web.url.replace("127.0.0.1", "localhost")
    context = await visitors.context(address)
    page = await context.new_page()
    device = await context.new_cdp_session(page)
    await device.send("WebAuthn.enable")
    made = await device.send("WebAuthn.addVirtualAuthenticator", {"options": _AUTHENTICATOR})
    await page.goto((await link_for(web, person)).replace(web.url, address))
    await expect(page.locator("main.main h1")).to_be_visible()
    return Laptop(page, device, made["authenticatorId"], address)


async def test_a_passkey_is_made_signs_in_and_is_removed(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    mine = await laptop(visitors, web)
    await mine.make("My laptop")
    await expect(mine.page.get_by_role("listitem").filter(has_text="My laptop")).to_contain_text("for localhost")

    visitors.expected = ("401",)
    await mine.sign_out()
    await mine.page.get_by_role("button", name="Use a passkey").click()
    await expect(mine.page.get_by_role("heading", name="Hello, owner")).to_be_visible()

    await mine.page.goto(f"{mine.address}/settings")
    await mine.page.get_by_role("button", name="Remove the passkey “My laptop”").click()
    await mine.page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    await expect(mine.page.get_by_text("You have no passkey yet.")).to_be_visible()


async def test_whoever_would_rather_not_is_told_so_and_can_try_again(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    mine = await laptop(visitors, web)
    await mine.agrees(False)
    await mine.make("My laptop")
    await expect(mine.page.get_by_text("No passkey was made.")).to_be_visible()
    await expect(mine.page.get_by_text("You have no passkey yet.")).to_be_attached()
    await mine.agrees(True)
    await mine.page.get_by_role("dialog").get_by_role("button", name="Add a passkey").click()
    await expect(mine.page.get_by_role("listitem").filter(has_text="My laptop")).to_be_visible()

    visitors.expected = ("401",)
    await mine.sign_out()
    await mine.agrees(False)
    await mine.page.get_by_role("button", name="Use a passkey").click()
    await expect(mine.page.get_by_role("alert")).to_contain_text("No passkey was used.")
    await mine.agrees(True)
    await mine.page.get_by_role("button", name="Use a passkey").click()
    await expect(mine.page.get_by_role("heading", name="Hello, owner")).to_be_visible()


async def test_a_passkey_signs_in_whom_it_belongs_to_and_nobody_once_removed(
    start_web: StartWeb, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(pace=0))
    await web.talk(await web.client(), "hello", title="The owner's own")
    mine, anns = await laptop(visitors, web), await laptop(visitors, web, "Ann")
    await mine.make("Mine")
    await anns.make("Ann's")
    await expect(anns.page.get_by_role("listitem").filter(has_text="Ann's")).to_be_visible()

    visitors.expected = ("401",)
    await anns.sign_out()
    await anns.page.get_by_role("button", name="Use a passkey").click()
    await expect(anns.page.get_by_role("heading", name="Hello, Ann")).to_be_visible()
    await expect(anns.page.get_by_text("The owner's own")).to_have_count(0)

    ann = await web.client("Ann")
    [key] = (await ann.get("/api/me/passkeys")).json()["passkeys"]
    assert (await ann.delete(f"/api/me/passkeys/{key['id']}")).is_success
    await anns.sign_out()
    await anns.page.get_by_role("button", name="Use a passkey").click()
    await expect(anns.page.get_by_role("alert")).to_contain_text("This passkey is not known here")
