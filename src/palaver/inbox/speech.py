"""Speech: turns recordings into text before the agent reads them, and reads answers aloud.

Always true: an engine is called outside of transactions, after what it may cost was held in the budgets. A recording
that can't be transcribed is not lost: it stays a file of its message, and the agent is told why it has no words.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from typing import TYPE_CHECKING, Final, TypeVar

from palaver.config.budget_rules import CallPurpose
from palaver.core.background import create_lease_owner
from palaver.core.clock import to_micros
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Read, Transaction, Write
from palaver.core.errors import AgentError, InvalidInput, LimitReached, PalaverError, SpeechUnavailable, StoreError
from palaver.core.tasks import BackgroundTasks
from palaver.core.texts import Reader, say, write_text
from palaver.drivers.speech import Speaker, Transcriber, choose_speaker, choose_transcriber
from palaver.money import calls_table as call_records
from palaver.people import table as people
from palaver.sessions import log_table as events, table as sessions
from palaver.sessions.speech import Attachment, Recording, SpokenAudio, Transcript, make_spoken_text, split_spoken_text
from palaver.turns.side_work import SideWork

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from palaver.config.agent_rules import AgentProfile
    from palaver.core.ids import PersonId
    from palaver.media.attachments import Attachments
    from palaver.money.meter import BudgetMeter, Budgets
    from palaver.people.model import Person, Principal
    from palaver.sessions.store import SessionStore

MAX_RUNNING: Final = 4  # calls of engines in this process
MAX_RUNNING_PER_PERSON: Final = 2
VOICE_NOTES_SECONDS: Final = 120.0  # for all voice notes of a message: its sender waits, and so do messages after it
MAX_BYTES_PER_SECOND: Final = 32_000  # of a recording: 16-bit WAV as speech engines use it, and twice that
WEB_PLATFORM: Final = "web"

T = TypeVar("T")
_AGENT = Reader(is_owner=False)  # which may repeat it to anybody

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class SpeechStatus:
    """The engines in use and their limits; the descriptions are for owners."""

    transcription: str | None
    speaking: str | None
    max_seconds: int
    problems: Sequence[str] = ()


class Speech:
    def __init__(
        self,
        store: SessionStore,
        attachments: Attachments | None,
        budgets: Budgets,
        profile: AgentProfile,
        environ: Mapping[str, str],
    ) -> None:
        self._store = store
        self._attachments = attachments
        self._budgets = budgets
        self._environ = environ
        self._owner = create_lease_owner()
        self._slots = asyncio.Semaphore(MAX_RUNNING)
        self._running: Counter[PersonId] = Counter()
        self._closing = BackgroundTasks("palaver-old-speech-engine")
        self._choose_engines(profile)

    def _choose_engines(self, profile: AgentProfile) -> None:
        self._rules = profile.speech
        self._settings = (profile.speech, profile.providers, profile.prices)
        self._problems: list[str] = []
        self._transcriber: Transcriber | None = self._try(lambda: choose_transcriber(profile, self._environ))
        self._speaker: Speaker | None = self._try(lambda: choose_speaker(profile, self._environ))

    def _try(self, choose: Callable[[], T | None]) -> T | None:
        try:
            return choose()
        except InvalidInput as error:
            self._problems.append(str(error))
            log.warning("speech_engine_unavailable", extra={"error": str(error)})
            return None

    def use_profile(self, profile: AgentProfile) -> None:
        """Apply other settings from the next recording on."""
        if (profile.speech, profile.providers, profile.prices) == self._settings:
            return
        for engine in (self._transcriber, self._speaker):
            if engine is not None:
                self._closing.start(engine.close())
        self._choose_engines(profile)

    async def stop(self) -> None:
        for engine in (self._transcriber, self._speaker):
            if engine is not None:
                await engine.close()

    def get_status(self) -> SpeechStatus:
        return SpeechStatus(
            transcription=None if self._transcriber is None else self._transcriber.description,
            speaking=None if self._speaker is None else self._speaker.description,
            max_seconds=self._rules.max_minutes * 60,
            problems=tuple(self._problems),
        )

    @property
    def transcribes_voice_notes(self) -> bool:
        return self._rules.transcribe_voice_notes and self._transcriber is not None

    # -- recordings -----------------------------------------------------------------------------------------

    async def transcribe_voice_notes(
        self, person: Person, recordings: Sequence[Attachment], platform: str
    ) -> dict[str, Transcript]:
        """Transcribe the voice notes of a message, by the ids of their files. It never fails; a transcript may."""
        transcripts: dict[str, Transcript] = {}
        deadline = time.monotonic() + VOICE_NOTES_SECONDS
        for recording in recordings:
            try:
                async with asyncio.timeout(deadline - time.monotonic()):
                    text = await self._transcribe(person.id, recording, platform)
                transcripts[recording.id] = Transcript(text)
                continue
            except TimeoutError:
                reason = f"it took longer than {VOICE_NOTES_SECONDS:.0f} seconds"
            except PalaverError as error:
                reason = write_text(error.text, _AGENT).rstrip(".")
                if isinstance(error, StoreError):
                    reason = "the server can't open it now"
            transcripts[recording.id] = Transcript(error=reason)
            log.warning("voice_note_not_transcribed", extra={"platform": platform, "error": reason})
        return transcripts

    async def transcribe(self, principal: Principal, attachment_id: str) -> str:
        """Return the words of a recording that this principal may see. Raises AgentError and InvalidInput."""
        if self._attachments is None:
            raise SpeechUnavailable
        attachment = await self._attachments.get(principal, attachment_id)
        return await self._transcribe(principal.person_id, attachment, WEB_PLATFORM)

    async def _transcribe(self, person_id: PersonId, attachment: Attachment, platform: str) -> str:
        engine = self._transcriber
        if engine is None or self._attachments is None:
            raise SpeechUnavailable
        if not attachment.is_audio:
            raise InvalidInput.say("inbox.file_not_recording", "This file is not a recording.")
        max_bytes = self._rules.max_minutes * 60 * MAX_BYTES_PER_SECOND
        if attachment.size > max_bytes:
            raise LimitReached(
                say(
                    "inbox.recording_too_long",
                    "This recording is longer than {minutes} minutes.",
                    minutes=self._rules.max_minutes,
                ),
                limit=self._rules.max_minutes,
            )
        path = await asyncio.to_thread(self._attachments.get_path, attachment)
        recording = Recording(
            path=path, name=_choose_name(attachment), media_type=attachment.media_type, size=attachment.size
        )
        work = await self._make_work(person_id, platform)
        return await self._run(work, lambda meter: engine.transcribe(recording, meter))

    # -- answers --------------------------------------------------------------------------------------------

    async def speak(self, principal: Principal, session_id: str, seq: int, piece: int) -> tuple[SpokenAudio, int]:
        """Return a piece of an answer as audio, and how many pieces there are."""

        def read(tx: Transaction) -> tuple[str, int, str, int]:
            row = sessions.get_visible(tx, session_id, principal.person_id)
            message = next((event.message for event in events.list_events_at(tx, row.no, [seq])), None)
            if message is None or message.role != "assistant":
                raise InvalidInput(f"seq: message {seq} is not an answer.", key="seq")
            return message.text, row.no, str(row.session.origin.platform), row.audience_no

        text, session_no, platform, audience_no = await self._store.engine.arun(Read(read))
        engine = self._speaker
        if engine is None:
            raise SpeechUnavailable
        pieces = await asyncio.to_thread(lambda: split_spoken_text(make_spoken_text(text)))
        if not pieces:
            raise InvalidInput.say("inbox.nothing_to_read_aloud", "This answer has no text that can be read aloud.")
        if piece >= len(pieces):
            raise InvalidInput(f"piece: the answer has {len(pieces)} pieces, numbered from 0.", key="piece")
        work = SideWork(
            owner=self._owner,
            person_id=principal.person_id,
            audience_no=audience_no,
            platform=platform,
            session_no=session_no,
        )
        return await self._run(work, lambda meter: engine.speak(pieces[piece], meter)), len(pieces)

    # -- calls ----------------------------------------------------------------------------------------------

    async def _make_work(self, person_id: PersonId, platform: str) -> SideWork:
        row = await self._store.engine.arun(Read(lambda tx: people.find_by_id(tx, person_id)))
        if row is None:
            raise SpeechUnavailable
        return SideWork(owner=self._owner, person_id=row.person.id, audience_no=row.audience_no, platform=platform)

    async def _run(self, work: SideWork, call: Callable[[BudgetMeter], Awaitable[T]]) -> T:
        """Call an engine, and record what it has used, whatever becomes of it."""
        person_id = work.person_id
        if self._running[person_id] >= MAX_RUNNING_PER_PERSON:
            raise LimitReached.say(
                "inbox.speech_busy", "You already have recordings or answers in progress. Try again in a moment."
            )
        self._running[person_id] += 1
        meter = self._budgets.make_meter(work, CallPurpose.SPEECH)
        try:
            async with self._slots:
                return await call(meter)
        except OSError as error:
            raise AgentError("The recording can't be read.") from error
        finally:
            self._running[person_id] -= 1
            self._running += Counter()  # leaves out those that have none
            await asyncio.shield(self._record(meter.call_ids))

    async def _record(self, call_ids: Sequence[str]) -> None:
        if not call_ids:
            return
        now = to_micros(self._store.clock.now())
        try:
            await self._store.engine.arun(Write(lambda tx: call_records.record_calls(tx, call_ids, now)))
        except StoreError as error:  # what was held stays held, until it is recovered
            log.error("speech_usage_not_recorded", extra={"error": str(error)})


def _choose_name(attachment: Attachment) -> str:
    """Return a file name whose ending says what the file is: providers go by it."""
    endings = {"audio/mpeg": "mp3", "audio/mp4": "m4a"}
    return "recording." + endings.get(attachment.media_type, attachment.media_type.partition("/")[2])
