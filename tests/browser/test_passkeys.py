"""Passkeys, with Chromium's virtual authenticator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from playwright.async_api import expect

from browser.conftest import create_sign_in_link, open_path
from palaver.drivers.demo import DemoAgent

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


async def test_passkeys_are_added_sign_in_only_their_owner_and_are_removed_and_canceled_prompts_are_retried(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    await web.create_conversation(await web.sign_in(), "hello", title="The owner's own")
    visitors.allowed_errors = ("401",)
    laptop = await open_laptop(visitors, web, is_welcomed=False)
    await check_first_visit(laptop)
    await check_settings(laptop)
    ann_laptop = await open_laptop(visitors, web, "Ann")
    await check_other_person(web, ann_laptop)


async def check_first_visit(laptop: Laptop) -> None:
    """Add a passkey on the first visit, and sign in with it; each at the second try."""
    page = laptop.page
    await page.get_by_label("Your name").fill("Grace")
    await laptop.set_verification(False)
    await page.get_by_role("button", name="Use a passkey instead").click()
    await expect(page.get_by_role("alert")).to_contain_text("Passkey setup was canceled.")
    await laptop.set_verification(True)
    await page.get_by_role("button", name="Use a passkey instead").click()
    await expect(page.get_by_role("heading", name="Hello, Grace")).to_be_visible()
    await laptop.sign_out()
    await laptop.set_verification(False)
    await page.get_by_role("button", name="Sign in with a passkey").click()
    await expect(page.get_by_role("alert")).to_contain_text("Passkey sign-in was canceled.")
    await laptop.set_verification(True)
    await page.get_by_role("button", name="Sign in with a passkey").click()
    await expect(page.get_by_role("heading", name="Hello, Grace")).to_be_visible()


async def check_settings(laptop: Laptop) -> None:
    """Remove the passkey in the settings, and add another one at the second try."""
    page = laptop.page
    await open_path(page, "/settings")
    await page.get_by_role("button", name="Remove passkey").click()
    await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    await expect(page.get_by_text("No passkeys yet")).to_be_visible()
    await laptop.set_verification(False)
    await laptop.add_passkey("My laptop")
    await expect(page.get_by_text("Passkey setup was canceled.")).to_be_visible()
    await expect(page.get_by_text("No passkeys yet")).to_be_attached()
    await laptop.set_verification(True)
    await page.get_by_role("dialog").get_by_role("button", name="Add passkey").click()
    await expect(page.get_by_role("listitem").filter(has_text="My laptop")).to_contain_text("for localhost")


async def check_other_person(web: WebServer, laptop: Laptop) -> None:
    """A passkey signs in its owner and nobody else, until it is removed."""
    page = laptop.page
    await laptop.add_passkey("Ann's")
    await expect(page.get_by_role("listitem").filter(has_text="Ann's")).to_be_visible()
    await laptop.sign_out()
    await page.get_by_role("button", name="Sign in with a passkey").click()
    await expect(page.locator(".account")).to_contain_text("Ann")
    await expect(page.get_by_text("The owner's own")).to_have_count(0)

    ann = await web.sign_in("Ann")
    [key] = (await ann.get("/api/me/passkeys")).json()["passkeys"]
    assert (await ann.delete(f"/api/me/passkeys/{key['id']}")).is_success
    await laptop.sign_out()
    await page.get_by_role("button", name="Sign in with a passkey").click()
    await expect(page.get_by_role("alert")).to_contain_text("Passkey not recognized")
