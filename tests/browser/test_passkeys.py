"""Passkeys, with Chromium's virtual authenticator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from playwright.async_api import expect

from browser.conftest import create_sign_in_link, open_path
from palaver.agent.demo import DemoAgent

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Page

    from browser.conftest import Visitors
    from support.web import StartWebServer, WebServer

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
    """A browser with a virtual authenticator that stores passkeys."""

    page: Page
    device: CDPSession
    authenticator: str
    address: str

    async def set_verification(self, is_verified: bool) -> None:
        """Make the authenticator accept or refuse the next prompts."""
        given = {"authenticatorId": self.authenticator, "isUserVerified": is_verified}
        await self.device.send("WebAuthn.setUserVerified", given)

    async def add_passkey(self, name: str) -> None:
        """Add a passkey in the settings."""
        await open_path(self.page, "/settings")
        await self.page.get_by_role("button", name="Add passkey").click()
        await self.page.get_by_label("Passkey name").fill(name)
        await self.page.get_by_role("dialog").get_by_role("button", name="Add passkey").click()

    async def sign_out(self) -> None:
        await self.page.locator(".account").click()
        await self.page.get_by_role("menuitem", name="Sign out").click()
        await expect(self.page.get_by_role("button", name="Sign in with a passkey")).to_be_visible()


async def open_laptop(visitors: Visitors, web: WebServer, person: str = "owner", *, is_welcomed: bool = True) -> Laptop:
    """Sign a person in by a link. The page is opened as localhost, because passkeys belong to a domain name."""
    address = web.url.replace("127.0.0.1", "localhost")
    context = await visitors.open_context(address)
    page = await context.new_page()
    device = await context.new_cdp_session(page)
    await device.send("WebAuthn.enable")
    made = await device.send("WebAuthn.addVirtualAuthenticator", {"options": _AUTHENTICATOR})
    link = await create_sign_in_link(web, person, is_welcomed=is_welcomed)
    await page.goto(link.replace(web.url, address))
    await expect(page.locator("main h1")).to_have_text(f"Hello, {person}" if is_welcomed else "Welcome to Palaver")
    return Laptop(page, device, made["authenticatorId"], address)


async def test_a_passkey_is_added_on_the_first_visit(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    laptop = await open_laptop(visitors, web, is_welcomed=False)
    await laptop.page.get_by_label("Your name").fill("Grace")
    await laptop.set_verification(False)
    await laptop.page.get_by_role("button", name="Use a passkey instead").click()
    await expect(laptop.page.get_by_role("alert")).to_contain_text("Passkey setup was canceled.")
    await laptop.set_verification(True)
    await laptop.page.get_by_role("button", name="Use a passkey instead").click()
    await expect(laptop.page.get_by_role("heading", name="Hello, Grace")).to_be_visible()
    visitors.allowed_errors = ("401",)
    await laptop.sign_out()
    await laptop.page.get_by_role("button", name="Sign in with a passkey").click()
    await expect(laptop.page.get_by_role("heading", name="Hello, Grace")).to_be_visible()


async def test_a_passkey_is_added_signs_in_and_is_removed_and_canceled_prompts_are_retried(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    owner_laptop = await open_laptop(visitors, web)
    await owner_laptop.set_verification(False)
    await owner_laptop.add_passkey("My laptop")
    await expect(owner_laptop.page.get_by_text("Passkey setup was canceled.")).to_be_visible()
    await expect(owner_laptop.page.get_by_text("No passkeys yet")).to_be_attached()
    await owner_laptop.set_verification(True)
    await owner_laptop.page.get_by_role("dialog").get_by_role("button", name="Add passkey").click()
    await expect(owner_laptop.page.get_by_role("listitem").filter(has_text="My laptop")).to_contain_text(
        "for localhost"
    )

    visitors.allowed_errors = ("401",)
    await owner_laptop.sign_out()
    await owner_laptop.set_verification(False)
    await owner_laptop.page.get_by_role("button", name="Sign in with a passkey").click()
    await expect(owner_laptop.page.get_by_role("alert")).to_contain_text("Passkey sign-in was canceled.")
    await owner_laptop.set_verification(True)
    await owner_laptop.page.get_by_role("button", name="Sign in with a passkey").click()
    await expect(owner_laptop.page.locator(".account")).to_contain_text("owner")

    await open_path(owner_laptop.page, "/settings")
    await owner_laptop.page.get_by_role("button", name="Remove passkey “My laptop”").click()
    await owner_laptop.page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    await expect(owner_laptop.page.get_by_text("No passkeys yet")).to_be_visible()


async def test_a_passkey_signs_in_its_owner_until_it_is_removed(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    await web.create_conversation(await web.sign_in(), "hello", title="The owner's own")
    owner_laptop, ann_laptop = await open_laptop(visitors, web), await open_laptop(visitors, web, "Ann")
    await owner_laptop.add_passkey("Mine")
    await ann_laptop.add_passkey("Ann's")
    await expect(ann_laptop.page.get_by_role("listitem").filter(has_text="Ann's")).to_be_visible()

    visitors.allowed_errors = ("401",)
    await ann_laptop.sign_out()
    await ann_laptop.page.get_by_role("button", name="Sign in with a passkey").click()
    await expect(ann_laptop.page.locator(".account")).to_contain_text("Ann")
    await expect(ann_laptop.page.get_by_text("The owner's own")).to_have_count(0)

    ann = await web.sign_in("Ann")
    [key] = (await ann.get("/api/me/passkeys")).json()["passkeys"]
    assert (await ann.delete(f"/api/me/passkeys/{key['id']}")).is_success
    await ann_laptop.sign_out()
    await ann_laptop.page.get_by_role("button", name="Sign in with a passkey").click()
    await expect(ann_laptop.page.get_by_role("alert")).to_contain_text("Passkey not recognized")
