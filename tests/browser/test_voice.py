"""Voice on the page, with Chromium's fake microphone and a provider on loopback."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio
from playwright.async_api import expect

from agent.openai_server import KEY, OpenAIServer, reply_with_audio, reply_with_error, reply_with_transcript
from browser import conftest
from browser.conftest import (
    DESKTOP_VIEWPORT,
    PHONE_VIEWPORT,
    launch_browser,
    send_message,
    wait_for_answer,
)
from browser.page_checks import find_violations
from palaver.domain.profile import AgentProfile, Provider
from palaver.domain.speech import SpeechRules
from palaver.testing import ScriptedAgent

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from playwright.async_api import Browser

    from browser.conftest import Visitors
    from support.web import StartWebServer

FAKE_MICROPHONE = ("--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream")
# The fake microphone is always allowed, so the browser's refusal is made up.
_REFUSE_MICROPHONE = """() => {
    navigator.mediaDevices.getUserMedia = async () => { throw new DOMException('Permission denied', 'NotAllowedError') }
}"""
WAV = b"RIFF\x24\x3f\0\0WAVEfmt \x10\0\0\0\1\0\1\0\x40\x1f\0\0\x80\x3e\0\0\2\0\x10\0data\0\x3f\0\0" + b"\0" * 0x3F00


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    """Launch a browser with a microphone that beeps, and that every page may use."""
    flags, conftest.BROWSER_FLAGS = conftest.BROWSER_FLAGS, (*conftest.BROWSER_FLAGS, *FAKE_MICROPHONE)
    try:
        async with launch_browser(full=False) as browser:
            yield browser
    finally:
        conftest.BROWSER_FLAGS = flags


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as server:
        yield server


def make_profile(server: OpenAIServer) -> AgentProfile:
    rules = SpeechRules(transcription="shop:whisper-1", speaking="shop:tts-1")
    return AgentProfile(providers={"shop": Provider(api_key=KEY, base_url=server.url)}, speech=rules)


@dataclass(frozen=True)
class Texts:
    """What the page says in one language."""

    locale: str
    record: str
    insert: str
    send: str
    transcript: str


ENGLISH = Texts("en-GB", "Record voice", "Insert as text", "Send as voice message", "Transcript")
GERMAN = Texts("de-DE", "Sprache aufnehmen", "Als Text einfügen", "Als Sprachnachricht senden", "Transkript")


@pytest.mark.parametrize(
    ("texts", "viewport"), [(ENGLISH, DESKTOP_VIEWPORT), (GERMAN, PHONE_VIEWPORT)], ids=["desktop", "German phone"]
)
async def test_a_recording_becomes_text_or_a_voice_message(
    start_web: StartWebServer, visitors: Visitors, server: OpenAIServer, texts: Texts, viewport: dict[str, int]
) -> None:
    server.add_replies(reply_with_transcript("Water the plants"), reply_with_transcript("And the trees"))
    web = await start_web(ScriptedAgent(), profile=make_profile(server))
    page = await visitors.visit(web, viewport=viewport, locale=texts.locale)
    record = page.get_by_role("button", name=texts.record)
    await record.click()
    await expect(page.get_by_role("timer")).to_have_text("0:01")
    assert await find_violations(page) == []
    await page.keyboard.press("Escape")  # cancels
    await expect(record).to_be_visible()
    assert server.requests == []

    await record.click()
    await expect(page.get_by_role("timer")).to_have_text("0:01")
    await expect(page.get_by_role("button", name=texts.insert)).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("#composer")).to_have_value("Water the plants")
    assert server.requests[0]["file"]["type"] == "audio/webm"
    await page.locator("#composer").fill("")

    await record.click()
    await expect(page.get_by_role("timer")).to_have_text("0:01")
    await page.get_by_role("button", name=texts.send).click()
    await expect(page.locator(".user-message figcaption")).to_have_text(f"{texts.transcript}And the trees")
    await expect(page.locator(".answer").last).to_contain_text("Done.")
    await expect(page.locator(".user-message audio")).to_have_count(1)


async def test_a_recording_ends_at_its_limit(
    start_web: StartWebServer, visitors: Visitors, server: OpenAIServer
) -> None:
    server.add_replies(reply_with_transcript("A long story"))
    web = await start_web(ScriptedAgent(), profile=make_profile(server))
    page = await visitors.visit(web)
    await page.clock.install()
    await page.get_by_role("button", name="Record voice").click()
    await expect(page.get_by_role("timer")).to_be_visible()
    await page.clock.fast_forward(SpeechRules().max_minutes * 60_000)
    await expect(page.locator("#composer")).to_have_value("A long story")
    await expect(page.get_by_role("timer")).to_have_count(0)


async def test_a_blocked_microphone_is_explained(
    start_web: StartWebServer, visitors: Visitors, server: OpenAIServer
) -> None:
    web = await start_web(ScriptedAgent(), profile=make_profile(server))
    page = await visitors.visit(web, locale="de-DE", viewport=PHONE_VIEWPORT)
    await page.evaluate(_REFUSE_MICROPHONE)
    await page.get_by_role("button", name=GERMAN.record).click()
    await expect(page.get_by_text("Das Mikrofon ist blockiert. Erlaube es für diese Seite")).to_be_visible()
    await expect(page.get_by_role("timer")).to_have_count(0)


async def test_a_recording_without_a_transcript_is_not_lost(
    start_web: StartWebServer, visitors: Visitors, server: OpenAIServer
) -> None:
    server.add_replies(reply_with_error(400, "the audio is too short"))
    visitors.allowed_errors += ("502",)
    web = await start_web(ScriptedAgent(), profile=make_profile(server))
    page = await visitors.visit(web)
    await page.get_by_role("button", name="Record voice").click()
    await expect(page.get_by_role("timer")).to_have_text("0:01")
    await page.get_by_role("button", name="Insert as text").click()
    await expect(page.get_by_text("the audio is too short")).to_be_visible()
    await expect(page.locator(".draft-files .file")).to_have_count(1)


async def test_an_answer_is_read_aloud(start_web: StartWebServer, visitors: Visitors, server: OpenAIServer) -> None:
    server.add_replies(reply_with_audio(WAV, "audio/wav"))
    web = await start_web(ScriptedAgent(), profile=make_profile(server))
    page = await visitors.visit(web)
    await send_message(page, "hello")
    await wait_for_answer(page)
    await page.get_by_role("button", name="Read aloud").click()
    await expect(page.get_by_role("button", name="Stop reading")).to_be_visible()
    await expect(page.get_by_role("button", name="Read aloud")).to_be_visible()  # after a second
    assert server.requests[0]["voice"] == "alloy"
