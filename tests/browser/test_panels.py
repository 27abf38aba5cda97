"""The panels beside the conversations: memory, usage, people, platforms, settings; shared copies; without a line."""

from __future__ import annotations

import csv
import re
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from browser.conftest import answered
from palaver import GatewayConfig, Platform, Role, SessionSource
from palaver.agent.demo import DemoAgent
from palaver.config import load_settings
from palaver.domain.errors import SendUncertain
from palaver.domain.policy import ResetMode, ResetPolicy
from palaver.domain.profile import ToolsetRule
from palaver.domain.turn import BusyPolicy
from palaver.domain.usage import TurnUsage
from palaver.platforms.loopback import Loopback
from support.web import remembered_in_a_club

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.async_api import Page

    from browser.conftest import Visitors
    from palaver.domain.delivery import Delivery
    from support.web import StartWeb, Web


async def use(web: Web, session: str, **fields: object) -> None:
    """Count something as used."""
    await web.gateway.store.aio.update_session(session, TurnUsage(**fields))  # type: ignore[arg-type]


def rows_of(file: Path) -> list[dict[str, str]]:
    """A table that was exported."""
    text = file.read_text("utf-8")
    assert text.startswith("\ufeff")  # or some spreadsheets take its letters for others
    return list(csv.DictReader(text.removeprefix("\ufeff").splitlines()))


async def shut(page: Page) -> None:
    """Close what is above the page, once it has been read."""
    await page.get_by_role("button", name="Done").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)


# ---- memory ----------------------------------------------------------------------------------------------


async def test_what_the_agent_was_told_to_remember_is_shown_changed_forgotten_and_remembered_again(
    start_web: StartWeb, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(pace=0))
    page = await visitors.visit(web)
    await page.goto(f"{web.url}/memory")
    await expect(page.get_by_role("heading", name="Nothing is remembered yet.")).to_be_visible()
    await page.get_by_role("button", name="Remember that my cat is called Ada.").click()
    await page.locator("#composer").press("Enter")
    await answered(page)
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox").fill("memory")
    await page.keyboard.press("Enter")

    rows = page.get_by_role("list", name="Memory").get_by_role("listitem")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("my cat is called Ada")
    await expect(rows).to_contain_text("known to you alone")
    await page.get_by_label("Something to remember").fill("The bins go out on Tuesday.")
    await page.get_by_label("Something to remember").press("Enter")
    await expect(rows.first).to_contain_text("The bins go out on Tuesday.")

    await rows.last.get_by_role("button", name="Change").click()
    await page.get_by_label("Change", exact=True).fill("my cat is called Bo")
    await page.keyboard.press("Enter")
    await expect(rows.last).to_contain_text("my cat is called Bo")
    await expect(rows.last.get_by_role("button", name="Change")).to_be_focused()

    await page.get_by_label("Search what is remembered").fill("cat bo")
    await expect(rows).to_have_count(1)
    await rows.get_by_role("button", name="Forget").click()
    await expect(page.get_by_text("Nothing was found.")).to_be_visible()
    await page.get_by_role("button", name="Take back").click()
    await expect(rows).to_contain_text("my cat is called Bo")
    await page.reload()
    await expect(rows).to_have_count(2)


