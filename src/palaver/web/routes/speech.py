"""Speech: recordings become text, and answers are read aloud."""

from __future__ import annotations

from typing import Annotated, Any, Final

from fastapi import Path, Query
from fastapi.responses import Response

from palaver.core.wire import Doc, TypedDict
from palaver.people.model import Role
from palaver.sessions.speech import MAX_SPOKEN_CHARS
from palaver.web.api_route import make_router
from palaver.web.auth import Caller
from palaver.web.errors import error_responses
from palaver.web.routes.sessions import SessionId
from palaver.web.state import MAX_SEQ, State

router = make_router("speech", "/api", responses=error_responses(401, 403))

PIECES_HEADER: Final = "Palaver-Pieces"
_AUDIO_RESPONSE: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "content": {"audio/*": {"schema": {"type": "string", "format": "binary"}}},
        "headers": {PIECES_HEADER: {"description": "How many pieces the answer has.", "schema": {"type": "integer"}}},
    }
}


class SpeechJson(TypedDict):
    """The features for speech that this server has."""

    can_transcribe: bool
    can_speak: bool
    max_seconds: Annotated[int, Doc("How long a recording may be.")]
    transcription_engine: Annotated[str | None, Doc("A model or a program; null for everyone but owners.")]
    speaking_engine: Annotated[str | None, Doc("The same, for reading aloud.")]
    problems: Annotated[list[str], Doc("Settings that don't work; empty for everyone but owners.")]


class TranscriptJson(TypedDict):
    """The words of a recording."""

    text: str


@router.get("/speech")
async def get_speech(caller: Caller, state: State) -> SpeechJson:
    """Find out whether recordings can be transcribed and answers read aloud."""
    status = state.gateway.speech.get_status()
    is_owner = caller.person.role is Role.OWNER
    return SpeechJson(
        can_transcribe=status.transcription is not None,
        can_speak=status.speaking is not None,
        max_seconds=status.max_seconds,
        transcription_engine=status.transcription if is_owner else None,
        speaking_engine=status.speaking if is_owner else None,
        problems=list(status.problems) if is_owner else [],
    )


@router.post("/attachments/{attachment_id}/transcript", responses=error_responses(404, 422, 502, 503))
async def transcribe_attachment(attachment_id: str, caller: Caller, state: State) -> TranscriptJson:
    """Transcribe a recording that you have uploaded, or that is attached to a conversation you can see.

    Nothing is stored. It counts as usage, and against your budget.
    """
    return TranscriptJson(text=await state.gateway.speech.transcribe(caller.principal, attachment_id))


@router.post(
    "/sessions/{session_id}/messages/{seq}/speech",
    response_class=Response,
    responses={**_AUDIO_RESPONSE, **error_responses(404, 422, 502, 503)},
)
async def speak_answer(
    session_id: SessionId,
    seq: Annotated[int, Path(ge=1, le=MAX_SEQ)],
    caller: Caller,
    state: State,
    piece: Annotated[int, Query(ge=0, le=MAX_SPOKEN_CHARS, description="Which piece, from 0.")] = 0,
) -> Response:
    """Read an answer aloud: returns one piece of it as audio. A long answer has several pieces.

    It counts as usage of the conversation, and against your budget.
    """
    audio, count = await state.gateway.speech.speak(caller.principal, session_id, seq, piece)
    return Response(audio.data, media_type=audio.media_type, headers={PIECES_HEADER: str(count)})
