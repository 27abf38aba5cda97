"""The panels (memory, usage, people, platforms, settings), shared conversations, and the page shell."""

from __future__ import annotations

import csv
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from browser.conftest import create_sign_in_link, open_path, send_message, skip_welcome, wait_for_answer
from palaver import GatewayConfig, Platform, Role, SessionSource
from palaver.config.agent_rules import MemoryRules, ToolsetRule
from palaver.core.errors import AccountRefused, SendUncertain
from palaver.drivers.demo import DemoAgent
from palaver.memory.service import MemoryOperations
from palaver.platforms.loopback import LoopbackAdapter
from palaver.sessions.policy import ResetMode, ResetPolicy
from palaver.sessions.turn import BusyPolicy
from palaver.sessions.usage import TurnUsage
from palaver.testing import ScriptedAgent
from support.gateway import wait_until
from support.web import create_shared_memory

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Page

    from browser.conftest import Visitors
    from palaver.delivery.adapter import AccountInfo, OutgoingMessage
    from support.web import StartWebServer, WebServer


REFRESH_INTERVAL_MILLISECONDS = 5_000  # after which an open panel asks the server again


async def record_usage(web: WebServer, session: str, **fields: object) -> None:
    await web.gateway.store.aio.update_session(session, TurnUsage(**fields))  # type: ignore[arg-type]


def read_csv(file: Path) -> list[dict[str, str]]:
    """Read an exported table."""
    text = file.read_text("utf-8")
    assert text.startswith("\ufeff")  # without it, some spreadsheets misread non-ASCII letters
    return list(csv.DictReader(text.removeprefix("\ufeff").splitlines()))


async def close_dialog(page: Page) -> None:
    await page.get_by_role("button", name="Done").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)


POLICIES = GatewayConfig(
    default_reset_policy=ResetPolicy(mode=ResetMode.BOTH, idle_minutes=2880, timezone="Europe/Berlin"),
    reset_by_platform={Platform.TELEGRAM: ResetPolicy(mode=ResetMode.IDLE, idle_minutes=90, notify=False)},
)