async def test_what_is_remembered_is_its_peoples_alone(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    await web.talk(await web.client(), "remember that the safe is behind the picture")
    page = await visitors.visit(web, "Jonas")
    await page.goto(f"{web.url}/memory")
    await expect(page.get_by_role("heading", name="Nothing is remembered yet.")).to_be_visible()
    await expect(page.get_by_text("safe")).to_have_count(0)


async def test_what_is_shared_is_said_to_be_and_forgotten_for_all_after_a_question(
    start_web: StartWeb, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(pace=0))
    await remembered_in_a_club(web, await web.client("Amina"), await web.client("Jonas"))
    page = await visitors.visit(web, "Jonas")
    await page.goto(f"{web.url}/memory")
    row = page.get_by_role("listitem").filter(has_text="The club meets on Monday.")
    await expect(row).to_contain_text("shared")
    await expect(row).to_contain_text("also known to Amina")
    await row.get_by_role("button", name="Change").click()
    await expect(row).to_contain_text("It changes for everybody")
    await page.keyboard.press("Escape")
    await row.get_by_role("button", name="Forget").click()
    await expect(page.get_by_role("dialog")).to_contain_text("also known to Amina")
    await page.get_by_role("dialog").get_by_role("button", name="Forget").click()
    await expect(page.get_by_text("It is forgotten.")).to_be_visible()
    await expect(page.get_by_role("button", name="Take back")).to_have_count(0)
    assert (await (await web.client("Amina")).get("/api/memories")).json()["memories"] == []


async def test_a_long_memory_is_shown_page_by_page(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    owner = await web.client()
    for number in range(60):
        await owner.post("/api/memories", json={"text": f"number {number}"})
    page = await visitors.visit(web)
    await page.goto(f"{web.url}/memory")
    rows = page.get_by_role("list", name="Memory").get_by_role("listitem")
    await expect(rows).to_have_count(50)
    await page.get_by_role("button", name="Show more").click()
    await expect(rows).to_have_count(60)
    await expect(rows.last).to_contain_text("number 0")


@pytest.mark.parametrize(
    ("toolsets", "told"),
    [
        ({}, "The agent has no memory at the moment"),
        ({"memory": ToolsetRule(roles=frozenset({Role.GUEST}))}, "may not use its memory for you"),
        ({"memory": ToolsetRule(platforms=frozenset({Platform.TELEGRAM}))}, "only in conversations on Telegram"),
    ],
)
async def test_where_the_agent_does_not_remember_the_panel_says_so(
    start_web: StartWeb, visitors: Visitors, toolsets: dict[str, ToolsetRule], told: str
) -> None:
    page = await visitors.visit(web := await start_web(DemoAgent(pace=0), rules={"toolsets": toolsets}))
    await page.goto(f"{web.url}/memory")
    await expect(page.get_by_role("note")).to_contain_text(told)


# ---- usage -----------------------------------------------------------------------------------------------


async def test_usage_shows_what_was_spent_and_names_what_has_no_price(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    session = await web.talk(await web.client(), "hello", title="Dear talk")
    await use(web, session, turn_id="a", model="big", input_tokens=9_000, output_tokens=1_000, cost="1.25")
    await use(web, session, turn_id="b", model="odd", input_tokens=500, output_tokens=100)
    page = await visitors.visit(web)
    await page.goto(f"{web.url}/usage")
    totals = page.locator(".totals")
    await expect(totals).to_contain_text("$1.25")
    await expect(totals).to_contain_text("1 answer has no known price")
    await expect(page.get_by_role("img", name="Cost from")).to_be_visible()
    await expect(page.locator(".chart-columns .chart-part").last).to_be_visible()

    table = page.get_by_role("table").last
    await expect(table).to_contain_text("big")
    await expect(table.get_by_role("row").filter(has_text="odd")).to_contain_text("no price known")
    await page.get_by_role("radio", name="Conversation").check()
    await table.get_by_role("link", name="Dear talk").click()
    await page.wait_for_url(f"**/{session}")


async def test_usage_is_exported_as_a_table_that_runs_no_formulas(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    session = await web.talk(await web.client(), "hello", title='=2+2,"quoted"')
    page = await visitors.visit(web)
    await page.goto(f"{web.url}/usage")
    await page.get_by_role("button", name="Export CSV").click()
    async with page.expect_download() as downloading:
        await page.get_by_role("menuitem", name="By conversation").click()
    [row] = rows_of(await (await downloading.value).path())
    assert row["session"] == '\'=2+2,"quoted"'
    assert row["id"] == session
    assert row["turns"] == "1"


async def test_a_range_without_answers_says_so(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    page = await visitors.visit(web)
    await page.goto(f"{web.url}/usage")
    await expect(page.get_by_role("heading", name="Nothing was used in this time.")).to_be_visible()
    await page.get_by_role("radio", name="Other").check()
    await page.get_by_label("From").fill("2020-01-01")
    await page.get_by_label("To", exact=True).fill("2020-12-31")
    await expect(page.get_by_role("heading", name="Nothing was used in this time.")).to_be_visible()


async def test_only_an_owner_sees_what_everybody_used(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    await web.talk(await web.client("Jonas"), "hello")
    page = await visitors.visit(web)
    await page.goto(f"{web.url}/usage")
    await expect(page.get_by_role("heading", name="Nothing was used in this time.")).to_be_visible()
    await page.get_by_role("radio", name="Everybody’s").check()
    await page.get_by_role("radio", name="Person").check()
    await expect(page.get_by_role("row").filter(has_text="Jonas")).to_be_visible()

    other = await visitors.visit(web, "Jonas")
    await other.goto(f"{web.url}/usage")
    await expect(other.locator(".totals")).to_be_visible()
    await expect(other.get_by_role("radio", name="Everybody’s")).to_have_count(0)
    await expect(other.get_by_role("radio", name="Person")).to_have_count(0)


# ---- people ----------------------------------------------------------------------------------------------


async def test_somebody_is_invited_signs_in_and_is_removed(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    page = await visitors.visit(web, permissions=["clipboard-read", "clipboard-write"])
    await page.add_init_script("Object.defineProperty(window, 'isSecureContext', {value: false})")  # a home network
    await page.goto(f"{web.url}/people")
    await page.get_by_role("button", name="Invite somebody").click()
    await page.get_by_label("Name of the person").fill("Amina")
    await page.get_by_role("dialog").get_by_role("button", name="Invite somebody").click()
    link = await page.get_by_role("textbox", name="Sign-in link").input_value()
    assert link.startswith(f"{web.url}/sign-in#")
    await page.get_by_role("button", name="Copy").click()
    await expect(page.get_by_role("button", name="Copied")).to_be_focused()
    assert await page.evaluate("navigator.clipboard.readText()") == link
    await shut(page)
    row = page.get_by_role("listitem").filter(has_text="Amina")
    await expect(row).to_contain_text("has not signed in yet")

    theirs = await (await visitors.context(web.url)).new_page()
    await theirs.goto(link)
    await expect(theirs.get_by_role("heading", name="Hello, Amina")).to_be_visible()

    visitors.expected = ("401",)
    await row.get_by_role("button", name="Actions for “Amina”").click()
    await page.get_by_role("menuitem", name="Remove").click()
    await page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    await expect(page.get_by_text("Amina was removed.")).to_be_visible()
    await theirs.reload()
    await expect(theirs.get_by_role("heading", name="Palaver")).to_be_visible()


async def test_a_role_and_a_name_are_changed_from_the_menu(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    await web.client("Jonas")
    page = await visitors.visit(web)
    await page.goto(f"{web.url}/people")
    await page.get_by_role("button", name="Actions for “Jonas”").click()
    await page.get_by_role("menuitemradio", name="Owner").click()
    await expect(page.get_by_role("listitem").filter(has_text="Jonas")).to_contain_text("Owner")
    await page.get_by_role("button", name="Actions for “Jonas”").click()
    await page.get_by_role("menuitem", name="Rename").click()
    await page.get_by_label("Name of the person").fill("Jon")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("button", name="Actions for “Jon”")).to_be_visible()


async def test_a_member_has_no_panel_of_people(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    page = await visitors.visit(web, "Jonas")
    await page.goto(f"{web.url}/people")
    await expect(page.get_by_role("heading", name="Hello, Jonas")).to_be_visible()
    about = page.get_by_role("region", name="What is running here")
    await expect(about).to_contain_text("Whoever runs this gateway can give it a real model.")
    await expect(about).not_to_contain_text("terminal")
    await page.get_by_role("button", name="Jonas").click()
    await expect(page.get_by_role("menuitem", name="Settings")).to_be_visible()
    await expect(page.get_by_role("menuitem", name="People")).to_have_count(0)


# ---- platforms -------------------------------------------------------------------------------------------


async def test_platforms_are_those_that_have_conversations(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    await web.talk(await web.client(), "hello", title="On the web")
    terminal = SessionSource.local_cli()
    said = await web.gateway.store.aio.record_user_message(terminal, "at the desk")
    await use(web, said.session_id, turn_id="t", model="any", output_tokens=5)
    page = await visitors.visit(web)
    await page.goto(f"{web.url}/platforms")
    await expect(page.get_by_role("region", name="Terminal")).to_contain_text("1 answer given")
    await expect(page.get_by_role("region", name="Telegram")).to_have_count(0)
    await page.get_by_role("region", name="Web").get_by_role("link", name="On the web").click()
    await expect(page.get_by_role("heading", name="On the web")).to_be_visible()


async def test_the_owner_sees_how_platforms_are_doing_and_others_do_not(
    start_web: StartWeb, visitors: Visitors
) -> None:
    async def lost(_delivery: Delivery) -> str:
        raise SendUncertain("the line was cut")

    loopback = Loopback(lost)
    web = await start_web(DemoAgent(pace=0), adapters=[loopback])
    await loopback.say("hello", user="ada")
    page = await visitors.visit(web)
    await page.goto(f"{web.url}/platforms")
    region = page.get_by_role("region", name="loopback")
    await expect(region).to_contain_text("Connected")
    await expect(region).to_contain_text("Of 1 message nobody knows whether it arrived")
    await expect(region).to_contain_text("the line was cut")

    other = await visitors.visit(web, "jonas")
    await other.goto(f"{web.url}/platforms")
    await expect(other.get_by_role("heading", name="Platforms", level=1)).to_be_visible()
    await expect(other.get_by_text("loopback")).to_have_count(0)


# ---- settings --------------------------------------------------------------------------------------------


async def test_a_theme_is_kept_and_a_language_is_spoken(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    page = await visitors.visit(web, color_scheme="light")
    await page.goto(f"{web.url}/settings")
    await page.get_by_role("radio", name="Dark").check()
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    await page.get_by_role("radio", name="Deutsch").click()
    await expect(page.get_by_role("heading", name="Einstellungen", level=1)).to_be_visible()
    await expect(page.locator("html")).to_have_attribute("lang", "de")
    await expect(page.locator("html")).to_have_attribute("data-theme", "dark")


async def test_when_conversations_start_afresh_is_told_with_the_lines_that_change_it(
    start_web: StartWeb, visitors: Visitors, tmp_path: Path
) -> None:
    config = GatewayConfig(
        default_reset_policy=ResetPolicy(mode=ResetMode.BOTH, idle_minutes=2880, timezone="Europe/Berlin"),
        reset_by_platform={Platform.TELEGRAM: ResetPolicy(mode=ResetMode.IDLE, idle_minutes=90, notify=False)},
    )
    web = await start_web(DemoAgent(pace=0), config=config, rules={"busy": BusyPolicy.STEER})
    page = await visitors.visit(web, permissions=["clipboard-read", "clipboard-write"])
    await page.goto(f"{web.url}/settings")
    places = page.get_by_role("region", name="Conversations").locator("li")
    everywhere = places.filter(has_text="Wherever nothing else is said")
    await expect(everywhere).to_contain_text("After 2 days without a message, or every day at 04:00 (Europe/Berlin)")
    await expect(everywhere).to_contain_text("A message is given to the agent after its next tool call")
    telegram = places.filter(has_text="Telegram")
    await expect(telegram).to_contain_text("After 90 minutes without a message; nobody is told")
    await expect(telegram).to_contain_text("reset_by_platform.telegram")
    await expect(places.filter(has_text="Web")).to_contain_text("Only when you begin a new one")

    await telegram.get_by_text("How to change it").click()
    await telegram.get_by_role("button", name="Copy these lines").click()
    await expect(telegram.get_by_role("button", name="Copied")).to_be_visible()
    (tmp_path / "config.yaml").write_text(await page.evaluate("navigator.clipboard.readText()"))
    settings = load_settings({}, tmp_path)
    assert settings.gateway.reset_by_platform == config.reset_by_platform
    assert settings.turns.busy_by_platform == {Platform.TELEGRAM: BusyPolicy.STEER}

    other = await visitors.visit(web, "Jonas")
    await other.goto(f"{web.url}/settings")
    theirs = other.get_by_role("region", name="Conversations")
    await expect(theirs).to_contain_text("The owner of this gateway decides this.")
    await expect(theirs.get_by_text("How to change it")).to_have_count(0)


async def test_a_password_is_set_and_signs_in(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    page = await visitors.visit(web)
    await page.goto(f"{web.url}/settings")
    await page.get_by_label("Your name").fill("Mira")
    await page.get_by_role("button", name="Save").first.click()
    await expect(page.get_by_role("button", name="Mira", exact=True)).to_be_visible()
    await page.get_by_label("New password").fill("a long way to Tipperary")
    await page.get_by_role("button", name="Save").last.click()
    await expect(page.get_by_role("heading", name="Change the password")).to_be_visible()

    visitors.expected = ("401",)
    other = await (await visitors.context(web.url)).new_page()
    await other.goto(web.url)
    await other.get_by_label("Name").fill("Mira")
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


async def test_signing_out_everywhere_includes_here(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    page = await visitors.visit(web)
    await page.goto(f"{web.url}/settings")
    visitors.expected = ("401",)
    await page.get_by_role("button", name="Sign out everywhere").click()
    await page.get_by_role("dialog").get_by_role("button", name="Sign out everywhere").click()
    await expect(page.get_by_role("heading", name="Palaver")).to_be_visible()


async def test_a_token_is_shown_once_and_works_until_it_is_revoked(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    page = await visitors.visit(web)
    await page.goto(f"{web.url}/settings")
    await page.get_by_role("button", name="New token").click()
    await page.get_by_label("What it is for").fill("backup script")
    await page.get_by_role("button", name="Create").click()
    secret = await page.get_by_role("textbox", name="backup script").input_value()
    assert secret.startswith("pal_")
    await shut(page)
    program = await web.stranger()
    bearing = {"Authorization": f"Bearer {secret}"}
    assert (await program.get("/api/sessions", headers=bearing)).status_code == 200

    await expect(page.get_by_role("listitem").filter(has_text="backup script")).to_contain_text("read")
    await page.get_by_role("button", name="Revoke the token “backup script”").click()
    await page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
    await expect(page.get_by_text("You have no tokens.")).to_be_visible()
    assert (await program.get("/api/sessions", headers=bearing)).status_code == 401


# ---- shared copies ---------------------------------------------------------------------------------------


async def test_a_copy_is_shared_read_by_a_stranger_and_taken_back(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    session = await web.talk(await web.client(), "show me markdown", title="What it can look like")
    page = await visitors.visit(web)
    await page.goto(f"{web.url}/{session}")
    await page.locator("header").get_by_role("button", name="Actions for").click()
    await page.get_by_role("menuitem", name="Share a copy").click()
    await page.get_by_role("button", name="Make the copy").click()
    link = await page.get_by_role("textbox", name="Link to the copy").input_value()
    await shut(page)

    stranger = await (await visitors.context(web.url)).new_page()
    await stranger.goto(link)
    await expect(stranger.get_by_role("heading", name="What it can look like", level=1)).to_be_visible()
    await expect(stranger.get_by_role("article").last.get_by_role("table")).to_be_visible()

    await page.goto(f"{web.url}/settings")
    await page.get_by_role("button", name="Take back “What it can look like”").click()
    await page.get_by_role("dialog").get_by_role("button", name="Take back").click()
    await expect(page.get_by_text("You share nothing.")).to_be_visible()
    visitors.expected = ("404",)
    await stranger.reload()
    await expect(stranger.get_by_role("heading", name="This copy is not there.")).to_be_visible()


# ---- on the way ------------------------------------------------------------------------------------------


async def test_a_panel_is_fetched_when_somebody_points_at_the_way_to_it(
    start_web: StartWeb, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(pace=0))
    page = await visitors.visit(web)
    await page.get_by_role("button", name="owner").click()
    await expect(page.get_by_role("menuitem", name="Memory")).to_be_visible()
    async with page.expect_response("**/MemoryPanel-*.js"):
        await page.get_by_role("menuitem", name="Memory").hover()
    async with page.expect_response("**/UsagePanel-*.js"):
        await page.keyboard.press("ArrowDown")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("menu")).to_have_count(0)
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("combobox")).to_be_focused()
    async with page.expect_response("**/PlatformsPanel-*.js"):
        await page.keyboard.type("platforms")
    assert page.url == f"{web.url}/"


# ---- the shell -------------------------------------------------------------------------------------------


async def test_the_page_can_be_installed(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    page = await visitors.visit(web)
    asked = await page.context.new_cdp_session(page)
    told = await asked.send("Page.getAppManifest")
    assert told["errors"] == []
    assert re.search(r'"name": "Palaver"', told["data"])
    faults = (await asked.send("Page.getInstallabilityErrors"))["installabilityErrors"]
    assert {each["errorId"] for each in faults} <= {"in-incognito"}  # as every page of a test is


async def test_the_shell_opens_without_a_line_and_holds_nothing_else(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0))
    await web.talk(await web.client(), "a secret thing")
    page = await visitors.visit(web)
    await page.wait_for_function(_SHELL_IS_KEPT)
    kept: list[str] = await page.evaluate(_KEPT)
    assert f"{web.url}/" in kept
    assert not [address for address in kept if "/api" in address]

    visitors.expected = ("ERR_INTERNET_DISCONNECTED", "Failed to fetch")
    await page.context.set_offline(True)
    await page.goto(f"{web.url}/usage")
    await expect(page.locator(".starting")).to_be_attached()
    await page.context.set_offline(False)
    await expect(page.get_by_role("heading", name="Usage")).to_be_visible()


_KEPT = "async () => (await (await caches.open('palaver-shell')).keys()).map(each => each.url)"
_SHELL_IS_KEPT = f"async () => (await ({_KEPT})()).some(each => each.endsWith('.js'))"


async def test_the_page_works_below_a_path(start_web: StartWeb, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(pace=0), base_path="/talk")
    page = await (await visitors.context(web.url)).new_page()
    await page.goto(f"{web.url}/talk/sign-in#{await web.state.accounts.owner_link()}")
    await expect(page.locator("main.main h1")).to_be_visible()
    await page.get_by_role("button", name="owner").click()
    await page.get_by_role("menuitem", name="Settings").click()
    await expect(page.get_by_role("heading", name="Settings", level=1)).to_be_visible()
    assert page.url == f"{web.url}/talk/settings"
    await page.reload()
    await expect(page.get_by_role("list", name="Devices")).to_be_visible()
    scope = await page.evaluate("async () => (await navigator.serviceWorker.ready).scope")
    assert scope == f"{web.url}/talk/"
