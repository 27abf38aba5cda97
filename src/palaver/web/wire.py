"""The JSON of conversations, their logs and their usage, as the API shows them to a caller.

Each shape declares the part of the JSON of `sessions/wire.py` that a caller may see, and the keys that depend on the
caller. What is not declared here, such as the ids that platforms use for chats and people, is in no response.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal, NotRequired, Required, cast

from palaver.core.columns import compile_writer
from palaver.core.wire import Doc, Time, TypedDict, build_json, format_short_micros
from palaver.sessions.model import SESSION_COLUMNS, SUMMARY_COLUMNS, USAGE_COLUMNS, find_display_name, parse_source
from palaver.sessions.turn import BusyPolicy
from palaver.sessions.usage import format_dollars
from palaver.sessions.view_wire import NamedPersonJson, ReceiptJson

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from palaver.core.ids import PersonId
    from palaver.sessions.events import Event
    from palaver.sessions.inbound import Receipt
    from palaver.sessions.model import SessionSummary, TranscriptPage

NextCursor = Annotated[str | None, Doc("Pass this as `cursor` to get the next page; null on the last page.")]


class UsageCountsJson(TypedDict):
    """Tokens and their cost."""

    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_write_tokens: int
    reasoning_tokens: int
    cost_usd: Annotated[str | None, Doc("The cost in US dollars; null if it is unknown.")]
    estimated_cost_usd: Annotated[
        str | None, Doc("What `cost_usd` would be by list prices; null unless a provider has reported its cost.")
    ]
    unpriced_turns: Annotated[int, Doc("Turns whose cost is unknown and not part of `cost_usd`.")]


class ConversationUsageJson(UsageCountsJson):
    """Tokens that a conversation used, and their cost."""

    cost_status: Literal["unknown", "estimated", "actual"]


class ChatSourceJson(TypedDict):
    """The chat that a conversation comes from."""

    platform: str
    chat_name: str | None
    user_name: str | None


class ConversationJson(TypedDict):
    """A conversation, as you see it."""

    id: Annotated[str, Doc(example="20261115_081200_1a2b3c4d")]
    title: Annotated[str | None, Doc("The title that a person chose; unique for its owner.")]
    auto_title: Annotated[
        str | None, Doc("The first words, or a model's title after the first answer. Null before the first words.")
    ]
    display_name: Annotated[
        str, Doc("What to call the conversation: its title, its automatic title or the name of its chat.")
    ]
    preview: str
    platform: str
    chat_type: Literal["dm", "group", "channel", "thread"]
    shared: Annotated[bool, Doc("Several people take part.")]
    source: ChatSourceJson
    message_count: int
    tool_call_count: Annotated[int, Doc("How many tool calls the agent has made here, including undone ones.")]
    is_first_contact: Annotated[
        bool, Doc("It is the first conversation with its person or, if several people take part, in its chat.")
    ]
    created_at: Time
    active_at: Annotated[
        Time | None, Doc("When it was last active; null while it is empty. Lists leave empty conversations out.")
    ]
    ended_at: Time | None
    end_reason: Annotated[
        Literal["idle", "daily", "manual", "forced", "switched", "restored"] | None,
        Doc("Why it has ended: `idle` and `daily` by the reset policy, the others because its chat moved on."),
    ]
    pinned: bool
    archived: bool
    project_id: str | None
    parent_id: Annotated[str | None, Doc("The conversation that this one was forked from.")]
    model: Annotated[str | None, Doc("The model that answered last.")]
    model_provider: Annotated[str | None, Doc("The provider of the model that answered last; null if unknown.")]
    chosen_model: Annotated[
        str | None, Doc("The model chosen for this conversation; null for that of its profile, or else the default.")
    ]
    profile: Annotated[str | None, Doc("The name of the profile chosen for this conversation; null for the default.")]
    personality: Annotated[str | None, Doc("The name of the personality chosen for this conversation.")]
    workspace: Annotated[str | None, Doc("The folder or topic of this conversation, which the agent is told.")]
    busy_policy: Annotated[
        BusyPolicy | None, Doc("The busy policy chosen for this conversation; null for the server's setting.")
    ]
    disabled_toolsets: Annotated[list[str], Doc("Names of the toolsets that are turned off in this conversation.")]
    running: Annotated[bool, Doc("The agent is responding.")]
    queued: Annotated[int, Doc("How many messages are queued.")]
    last_seq: Annotated[int, Doc("The number of the last event in the log.")]
    read_seq: Annotated[int, Doc("The number of the last event that you have read.")]
    context_tokens: Annotated[
        int,
        Doc("How many tokens the model received for the last answer; 0 if unknown, for example after a compaction."),
    ]
    usage: ConversationUsageJson
    reachable: Annotated[bool, Doc("Answers can be delivered to the chat that the conversation comes from.")]
    owner_name: Annotated[str | None, Doc("The name of the person it belongs to; only in requests with `all`.")]


class AuthorJson(TypedDict):
    """The author of a message in a conversation with several people."""

    name: str
    id: str | None


class QuotedMessageJson(TypedDict):
    """A message of another person in the chat."""

    author: str | None
    text: str


class SentByJson(TypedDict):
    """A job, or the agent at the request of a person in another conversation."""

    kind: Literal["job", "agent"]
    name: Annotated[str, Doc("The name of the job, or of the person who asked the agent.")]
    job_id: str | None
    run_id: str | None
    session_id: Annotated[str | None, Doc("The conversation of the job's run, or in which the agent was asked.")]


class MessageJson(TypedDict, total=False):
    """A message in the format that chat models use."""

    role: Required[Literal["system", "user", "assistant", "tool"]]
    content: Required[str | list[Any] | None]
    author: AuthorJson | None
    tool_calls: list[Any] | None
    tool_call_id: str | None
    tool_name: str | None
    reasoning: str | None
    interrupted: bool
    is_error: bool
    duration_ms: Annotated[
        int | None,
        Doc(
            "For a tool result: how long the tool took. For the last message of an answer: how long the agent took to"
            " answer."
        ),
    ]
    answers_seq: Annotated[int | None, Doc("The number of the message that this one answers.")]
    edited: Annotated[
        bool, Doc("Its author has changed it on the platform. `message_edited` events have the texts before.")
    ]
    sent_at: Annotated[Time | None, Doc("When it was sent, as the platform says.")]
    context: Annotated[
        list[QuotedMessageJson] | None,
        Doc("What was said in the group before it, and not to the agent. The agent sees it as a quote."),
    ]
    replied_message: Annotated[QuotedMessageJson | None, Doc("The message that it replies to.")]
    sent_by: Annotated[SentByJson | None, Doc("Who sent it here, if it is neither a message nor an answer.")]


class VersionJson(TypedDict):
    """The version of a message that is shown. A version is a message with everything that followed it."""

    number: Annotated[int, Doc("Of the version that is shown, from 1.")]
    count: Annotated[int, Doc("How many versions there are.")]
    has_edits: Annotated[bool, Doc("The message was edited; otherwise only its answer was regenerated.")]


class LogEventJson(TypedDict):
    """One entry in a conversation's log."""

    seq: Annotated[int, Doc("The event's number in the log.")]
    kind: str
    at: Time
    hidden: Annotated[bool, Doc("It was hidden by an undo, an edit or another version. It is not deleted.")]
    person: Annotated[NamedPersonJson | None, Doc("The person who caused it.")]
    message: Annotated[MessageJson | None, Doc("Only for kind `message`.")]
    facts: Annotated[dict[str, Any], Doc("Details, for all other kinds.")]
    version: NotRequired[
        Annotated[VersionJson | None, Doc("For a person's message that has several versions. Not on the live stream.")]
    ]


