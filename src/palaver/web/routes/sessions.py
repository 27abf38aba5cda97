"""Conversations: listing, reading, arranging, and everything that is done to a whole one.

What slash commands do as well is done by them, through the inbox, so that it means here what it means everywhere.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import APIRouter, Path, Query, Response
from fastapi.responses import JSONResponse

from palaver.services.commands import find
from palaver.services.commands.markdown import document
from palaver.services.commands.registry import check_may
from palaver.services.conversations import Conversations, Wanted
from palaver.services.reading import MOST_EVENTS
from palaver.services.toolsets import check_known, names_in
from palaver.web.auth import SeenBy, SignedIn
from palaver.web.errors import answers
from palaver.web.message_schemas import EventsOut, ReceiptOut, events_out, receipt_out
from palaver.web.schemas import MOST_SEQ, clean
from palaver.web.session_schemas import (
    CommandIn,
    CompressIn,
    EditIn,
    EditOut,
    ForkIn,
    ReadIn,
    ReadOut,
    SessionIn,
    SessionOut,
    SessionPatch,
    SessionsOut,
    StopIn,
    UndoIn,
    session_out,
)
from palaver.web.state import State
from palaver.web.submit_message import carry_out, say

if TYPE_CHECKING:
    from palaver.services.commands.base import Command

router = APIRouter(prefix="/sessions", tags=["sessions"], responses=answers(401))

SessionId = Annotated[str, Path(description="The id of a conversation.", examples=["20261115_081200_1a2b3c4d"])]
All = Annotated[bool, Query(alias="all", include_in_schema=False)]
Place = Annotated[int | None, Query(ge=0, le=MOST_SEQ)]


@router.get("", responses=answers(404))
async def list_sessions(
    state: State,
    seen: SeenBy,
    shelf: Literal["current", "archived", "pinned"] = "current",
    project: Annotated[str | None, Query(description="One of your projects, by id or name.")] = None,
    platform: Annotated[str | None, Query(description="Where they take place.", examples=["telegram"])] = None,
    person: Annotated[str | None, Query(description="The id of somebody who takes part.")] = None,
    text: Annotated[str | None, Query(description="In the title, the last line or the name of the place.")] = None,
    cursor: Annotated[str | None, Query(description="Where an earlier page ended.")] = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
    everything: All = False,
) -> SessionsOut:
    """Conversations in which something was said, newest first."""
    page = await seen.overviews(
        shelf=shelf, limit=limit, cursor=cursor, project=project, platform=platform, person=person, text=text
    )
    connected = state.gateway.platforms
    return SessionsOut(
        sessions=[session_out(each, connected, with_owner=everything) for each in page], cursor=page.cursor
    )


@router.post("", status_code=201, responses=answers(404))
async def begin_session(state: State, signed: SignedIn, wanted: SessionIn) -> SessionOut:
    """A new conversation of your own. Lists show it once something is said in it."""
    if wanted.model is not None:
        state.gateway.agent.check_model(wanted.model)
    made = Wanted(title=wanted.title, project=wanted.project, model=wanted.model)
    begun = await Conversations(state.gateway.store).begin(signed.person, made, key=wanted.key)
    return session_out(begun, state.gateway.platforms)


@router.get("/{session_id}", responses=answers(404))
async def get_session(state: State, seen: SeenBy, session_id: SessionId, everything: All = False) -> SessionOut:
    """One conversation."""
    return session_out(await seen.overview(session_id), state.gateway.platforms, with_owner=everything)


@router.patch("/{session_id}", responses=answers(404))
async def change_session(
    state: State,
    signed: SignedIn,
    seen: SeenBy,
    session_id: SessionId,
    changes: SessionPatch,
    everything: All = False,
) -> SessionOut:
    """Change a conversation: all that is given, or nothing."""
    wanted = changes.model_dump(exclude_unset=True)
    if wanted.get("model") is not None:
        state.gateway.agent.check_model(wanted["model"])
    if changes.toolsets:
        session, gateway = (await seen.overview(session_id)).session, state.gateway
        there = names_in(session, gateway.rules, gateway.agent.tool_servers(), signed.person.role)
        check_known((name for name, on in changes.toolsets.items() if not on), there)
    changed = await seen.change(session_id, wanted)  # type: ignore[arg-type]
    return session_out(changed, state.gateway.platforms, with_owner=everything)


@router.delete("/{session_id}", status_code=204, responses=answers(404))
async def delete_session(seen: SeenBy, session_id: SessionId) -> None:
    """Delete a conversation and its log for good. What it cost is remembered."""
    await seen.delete(session_id)


# ---- reading ---------------------------------------------------------------------------------------------


@router.get("/{session_id}/messages", responses=answers(404))
async def read_messages(
    seen: SeenBy,
    session_id: SessionId,
    before: Place = None,
    after: Place = None,
    around: Place = None,
    limit: Annotated[int, Query(ge=1, le=MOST_EVENTS)] = 50,
) -> EventsOut:
    """What people read: visible messages, and what else happened, oldest first.

    The end of the conversation, or what is before, after or around a place in it.
    """
    return events_out(await seen.excerpt(session_id, before=before, after=after, around=around, limit=limit))


@router.get("/{session_id}/events", responses=answers(404))
async def read_events(
    seen: SeenBy,
    session_id: SessionId,
    after: Annotated[int, Query(ge=0, le=MOST_SEQ)] = 0,
    limit: Annotated[int, Query(ge=1, le=MOST_EVENTS)] = 100,
) -> EventsOut:
    """The whole log after a place in it: hidden messages too."""
    return events_out(await seen.log(session_id, after=after, limit=limit))


@router.put("/{session_id}/read", responses=answers(404))
async def mark_read(state: State, seen: SeenBy, session_id: SessionId, mark: ReadIn) -> ReadOut:
    """You have seen everything up to an event. Going back changes nothing."""
    reached = await seen.mark_read(session_id, mark.seq)
    state.live.touch(session_id)
    return ReadOut(read_seq=reached)


@router.get(
    "/{session_id}/export",
    response_class=Response,
    responses={
        200: {
            "description": "The conversation as a file.",
            "content": {
                "application/json": {"schema": {"type": "object"}},
                "text/markdown": {"schema": {"type": "string"}},
            },
        },
        **answers(404),
    },
)
async def export_session(
    signed: SignedIn,
    seen: SeenBy,
    session_id: SessionId,
    form: Annotated[Literal["json", "markdown"], Query(alias="format")] = "json",
) -> Response:
    """A whole conversation: `json` holds everything that ever happened, `markdown` what can be read."""
    check_may(signed.principal, _command("export"))
    if form == "json":
        return JSONResponse(clean(await seen.export(session_id)), headers=_as_file(session_id, "json"))
    session = await seen.get(session_id)
    text = document(session, await seen.load(session_id, limit=None))
    return Response(
        text.encode("utf-8", "replace"),
        media_type="text/markdown; charset=utf-8",
        headers=_as_file(session_id, "md"),
    )


def _as_file(session_id: str, ending: str) -> dict[str, str]:
    return {"Content-Disposition": f'attachment; filename="{session_id}.{ending}"', "Cache-Control": "no-store"}


# ---- by command ------------------------------------------------------------------------------------------

_DONE = answers(404, 409)


@router.post("/{session_id}/stop", responses=_DONE)
async def stop_answer(state: State, signed: SignedIn, session_id: SessionId, wanted: StopIn) -> ReceiptOut:
    """End the answer that is being given; what was said so far is kept."""
    text = "/stop all" if wanted.queued else "/stop"
    return await carry_out(state, signed, session_id, text, wanted.key)


@router.post("/{session_id}/undo", responses=_DONE)
async def undo_turns(state: State, signed: SignedIn, session_id: SessionId, wanted: UndoIn) -> ReceiptOut:
    """Take back the last turns; they are hidden, not deleted."""
    return await carry_out(state, signed, session_id, f"/undo {wanted.turns}", wanted.key)


@router.post("/{session_id}/redo", responses=_DONE)
async def redo_turns(state: State, signed: SignedIn, session_id: SessionId, wanted: CommandIn) -> ReceiptOut:
    """Bring back what the last undo hid."""
    return await carry_out(state, signed, session_id, "/redo", wanted.key)


@router.post("/{session_id}/retry", responses=_DONE)
async def retry_turn(state: State, signed: SignedIn, session_id: SessionId, wanted: CommandIn) -> ReceiptOut:
    """Ask the last message again; the former answer is hidden."""
    return await carry_out(state, signed, session_id, "/retry", wanted.key)


@router.post("/{session_id}/restore", responses=_DONE)
async def restore_session(state: State, signed: SignedIn, session_id: SessionId, wanted: CommandIn) -> ReceiptOut:
    """Take back the last reset, move or summary."""
    return await carry_out(state, signed, session_id, "/restore", wanted.key)


@router.post("/{session_id}/compress", responses=_DONE)
async def compress_session(state: State, signed: SignedIn, session_id: SessionId, wanted: CompressIn) -> ReceiptOut:
    """Let a summary stand for the older messages, before the agent alone."""
    text = f"/compress {wanted.focus or ''}".rstrip()
    return await carry_out(state, signed, session_id, text, wanted.key)


# ---- copies ----------------------------------------------------------------------------------------------


@router.post("/{session_id}/fork", status_code=201, responses=answers(404))
async def fork_session(state: State, signed: SignedIn, session_id: SessionId, wanted: ForkIn) -> SessionOut:
    """A copy of your own, up to and including the turn of a message; the original stays as it is."""
    conversations = Conversations(state.gateway.store)
    copy = await conversations.fork(signed.principal, session_id, wanted.at, wanted.title)
    return session_out(copy, state.gateway.platforms)


@router.post("/{session_id}/edit", status_code=202, responses=answers(404))
async def edit_message(state: State, signed: SignedIn, session_id: SessionId, wanted: EditIn) -> EditOut:
    """Say something else instead of an earlier message of a person: in a copy of all that came before it."""
    conversations = Conversations(state.gateway.store)
    made = await conversations.fork_before(signed.person, session_id, wanted.at, wanted.key)
    receipt = await say(
        state,
        signed,
        made.session.id,
        wanted.content,
        wanted.key,
        busy=wanted.busy,
        attachments=wanted.attachments,
    )
    shown = await state.gateway.store.aio.seen_by(signed.principal).overview(made.session.id)
    return EditOut(session=session_out(shown, state.gateway.platforms), receipt=receipt_out(receipt))


def _command(name: str) -> Command:
    command = find(name)
    assert command is not None  # noqa: S101  (a name of ours)
    return command
