"""Speech engines: the API of providers, and programs on this machine."""

from __future__ import annotations

import stat
import sys
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from palaver.config.agent_rules import AgentProfile, Provider, SpeechRules
from palaver.config.budget_rules import TokenPrice
from palaver.core.errors import AgentError, AgentRateLimited, AgentRejected, AgentUnavailable, InvalidInput
from palaver.drivers import speech_command
from palaver.drivers.speech import choose_speaker, choose_transcriber
from palaver.drivers.speech_command import fill_arguments
from palaver.sessions.speech import Recording, make_spoken_text, split_spoken_text
from support import local_speech

from .openai_server import (
    KEY,
    OpenAIServer,
    reply_with_audio,
    reply_with_error,
    reply_with_reset,
    reply_with_transcript,
)

if TYPE_CHECKING:
    from palaver.agent.base import ModelCall
    from palaver.sessions.usage import TurnUsage

pytestmark = pytest.mark.slow  # loads the SDK of a provider

MP3 = b"ID3" + b"\0" * 40


class FakeMeter:
    """Records what was held, and how each call ended."""

    def __init__(self) -> None:
        self.calls: list[ModelCall] = []
        self.ends: list[TurnUsage | str | None] = []

    async def hold(self, call: ModelCall) -> Any:
        self.calls.append(call)
        meter, index = self, len(self.calls) - 1
        self.ends.append("open")

        class Held:
            max_tokens = call.max_tokens
            is_recorded = True

            async def settle(self, usage: TurnUsage | None, *, streamed_tokens: int = 0) -> None:
                if meter.ends[index] == "open":
                    meter.ends[index] = usage

            async def release(self) -> None:
                if meter.ends[index] == "open":
                    meter.ends[index] = "released"

        return Held()


@pytest.fixture
def meter() -> FakeMeter:
    return FakeMeter()


@pytest.fixture
def recording(tmp_path: Path) -> Recording:
    path = tmp_path / "note"
    path.write_bytes(b"OggS" + b"\0" * 4996)
    return Recording(path=path, name="recording.ogg", media_type="audio/ogg", size=5000)


def make_profile(server: OpenAIServer, **rules: Any) -> AgentProfile:
    rules = {"transcription": "shop:whisper-1", "speaking": "shop:tts-1"} | rules
    return AgentProfile(
        providers={"shop": Provider(api_key=KEY, base_url=server.url)},
        prices={"shop:whisper-1": TokenPrice(input_usd=Decimal(10), output_usd=Decimal(0))},
        speech=SpeechRules(**rules),
    )


def make_command(folder: Path, code: str) -> tuple[str, ...]:
    script = folder / "program.py"
    script.write_text(f"import sys\n{code}\n")
    script.chmod(script.stat().st_mode | stat.S_IXUSR)
    return sys.executable, str(script)


# -- providers ---------------------------------------------------------------------------------------------------


async def test_a_provider_gets_the_recording_as_documented_and_its_usage_is_counted(
    server: OpenAIServer, meter: FakeMeter, recording: Recording
) -> None:
    usage = {"type": "tokens", "input_tokens": 14, "output_tokens": 5, "total_tokens": 19}
    server.add_replies(reply_with_transcript(" Hello there. ", usage))
    engine = choose_transcriber(make_profile(server, language="de"), {})
    assert engine is not None
    assert await engine.transcribe(recording, meter) == "Hello there."
    await engine.close()
    [request] = server.requests
    assert (request["model"], request["language"]) == ("whisper-1", "de")
    assert request["file"] == {"name": "recording.ogg", "type": "audio/ogg", "data": recording.path.read_bytes()}
    assert server.keys == [f"Bearer {KEY}"]
    assert meter.calls[0].input_tokens == 50  # 5 kB are 5 seconds at most
    assert (meter.ends[0].input_tokens, meter.ends[0].output_tokens) == (14, 5)  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("usage", "tokens"), [({"type": "duration", "seconds": 2.5}, 25), (None, 50), ({"seconds": "x"}, 50)]
)
async def test_a_recording_is_counted_by_its_length_or_its_size(
    server: OpenAIServer, meter: FakeMeter, recording: Recording, usage: Any, tokens: int
) -> None:
    server.add_replies(reply_with_transcript("Hi", usage))
    engine = choose_transcriber(make_profile(server), {})
    assert engine is not None
    await engine.transcribe(recording, meter)
    await engine.close()
    assert meter.ends[0].input_tokens == tokens  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("reply", "error", "words", "end"),
    [
        (reply_with_error(401, f"bad key {KEY}"), AgentRejected, "API key", "released"),
        (reply_with_error(429), AgentRateLimited, "Rate limit", "released"),
        (reply_with_error(400, "too short"), AgentRejected, "too short", "released"),
        (reply_with_error(503, "busy"), AgentUnavailable, "503", "released"),
        (reply_with_reset(), AgentUnavailable, "can't be reached", "released"),
        (reply_with_audio(b"{]", "application/json"), AgentUnavailable, "not a transcript", None),
        (reply_with_audio(b"[]", "application/json"), AgentUnavailable, "not a transcript", None),
    ],
)
async def test_what_goes_wrong_is_explained_and_counted(
    server: OpenAIServer,
    meter: FakeMeter,
    recording: Recording,
    reply: Any,
    error: type[AgentError],
    words: str,
    end: str | None,
) -> None:
    server.add_replies(reply)
    engine = choose_transcriber(make_profile(server), {})
    assert engine is not None
    with pytest.raises(error, match=words) as caught:
        await engine.transcribe(recording, meter)
    await engine.close()
    assert KEY not in f"{caught.value} {caught.value.facts}"
    assert meter.ends == [end]


