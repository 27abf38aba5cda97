"""The port to speech engines: recordings become text, text becomes audio.

Two drivers: `provider` (an OpenAI-compatible API with `/audio/transcriptions` and `/audio/speech`) and `command` (a
program on this machine). Nothing is downloaded at run time.
"""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Protocol

from palaver.core.errors import InvalidInput
from palaver.core.texts import say
from palaver.drivers.providers import ModelPrices, add_environment_keys, check_reachable, parse_model_name
from palaver.sessions.speech import AUTO, COMMAND, OFF, Recording, SpokenAudio

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from palaver.agent.base import CallMeter
    from palaver.config.agent_rules import AgentProfile
    from palaver.drivers.speech_provider import ProviderSpeech

DEFAULT_TRANSCRIPTION_MODEL = "openai:gpt-4o-mini-transcribe"
DEFAULT_SPEAKING_MODEL = "openai:gpt-4o-mini-tts"
PROVIDERS_WITHOUT_SPEECH = frozenset({"anthropic", "google", "ollama"})
# Speaks without a model file; {voice} and {language} are filled in, and an argument that lacks its value is left out.
ESPEAK_COMMAND = ("espeak-ng", "-v", "{voice}", "--stdout", "--stdin")


class SpeechEngine(Protocol):
    @property
    def description(self) -> str: ...

    async def close(self) -> None: ...


class Transcriber(SpeechEngine, Protocol):
    async def transcribe(self, recording: Recording, meter: CallMeter) -> str:
        """Return the words of a recording. Raises AgentError, also if the budget does not allow it."""


class Speaker(SpeechEngine, Protocol):
    async def speak(self, text: str, meter: CallMeter) -> SpokenAudio:
        """Return a text as audio. Raises AgentError, also if the budget does not allow it."""


def choose_transcriber(profile: AgentProfile, environ: Mapping[str, str]) -> Transcriber | None:
    """Return the engine of the settings; None if transcription is off or, with `auto`, nothing can do it.

    Raises InvalidInput if the settings name an engine that can't be used.
    """
    from palaver.drivers.speech_command import CommandTranscriber

    rules = profile.speech
    if rules.transcription == OFF:
        return None
    if rules.transcription == COMMAND or (rules.transcription == AUTO and rules.transcription_command):
        _check_command("transcription", rules.transcription_command)
        return CommandTranscriber(rules.transcription_command, rules.language)
    return _choose_provider(profile, environ, rules.transcription, DEFAULT_TRANSCRIPTION_MODEL)


def choose_speaker(
    profile: AgentProfile, environ: Mapping[str, str], find_program: Callable[[str], str | None] = shutil.which
) -> Speaker | None:
    """Return the engine of the settings; None if speaking is off or, with `auto`, nothing can do it."""
    from palaver.drivers.speech_command import CommandSpeaker

    rules = profile.speech
    if rules.speaking == OFF:
        return None
    if rules.speaking == COMMAND or (rules.speaking == AUTO and rules.speaking_command):
        command = rules.speaking_command or (ESPEAK_COMMAND if find_program(ESPEAK_COMMAND[0]) else ())
        _check_command("speaking", command)
        return CommandSpeaker(command, rules.voice, rules.language)
    provider = _choose_provider(profile, environ, rules.speaking, DEFAULT_SPEAKING_MODEL)
    if provider is None and find_program(ESPEAK_COMMAND[0]):
        return CommandSpeaker(ESPEAK_COMMAND, rules.voice, rules.language)
    return provider


def _check_command(name: str, command: tuple[str, ...]) -> None:
    if not command:
        raise InvalidInput.say(
            "drivers.speech_command_missing",
            "speech.{name} is `command`, but speech.{command} is not set.",
            name=name,
            command=f"{name}_command",
        )


def _choose_provider(
    profile: AgentProfile, environ: Mapping[str, str], model: str, default: str
) -> ProviderSpeech | None:
    """Return the engine for a model; with `auto`, that of the default, or None without a key for it."""
    providers = add_environment_keys(profile.providers, environ)
    if model == AUTO and ("openai" not in providers or not providers["openai"].api_key):
        return None
    from palaver.drivers.speech_provider import ProviderSpeech

    name = parse_model_name(default if model == AUTO else model)
    if name.provider in PROVIDERS_WITHOUT_SPEECH:
        text = say(
            "drivers.no_speech_api",
            "{provider} has no speech API that Palaver can use. Set speech.transcription and"
            " speech.speaking to a model of OpenAI or of a server with an OpenAI-compatible API, to"
            " command, or to off.",
            provider=name.provider,
        )
        raise InvalidInput(text, provider=name.provider)
    provider = check_reachable(name, providers)
    return ProviderSpeech(name, provider, ModelPrices(profile.prices, providers), profile.speech)
