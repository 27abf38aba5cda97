"""Commands that look and change nothing: lists, searches, reasons, numbers, exports."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from palaver.domain import policy
from palaver.domain.delivery import DeliveryState
from palaver.domain.errors import NoSuchSession
from palaver.domain.events import EventKind
from palaver.domain.gateway_config import SIDE_BY_SIDE
from palaver.domain.policy import ResetReason
from palaver.domain.search_text import parse_query
from palaver.domain.session import AUTOMATIC, StartReason
from palaver.services.commands import markdown
from palaver.services.commands.base import BadArguments, Command, Reply
from palaver.services.commands.command_context import check_bare, visible
from palaver.services.commands.reply_text import ago, code, count, dollars, named, quoted, reset_rule, titled, words
from palaver.services.commands.setting_commands import MEANING
from palaver.storage import compactions, deliveries, events, lanes, session_activity, session_settings, turns

if TYPE_CHECKING:
    from collections.abc import Iterator

    from palaver.domain.events import Event
    from palaver.domain.session import SearchHit, Session
    from palaver.domain.source import SessionSource
    from palaver.services.commands.base import CommandContext
    from palaver.storage.session_rows import SessionRow

PAGE = 10
MOST_PAGES = 50
MOST_HITS = 8
LONGEST_INLINE = 3500  # characters of an export that still fits into a chat message
_SNIPPET = 200


# ---- lists and searches ------------------------------------------------------------------------------------


def _sessions(asked: CommandContext) -> Reply:
    given = asked.arguments
    if given and not given.isdecimal():
        return _matching(asked, given)
    page = int(given or "1") if len(given) <= 2 else 0
    if not 1 <= page <= MOST_PAGES:
        raise BadArguments(f"Pages go from 1 to {MOST_PAGES}; `/sessions words` or `/search words` finds older ones.")
    found = asked.view.list(limit=page * PAGE)
    shown = found[(page - 1) * PAGE :]
    if not shown:
        text = "There are no conversations here yet." if page == 1 else f"There is no page {page}: the list is shorter."
        return Reply(text=text, facts={"sessions": []})
    more = f" `/sessions {page + 1}` shows more." if found.cursor and page < MOST_PAGES else ""
    return _listed(asked, "Conversations, newest first:", shown, more)


def _matching(asked: CommandContext, given: str) -> Reply:
    wanted = given.casefold().split()
    recent = asked.view.list(limit=PAGE * MOST_PAGES)
    fits = [each for each in recent if all(word in f"{each.title or ''} {each.preview}".casefold() for word in wanted)]
    if not fits:
        text = f"No conversation has {quoted(given)} in its title or its last line."
        return Reply(text=f"{text} `/search words` looks at every message.", facts={"sessions": []})
    more = f" There are {len(fits) - PAGE} more; say more of the one you mean." if len(fits) > PAGE else ""
    return _listed(asked, f"Conversations with {quoted(given)}:", fits[:PAGE], more)


def _listed(asked: CommandContext, heading: str, shown: tuple[Session, ...] | list[Session], more: str) -> Reply:
    here = asked.found.session.id if asked.found else None
    lines = [
        f"- {named(session)}, {ago(session.active_at, asked.now)}, {count(session.message_count, 'message')},"
        f" {'**here**' if session.id == here else code(session.id)}"
        for session in shown
    ]
    text = f"{heading}\n\n" + "\n".join(lines) + f"\n\n`/resume` with a title or an id goes back to one.{more}"
    return Reply(text=text, facts={"sessions": [_brief(session) for session in shown]})


def _brief(session: Session) -> dict[str, Any]:
    return {
        "id": session.id,
        "title": session.title,
        "preview": session.preview,
        "messages": session.message_count,
        "active_at": session.active_at and session.active_at.isoformat(),
    }


def _search(asked: CommandContext) -> Reply:
    if parse_query(asked.arguments).is_empty:
        raise BadArguments('What is to be found? `/search words`; "a phrase" in quotation marks is found as it stands.')
    hits = asked.view.search(asked.arguments, limit=MOST_HITS)
    facts = {
        "hits": [{"id": hit.session_id, "seq": hit.seq, "title": hit.title, "snippet": hit.snippet} for hit in hits]
    }
    if not hits:
        return Reply(text=f"Nothing was found for {quoted(asked.arguments)}.", facts=facts)
    lines = "\n".join(_hit(asked, hit) for hit in hits)
    more = " Only the newest are shown." if len(hits) == MOST_HITS else ""
    return Reply(text=f"Found, newest first:\n\n{lines}\n\n`/resume` with the id goes there.{more}", facts=facts)


def _hit(asked: CommandContext, hit: SearchHit) -> str:
    title = titled(hit.title) if hit.title else "untitled"
    here = asked.found is not None and asked.found.session.id == hit.session_id
    where = "**here**" if here else code(f"/resume {hit.session_id}")
    return f"- {quoted(hit.snippet, _SNIPPET)} – {title}, {ago(hit.at, asked.now)}, {where}"


# ---- reasons -----------------------------------------------------------------------------------------------

_NOTABLE = {
    EventKind.INTERRUPTED: "an answer was interrupted",
    EventKind.FAILED: "an answer failed",
    EventKind.COMPACTED: "older messages were summed up",
    EventKind.EXPANDED: "a summary was taken back",
    EventKind.RESENT: "an answer was sent again",
}
_MOST_NOTABLE = 5
_UNDELIVERED = {
    DeliveryState.FAILED: "could not be delivered",
    DeliveryState.UNCERTAIN: "may or may not have arrived",
}


def _why(asked: CommandContext) -> Reply:
    check_bare(asked, "why")
    found = visible(asked)
    started = events.log(asked.tx, found.no, limit=1)[0]
    previous = _previous(asked, started)
    lines = [
        f"{_began(asked, found.session)} It began {ago(found.session.created_at, asked.now)}.",
        *_before(found.session, previous),
        *_compacted(asked, found),
    ]
    lately = session_activity.lately(asked.tx, found.no, _NOTABLE, _MOST_NOTABLE)
    lines += [_happened(asked, event) for event in lately]
    lines += _undelivered(asked, found)
    facts = {
        "reason": found.session.start_reason,
        "previous": previous and previous.id,
        "lately": [{"kind": event.kind, "at": event.at.isoformat()} for event in lately],
    }
    return Reply(text="\n".join(f"- {line}" for line in lines), facts=facts)


def _began(asked: CommandContext, session: Session) -> str:
    reason = session.start_reason
    if reason in AUTOMATIC:
        return policy.explain(ResetReason(reason.value), asked.config.reset_policy_for(session.origin))
    return {
        StartReason.FIRST: "Nothing was going on here, so the first message began this conversation.",
        StartReason.MANUAL: "Somebody asked for a new conversation here.",
        StartReason.FORCED: "A new conversation was asked for here.",
        StartReason.FORK: "This conversation is a copy of another.",
    }[reason]


def _previous(asked: CommandContext, started: Event) -> Session | None:
    """The conversation before this one, if it still exists and the asker may see it."""
    with suppress(NoSuchSession):
        if previous := started.facts.get("previous"):
            return asked.view.get(previous)
    return None


def _before(session: Session, previous: Session | None) -> Iterator[str]:
    if previous is not None:
        which = "It was copied from" if session.start_reason is StartReason.FORK else "The one before it is"
        yield f"{which} {named(previous)}; {code(f'/resume {previous.id}')} goes back to it."


def _compacted(asked: CommandContext, found: SessionRow) -> Iterator[str]:
    compaction = compactions.current(asked.tx, found.no)
    if compaction is not None:
        messages = count(compaction.messages, "message")
        yield f"The agent sees a summary instead of the first {messages}; /restore takes that back."


def _happened(asked: CommandContext, event: Event) -> str:
    why = next((fact for name in ("error", "why", "reason") if isinstance(fact := event.facts.get(name), str)), "")
    return f"{ago(event.at, asked.now)}: {_NOTABLE[event.kind]}" + (f" ({words(why, _SNIPPET)})" if why else "")


def _undelivered(asked: CommandContext, found: SessionRow) -> Iterator[str]:
    for delivery in deliveries.of_session(asked.tx, found.no, _MOST_NOTABLE):
        if delivery.state in _UNDELIVERED:
            when = ago(delivery.created_at, asked.now)
            why = f" ({words(delivery.error, _SNIPPET)})" if delivery.error else ""
            yield f"{when}: {quoted(delivery.content, 40)} {_UNDELIVERED[delivery.state]}{why}"


# ---- numbers -----------------------------------------------------------------------------------------------


def _usage(asked: CommandContext) -> Reply:
    check_bare(asked, "usage")
    session = visible(asked).session
    used = session.usage
    facts = {
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "cache_read_tokens": used.cache_read_tokens,
        "cache_write_tokens": used.cache_write_tokens,
        "reasoning_tokens": used.reasoning_tokens,
        "cost_usd": None if used.cost is None else str(used.cost),
        "cost_status": used.cost_status,
        "unpriced_turns": used.unpriced_turns,
        "model": session.model,
    }
    if not used.total_tokens and used.cost is None and not used.unpriced_turns:
        return Reply(text="Nothing has been used in this conversation yet.", facts=facts)
    lines = [f"**Tokens**: {used.input_tokens:,} in, {used.output_tokens:,} out{_of_these(session)}"]
    lines.append(f"**Cost**: {_cost(session)}")
    if session.model:
        lines.append(f"**Model**: {code(session.model)} (the last that answered)")
    if session.last_prompt_tokens:
        lines.append(f"**Context**: {session.last_prompt_tokens:,} tokens at the last answer")
    return Reply(text="This conversation:\n\n" + "\n".join(f"- {line}" for line in lines), facts=facts)


def _of_these(session: Session) -> str:
    used = session.usage
    kinds = (("read from the cache", used.cache_read_tokens), ("spent on thinking", used.reasoning_tokens))
    told = [f"{tokens:,} {kind}" for kind, tokens in kinds if tokens]
    return f" ({', '.join(told)})" if told else ""


def _cost(session: Session) -> str:
    used = session.usage
    if used.cost is None:
        return f"unknown: {count(used.unpriced_turns, 'turn')} without a known price"
    told = f"{dollars(used.cost)} ({used.cost_status})"
    if used.unpriced_turns:
        told += f", and {count(used.unpriced_turns, 'turn')} whose price is unknown"
    return told


def _status(asked: CommandContext) -> Reply:
    check_bare(asked, "status")
    found = visible(asked) if asked.found else None
    settings = session_settings.read(asked.tx, found.no) if found else session_settings.SessionSettings()
    model = settings.model or asked.agent.model
    busy = settings.busy or asked.rules.busy_policy_for(asked.source)
    rule = asked.config.reset_policy_for(_place(asked, found))
    lines = [
        f"**Agent**: {asked.agent.description}",
        f"**Model**: {code(model)} ({'chosen for this conversation' if settings.model else 'the default'})",
        *(
            [f"**Tools that are off here**: {', '.join(map(code, settings.toolsets_off))}"]
            if settings.toolsets_off
            else []
        ),
        *(_state(asked, found) if found else ["**Conversation**: nothing has been said here yet"]),
        f"**While the agent answers**: a message {MEANING[busy]} ({code(busy)})",
        f"**Starts afresh**: {reset_rule(rule)}",
    ]
    running = turns.open_in(asked.tx, found.no) if found else turns.FREE
    facts = {
        "model": model,
        "busy": busy,
        "toolsets_off": list(settings.toolsets_off),
        "running": running.running is not None,
        "waiting": running.queued,
        "id": found.session.id if found else None,
        "title": found.session.title if found else None,
        "messages": found.session.message_count if found else 0,
        "context_tokens": found.session.last_prompt_tokens if found else 0,
        "reset": rule.mode,
    }
    return Reply(text="\n".join(f"- {line}" for line in lines), facts=facts)


def _place(asked: CommandContext, found: SessionRow | None) -> SessionSource:
    """Where it is decided when this conversation starts afresh: of one that a page shows, where it takes place."""
    if found is None or asked.source.platform not in SIDE_BY_SIDE or not lanes.takes_place(asked.tx, found.no):
        return asked.source
    return found.session.origin


def _state(asked: CommandContext, found: SessionRow) -> Iterator[str]:
    session = found.session
    called = titled(session.title) if session.title else "without a title"
    yield f"**Conversation**: {called}, {code(session.id)}, {count(session.message_count, 'message')}"
    if session.last_prompt_tokens:
        yield f"**Context**: {session.last_prompt_tokens:,} tokens at the last answer"
    open_turns = turns.open_in(asked.tx, found.no)
    doing = "answering" if open_turns.running is not None else "idle"
    waiting = f", {count(open_turns.queued, 'message')} waiting" if open_turns.queued else ""
    yield f"**Now**: {doing}{waiting}"


# ---- export ------------------------------------------------------------------------------------------------


def _export(asked: CommandContext) -> Reply:
    form = {"": "markdown", "md": "markdown"}.get(asked.arguments.lower(), asked.arguments.lower())
    if form not in {"json", "markdown"}:
        raise BadArguments("An export is `/export markdown` (what you see) or `/export json` (the whole log).")
    session = visible(asked).session
    told = f"{named(session)}, {count(session.message_count, 'message')}"
    facts: dict[str, Any] = {"format": form, "id": session.id, "messages": session.message_count}
    text = markdown.document(session, asked.view.load(session.id, limit=None)) if form == "markdown" else None
    if asked.address is not None:  # a chat: nobody reads facts there
        return Reply(text=_sent(session, told, text), facts=facts)
    facts["document"] = asked.view.export(session.id)
    if text is not None:
        facts["text"] = text
    return Reply(text=f"Exported as {form}: {told}.", facts=facts)


def _sent(session: Session, told: str, text: str | None) -> str:
    if text is not None and len(text) < LONGEST_INLINE:
        return text
    why = "JSON is not for a chat" if text is None else "This is too long for a chat message"
    return f"{why}: {told}. The web page exports it, and so does `palaver sessions export {session.id}` in a terminal."


SESSIONS = Command(
    name="sessions",
    usage="[page | words]",
    summary="list conversations",
    help="Newest first. With words, those that have them in their title or last line; /search looks at every message.",
    example="/sessions lisbon",
    run=_sessions,
)
SEARCH = Command(
    name="search",
    usage="words",
    summary="find messages",
    help='Newest first. All words must be there; "a phrase" as it stands, word* as a beginning, -word not at all.',
    example='/search "night train" lisbon',
    searches=True,
    run=_search,
)
WHY = Command(
    name="why",
    summary="why this conversation began, and what happened to it",
    help="Which conversation came before, how to get it back, and what was summed up, interrupted or failed lately.",
    example="/why",
    run=_why,
)
USAGE = Command(
    name="usage",
    summary="tokens and cost of this conversation",
    help="A cost that nobody knows is said to be unknown; it is never counted as nothing.",
    example="/usage",
    run=_usage,
)
STATUS = Command(
    name="status",
    summary="which agent answers here, and what it is doing",
    help="Also the id and title of this conversation, what waits, how full the context is, and when it starts afresh.",
    example="/status",
    run=_status,
)
EXPORT = Command(
    name="export",
    usage="[json | markdown]",
    summary="this conversation as a document",
    help="Markdown holds what you see; JSON holds the whole log. In a chat only a short Markdown document is sent.",
    example="/export markdown",
    run=_export,
)