async def test_an_address_that_no_client_can_use_is_explained(meter: FakeMeter, recording: Recording) -> None:
    """The settings refuse most of them, but clients know more about names with letters outside of ASCII."""
    rules = SpeechRules(transcription="shop:whisper-1", speaking="shop:tts-1")
    profile = AgentProfile(providers={"shop": Provider(api_key=KEY, base_url="http://☃/v1")}, speech=rules)
    transcriber, speaker = choose_transcriber(profile, {}), choose_speaker(profile, {})
    assert transcriber is not None
    assert speaker is not None
    for call in (transcriber.transcribe(recording, meter), speaker.speak("Hello", meter)):
        with pytest.raises(
            AgentRejected, match=r"The address of \"shop\" is not valid\. Set providers\.shop\.base_url"
        ):
            await call
    await transcriber.close()
    await speaker.close()
    assert meter.ends == ["released", "released"]


async def test_a_provider_speaks_with_the_voice_of_the_settings(server: OpenAIServer, meter: FakeMeter) -> None:
    server.add_replies(reply_with_audio(MP3), reply_with_audio(b"<html>", "text/html"))
    engine = choose_speaker(make_profile(server, voice="nova"), {})
    assert engine is not None
    audio = await engine.speak("Good morning", meter)
    assert (audio.data, audio.media_type) == (MP3, "audio/mpeg")
    assert server.requests[0] == {
        "model": "tts-1",
        "input": "Good morning",
        "voice": "nova",
        "response_format": "mp3",
    }
    assert meter.ends[0].input_tokens == len("Good morning")  # type: ignore[union-attr]
    with pytest.raises(AgentUnavailable, match="no audio"):
        await engine.speak("Good morning", meter)
    await engine.close()


def test_without_settings_the_first_engine_that_works_is_used() -> None:
    nothing = AgentProfile()
    assert choose_transcriber(nothing, {}) is None
    assert choose_speaker(nothing, {}, lambda _: None) is None
    key = {"OPENAI_API_KEY": KEY}
    transcriber, speaker = choose_transcriber(nothing, key), choose_speaker(nothing, key)
    assert transcriber is not None
    assert transcriber.description == "openai:gpt-4o-mini-transcribe"
    assert speaker is not None
    assert speaker.description == "openai:gpt-4o-mini-tts"
    espeak = choose_speaker(nothing, {}, lambda name: f"/usr/bin/{name}")
    assert espeak is not None
    assert espeak.description == "espeak-ng"
    off = AgentProfile(speech=SpeechRules(transcription="off", speaking="off"))
    assert choose_transcriber(off, key) is None
    assert choose_speaker(off, key) is None


@pytest.mark.parametrize("name", ["anthropic:claude", "ollama:x", "nowhere:x", "command"])
def test_an_engine_that_cannot_work_is_refused(name: str) -> None:
    profile = AgentProfile(speech=SpeechRules(transcription=name))
    with pytest.raises(InvalidInput):
        choose_transcriber(profile, {})


# -- programs ----------------------------------------------------------------------------------------------------


