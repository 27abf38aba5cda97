"""Voice on the page, with Chromium's fake microphone, which beeps, and a provider on loopback."""

from __future__ import annotations

import asyncio
import io
import wave
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from playwright.async_api import expect

from browser.conftest import PHONE_VIEWPORT
from browser.page_checks import find_violations, measure_overflow
from drivers.openai_server import KEY, OpenAIServer, reply_with_audio, reply_with_error, reply_with_transcript
from palaver.config.agent_rules import AgentProfile, Provider, SpeechRules
from palaver.testing import ScriptedAgent
from support.gateway import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.async_api import Page, Route

    from browser.conftest import Visitors
    from support.web import StartWebServer

SAMPLES_PER_SECOND = 3000

# The fake microphone is always allowed, so the browser's refusal is made up.
_REFUSE_MICROPHONE = """() => {
    navigator.mediaDevices.getUserMedia = async () => { throw new DOMException('Permission denied', 'NotAllowedError') }
}"""


def make_silence(seconds: float) -> bytes:
    """Make a WAV file, with one byte per sample and few samples."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setparams((1, 1, SAMPLES_PER_SECOND, 0, "NONE", ""))
        sound.writeframes(b"\x80" * int(seconds * SAMPLES_PER_SECOND))
    return file.getvalue()


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


async def test_recordings_become_text_or_voice_messages_and_answers_are_read_aloud(
    start_web: StartWebServer, visitors: Visitors, server: OpenAIServer
) -> None:
    visitors.allowed_errors += ("502",)  # of a recording that the provider refuses
    web = await start_web(ScriptedAgent(), profile=make_profile(server))
    page = await visitors.visit(web)
    await check_canceled_recording(page, server, ENGLISH)
    await check_recordings(page, server, ENGLISH)
    await check_reading_aloud(page, server)
    await check_recording_without_transcript(page, server)
    await check_recording_limit(page, server)


@pytest.mark.soak
async def test_owners_see_which_engines_work_and_a_phone_in_german_explains_a_blocked_microphone(
    start_web: StartWebServer, visitors: Visitors, server: OpenAIServer
) -> None:
    web = await start_web(ScriptedAgent(), profile=make_profile(server))
    page = await visitors.visit(web, viewport=PHONE_VIEWPORT, locale=GERMAN.locale)
    await check_canceled_recording(page, server, GERMAN)
    await page.evaluate(_REFUSE_MICROPHONE)
    await page.get_by_role("button", name=GERMAN.record).click()
    await expect(page.get_by_text("Das Mikrofon ist blockiert. Erlaube es für diese Seite")).to_be_visible()
    await expect(page.get_by_role("timer")).to_have_count(0)

    page = await visitors.visit(web, path="/server#turns")
    voice = page.get_by_role("region", name="Voice")
    await expect(voice).to_contain_text("Recordingsby shop:whisper-1Reading aloudby shop:tts-1")
    await page.get_by_label("Speech recognition", exact=True).fill("anthropic:claude")
    await page.keyboard.press("Enter")
    await expect(voice).to_contain_text("Nothing turns them into text")
    await expect(voice).to_contain_text("anthropic has no speech API that Palaver can use.")
    assert await find_violations(page) == []


async def continue_after(event: asyncio.Event, route: Route) -> None:
    await event.wait()
    await route.continue_()


async def check_canceled_recording(page: Page, server: OpenAIServer, texts: Texts) -> None:
    """A recording that is canceled is sent nowhere."""
    record = page.get_by_role("button", name=texts.record)
    await record.click()
    await expect(page.get_by_role("timer")).to_be_visible()
    await expect(page.get_by_role("button", name=texts.insert)).to_be_focused()
    await expect(page.get_by_role("button", name=texts.send)).to_be_visible()
    assert (await find_violations(page), await measure_overflow(page)) == ([], 0)
    await page.keyboard.press("Escape")
    await expect(record).to_be_focused()
    assert server.requests == []


async def check_recordings(page: Page, server: OpenAIServer, texts: Texts) -> None:
    """Insert a recording as text, and send one as a voice message."""
    server.add_replies(reply_with_transcript("Water the plants"), reply_with_transcript("And the trees"))
    record = page.get_by_role("button", name=texts.record)
    await record.click()
    await expect(page.get_by_role("timer")).to_have_text("0:01")
    await expect(page.get_by_role("button", name=texts.insert)).to_be_focused()
    is_written = asyncio.Event()
    await page.route("**/transcript", lambda route: continue_after(is_written, route))
    await page.keyboard.press("Enter")
    await page.locator("#composer").fill("Please:")  # while it is transcribed
    is_written.set()
    await expect(page.locator("#composer")).to_have_value("Please: Water the plants")
    await page.unroute("**/transcript")
    assert server.requests[0]["file"]["type"] == "audio/webm"
    await page.locator("#composer").fill("")

    await record.click()
    await expect(page.get_by_role("timer")).to_have_text("0:01")
    await page.get_by_role("button", name=texts.send).click()
    await expect(page.locator(".user-message figcaption")).to_have_text(f"{texts.transcript}And the trees")
    await expect(page.locator(".answer").last).to_contain_text("Done.")
    await expect(page.locator(".user-message audio")).to_have_count(1)


async def check_reading_aloud(page: Page, server: OpenAIServer) -> None:
    server.add_replies(reply_with_audio(make_silence(600), "audio/wav"))
    await page.get_by_role("button", name="Read aloud").click()
    await wait_until(lambda: server.requests[-1].get("voice") == "alloy")
    await page.get_by_role("button", name="Stop reading").click()
    await expect(page.get_by_role("button", name="Read aloud")).to_be_visible()
    count = len(server.requests)
    server.add_replies(reply_with_audio(make_silence(0.1), "audio/wav"))
    await page.get_by_role("button", name="Read aloud").click()
    await wait_until(lambda: len(server.requests) > count)
    await expect(page.get_by_role("button", name="Read aloud")).to_be_visible()  # at its end


async def check_recording_without_transcript(page: Page, server: OpenAIServer) -> None:
    """A recording that the provider refuses is not lost."""
    server.add_replies(reply_with_error(400, "the audio is too short"))
    await page.get_by_role("button", name="Record voice").click()
    await expect(page.get_by_role("timer")).to_have_text("0:01")
    await page.get_by_role("button", name="Insert as text").click()
    await expect(page.get_by_text("the audio is too short")).to_be_visible()
    await expect(page.locator(".draft-files .file")).to_have_count(1)


async def check_recording_limit(page: Page, server: OpenAIServer) -> None:
    """A recording that is too long ends by itself, and becomes text."""
    server.add_replies(reply_with_transcript("A long story"))
    await page.clock.install()
    await page.get_by_role("button", name="Record voice").click()
    await expect(page.get_by_role("timer")).to_be_visible()
    await page.clock.fast_forward(SpeechRules().max_minutes * 60_000)
    await expect(page.locator("#composer")).to_have_value("A long story")
    await expect(page.get_by_role("timer")).to_have_count(0)