class LogPageJson(TypedDict):
    """A page of a conversation's log, oldest first."""

    events: list[LogEventJson]
    has_more_before: bool
    has_more_after: bool


def _describe_source(source_json: str) -> ChatSourceJson:
    source = parse_source(source_json)
    return {"platform": str(source.platform), "chat_name": source.chat_name, "user_name": source.user_name}


_write_usage = compile_writer(
    USAGE_COLUMNS.columns,
    ConversationUsageJson.__annotations__,
    first=len(SESSION_COLUMNS),
    cost_usd=("cost_nanos", format_dollars),
    estimated_cost_usd=("estimated_nanos", format_dollars),
)
_write_conversation = compile_writer(
    (*SESSION_COLUMNS.columns, *USAGE_COLUMNS.columns, *SUMMARY_COLUMNS.columns),
    ConversationJson.__annotations__,
    write_time=format_short_micros,
    display_name=("title auto_title source_json", find_display_name),
    source=("source_json", _describe_source),
    context_tokens=("last_prompt_tokens", None),
    usage=("row", _write_usage),
)


def summary_to_json(
    summary: SessionSummary, connected: Collection[str], *, with_owner: bool = False
) -> ConversationJson:
    """Convert a conversation; `connected` are the platforms that this server can deliver answers to.

    It has the declared keys and no others, in one step from the row: pages of lists are sent as they are.
    """
    data: Any = _write_conversation(summary.get_row(), reachable=False)
    if data["platform"] in connected:
        data["reachable"] = summary.has_delivery_address
    if not with_owner:
        data["owner_name"] = None
    return data  # type: ignore[no-any-return]


def page_to_json(page: TranscriptPage) -> LogPageJson:
    events = [log_event_to_json(event, page.person_names) for event in page.events]
    for event in events:
        if (version := page.versions.get(event["seq"])) is not None:
            event["version"] = build_json(VersionJson, version)
    return {"events": events, "has_more_before": page.has_more_before, "has_more_after": page.has_more_after}


def log_event_to_json(event: Event, names: Mapping[PersonId, str]) -> LogEventJson:
    data = event.to_dict(names)
    if (message := data["message"]) is not None:
        message["context"] = message["context"] and [_complete_quote(quote) for quote in message["context"]]
        message["replied_message"] = message["replied_message"] and _complete_quote(message["replied_message"])
    data["version"] = None
    return cast("LogEventJson", data)


def _complete_quote(quote: Mapping[str, Any]) -> QuotedMessageJson:
    return {"author": quote.get("author"), "text": quote.get("text", "")}


def receipt_to_json(receipt: Receipt) -> ReceiptJson:
    return build_json(ReceiptJson, receipt, facts=receipt.facts or {})
