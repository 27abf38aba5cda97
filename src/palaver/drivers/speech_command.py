"""Speech through a program on this machine, such as whisper.cpp, piper or espeak-ng.

The protocol: a transcription command gets the path of a recording as `{file}` and prints the text. A speaking command
gets the text on its standard input and writes audio (WAV, MP3, Ogg or FLAC) to its standard output. `{language}` and
`{voice}` are filled in from the settings; without a value, the argument is left out together with the option before it.

Always true: no shell is involved, output and time are bounded, and a program that takes too long is ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from typing import TYPE_CHECKING, Final

from palaver.agent.base import CallMeter, ModelCall
from palaver.config.budget_rules import FREE
from palaver.core.errors import AgentRejected, AgentUnavailable
from palaver.core.text import make_storable
from palaver.sessions.speech import (
    MAX_TRANSCRIPT_CHARS,
    TOKENS_PER_SPOKEN_CHAR,
    Recording,
    SpokenAudio,
    UnsupportedFileType,
    detect_media_type,
    estimate_audio_tokens,
)
from palaver.sessions.usage import CostStatus, TurnUsage

if TYPE_CHECKING:
    from collections.abc import Mapping


COMMAND_SECONDS: Final = 300.0
END_SECONDS: Final = 5.0  # for a program that was ended
MAX_OUTPUT_BYTES: Final = 20_000_000
MAX_ERROR_BYTES: Final = 2000
MAX_PROGRAMS: Final = 2  # at once: each of them uses whole processors
_READ_BYTES: Final = 65_536
_HEAD_BYTES: Final = 4096  # of audio, by which its type is detected
_COST_SOURCE: Final = "own program"


class _Command:
    def __init__(self, arguments: tuple[str, ...]) -> None:
        self.description = arguments[0]
        self._arguments = arguments
        self._slots = asyncio.Semaphore(MAX_PROGRAMS)

    async def close(self) -> None:
        """Do nothing: each program ends by itself."""

    async def _run(self, values: Mapping[str, str | None], text: str, meter: CallMeter, tokens: int) -> bytes:
        """Run the program with these values in its arguments, and return what it has printed."""
        call = ModelCall(
            model=f"command:{os.path.basename(self.description)}",  # noqa: PTH119  (a name, which may be no path)
            provider="command",
            input_tokens=tokens,
            max_tokens=1,
            price=FREE,
        )
        held = await meter.hold(call)
        usage = TurnUsage(
            model=call.model,
            provider=call.provider,
            input_tokens=tokens,
            cost="0",
            cost_status=CostStatus.ESTIMATED,
            cost_source=_COST_SOURCE,
        )
        try:
            async with self._slots, asyncio.timeout(COMMAND_SECONDS):
                output = await self._run_program(fill_arguments(self._arguments, values), text)
        except TimeoutError:
            raise AgentUnavailable(f"{self.description} took longer than {COMMAND_SECONDS:.0f} seconds.") from None
        finally:
            await held.settle(usage)
        return output

    async def _run_program(self, arguments: list[str], text: str) -> bytes:
        try:
            process = await asyncio.create_subprocess_exec(
                *arguments,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            reason = error.strerror if isinstance(error, OSError) else str(error)
            raise AgentRejected(f"{self.description} can't be started: {reason}.") from error
        try:
            output, errors, _ = await asyncio.gather(
                _read_all(process.stdout, MAX_OUTPUT_BYTES + 1),
                _read_all(process.stderr, MAX_ERROR_BYTES),
                _write_all(process.stdin, text),
            )
            code = await process.wait()
        finally:
            if process.returncode is None:
                await _end(process)
        if len(output) > MAX_OUTPUT_BYTES:
            raise AgentRejected(f"{self.description} printed more than {MAX_OUTPUT_BYTES // 1_000_000} MB.")
        if code != 0:
            lines = make_storable(errors.decode(errors="replace")).strip().splitlines()
            reason = f": {lines[-1][:300]}" if lines else "."
            raise AgentRejected(f"{self.description} failed with exit code {code}{reason}")
        return output


class CommandTranscriber(_Command):
    def __init__(self, arguments: tuple[str, ...], language: str | None) -> None:
        super().__init__(arguments)
        self._language = language

    async def transcribe(self, recording: Recording, meter: CallMeter) -> str:
        values = {"file": str(recording.path), "language": self._language}
        output = await self._run(values, "", meter, estimate_audio_tokens(recording.size))
        return make_storable(output.decode(errors="replace")).strip()[:MAX_TRANSCRIPT_CHARS]


class CommandSpeaker(_Command):
    def __init__(self, arguments: tuple[str, ...], voice: str | None, language: str | None) -> None:
        super().__init__(arguments)
        self._values = {"voice": voice or language, "language": language}

    async def speak(self, text: str, meter: CallMeter) -> SpokenAudio:
        data = await self._run(self._values, text, meter, len(text) * TOKENS_PER_SPOKEN_CHAR)
        try:
            media_type = detect_media_type(data[:_HEAD_BYTES], is_text=False)
        except UnsupportedFileType:
            media_type = ""
        if not media_type.startswith("audio/"):
            raise AgentRejected(f"{self.description} wrote no audio. Let it write a WAV file to its output.")
        return SpokenAudio(data, media_type)


def fill_arguments(arguments: tuple[str, ...], values: Mapping[str, str | None]) -> list[str]:
    """Return the arguments with their values; one without a value is left out, with the option before it."""
    filled: list[str] = []
    for argument in arguments:
        missing = [name for name, value in values.items() if f"{{{name}}}" in argument and not value]
        if missing:
            if argument == f"{{{missing[0]}}}" and len(filled) > 1 and filled[-1].startswith("-"):
                filled.pop()
            continue
        for name, value in values.items():
            argument = argument.replace(f"{{{name}}}", value or "")  # noqa: PLW2901
        filled.append(argument)
    return filled


async def _read_all(stream: asyncio.StreamReader | None, max_bytes: int) -> bytes:
    """Read a stream to its end, and return its last bytes: a program whose output is not read would wait for ever."""
    assert stream is not None  # noqa: S101
    data = bytearray()
    while chunk := await stream.read(_READ_BYTES):
        data += chunk
        if len(data) > max_bytes:
            del data[:-max_bytes]
    return bytes(data)


async def _end(process: asyncio.subprocess.Process) -> None:
    """End a program and those that it has started, and read what is left of its output, so that its pipes close."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(END_SECONDS):
            await process.communicate()


async def _write_all(stream: asyncio.StreamWriter | None, text: str) -> None:
    assert stream is not None  # noqa: S101
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # it may need no input
        stream.write(text.encode())
        await stream.drain()
        stream.close()
        await stream.wait_closed()
