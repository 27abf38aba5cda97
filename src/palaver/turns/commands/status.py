"""Commands that show what is going on in a conversation: its status, its usage, its history. They only read.

`Policies` lists the rules that the operator has configured, as people may see them: nothing secret.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from palaver.agent import profiles
from palaver.commands.command import READ, Command, CommandReply, CommandScopes, parse_no_arguments, read_action
from palaver.commands.context import CommandContext, read_settings
from palaver.commands.reply_text import (
    UNTITLED,
    count_messages,
    escape_markdown,
    format_age,
    format_code,
    format_cost,
    format_reset_policy,
    format_session_name,
    format_title,
    quote_text,
)
from palaver.config.agent_rules import PlatformRules, TurnRules, get_platform_rules
from palaver.core.engines.base import Read, Transaction, Work
from palaver.core.errors import SessionNotFound
from palaver.core.operation import AsyncRunner, Operations, operation
from palaver.core.source import BUILT_IN_PLATFORMS, SessionSource
from palaver.core.texts import Text, join_texts, say, say_count
from palaver.people import table as people
from palaver.sessions import (
    activity_table as session_activity,
    delivery_queries,
    lanes_table as lanes,
    log_table as events,
    turns_table as turns,
    versions_table as versions,
)
from palaver.sessions.conversations import describe_origin, explain_automatic_start
from palaver.sessions.delivery import DeliveryState
from palaver.sessions.events import Event, EventKind
from palaver.sessions.gateway_config import MULTI_SESSION_PLATFORMS
from palaver.sessions.model import AUTOMATIC_START_REASONS, EndReason, Session, StartReason
from palaver.sessions.turn import InterruptReason
from palaver.sessions.usage import TOKEN_COUNTERS, CostStatus
from palaver.turns.commands.settings import (
    BUSY_POLICY_EFFECTS,
    describe_chat_choices,
    find_chat_choices,
    format_origin,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from palaver.people.model import Principal
    from palaver.sessions.settings_table import SessionSettings
    from palaver.sessions.store import SessionStore
    from palaver.sessions.table import SessionRow


_COST_STATUSES = {
    CostStatus.ESTIMATED: say("cost.estimated", "estimated"),
    CostStatus.ACTUAL: say("cost.actual", "actual"),
    CostStatus.UNKNOWN: say("cost.unknown", "unknown"),
}
_RECENT_EVENTS = {
    EventKind.TURN_INTERRUPTED: say("why.interrupted", "an answer was interrupted"),
    EventKind.TURN_FAILED: say("why.failed", "an answer failed"),
    EventKind.COMPACTED: say("why.compacted", "the agent's view of older messages was shortened"),
    EventKind.COMPACTION_UNDONE: say("why.compaction_undone", "a summary was removed"),
    EventKind.ANSWER_RESENT: say("why.resent", "an answer was sent again"),
}
_END_REASONS = {
    EndReason.IDLE: say("end.idle", "after a period of inactivity"),
    EndReason.DAILY: say("end.daily", "because conversations here restart every day"),
    EndReason.MANUAL: say("end.manual", "because someone started a new one"),
    EndReason.FORCED: say("end.forced", "because a program started a new one"),
    EndReason.SWITCHED: say("end.switched", "because the chat moved to another one"),
    EndReason.RESTORED: say("end.restored", "because the chat went back to an earlier one"),
}
_DELIVERY_PROBLEMS = {
    DeliveryState.FAILED: say("why.not_delivered", "wasn't delivered"),
    DeliveryState.UNCERTAIN: say("why.maybe_not_delivered", "may not have been delivered"),
}
MAX_REASON_CHARS = 200
MAX_RECENT_EVENTS = 5
MAX_QUOTE_CHARS = 60


# ---- status and usage --------------------------------------------------------------------------------------


@read_action("usage")
def show_usage(context: CommandContext) -> CommandReply:
    session = context.require_session().session
    usage = session.usage
    data = {
        **{name: getattr(usage, name) for name in TOKEN_COUNTERS},
        "cost_usd": None if usage.cost is None else str(usage.cost),
        "cost_status": usage.cost_status,
        "unpriced_turns": usage.unpriced_turns,
        "model": session.model,
    }
    if not usage.total_tokens and usage.cost is None and not usage.unpriced_turns:
        return CommandReply(text=say("usage.none", "This conversation hasn't used any tokens yet."), data=data)
    lines = [
        say(
            "usage.tokens",
            "**Tokens**: {input} in, {output} out{details}",
            input=usage.input_tokens,
            output=usage.output_tokens,
            details=_format_token_details(session),
        ),
        say("usage.cost", "**Cost**: {cost}", cost=_format_session_cost(session)),
    ]
    if session.model_name:
        lines.append(say("usage.model", "**Model**: {model} (last used)", model=format_code(session.model_name)))
    if session.last_prompt_tokens:
        lines.append(_describe_context(session))
    text = say("usage.heading", "This conversation:\n\n") + _join_list(lines)
    return CommandReply(text=text, data=data)


def _join_list(lines: Iterable[str]) -> Text:
    return join_texts("\n", ("- " + line for line in lines))


def _describe_context(session: Session) -> Text:
    return say("status.context", "**Context**: {tokens} tokens at the last answer", tokens=session.last_prompt_tokens)


def _format_token_details(session: Session) -> str:
    usage, details = session.usage, []
    if usage.cache_read_tokens:
        details.append(say("usage.cached", "{tokens} read from cache", tokens=usage.cache_read_tokens))
    if usage.reasoning_tokens:
        details.append(say("usage.reasoning", "{tokens} for reasoning", tokens=usage.reasoning_tokens))
    return " (" + join_texts(", ", details) + ")" if details else ""


def _format_session_cost(session: Session) -> str:
    usage = session.usage
    unpriced = say_count("usage.turns", usage.unpriced_turns, "{count} turn", "{count} turns")
    if usage.cost is None:
        return say("usage.cost_unknown", "unknown ({unpriced} without a known price)", unpriced=unpriced)
    text = format_cost(usage.cost) + " (" + _COST_STATUSES[usage.cost_status] + ")"
    if usage.unpriced_turns:
        text += say("usage.unpriced", ", plus {unpriced} without a known price", unpriced=unpriced)
    return text


@read_action("status")
def show_status(context: CommandContext) -> CommandReply:
    row = context.require_session() if context.session_row else None
    settings = read_settings(context)
    model = settings.model or profiles.find_default_model(context.profile, settings.profile, context.agent.model)
    busy = settings.busy_policy or context.rules.get_busy_policy(context.source)
    reset_source = _find_reset_source(context, row)
    reset_key, reset_policy = context.config.find_reset_rule(
        reset_source.platform, reset_source.chat_type, settings.profile
    )
    open_turns = turns.load_open(context.tx, row.no) if row else turns.NO_OPEN_TURNS
    unconnected = sorted(set(context.config.chat_platforms) - context.connected_platforms) if context.is_owner else []
    lines = [
        say("status.agent", "**Agent**: {description}", description=context.agent.description),
        say(
            "status.model",
            "**Model**: {model} ({origin})",
            model=format_code(model),
            origin=format_origin(settings.model),
        ),
        *_describe_choices(settings),
        *describe_chat_choices(find_chat_choices(context)),
        *(
            _describe_state(context, row.session, open_turns)
            if row
            else [say("status.no_messages", "**Conversation**: no messages yet")]
        ),
        say(
            "status.busy",
            "**While responding**: new messages {effect} ({policy})",
            effect=BUSY_POLICY_EFFECTS[busy],
            policy=format_code(busy),
        ),
        say(
            "status.restart",
            "**Automatic restart**: {when} ({origin})",
            when=format_reset_policy(reset_policy),
            origin=describe_origin(reset_key),
        ),
    ]
    if unconnected:
        lines.append(
            say(
                "status.not_connected",
                "**Not connected**: {names}. Messages there are neither received nor sent; see `/platforms`.",
                names=", ".join(platform.label for platform in unconnected),
            )
        )
    data = {
        "unconnected_platforms": [str(platform) for platform in unconnected],
        "model": model,
        "profile": settings.profile,
        "personality": settings.personality,
        "workspace": settings.workspace,
        "busy": busy,
        "toolsets_off": list(settings.disabled_toolsets),
        "running": open_turns.running is not None,
        "queued": open_turns.queued_count,
        "id": row.session.id if row else None,
        "title": row.session.title if row else None,
        "messages": row.session.message_count if row else 0,
        "tool_calls": row.session.tool_call_count if row else 0,
        "context_tokens": row.session.last_prompt_tokens if row else 0,
        "ended_at": row.session.ended_at.isoformat() if row and row.session.ended_at else None,
        "end_reason": row.session.end_reason if row else None,
        "reset": reset_policy.mode,
        "reset_setting": reset_key,
    }
    return CommandReply(text=_join_list(lines), data=data)


def _describe_choices(settings: SessionSettings) -> Iterator[str]:
    if settings.profile:
        yield say("status.profile", "**Profile**: {name}", name=format_code(settings.profile))
    if settings.personality:
        yield say("status.personality", "**Personality**: {name}", name=format_code(settings.personality))
    if settings.workspace:
        yield say("status.workspace", "**Workspace**: {name}", name=format_code(settings.workspace))
    if settings.disabled_toolsets:
        names = ", ".join(map(format_code, settings.disabled_toolsets))
        yield say("status.tools_off", "**Tools off**: {names}", names=names)


def _find_reset_source(context: CommandContext, row: SessionRow | None) -> SessionSource:
    """Return the source whose reset policy applies: for a session that the page shows, the chat it takes place in."""
    if (
        row is None
        or context.source.platform not in MULTI_SESSION_PLATFORMS
        or not lanes.belongs_to_its_lane(context.tx, row.no)
    ):
        return context.source
    return row.session.origin


def _describe_state(context: CommandContext, session: Session, open_turns: turns.OpenTurns) -> Iterator[str]:
    yield say(
        "status.session",
        "**Conversation**: {title}, {id}, {messages}",
        title=format_title(session.shown_title) if session.shown_title else UNTITLED,
        id=format_code(session.id),
        messages=count_messages(session.message_count),
    )
    if session.tool_call_count:
        yield say("status.tool_calls", "**Tool calls**: {calls}", calls=session.tool_call_count)
    if session.last_prompt_tokens:
        yield _describe_context(session)
    state = say("status.idle", "**Now**: idle")
    if open_turns.running is not None:
        state = say("status.responding", "**Now**: responding")
    if open_turns.queued_count:
        state += say("status.queued", ", {messages} queued", messages=count_messages(open_turns.queued_count))
    yield state
    if (end := _describe_end(context, session)) is not None:
        yield say("status.ended", "**Ended**: {end}", end=end)


def _describe_end(context: CommandContext, session: Session) -> str | None:
    """Say when and why a session has ended, and how it continues; None if it is open."""
    if session.ended_at is None or session.end_reason is None:
        return None
    reason = _END_REASONS[session.end_reason]
    if context.source.platform in MULTI_SESSION_PLATFORMS:
        advice = say("end.message", "A message here continues it.")
    elif session.is_expired:
        advice = say("end.restore", "Your next message starts a new conversation. Use /restore to continue this one.")
    else:
        advice = say("end.resume", "Use {command} to continue it.", command=format_code(f"/resume {session.id}"))
    return format_age(session.ended_at, context.now) + ", " + reason + ". " + advice


# ---- history -------------------------------------------------------------------------------------------------


@read_action("why")
def explain_session(context: CommandContext) -> CommandReply:
    """Say why the session started, what came before it, and what happened in it lately."""
    row = context.require_session()
    previous = _find_previous(context, row)
    lines = [
        _describe_start(context, row)
        + say("why.started", " Started {age}.", age=format_age(row.session.created_at, context.now)),
        *([say("why.ended", "Ended {end}", end=end)] if (end := _describe_end(context, row.session)) else []),
        *_describe_previous(row.session, previous),
        *_describe_compaction(context, row),
        *_describe_versions(context, row),
        *describe_chat_choices(find_chat_choices(context)),
    ]
    recent = session_activity.list_recent_events(context.tx, row.no, _RECENT_EVENTS, MAX_RECENT_EVENTS)
    lines += [_describe_event(context, event) for event in recent]
    lines += _describe_delivery_problems(context, row)
    data = {
        "reason": row.session.start_reason,
        "end_reason": row.session.end_reason,
        "previous_id": previous and previous.id,
        "recent_events": [{"kind": event.kind, "at": event.at.isoformat()} for event in recent],
    }
    return CommandReply(text=_join_list(lines), data=data)


def _describe_start(context: CommandContext, row: SessionRow) -> str:
    reason = row.session.start_reason
    if reason in AUTOMATIC_START_REASONS:
        return explain_automatic_start(context.tx, context.config, row.no, row.session)
    return {
        StartReason.FIRST: say("start.first", "This conversation started with the first message here."),
        StartReason.MANUAL: say("start.manual", "Someone asked for a new conversation here."),
        StartReason.FORCED: say("start.forced", "A program asked for a new conversation here."),
        StartReason.FORK: say("start.fork", "This conversation is a copy of another one."),
    }[reason]


def _find_previous(context: CommandContext, row: SessionRow) -> Session | None:
    """Return the session before this one, or the copied one, if it still exists and the person has access to it."""
    previous_id: object = row.session.parent_id
    if previous_id is None:
        previous_id = events.list_events(context.tx, row.no, limit=1)[0].facts.get("previous")
    with suppress(SessionNotFound):
        return context.view.get(previous_id) if isinstance(previous_id, str) else None
    return None


def _describe_previous(session: Session, previous: Session | None) -> Iterator[str]:
    if previous is not None:
        facts = {"name": format_session_name(previous), "command": format_code(f"/resume {previous.id}")}
        if session.start_reason is StartReason.FORK:
            yield say("why.copied", "It was copied from {name}. Use {command} to go back to it.", **facts)
        else:
            yield say("why.previous", "The previous one is {name}. Use {command} to go back to it.", **facts)


def _describe_compaction(context: CommandContext, row: SessionRow) -> Iterator[str]:
    compaction = versions.find_current(context.tx, row.no)
    if compaction is not None and compaction.omitted_count:
        yield say_count(
            "why.omitted",
            compaction.message_count,
            "The agent no longer sees the first {count} message; you still see them. Use /restore to undo this.",
            "The agent no longer sees the first {count} messages; you still see them. Use /restore to undo this.",
        )
    elif compaction is not None:
        yield say_count(
            "why.summary",
            compaction.message_count,
            "The agent sees a summary of the first {count} message; you still see them. Use /restore to remove it.",
            "The agent sees a summary of the first {count} messages; you still see them. Use /restore to remove it.",
        )


def _describe_versions(context: CommandContext, row: SessionRow) -> Iterator[str]:
    info = versions.find_last_info(context.tx, row.no)
    if info is not None:
        chosen = versions.load_chosen(context.tx, row.no, info)
        yield say(
            "why.version",
            "The agent sees version {number} of {total} of {question} and its answer. Use /versions to list all of"
            " them, `/version 1` to go to another one.",
            number=info.number,
            total=info.count,
            question=quote_text(chosen.question, MAX_QUOTE_CHARS),
        )


def _describe_event(context: CommandContext, event: Event) -> str:
    reason = next((fact for name in ("error", "reason") if isinstance(fact := event.facts.get(name), str)), "")
    if event.kind is EventKind.TURN_INTERRUPTED and reason in set(InterruptReason):
        reason = InterruptReason(reason).explain(event.facts.get("minutes"))
    text = format_age(event.at, context.now) + ": " + _RECENT_EVENTS[event.kind]
    return text + " (" + escape_markdown(reason, MAX_REASON_CHARS) + ")" if reason else text


def _describe_delivery_problems(context: CommandContext, row: SessionRow) -> Iterator[str]:
    for delivery in delivery_queries.list_for_session(context.tx, row.no, MAX_RECENT_EVENTS):
        if delivery.state in _DELIVERY_PROBLEMS:
            text = format_age(delivery.created_at, context.now) + ": " + quote_text(delivery.content, 40)
            error = delivery.error and join_texts("", (" (", escape_markdown(delivery.error, MAX_REASON_CHARS), ")"))
            yield text + " " + _DELIVERY_PROBLEMS[delivery.state] + (error or "")


# ---- the commands ------------------------------------------------------------------------------------------


WHY = Command(
    name="why",
    scopes=CommandScopes(read=READ),
    summary="Explain how this conversation started and what happened to it",
    help=(
        "Shows the previous conversation and how to get back to it, summaries, versions, interrupted or failed answers,"
        " and delivery problems."
    ),
    example="/why",
    parse=parse_no_arguments(explain_session),
)
USAGE = Command(
    name="usage",
    scopes=CommandScopes(read=READ),
    summary="Show the tokens and cost of this conversation",
    help="A cost that isn't known is shown as unknown, never as zero.",
    example="/usage",
    parse=parse_no_arguments(show_usage),
)
STATUS = Command(
    name="status",
    scopes=CommandScopes(read=READ),
    summary="Show the agent, the model and what's going on here",
    help="Also shows the title and id, queued messages, the context size, and when conversations restart.",
    example="/status",
    parse=parse_no_arguments(show_status),
)


class Policies(Operations[AsyncRunner]):
    """Lists when conversations restart, and what happens to messages while the agent is busy."""

    def __init__(self, store: SessionStore, get_rules: Callable[[], TurnRules]) -> None:
        super().__init__(AsyncRunner(store.engine))
        self._store = store
        self._get_rules = get_rules  # those that are in force now

    @operation
    def list_rules(self, principal: Principal) -> Work[Sequence[PlatformRules]]:
        """List the default rules, then the rules of each platform that is configured or that the person uses."""
        config, rules = self._store.config, self._get_rules()

        def run(tx: Transaction) -> Sequence[PlatformRules]:
            platforms = {
                *people.list_platforms(tx, principal.person_id),
                *config.connected_platforms,
                *config.reset_by_platform,
                *rules.busy_policy_by_platform,
            }
            built_in = [platform for platform in BUILT_IN_PLATFORMS if platform in platforms]
            of_plugins = sorted(platforms.difference(BUILT_IN_PLATFORMS))
            return [get_platform_rules(config, rules, platform) for platform in (None, *built_in, *of_plugins)]

        return Read(run)
