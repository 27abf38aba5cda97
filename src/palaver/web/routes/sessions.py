"""Conversations: list, create, read, change and delete them, and actions on a whole conversation.

Actions that slash commands offer too run the same command through the inbox, so that they work the same everywhere.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import Path, Query, Response
from fastapi.responses import StreamingResponse
from pydantic import Field, StringConstraints

from palaver.agent import profiles
from palaver.agent.profiles import check_model_choice
from palaver.agent.toolsets import check_toolsets_exist, list_session_toolsets
from palaver.agent.wire import ToolsetJson, toolset_to_json
from palaver.core.wire import Doc, TypedDict
from palaver.inbox import check_content
from palaver.people.model import check_permission
from palaver.sessions.export import DocumentFormat
from palaver.sessions.model import MAX_VERSIONS
from palaver.sessions.turn import BusyPolicy
from palaver.sessions.view.session_view import check_may_change_settings
from palaver.sessions.view.transcripts import MAX_PAGE_EVENTS
from palaver.sessions.view_wire import ReceiptJson
from palaver.turns.commands import history as history_commands, versions as version_commands
from palaver.turns.commands.history import MAX_FOCUS_CHARS, MAX_UNDO_TURNS
from palaver.turns.commands.versions import stop_run
from palaver.web.api_route import encode_response, make_router
from palaver.web.auth import Caller, CallerView, IncludeAll
from palaver.web.errors import error_responses
from palaver.web.state import MAX_SEQ, ActionIn, Cursor, IdempotencyKey, Moment, RequestModel, Seq, ShortText, State
from palaver.web.submit_message import run_action, submit_message
from palaver.web.wire import ConversationJson, LogPageJson, page_to_json, receipt_to_json, summary_to_json

if TYPE_CHECKING:
    from collections.abc import Mapping

router = make_router("sessions", "/api/sessions", responses=error_responses(401))

SessionId = Annotated[str, Path(description="The id of a conversation.", examples=["20261115_081200_1a2b3c4d"])]
SeqQuery = Annotated[int | None, Query(ge=0, le=MAX_SEQ)]
Content = str | list[dict[str, Any] | str]
AttachmentIds = Annotated[list[ShortText], Field(max_length=20)]


class ConversationsJson(TypedDict):
    """A page of conversations, newest first."""

    sessions: list[ConversationJson]
    next_cursor: Annotated[
        str | None,
        Doc("Pass this to get the next page; null on the last page. Any page may have fewer than `limit` items."),
    ]


class EditJson(TypedDict):
    """The conversation that the message was sent in, and what happened to it."""

    session: ConversationJson
    receipt: ReceiptJson


class ReadPositionJson(TypedDict):
    """The last event that you have read; this number never goes down."""

    read_seq: int


class ToolsetsJson(TypedDict):
    """The toolsets of a conversation."""

    toolsets: list[ToolsetJson]


class NewSessionIn(RequestModel):
    """A new conversation."""

    title: ShortText | None = None
    project: ShortText | None = Field(None, description="One of your projects, by id or name.")
    model: ShortText | None = Field(None, description="The model to use; null for the default.")
    profile: ShortText | None = Field(None, description="The name of the profile to use; null for the default.")
    personality: ShortText | None = Field(None, description="The name of the personality to use.")
    workspace: ShortText | None = Field(None, description="A folder or topic that the agent is told: one line of text.")
    key: IdempotencyKey | None = Field(
        None, description="Your own id for this request. Repeating it with the same key returns the same conversation."
    )


class SessionChangesIn(RequestModel):
    """Changes to a conversation. Fields that you leave out stay as they are."""

    title: ShortText | None = Field(None, description="Null removes the title.")
    pinned: bool = False
    archived: bool = False
    project: ShortText | None = Field(
        None, description="By id or name. Null removes the conversation from its project."
    )
    model: ShortText | None = Field(None, description="Null resets to the default.")
    profile: ShortText | None = Field(None, description="Null resets to the default.")
    personality: ShortText | None = Field(None, description="Null removes the personality.")
    workspace: ShortText | None = Field(None, description="Null removes the workspace.")
    busy_policy: BusyPolicy | None = Field(None, description="Null resets to the server's setting.")
    toolsets: Annotated[dict[ShortText, bool], Field(max_length=100)] | None = Field(
        None,
        description="Turns toolsets on or off, by name; others stay as they are. Null turns all allowed ones on.",
    )


class ForkIn(RequestModel):
    """The message to branch off at, and the title of the new conversation."""

    up_to_seq: Seq | None = Field(
        None, description="Copy everything up to the turn of this message, inclusive; null copies everything."
    )
    title: ShortText | None = None


class EditIn(RequestModel):
    """A new version of an earlier message."""

    seq: Seq = Field(description="The number of the message to replace.")
    content: Content
    key: IdempotencyKey
    busy_policy: BusyPolicy | None = None
    attachment_ids: AttachmentIds = Field(
        default_factory=list, description="Ids of files to attach: those of the earlier message or others."
    )
    branch: bool = Field(
        False,
        description="Send it in a new conversation, with a copy of everything before it. Otherwise it replaces the"
        " message in place, and the other version is kept.",
    )


class StopIn(RequestModel):
    """Options for stopping the answer."""

    clear_queue: bool = Field(False, description="Also clear the queue.")
    key: IdempotencyKey | None = None


class UndoIn(RequestModel):
    """The number of turns to undo."""

    turns: Annotated[int, Field(ge=1, le=MAX_UNDO_TURNS)] = 1
    key: IdempotencyKey | None = None


class CompactIn(RequestModel):
    """Options for the summary."""

    focus: Annotated[str, StringConstraints(max_length=MAX_FOCUS_CHARS)] | None = Field(
        None, description="What the summary should keep in particular."
    )
    key: IdempotencyKey | None = None


class RetryIn(ActionIn):
    """The answer to regenerate."""

    seq: Seq | None = Field(None, description="The number of the message to ask again; null: the last one.")


class ChooseVersionIn(ActionIn):
    """The version to show."""

    seq: Seq = Field(description="The number of the message whose versions these are.")
    version: Annotated[int, Field(ge=1, le=MAX_VERSIONS)] = Field(description="The number of the version, from 1.")


class MarkReadIn(RequestModel):
    """The last event that you have read."""

    seq: Seq = Field(description="The number of the last event that you have read.")


@router.get("", response_model=ConversationsJson, responses=error_responses(404))
async def list_sessions(
    state: State,
    view: CallerView,
    include_all: IncludeAll,
    session_state: Annotated[Literal["active", "archived", "pinned"], Query(alias="state")] = "active",
    expired: Annotated[
        bool, Query(description="Only those that the reset policy has ended, archived or not; `state` does not matter.")
    ] = False,
    project: Annotated[
        str | None, Query(description="One of your projects, by id or name; `none`: only those in no project.")
    ] = None,
    platform: Annotated[str | None, Query(description="The platform they come from.", examples=["telegram"])] = None,
    without_platform: Annotated[
        list[ShortText] | None,
        Query(description="Leave out those that come from this platform; repeat it for several.", examples=["cron"]),
    ] = None,
    profile: Annotated[
        str | None, Query(description="The profile chosen in them; `default`: those where none was chosen.")
    ] = None,
    person_id: Annotated[str | None, Query(description="The id of a person who takes part.")] = None,
    after: Annotated[Moment | None, Query(description="Only those last active at this time or later.")] = None,
    before: Annotated[Moment | None, Query(description="Only those last active before this time.")] = None,
    title: Annotated[
        str | None, Query(description="Words, or beginnings of words, in the title; -word excludes a word.")
    ] = None,
    query: Annotated[
        str | None, Query(description="Words in the title, the preview or the name of the chat; -word excludes a word.")
    ] = None,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=200)] = 50,
) -> Response:
    """List conversations, newest first. Empty ones are left out."""
    page = await view.summaries.list(
        state="expired" if expired else session_state,
        limit=limit,
        cursor=cursor,
        project=project,
        platform=platform,
        without_platforms=without_platform or (),
        profile=profile,
        person=person_id,
        after=after,
        before=before,
        title=title,
        text=query,
    )
    connected = state.gateway.platforms
    sessions = [summary_to_json(each, connected, with_owner=include_all) for each in page]
    return encode_response(ConversationsJson(sessions=sessions, next_cursor=page.cursor))


@router.post("", status_code=201, responses=error_responses(404))
async def create_session(state: State, caller: Caller, body: NewSessionIn) -> ConversationJson:
    """Start a new conversation. Lists show it after its first message."""
    if body.model is not None:
        check_model_choice(state.gateway.agent, state.gateway.rules, caller.person.role, body.model)
    choices = body.model_dump(include={"profile", "personality", "workspace"}, exclude_none=True)
    check_may_change_settings(caller.principal, choices)  # type: ignore[arg-type]
    changes = body.model_dump(include={"title", "project", "model"}, exclude_none=True)
    changes |= _check_choices(state, caller, choices)
    summary = await state.conversations.start(caller.person, changes, key=body.key)  # type: ignore[arg-type]
    return summary_to_json(summary, state.gateway.platforms)


@router.get("/{session_id}", responses=error_responses(404))
async def get_session(
    state: State, view: CallerView, session_id: SessionId, include_all: IncludeAll
) -> ConversationJson:
    """Get a conversation."""
    return summary_to_json(await view.summaries.get(session_id), state.gateway.platforms, with_owner=include_all)


@router.patch("/{session_id}", responses=error_responses(404))
async def update_session(
    state: State,
    caller: Caller,
    view: CallerView,
    include_all: IncludeAll,
    session_id: SessionId,
    body: SessionChangesIn,
) -> ConversationJson:
    """Change a conversation. If one of the changes is not possible, none is made."""
    changes = body.model_dump(exclude_unset=True)
    if state.gateway.rules.chats:
        origin = (await view.summaries.get(session_id)).session.origin
        profiles.check_chat_choices(state.gateway.rules.find_chat_choices(origin), changes)
    if changes.get("model") is not None:
        check_model_choice(state.gateway.agent, state.gateway.rules, caller.person.role, changes["model"])
    changes |= _check_choices(state, caller, changes)
    if body.toolsets:
        session, gateway = (await view.summaries.get(session_id)).session, state.gateway
        allowed = list_session_toolsets(session, gateway.rules, gateway.agent.list_tool_servers(), caller.person.role)
        check_toolsets_exist((name for name, is_on in body.toolsets.items() if not is_on), allowed)
    summary = await view.update(session_id, changes)  # type: ignore[arg-type]
    return summary_to_json(summary, state.gateway.platforms, with_owner=include_all)


def _check_choices(state: State, caller: Caller, changes: Mapping[str, Any]) -> dict[str, str]:
    """Return the chosen profile, personality and workspace as they are stored; raises for one that is not possible."""
    gateway, checked = state.gateway, {}
    if (profile := changes.get("profile")) is not None:
        check_model = partial(check_model_choice, gateway.agent, gateway.rules, caller.person.role)
        checked["profile"] = profiles.find_profile(gateway.profile, profile, check_model)
    if (personality := changes.get("personality")) is not None:
        checked["personality"] = profiles.find_personality(gateway.profile, personality)
    if (workspace := changes.get("workspace")) is not None:
        checked["workspace"] = profiles.clean_workspace(workspace)
    return checked


@router.delete("/{session_id}", status_code=204, responses=error_responses(404))
async def delete_session(view: CallerView, session_id: SessionId) -> None:
    """Permanently delete a conversation and all its messages. Its cost stays in the usage reports."""
    await view.delete(session_id)


@router.get("/{session_id}/messages", responses=error_responses(404))
async def list_messages(
    view: CallerView,
    session_id: SessionId,
    before: SeqQuery = None,
    after: SeqQuery = None,
    around: SeqQuery = None,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_EVENTS)] = 50,
) -> LogPageJson:
    """Read a conversation: visible messages and other events, oldest first.

    By default its end, or else the part before, after or around an event.
    """
    return page_to_json(
        await view.transcripts.load_page(session_id, before=before, after=after, around=around, limit=limit)
    )


@router.get("/{session_id}/events", responses=error_responses(404))
async def list_events(
    view: CallerView,
    session_id: SessionId,
    after: Annotated[int, Query(ge=0, le=MAX_SEQ)] = 0,
    limit: Annotated[int, Query(ge=1, le=MAX_PAGE_EVENTS)] = 100,
) -> LogPageJson:
    """Read the complete log after an event, including hidden messages."""
    return page_to_json(await view.transcripts.load_log_page(session_id, after=after, limit=limit))


@router.get("/{session_id}/toolsets", responses=error_responses(404))
async def list_toolsets(state: State, caller: Caller, view: CallerView, session_id: SessionId) -> ToolsetsJson:
    """List the toolsets that the operator allows for you in a conversation, including those that are turned off."""
    disabled = (await view.summaries.get(session_id)).disabled_toolsets
    toolsets = await state.gateway.list_toolsets(caller.principal, session_id)
    return {"toolsets": [toolset_to_json(each, disabled) for each in toolsets]}


@router.put("/{session_id}/read", responses=error_responses(404))
async def mark_read(state: State, view: CallerView, session_id: SessionId, body: MarkReadIn) -> ReadPositionJson:
    """Mark everything up to an event as read. An earlier event than the last one changes nothing."""
    read_seq = await view.transcripts.mark_read(session_id, body.seq)
    state.live.refresh_session(session_id)
    return ReadPositionJson(read_seq=read_seq)


@router.get(
    "/{session_id}/export",
    response_class=Response,
    responses={
        200: {
            "description": "The conversation as a file.",
            "content": {
                "application/json": {"schema": {"type": "object"}},
                "application/jsonl": {"schema": {"type": "string"}},
                "text/markdown": {"schema": {"type": "string"}},
                "text/html": {"schema": {"type": "string"}},
            },
        },
        **error_responses(404),
    },
)
async def export_session(
    state: State,
    caller: Caller,
    include_all: IncludeAll,
    session_id: SessionId,
    form: Annotated[Literal["json", "jsonl", "markdown", "html"], Query(alias="format")] = "json",
) -> Response:
    """Export a conversation: `jsonl` and `json` contain the complete log, `markdown` and `html` what people see.

    `jsonl` can be imported again. `html` is one file that needs nothing else, with images and without scripts.
    """
    check_permission(caller.principal, "export")
    document_format = DocumentFormat(form)
    # It is made page by page, on a thread, while it is sent.
    document = await state.documents.stream(caller.principal, session_id, document_format, everything=include_all)
    disposition = f'attachment; filename="{session_id}.{document_format.suffix}"'
    headers = {"Content-Disposition": disposition, "Cache-Control": "no-store"}
    return StreamingResponse(document, media_type=document_format.media_type, headers=headers)


_ACTION_ERRORS = error_responses(404, 409, 429)


@router.post("/{session_id}/stop", responses=_ACTION_ERRORS)
async def stop_answer(state: State, caller: Caller, session_id: SessionId, stop: StopIn) -> ReceiptJson:
    """Stop the current answer. What was written so far is kept."""
    return await run_action(state, caller, session_id, stop_run.call(clear_queue=stop.clear_queue), stop.key)


@router.post("/{session_id}/undo", responses=_ACTION_ERRORS)
async def undo_turns(state: State, caller: Caller, session_id: SessionId, undo: UndoIn) -> ReceiptJson:
    """Undo the last turns. They are hidden, not deleted."""
    call = history_commands.undo_turns.call(turns=undo.turns)
    return await run_action(state, caller, session_id, call, undo.key)


@router.post("/{session_id}/redo", responses=_ACTION_ERRORS)
async def redo_turns(state: State, caller: Caller, session_id: SessionId, action: ActionIn) -> ReceiptJson:
    """Redo what the last undo hid."""
    return await run_action(state, caller, session_id, history_commands.redo_turns.call(), action.key)


@router.post("/{session_id}/retry", responses=_ACTION_ERRORS)
async def retry_turn(state: State, caller: Caller, session_id: SessionId, retry: RetryIn) -> ReceiptJson:
    """Regenerate an answer in place. The previous version is kept, with everything that followed it."""
    call = version_commands.retry_turn.call(seq=retry.seq)
    return await run_action(state, caller, session_id, call, retry.key)


@router.post("/{session_id}/version", responses=_ACTION_ERRORS)
async def choose_version(state: State, caller: Caller, session_id: SessionId, choice: ChooseVersionIn) -> ReceiptJson:
    """Show another version of a message, with everything that followed it. The agent sees that version only."""
    call = version_commands.choose_version.call(number=choice.version, seq=choice.seq)
    return await run_action(state, caller, session_id, call, choice.key)


@router.post("/{session_id}/restore", responses=_ACTION_ERRORS)
async def restore_session(state: State, caller: Caller, session_id: SessionId, action: ActionIn) -> ReceiptJson:
    """Revert the last restart, switch, branch or summary."""
    return await run_action(state, caller, session_id, history_commands.restore_session.call(), action.key)


@router.post("/{session_id}/compact", responses=_ACTION_ERRORS)
async def compact_session(state: State, caller: Caller, session_id: SessionId, compact: CompactIn) -> ReceiptJson:
    """Compact the context: the agent sees a summary of the older messages, people still see all of them."""
    focus = (compact.focus or "").strip() or None
    call = history_commands.compact_session.call(focus=focus)
    return await run_action(state, caller, session_id, call, compact.key)


@router.post("/{session_id}/fork", status_code=201, responses=error_responses(404))
async def fork_session(state: State, caller: Caller, session_id: SessionId, fork: ForkIn) -> ConversationJson:
    """Create a copy of your own, up to and including the turn of a message. The original doesn't change."""
    copy = await state.conversations.fork(caller.principal, session_id, fork.up_to_seq, fork.title)
    return summary_to_json(copy, state.gateway.platforms)


@router.post("/{session_id}/edit", status_code=202, responses=_ACTION_ERRORS)
async def edit_message(state: State, caller: Caller, session_id: SessionId, edit: EditIn) -> EditJson:
    """Edit a message: send another version of it in its place, or in a new conversation with all that came before."""
    check_content(edit.content, edit.attachment_ids)  # before there is a copy
    if not edit.branch:
        call = version_commands.edit_message.call(
            seq=edit.seq, content=edit.content, attachment_ids=edit.attachment_ids
        )
        edited = await run_action(state, caller, session_id, call, edit.key)
        current = await state.gateway.store.aio.seen_by(caller.principal).summaries.get(session_id)
        return EditJson(session=summary_to_json(current, state.gateway.platforms), receipt=edited)
    copy = await state.conversations.fork_before(caller.person, session_id, edit.seq, edit.key)
    receipt = await submit_message(
        state,
        caller,
        copy.session.id,
        edit.content,
        edit.key,
        busy_policy=edit.busy_policy,
        attachment_ids=edit.attachment_ids,
    )
    summary = await state.gateway.store.aio.seen_by(caller.principal).summaries.get(copy.session.id)
    return EditJson(session=summary_to_json(summary, state.gateway.platforms), receipt=receipt_to_json(receipt))
