"""The page in German: all of its own texts are translated; and axe finds nothing serious in any of the settings."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

import pytest
from playwright.async_api import expect

from browser.conftest import PHONE_VIEWPORT, open_panel, open_path
from browser.page_checks import find_overflowing_texts, find_small_targets, find_violations, measure_overflow
from browser.settings_walk import make_job, walk_places, walk_settings
from palaver.agent.base import Notice, TextDelta
from palaver.core.errors import AgentUnavailable
from palaver.drivers.demo import DemoAgent
from palaver.sessions.turn import FailureCode, NoticeCode
from palaver.testing import ScriptedAgent
from support.settings import BOT_TOKEN

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from playwright.async_api import Page

    from browser.conftest import Visitors
    from palaver.agent.base import AgentEvent, AgentRequest
    from support.web import StartWebServer, WebServer

# Collects visible texts, accessible names and hints.
_COLLECT_TEXTS = """() => {
  const texts = [];
  const others = 'pre, code, kbd, .markdown, .bubble, .session-preview, .reasoning-text, .snippet, .log-lines';
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const around = walker.currentNode.parentElement;
    if (around.checkVisibility() && !around.closest(others)) texts.push(walker.currentNode.data);
  }
  for (const each of document.querySelectorAll('option')) texts.push(each.textContent);
  for (const name of ['aria-label', 'title', 'placeholder', 'alt']) {
    for (const each of document.querySelectorAll(`[${name}]`)) texts.push(each.getAttribute(name));
  }
  return texts.map(each => each.trim()).filter(each => /\\p{L}{2}/u.test(each));
}"""

# Names and texts of people.
SAME_IN_BOTH_LANGUAGES = {
    *("Palaver", "English", "Deutsch", "Agent", "Name", "Person", "Token", "Passkeys", "Web", "Terminal", "API"),
    *("Tools", "System", "Version", "Budget", "UTC", "Prompts"),
    *("Discord", "Matrix", "Signal", "Slack", "Telegram", "WhatsApp", "WhatsApp Web", "Webhook"),
    *("owner", "Travels", "Alpha", "Beta", "demo", "Chrome, Linux"),
    *("Budgets", "Server", "Port", "Chats", "Homeserver *", "OK", "Info", "Socket", "HTTP", "Text", "TLS", "STARTTLS"),
    *("@BotFather", "developers.facebook.com"),  # links in the steps
    *("SearXNG", "Brave", "Tavily", "OpenAI", "Anthropic", "Google", "OpenRouter", "Ollama", "USD"),
}
# Names that the owner of the test has chosen, and names that no language has: of models, time zones, programs; a time.
_CHOSEN_NAMES = {
    "Plants",
    "Water the plants",
    "Jonas",
    "clerk",
    "docs",
    "pirate",
    "lab",
    "lab:x",
    "telegram",
    "web",
    "arr",
    "x",
    "http://x.example",
}
_NAME_IN_ANY_LANGUAGE = re.compile(
    r"[\d-]+ [\d:]+ UTC\.|[a-z]+:\S+|[A-Z]\w+/\S+|python-httpx2/\S+|https?://\S+|[\w.]*/\S*"
)
SKIPPED_TO = {"jobs", "settings", "settings#about", "server#models"}  # where the skip link is tried
PLACES = ("jobs", "prompts", "server#models", "server#conversations", "platforms#slack", "settings#about")
PHONE: dict[str, Any] = {
    "viewport": PHONE_VIEWPORT,
    "has_touch": True,
    "is_mobile": True,
    "reduced_motion": "reduce",
}
SETTINGS_WITH_NAMES = {
    "profiles.clerk.instructions": "x",
    "personalities.pirate": "arr",
    "providers.lab.base_url": "http://127.0.0.1:1/a-rather-long-path-to-the-models/v1",
    "providers.lab.api_key": "sk-0123456789abcdef",
    'prices."lab:x".input': "1",
    "budgets.profiles.clerk.day_usd": "3",
    "reset_by_platform.telegram.mode": "daily",
    "mcp_servers.docs.url": "http://x.example",
    "toolsets.web.enabled": True,
    "platforms.telegram.enabled": True,
    "platforms.telegram.settings.bot_token": BOT_TOKEN,
}


async def collect_texts(page: Page, session: str) -> dict[str, set[str]]:
    """Visit every part of the page, from the home page on, and collect its texts by place."""
    keys, texts = page.keyboard, {}

    async def collect(place: str) -> None:
        texts[place] = set(await page.evaluate(_COLLECT_TEXTS))

    await expect(page.locator(".session")).to_have_count(2)
    await collect("home")
    await keys.press("Control+k")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await collect("palette")
    await keys.press("Escape")
    await page.locator("h1").click()
    await keys.press("?")
    await expect(page.get_by_role("dialog")).to_be_visible()
    await collect("shortcuts")
    await keys.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await page.locator("#search").fill("hello")
    await expect(page.locator(".search-hit").first).to_be_visible()
    await collect("search")
    await page.locator("#search").fill("")
    await page.locator(".session").first.hover()
    await page.locator(".session").first.get_by_role("button").click()
    await expect(page.get_by_role("menu")).to_be_visible()
    await collect("menu")
    await keys.press("Escape")
    await open_path(page, f"/{session}")
    await expect(page.locator(".answer").last).to_be_visible()
    for summary in await page.locator(".answer summary").all():
        await summary.click()
    await collect("conversation")
    for panel in ("usage", "people", "platforms", "settings"):
        await open_panel(page, panel)
        await collect(panel)
    await page.context.clear_cookies()
    await page.reload()
    await expect(page.locator(".sign-in")).to_be_visible()
    await collect("sign-in")
    return texts


async def skip_to_content(page: Page, skip_link: str) -> None:
    await page.get_by_role("link", name=skip_link).focus()
    await page.keyboard.press("Enter")
    await expect(page.locator("#main")).to_be_focused()


async def check_settings(page: Page, skip_link: str) -> dict[str, set[str]]:
    """Visit everything that can be set, check that it is accessible and fits, and collect the texts by place."""
    texts, violations = {}, {}
    async for place in walk_settings(page):
        texts[place] = set(await page.evaluate(_COLLECT_TEXTS))
        assert await measure_overflow(page) == 0, place
        violations[place] = await find_violations(page)
        if place in SKIPPED_TO:
            await skip_to_content(page, skip_link)
        assert await page.locator("html[lang=de] :is(.setting-field, .steps-list) [lang=en]").count() == 0, place
    assert {place: found for place, found in violations.items() if found} == {}
    return texts


def find_english(english: dict[str, set[str]], german: dict[str, set[str]]) -> dict[str, list[str]]:
    """List the texts that are the same in both languages, and should not be, by place."""
    known = SAME_IN_BOTH_LANGUAGES | _CHOSEN_NAMES
    left = {
        place: sorted(text for text in german[place] & texts - known if not _NAME_IN_ANY_LANGUAGE.fullmatch(text))
        for place, texts in english.items()
    }
    return {place: texts for place, texts in left.items() if texts}


async def create_eventful_conversation(web: WebServer) -> str:
    """Create a conversation with events of all kinds, and return its ID."""
    owner = await web.sign_in()
    assert (await owner.post("/api/projects", json={"name": "Travels", "color": "#3b82f6"})).is_success
    await web.create_conversation(owner, "hello", title="Beta")
    session = await web.create_conversation(
        owner, "think about the sea", "remember that my cat is called Ada", title="Alpha"
    )
    for command in ("/busy steer", "/undo"):
        await web.send_message(owner, session, command)
    return session


@pytest.mark.soak
async def test_errors_and_notices_are_shown_in_german_with_their_details(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    has_seen_notice = asyncio.Event()

    async def fail_after_notice(request: AgentRequest) -> AsyncGenerator[AgentEvent, None]:
        if request.messages[-1]["content"] != "Hallo":
            yield TextDelta("Hello.")
            return
        yield Notice("Summarizing older messages…", NoticeCode.SUMMARIZING)
        await has_seen_notice.wait()
        facts = {"code": FailureCode.DROPPED_MID_ANSWER, "provider_title": "OpenAI"}
        raise AgentUnavailable("The connection to OpenAI dropped mid-answer.", **facts)

    web = await start_web(ScriptedAgent(fail_after_notice))
    for title in ("Alpha", "Beta"):
        await web.create_conversation(await web.sign_in(), "hello", title=title)
    page = await visitors.visit(web, locale="de-DE")
    visitors.allowed_errors = ("409", "422")
    link = page.locator(".session").filter(has_text="Beta").get_by_role("link")
    await link.click()
    await expect(page.locator("#composer")).to_be_focused()  # the focus does not move again while the title is edited
    await link.dblclick()
    await page.get_by_role("textbox", name="Chattitel").fill("Alpha")
    await page.keyboard.press("Enter")
    await expect(
        page.get_by_text("Du hast bereits einen Chat namens „Alpha“. Wie wäre es mit „Alpha #2“?")
    ).to_be_visible()
    await expect(page.locator(".session a[aria-current=page]")).to_be_focused()
    await page.locator("header.bar").get_by_role("button", name="Aktionen für „Beta“").click()
    await page.get_by_role("menuitem", name="Kontext komprimieren").click()
    await expect(page.get_by_text("Zu kurz zum Komprimieren: Mindestens 6 Nachrichten sind nötig.")).to_be_visible()

    await page.locator("#composer").fill("Hallo")
    await page.locator("#composer").press("Enter")
    await expect(page.get_by_text("Ältere Nachrichten werden zusammengefasst …")).to_be_visible()
    has_seen_notice.set()
    await expect(page.get_by_text("Die Verbindung zu OpenAI ist mitten in der Antwort abgebrochen.")).to_be_visible()
    await check_refused_settings(page)


async def check_refused_settings(page: Page) -> None:
    """Refused settings and failed tests are explained."""
    await open_path(page, "/server#turns")
    await page.get_by_label("Gleichzeitig", exact=True).first.fill("0")
    await page.get_by_role("button", name="Speichern", exact=True).click()
    await expect(page.get_by_text("0 ist nicht erlaubt (eine ganze Zahl, 1 bis 256)")).to_be_visible()
    await page.get_by_role("button", name="Änderungen verwerfen").click()

    await open_path(page, "/server#models")
    form = page.locator(".provider-form")
    await form.get_by_role("combobox", name="Anbieter").select_option(label="Anderer (OpenAI-kompatibel)")
    await form.get_by_label("Name").fill("lab")
    await form.get_by_label("Adresse (URL)").fill("http://127.0.0.1:1/v1")
    await form.get_by_role("button", name="Testen").click()
    await expect(form.get_by_role("status")).to_contain_text("Der Test ist fehlgeschlagen. Keine Verbindung zu")

    await open_path(page, "/platforms#webhook")
    await page.get_by_label("Geheimnis").first.fill("short")
    await page.get_by_role("button", name="Speichern und verbinden").first.click()
    await expect(page.get_by_role("alert").filter(has_text="Das Geheimnis braucht 24 bis 512 Zeichen")).to_be_visible()
    page.once("dialog", lambda dialog: dialog.accept())
    await open_path(page, "/platforms#matrix")
    await page.get_by_label("Homeserver").first.fill("http://127.0.0.1:1")
    await page.get_by_label("Zugriffstoken").first.fill("syt_0123456789")
    await page.get_by_role("button", name="Testen").first.click()
    await expect(page.get_by_text("Der Homeserver ist nicht erreichbar:")).to_be_visible()


async def test_a_page_in_german_has_no_english_left(start_web: StartWebServer, visitors: Visitors) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    session = await create_eventful_conversation(web)
    await (await web.sign_in()).post("/api/sign-out")  # so that the test client is not listed as a device
    visitors.allowed_errors = ("401",)
    english = await collect_texts(await visitors.visit(web, locale="en-GB"), session)
    german = await collect_texts(await visitors.visit(web, locale="de-DE"), session)
    assert find_english(english, german) == {}


async def create_named_settings(web: WebServer) -> None:
    """Let everything that can be set have a name, so that every form is shown; and sign the test client out."""
    owner = await web.sign_in()
    await owner.post("/api/saved-prompts", json={"name": "clerk", "text": "arr"})
    await web.create_conversation(owner, "remember that arr", title="Alpha")
    await make_job(web, "Plants")
    await web.sign_in("Jonas")
    changed = await owner.patch("/api/settings", json={"set": SETTINGS_WITH_NAMES})
    assert changed.is_success, changed.text
    await owner.post("/api/sign-out")  # so that the test client is not listed as a device


async def test_settings_fit_a_phone_in_german_and_dark_and_have_no_english_left(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    """The largest places; `make soak` visits all of them."""
    web = await start_web(DemoAgent(word_delay=0))
    await create_named_settings(web)
    desktop = await visitors.visit(web, locale="en-GB", path="/jobs")
    english = {place: set(await desktop.evaluate(_COLLECT_TEXTS)) async for place in walk_places(desktop, PLACES)}
    await desktop.context.close()
    page = await visitors.visit(web, locale="de-DE", path="/jobs", color_scheme="dark", **PHONE)
    german = {}
    async for place in walk_places(page, PLACES):
        german[place] = set(await page.evaluate(_COLLECT_TEXTS))
        assert (place, await find_violations(page), await measure_overflow(page)) == (place, [], 0)
        assert (place, await find_small_targets(page), await find_overflowing_texts(page)) == (place, [], [])
        assert await page.locator(":is(.setting-field, .steps-list) [lang=en]").all_text_contents() == [], place
        if place in SKIPPED_TO:
            await skip_to_content(page, "Zum Inhalt springen")
    assert find_english(english, german) == {}
    await expect(page.locator(".policies h3").last).to_have_text("Überall sonst")
    await page.reload()
    await expect(page.get_by_role("heading", name="Über Palaver")).to_be_in_viewport()


@pytest.mark.soak
@pytest.mark.slow
async def test_all_settings_are_accessible_and_in_german_have_no_english_left(
    start_web: StartWebServer, visitors: Visitors
) -> None:
    web = await start_web(DemoAgent(word_delay=0))
    await create_named_settings(web)
    desktop = await visitors.visit(web, locale="en-GB", color_scheme="light", reduced_motion="reduce")
    english = await check_settings(desktop, "Skip to content")
    await desktop.context.close()
    phone = await visitors.visit(web, locale="de-DE", color_scheme="dark", **PHONE)
    german = await check_settings(phone, "Zum Inhalt springen")
    assert len(german) >= 30
    assert find_english(english, german) == {}