async def test_an_owner_sees_everything_in_the_panels_and_a_member_what_is_theirs(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    """One story of two people, because every page that is loaded takes time."""
    loopback = LoopbackAdapter(lose_delivery)
    rules = {"busy_policy": BusyPolicy.STEER}
    web = await start_web(DemoAgent(word_delay=0), adapters=[loopback], config=POLICIES, rules=rules)
    page = await visitors.visit(web)
    other = await visitors.visit(web, "Jonas")
    await check_menu_of_a_member(other)
    await check_usage(web, page, other)
    await check_platforms(web, loopback, page, other)
    await check_policies(page, other)
    await check_memories_of_a_member(web, other)


async def check_menu_of_a_member(page: Page) -> None:
    """The panels of the log and of the server's health are for owners."""
    await page.get_by_role("button", name="Jonas").click()
    await expect(page.get_by_role("menuitem", name="Settings", exact=True)).to_be_visible()
    await expect(page.get_by_role("menuitem", name="Log", exact=True)).to_have_count(0)
    await expect(page.get_by_role("menuitem", name="Health")).to_have_count(0)
    await page.keyboard.press("Escape")


# ---- memory ----------------------------------------------------------------------------------------------


async def test_memories_are_edited_deleted_restored_shown_page_by_page_and_turned_off(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    page = await visitors.visit(web, path="/memory")
    await expect(page.get_by_role("heading", name="No memories yet")).to_be_visible()
    await page.get_by_role("button", name="Remember that my cat is called Ada.").click()
    await page.locator("#composer").press("Enter")
    await wait_for_answer(page)
    await page.keyboard.press("Control+k")
    await page.get_by_role("dialog").get_by_role("combobox").fill("memory")
    await page.keyboard.press("Enter")

    rows = page.get_by_role("list", name="Memory").get_by_role("listitem")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("my cat is called Ada")
    await expect(rows).to_contain_text("only you")
    await page.get_by_label("New memory").fill("The bins go out on Tuesday.")
    await page.get_by_label("New memory").press("Enter")
    await expect(rows.first).to_contain_text("The bins go out on Tuesday.")

    await rows.last.get_by_role("button", name="Edit").click()
    await page.get_by_label("Edit", exact=True).fill("my cat is called Bo")
    await page.keyboard.press("Enter")
    await expect(rows.last).to_contain_text("my cat is called Bo")
    await expect(rows.last.get_by_role("button", name="Edit")).to_be_focused()

    await page.get_by_label("Search memories").fill("cat bo")
    await expect(rows).to_have_count(1)
    await rows.get_by_role("button", name="Forget").click()
    await expect(page.get_by_text("No results")).to_be_visible()
    await page.get_by_role("button", name="Undo").click()
    await expect(rows).to_contain_text("my cat is called Bo")

    owner = await web.sign_in()
    for number in range(50):
        await owner.post("/api/memories", json={"text": f"number {number}"})
    await page.reload()
    await expect(rows).to_have_count(50)
    await expect(rows.last).to_contain_text("number 0")
    await page.get_by_role("button", name="Show more").click()
    await expect(rows).to_have_count(52)
    await expect(rows.last).to_contain_text("The bins go out on Tuesday.")
    await check_memory_that_is_off(web, page)


async def test_the_origin_of_memories_is_shown_and_filtered(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(word_delay=0), is_server=True, rules={"memory": MemoryRules(learn=True)})
    page = await visitors.visit(web)
    await page.locator("#composer").fill("my cat is called Mo")
    await page.locator("#composer").press("Enter")
    await wait_for_answer(page)
    conversation = page.url
    await page.locator("#composer").fill("/new")
    await page.locator("#composer").press("Enter")
    owner = await web.sign_in()
    store = web.gateway.store
    await wait_until(store.seen_by(store.get_owner().principal).part(MemoryOperations).list)
    await owner.post("/api/memories", json={"text": "The bins go out on Tuesday."})
    await page.goto(f"{web.url}/memory")
    await expect(page.get_by_text("memory.learn is on")).to_be_visible()
    rows = page.get_by_role("list", name="Memory").get_by_role("listitem")
    await expect(rows).to_have_count(2)
    await expect(rows.first).to_contain_text("You · ")
    await expect(rows.last).to_contain_text("Learned by the agent · ")
    await page.get_by_role("radio", name="Learned").check()
    await expect(rows).to_have_count(1)
    await page.get_by_role("radio", name="On request").check()
    await expect(page.get_by_text("No results")).to_be_visible()
    await page.get_by_role("radio", name="All").check()
    await expect(rows).to_have_count(2)
    await rows.last.get_by_role("link", name="Conversation").click()
    await expect(page).to_have_url(conversation)


async def check_memories_of_a_member(web: WebServer, page: Page) -> None:
    """A member sees only their memories, and deletes a shared one for everyone."""
    await web.create_conversation(await web.sign_in(), "remember that the safe is behind the picture")
    await create_shared_memory(web, await web.sign_in("Amina"), await web.sign_in("Jonas"))
    await open_path(page, "/memory")
    await expect(page.get_by_role("list", name="Memory").get_by_role("listitem")).to_have_count(1)
    await expect(page.get_by_text("safe")).to_have_count(0)
    row = page.get_by_role("listitem").filter(has_text="The club meets on Monday.")
    await expect(row).to_contain_text("shared")
    await expect(row).to_contain_text("shared with Amina")
    await row.get_by_role("button", name="Edit").click()
    await expect(row).to_contain_text("This changes it for everyone")
    await page.keyboard.press("Escape")
    await row.get_by_role("button", name="Forget").click()
    await expect(page.get_by_role("dialog")).to_contain_text("shared with Amina")
    await page.get_by_role("dialog").get_by_role("button", name="Forget").click()
    await expect(page.get_by_text("Memory deleted.")).to_be_visible()
    await expect(page.get_by_role("button", name="Undo")).to_have_count(0)
    assert (await (await web.sign_in("Amina")).get("/api/memories")).json()["memories"] == []
    await page.reload()
    await expect(page.get_by_role("heading", name="No memories yet")).to_be_visible()
    await expect(page.get_by_text("safe")).to_have_count(0)


MEMORY_RULES = {
    "Memory isn’t available for your role": {"memory": ToolsetRule(roles=frozenset({Role.GUEST}))},
    "only in conversations on Telegram": {"memory": ToolsetRule(platforms=frozenset({Platform.TELEGRAM}))},
    "Memory is turned off on this server": {},
}


async def check_memory_that_is_off(web: WebServer, page: Page) -> None:
    """The panel says why there is no memory."""
    for expected_text, toolsets in MEMORY_RULES.items():
        gateway = web.gateway
        rules = replace(gateway.rules, toolsets=toolsets)
        gateway.use_settings(agent=gateway.agent, profile=gateway.profile, rules=rules, config=gateway.store.config)
        await page.reload()
        await expect(page.get_by_role("note")).to_contain_text(expected_text)


# ---- usage -----------------------------------------------------------------------------------------------


async def check_usage(web: WebServer, page: Page, other: Page) -> None:
    """Usage is shown with its costs and exported, and only an owner sees everyone's."""
    await web.create_conversation(await web.sign_in("Jonas"), "hello")
    await open_path(page, "/usage")
    await expect(page.get_by_role("heading", name="No usage in this period")).to_be_visible()
    await page.get_by_role("radio", name="Everyone").check()
    await page.get_by_role("radio", name="Person").check()
    await expect(page.get_by_role("row").filter(has_text="Jonas")).to_be_visible()
    await page.get_by_role("radio", name="Custom").check()
    await page.get_by_label("From", exact=True).fill("2020-01-01")
    await page.get_by_label("To", exact=True).fill("2020-12-31")
    await expect(page.get_by_role("heading", name="No usage in this period")).to_be_visible()

    title = '=2+2,"quoted"'  # a formula for a spreadsheet
    session = await web.create_conversation(await web.sign_in(), "hello", title=title)
    await record_usage(web, session, turn_id="a", model="big", input_tokens=9_000, output_tokens=1_000, cost="1.25")
    await record_usage(web, session, turn_id="b", model="odd", input_tokens=500, output_tokens=100)
    await page.goto(f"{web.url}/usage")
    totals = page.locator(".totals")
    await expect(totals).to_contain_text("$1.25")
    await expect(totals).to_contain_text("1 answer with unknown price not included")
    await expect(page.get_by_role("img", name="Cost from")).to_be_visible()
    await expect(page.locator(".chart-columns .chart-part").last).to_be_visible()
    await page.get_by_role("button", name="Export CSV").click()
    async with page.expect_download() as downloading:
        await page.get_by_role("menuitem", name="By conversation").click()
    [row] = read_csv(await (await downloading.value).path())
    assert row["session"] == f"'{title}"  # the quote makes it a text
    assert row["id"] == session
    assert row["turns"] == "3"

    table = page.get_by_role("table").last
    await expect(table).to_contain_text("big")
    await expect(table.get_by_role("row").filter(has_text="odd")).to_contain_text("price unknown")
    await page.get_by_role("radio", name="Conversation").check()
    await table.get_by_role("link", name=title).click()
    await page.wait_for_url(f"**/{session}")

    await open_path(other, "/usage")
    await expect(other.locator(".totals")).to_be_visible()
    await expect(other.get_by_role("radio", name="Everyone")).to_have_count(0)
    await expect(other.get_by_role("radio", name="Person")).to_have_count(0)


# ---- shared conversations and people ----------------------------------------------------------------------


async def check_sharing(web: WebServer, visitors: Visitors, page: Page) -> None:
    """A shared conversation is public until sharing stops."""
    session = await web.create_conversation(await web.sign_in(), "show me markdown", title="What it can look like")
    await open_path(page, f"/{session}")
    await page.locator("header").get_by_role("button", name="Actions for").click()
    await page.get_by_role("menuitem", name="Share").click()
    await expect(page.get_by_role("dialog")).to_contain_text("Your name, “Grace”, is shown with your messages.")
    await page.get_by_role("button", name="Create link").click()
    link = await page.get_by_role("textbox", name="Shared link").input_value()
    await expect(page.get_by_role("dialog")).to_contain_text("You can copy it again in Settings")
    await close_dialog(page)

    stranger = await (await visitors.open_context(web.url)).new_page()
    await stranger.goto(link)
    await expect(stranger.get_by_role("heading", name="What it can look like", level=1)).to_be_visible()
    await expect(stranger).to_have_title(re.compile("What it can look like"))
    await expect(stranger.get_by_role("article").last.get_by_role("table")).to_be_visible()
    await expect(stranger.locator(".author")).to_have_text(["Grace", "Agent"])

    await open_path(page, "/settings")
    await page.get_by_role("button", name="Copy the link to “What it can look like”").click()
    await expect(page.get_by_role("button", name="Copied")).to_be_visible()
    assert await page.evaluate("navigator.clipboard.readText()") == link
    await page.get_by_role("button", name="Stop sharing “What it can look like”").click()
    await page.get_by_role("dialog").get_by_role("button", name="Stop sharing").click()
    await expect(page.get_by_text("Nothing shared yet.")).to_be_visible()
    visitors.allowed_errors += ("404",)
    await stranger.reload()
    await expect(stranger.get_by_role("heading", name="Shared conversation not found")).to_be_visible()


async def test_a_shared_conversation_is_public_and_an_invited_person_signs_in_until_the_owner_ends_it(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    await (await web.sign_in()).patch("/api/me", json={"name": "Grace"})
    page = await visitors.visit(web, permissions=["clipboard-read", "clipboard-write"])
    await check_sharing(web, visitors, page)
    await check_invitation(web, visitors, page)


async def check_invitation(web: WebServer, visitors: Visitors, page: Page) -> None:
    """An invited person signs in, gets another role and name, and is removed."""
    await page.add_init_script("Object.defineProperty(window, 'isSecureContext', {value: false})")  # as over plain HTTP
    await page.goto(f"{web.url}/people")
    await page.get_by_role("button", name="Invite someone").click()
    await page.get_by_label("Name", exact=True).fill("Amina")
    await page.get_by_role("dialog").get_by_role("button", name="Invite someone").click()
    link = await page.get_by_role("textbox", name="Sign-in link").input_value()
    assert link.startswith(f"{web.url}/sign-in#")
    await expect(page.get_by_role("dialog")).to_contain_text(
        "This link works only on the computer that Palaver runs on"
    )
    await expect(page.get_by_role("dialog").locator("code")).to_have_text("palaver serve --host 0.0.0.0")
    await page.get_by_role("button", name="Copy").click()
    await expect(page.get_by_role("button", name="Copied")).to_be_focused()
    assert await page.evaluate("navigator.clipboard.readText()") == link
    await close_dialog(page)
    row = page.get_by_role("listitem").filter(has_text="Amina")
    await expect(row).to_contain_text("never signed in")

    guest_page = await (await visitors.open_context(web.url)).new_page()
    await guest_page.goto(link)
    await skip_welcome(guest_page)
    await expect(guest_page.get_by_role("heading", name="Hello, Amina")).to_be_visible()
    await check_member_has_no_people_panel(guest_page, "Amina")

    await row.get_by_role("button", name="Actions for “Amina”").click()
    await page.get_by_role("menuitemradio", name="Owner").click()
    await expect(row).to_contain_text("Owner")
    await row.get_by_role("button", name="Actions for “Amina”").click()
    await page.get_by_role("menuitem", name="Rename").click()
    await page.get_by_label("Name", exact=True).fill("Mina")
    await page.get_by_role("button", name="Save").click()

    visitors.allowed_errors += ("401",)
    await page.get_by_role("button", name="Actions for “Mina”").click()
    await page.get_by_role("menuitem", name="Remove").click()
    await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    await expect(page.get_by_text("Mina was removed.")).to_be_visible()
    await guest_page.reload()
    await expect(guest_page.get_by_role("heading", name="Palaver")).to_be_visible()


async def check_member_has_no_people_panel(page: Page, name: str) -> None:
    await open_path(page, "/people")
    await expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    await page.get_by_role("link", name="Home").click()
    await expect(page.get_by_role("heading", name=f"Hello, {name}")).to_be_visible()
    about = page.get_by_role("region", name="About this server")
    await expect(about).to_contain_text("The server’s owner can connect a real model.")
    await expect(about).not_to_contain_text("terminal")
    await page.get_by_role("button", name=name).click()
    await expect(page.get_by_role("menuitem", name="Settings", exact=True)).to_be_visible()
    await expect(page.get_by_role("menuitem", name="People")).to_have_count(0)
    await page.keyboard.press("Escape")


# ---- platforms -------------------------------------------------------------------------------------------


async def lose_delivery(_message: OutgoingMessage) -> str:
    raise SendUncertain("the line was cut")


async def check_platforms(web: WebServer, loopback: LoopbackAdapter, page: Page, other: Page) -> None:
    """Platforms with conversations are listed, and only the owner sees problems of deliveries."""
    await loopback.say("hello", user="ada")
    await web.create_conversation(await web.sign_in(), "hello", title="On the web")
    said = await web.gateway.store.aio.record_user_message(SessionSource.local_cli(), "at the desk")
    await record_usage(web, said.session_id, turn_id="t", model="any", output_tokens=5)
    await open_path(page, "/platforms")
    await expect(page.get_by_role("region", name="Terminal")).to_contain_text("1 answer")
    await expect(page.get_by_role("region", name="Telegram")).to_have_count(0)
    region = page.get_by_role("region", name="loopback")
    await expect(region).to_contain_text("Connected")
    await expect(region).to_contain_text("1 message with unknown delivery status")
    await expect(region).to_contain_text("the line was cut")
    await page.get_by_role("region", name="Web").get_by_role("link", name="On the web").click()
    await expect(page.get_by_role("heading", name="On the web")).to_be_visible()

    await open_path(other, "/platforms")
    await expect(other.get_by_role("heading", name="Platforms", level=1)).to_be_visible()
    await expect(other.get_by_text("loopback")).to_have_count(0)


async def test_the_owner_sees_which_accounts_are_connected_and_why_others_are_not(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    class RefusedAdapter(LoopbackAdapter):
        async def probe(self) -> AccountInfo:
            raise AccountRefused("The token was revoked. Create a new one with @BotFather.")

    class DeafAdapter(LoopbackAdapter):
        silence_seconds = 0.1

    adapters = [LoopbackAdapter(account="home"), RefusedAdapter(account="work"), DeafAdapter(account="old")]
    web = await start_web(DemoAgent(word_delay=0), adapters=adapters)
    page = await visitors.visit(web, path="/platforms", has_clock=True)
    region = page.get_by_role("region", name="loopback")
    await expect(region).to_contain_text("homeConnected")
    await expect(region).to_contain_text("workNeeds your attention")
    await expect(region).to_contain_text("The token was revoked. Create a new one with @BotFather.")
    await expect(region).to_contain_text("Nothing was heard from the platform for too long.")
    await web.gateway.accounts.stop()
    await page.clock.fast_forward(REFRESH_INTERVAL_MILLISECONDS)  # the page notices by itself
    await expect(region).not_to_contain_text("homeConnected")


# ---- settings --------------------------------------------------------------------------------------------


async def check_policies(page: Page, other: Page) -> None:
    """The settings show the policies, and lead owners to the form that changes them."""
    await open_path(page, "/settings")
    places = page.get_by_role("region", name="Conversations", exact=True).locator("li")
    everywhere = places.filter(has_text="Everywhere else")
    await expect(everywhere).to_contain_text("After 2 days of inactivity, or every day at 04:00 (Europe/Berlin)")
    await expect(everywhere).to_contain_text("New messages are sent to the agent at its next step")
    telegram = places.filter(has_text="Telegram")
    await expect(telegram).to_contain_text("After 90 minutes of inactivity; without a notice")
    await expect(telegram).to_contain_text("reset_by_platform.telegram")
    await expect(places.filter(has_text="Web")).to_contain_text("Only when you start a new one")

    await page.get_by_role("link", name="Change when conversations restart").click()
    await expect(page.get_by_role("heading", name="Server settings", level=1)).to_be_visible()
    await expect(page.get_by_role("button", name="Conversations", exact=True)).to_have_attribute("aria-current", "page")

    await open_path(other, "/settings")
    region = other.get_by_role("region", name="Conversations", exact=True)
    await expect(region).to_contain_text("Only the server’s owner can change this.")
    await expect(region.get_by_role("link", name="Change when")).to_have_count(0)


async def check_token(web: WebServer, page: Page) -> None:
    """A token works until it is revoked."""
    await page.get_by_role("button", name="New token").click()
    await page.get_by_label("Name", exact=True).fill("backup script")
    await page.get_by_role("button", name="Create").click()
    secret = await page.get_by_role("textbox", name="backup script").input_value()
    assert secret.startswith("pal_")
    await close_dialog(page)
    program = await web.open_anonymous_client()
    bearing = {"Authorization": f"Bearer {secret}"}
    assert (await program.get("/api/sessions", headers=bearing)).status_code == 200

    await expect(page.get_by_role("listitem").filter(has_text="backup script")).to_contain_text("read")
    await page.get_by_role("button", name="Revoke token “backup script”").click()
    await page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    await expect(page.get_by_text("No tokens yet")).to_be_visible()
    assert (await program.get("/api/sessions", headers=bearing)).status_code == 401


async def check_theme_and_language(page: Page) -> None:
    await page.get_by_role("radio", name="Dark").check()
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await page.get_by_role("radio", name="Deutsch").click()
    await expect(page.get_by_role("heading", name="Einstellungen", level=1)).to_be_visible()
    await expect(page.locator("html")).to_have_attribute("lang", "de")
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await page.get_by_role("radio", name="English").click()
    await expect(page.get_by_role("heading", name="Settings", level=1)).to_be_visible()


async def test_a_token_works_until_it_is_revoked_a_new_password_signs_in_and_devices_can_be_signed_out(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    page = await visitors.visit(web, color_scheme="light", path="/settings")
    await check_token(web, page)
    await check_theme_and_language(page)
    await page.get_by_label("Your name").fill("Mira")
    await page.get_by_role("button", name="Save").first.click()
    await expect(page.get_by_role("button", name="Mira", exact=True)).to_be_visible()
    await page.get_by_label("New password").fill("a long way to Tipperary")
    await page.get_by_role("button", name="Save").last.click()
    await expect(page.get_by_role("heading", name="Change password")).to_be_visible()

    visitors.allowed_errors = ("401",)
    other = await (await visitors.open_context(web.url)).new_page()
    await other.goto(web.url)
    await other.get_by_label("Name", exact=True).fill("Mira")
    await other.get_by_label("Password").fill("a long way to Tipperary")
    await other.get_by_role("button", name="Sign in").click()
    await expect(other.get_by_role("heading", name="Hello, Mira")).to_be_visible()

    await page.reload()
    devices = page.get_by_role("list", name="Devices")
    await expect(devices.get_by_role("listitem")).to_have_count(2)
    await devices.get_by_role("button", name="Sign out").click()
    await expect(devices.get_by_role("listitem")).to_have_count(1)
    await other.reload()
    await expect(other.get_by_label("Password")).to_be_visible()

    await page.get_by_role("button", name="Sign out everywhere").click()
    await page.get_by_role("dialog").get_by_role("button", name="Sign out everywhere").click()
    await expect(page.get_by_role("heading", name="Palaver")).to_be_visible()


# ---- preloading ------------------------------------------------------------------------------------------


async def test_the_page_can_be_installed_and_preloads_a_panel_when_its_menu_item_is_hovered_or_focused(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    page = await visitors.visit(web)
    devtools = await page.context.new_cdp_session(page)
    manifest = await devtools.send("Page.getAppManifest")
    assert manifest["errors"] == []
    assert re.search(r'"name": "Palaver"', manifest["data"])
    errors = (await devtools.send("Page.getInstallabilityErrors"))["installabilityErrors"]
    assert {each["errorId"] for each in errors} <= {"in-incognito"}  # like every page of a test

    await page.get_by_role("button", name="owner").click()
    await expect(page.get_by_role("menuitem", name="Memory")).to_be_visible()
    async with page.expect_response("**/MemoryPanel-*.js"):
        await page.get_by_role("menuitem", name="Memory").hover()
    async with page.expect_response("**/UsagePanel-*.js"):
        await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("menu")).to_have_count(0)
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("dialog").get_by_role("combobox")).to_be_focused()
    async with page.expect_response("**/PlatformsPanel-*.js"):
        await page.keyboard.type("platforms")
    assert page.url == f"{web.url}/"


# ---- the shell -------------------------------------------------------------------------------------------


async def test_the_page_shell_opens_offline_and_caches_no_api_data(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    await web.create_conversation(await web.sign_in(), "a secret thing")
    page = await visitors.visit(web, service_workers="allow", has_clock=True)
    await page.wait_for_function(_IS_SHELL_CACHED)
    cached_urls: list[str] = await page.evaluate(_LIST_CACHED_URLS)
    assert f"{web.url}/" in cached_urls
    assert not [address for address in cached_urls if "/api" in address]

    await visitors.go_offline(page)
    await page.goto(f"{web.url}/usage")
    await expect(page.locator(".page-loading")).to_be_attached()
    await page.context.service_workers[0].evaluate(_LOSE_FIRST_FETCHES)  # its connection is back a moment later
    await page.context.set_offline(False)
    await page.clock.fast_forward(REFRESH_INTERVAL_MILLISECONDS)  # it tries again
    await expect(page.get_by_role("heading", name="Usage", exact=True)).to_be_visible()


_LOSE_FIRST_FETCHES = """() => {
    const {fetch} = self
    const lost = new Set()
    self.fetch = async (request, options) => {
        if (lost.has(request.url ?? request)) return fetch(request, options)
        lost.add(request.url ?? request)
        throw new TypeError('Failed to fetch')
    }
}"""
_LIST_CACHED_URLS = "async () => (await (await caches.open('palaver-shell')).keys()).map(each => each.url)"
_IS_SHELL_CACHED = r"""async () => {
    const cache = await caches.open('palaver-shell')
    const files = (await (await cache.match('/'))?.text())?.match(/assets\/[^"]+/g) ?? []
    const cached = await Promise.all(files.map(file => cache.match(`/${file}`)))
    return cached.length > 0 && cached.every(each => each !== undefined)
}"""


@pytest.mark.soak
async def test_the_page_works_below_a_base_path(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(ScriptedAgent("```mermaid\ngraph TD\n  A --> B\n```"), base_path="/talk")
    page = await (await visitors.open_context(web.url, service_workers="allow")).new_page()
    await page.goto((await create_sign_in_link(web, "owner")).replace("/sign-in", "/talk/sign-in"))
    await send_message(page, "draw it")
    await expect(page.get_by_role("img", name="Diagram: A, B")).to_be_visible()
    assert f"{web.url}/talk/diagram.html" in {frame.url for frame in page.frames}
    await page.get_by_role("button", name="owner").click()
    await page.get_by_role("menuitem", name="Settings", exact=True).click()
    await expect(page.get_by_role("heading", name="Settings", level=1)).to_be_visible()
    assert page.url == f"{web.url}/talk/settings"
    await page.reload()
    await expect(page.get_by_role("list", name="Devices")).to_be_visible()
    scope = await page.evaluate("async () => (await navigator.serviceWorker.ready).scope")
    assert scope == f"{web.url}/talk/"