async def test_a_program_prints_what_is_in_a_file(tmp_path: Path, meter: FakeMeter, recording: Recording) -> None:
    code = "data = open(sys.argv[sys.argv.index('-f') + 1], 'rb').read(); print(' ', len(data), sys.argv[1:3])"
    command = (*make_command(tmp_path, code), "-l", "{language}", "-f", "{file}")
    profile = AgentProfile(speech=SpeechRules(transcription_command=command, language="de"))
    engine = choose_transcriber(profile, {})
    assert engine is not None
    assert await engine.transcribe(recording, meter) == "5000 ['-l', 'de']"
    assert meter.calls[0].price is not None
    assert meter.calls[0].price.is_free


async def test_a_program_speaks_the_text_of_its_input(tmp_path: Path, meter: FakeMeter) -> None:
    code = "text = sys.stdin.read(); sys.stdout.buffer.write(b'RIFF\\x24\\0\\0\\0WAVEfmt ' + text.encode())"
    profile = AgentProfile(speech=SpeechRules(speaking_command=make_command(tmp_path, code)))
    engine = choose_speaker(profile, {})
    assert engine is not None
    audio = await engine.speak("Grüße", meter)
    assert audio.media_type == "audio/wav"
    assert audio.data.endswith("Grüße".encode())


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("print('no model', file=sys.stderr); sys.exit(3)", "exit code 3: no model"),
        ("sys.stdout.buffer.write(b'x' * 3_000_000)", "printed more than"),
        ("import time; time.sleep(60)", "took longer than"),
    ],
)
async def test_a_program_that_fails_is_explained(
    tmp_path: Path, meter: FakeMeter, recording: Recording, monkeypatch: pytest.MonkeyPatch, code: str, words: str
) -> None:
    if "longer" in words:
        monkeypatch.setattr(speech_command, "COMMAND_SECONDS", 0.5)
    monkeypatch.setattr(speech_command, "MAX_OUTPUT_BYTES", 1_000_000)
    profile = AgentProfile(speech=SpeechRules(transcription_command=make_command(tmp_path, code)))
    engine = choose_transcriber(profile, {})
    assert engine is not None
    with pytest.raises(AgentError, match=words):
        await engine.transcribe(recording, meter)
    assert meter.ends != ["open"]


async def test_a_missing_program_is_explained(meter: FakeMeter, recording: Recording) -> None:
    engine = choose_transcriber(AgentProfile(speech=SpeechRules(transcription_command=("/nowhere/whisper",))), {})
    assert engine is not None
    with pytest.raises(AgentRejected, match="can't be started"):
        await engine.transcribe(recording, meter)


async def test_real_engines_on_this_machine_speak_and_transcribe(tmp_path: Path, meter: FakeMeter) -> None:
    program = (sys.executable, str(Path(local_speech.__file__)))
    rules = SpeechRules(speaking_command=(*program, "speak"), transcription_command=(*program, "transcribe", "{file}"))
    speaker, transcriber = (
        choose_speaker(AgentProfile(speech=rules), {}),
        choose_transcriber(AgentProfile(speech=rules), {}),
    )
    assert speaker is not None
    assert transcriber is not None
    audio = await speaker.speak("Hello.", meter)
    assert audio.media_type == "audio/wav"
    path = tmp_path / "spoken"
    path.write_bytes(audio.data)
    recording = Recording(path=path, name="spoken.wav", media_type=audio.media_type, size=len(audio.data))
    assert await transcriber.transcribe(recording, meter) == "hello"


def test_an_argument_without_a_value_is_left_out_with_its_option() -> None:
    command = ("espeak-ng", "-v", "{voice}", "--stdin")
    assert fill_arguments(command, {"voice": None}) == ["espeak-ng", "--stdin"]
    assert fill_arguments(command, {"voice": "de"}) == ["espeak-ng", "-v", "de", "--stdin"]


# -- texts -------------------------------------------------------------------------------------------------------


def test_marks_code_and_addresses_are_not_spoken() -> None:
    text = "# Title\n\nSee **this** [page](https://a.example/x) or https://b.example.\n\n```py\nx = 1\n```\nDone."
    spoken = make_spoken_text(text)
    assert all(each in spoken for each in ("Title", "this", "page", "Done."))
    assert not any(each in spoken for each in ("*", "#", "http", "x = 1", "`"))


def test_pieces_end_with_sentences_and_contain_everything() -> None:
    text = " ".join(f"This is sentence number {number}." for number in range(200))
    pieces = split_spoken_text(text)
    assert " ".join(pieces) == text
    assert len(pieces) > 2
    assert all(len(piece) <= 1500 and piece.endswith(".") for piece in pieces)
    assert "".join(split_spoken_text("x" * 4000)) == "x" * 4000
