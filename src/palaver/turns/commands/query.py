"""Commands that list, search and export conversations. They only read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palaver.commands.command import (
    READ,
    BadArguments,
    Command,
    CommandCall,
    CommandReply,
    CommandScopes,
    parse_number,
    read_action,
)
from palaver.commands.reply_text import (
    UNTITLED,
    count_messages,
    format_age,
    format_code,
    format_session_name,
    format_title,
    quote_command,
    quote_text,
)
from palaver.core.errors import InvalidInput
from palaver.core.invocation import format_command
from palaver.core.text import make_storable
from palaver.core.texts import join_texts, say
from palaver.sessions.export import DocumentFormat, export_markdown, export_session
from palaver.sessions.inbound import ExportRequest
from palaver.sessions.search_text import ArchivedFilter, FilterText, parse_filter_text, parse_query
from palaver.turns.commands.conversation import build_session_data

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.commands.context import CommandContext
    from palaver.sessions.model import SearchHit, Session
    from palaver.sessions.table import SessionRow

PAGE_SESSIONS = 10
MAX_PAGES = 50
MAX_HITS = 8
MAX_CHAT_EXPORT_CHARS = 3500  # what fits into one message of a chat
MAX_CHAT_EXPORT_MESSAGES = 100  # the headings of more messages are longer than that
_INDEXING_NOTE = say(
    "search.indexing", " Some messages are still being indexed and may be missing. Search again in a moment."
)
_TOO_LARGE = say("export.too_large", "This conversation is too large to send here")
_HERE = say("text.here", "**here**")
MAX_SNIPPET_CHARS = 200


# ---- lists and searches ------------------------------------------------------------------------------------


@read_action("sessions")
def list_sessions(context: CommandContext, *, page: int = 1) -> CommandReply:
    found = context.view.list(limit=page * PAGE_SESSIONS)
    sessions = found[(page - 1) * PAGE_SESSIONS :]
    if not sessions:
        text = say("sessions.no_page", "There's no page {page}.", page=page)
        if page == 1:
            text = say("sessions.none", "No conversations here yet.")
        return CommandReply(text=text, data={"sessions": []})
    more = ""
    if found.cursor and page < MAX_PAGES:
        more = say("sessions.more", " Use `/sessions {page}` to see more.", page=page + 1)
    return _build_session_list(context, say("sessions.list", "Conversations, newest first:"), sessions, more)


@read_action("sessions")
def find_sessions(context: CommandContext, *, typed: FilterText, query: str) -> CommandReply:
    """List the sessions that pass the filters and have all the words in their title or last message."""
    session_filter = typed.to_filter(context.config.default_reset_policy.zone)
    matches = context.view.list(
        state="archived" if typed.archived is ArchivedFilter.ONLY else "active",
        limit=PAGE_SESSIONS + 1,
        person=session_filter.person,
        project=session_filter.project,
        platform=session_filter.platform,
        after=session_filter.after,
        before=session_filter.before,
        text=typed.words,
    )
    if not matches:
        text = say("sessions.no_match", "No conversation matches {query}.", query=quote_text(query))
        if typed.words:
            text = say(
                "sessions.no_words",
                "No conversation matches {query} in its title or last message.",
                query=quote_text(query),
            )
        text += say("sessions.search", " Use `/search words` to search all messages.")
        return CommandReply(text=text, data={"sessions": []})
    more = ""
    if len(matches) > PAGE_SESSIONS:
        more = say("sessions.more_match", " More match; add words to narrow it down.")
    heading = say("sessions.found", "Conversations with {query}:", query=quote_text(query))
    return _build_session_list(context, heading, matches[:PAGE_SESSIONS], more)


def _build_session_list(context: CommandContext, heading: str, sessions: Sequence[Session], more: str) -> CommandReply:
    current_id = context.session_row.session.id if context.session_row else None
    lines = [
        join_texts(
            ", ",
            (
                "- " + format_session_name(session),
                format_age(session.active_at, context.now),
                count_messages(session.message_count),
                _HERE if session.id == current_id else format_code(session.id),
            ),
        )
        for session in sessions
    ]
    advice = say("sessions.resume", "Use `/resume` with a title or id to go back to one.") + more
    text = join_texts("\n\n", (heading, join_texts("\n", lines), advice))
    return CommandReply(
        text=text,
        data={"sessions": [build_session_data(session) | {"messages": session.message_count} for session in sessions]},
    )


@read_action("search", searches=True)
def search_messages(context: CommandContext, *, typed: FilterText, query: str) -> CommandReply:
    search_filter = typed.to_filter(context.config.default_reset_policy.zone)
    hits = context.view.search(typed.words, limit=MAX_HITS, search_filter=search_filter)
    data = {
        "hits": [
            {"id": hit.session_id, "seq": hit.seq, "title": hit.title, "snippet": hit.snippet.text} for hit in hits
        ],
        "is_indexing": hits.is_indexing,
    }
    note = _INDEXING_NOTE if hits.is_indexing else ""
    if not hits:
        text = say("search.none", "No messages found for {query}.", query=quote_text(query))
        return CommandReply(text=text + note, data=data)
    text = say(
        "search.found",
        "Messages for {query}, newest first:\n\n{list}\n\nUse `/resume` with an id to go there.",
        query=quote_text(query),
        list=join_texts("\n", (_format_hit(context, hit) for hit in hits)),
    )
    if len(hits) == MAX_HITS:
        text += say("search.newest", " Only the newest {limit} are shown.", limit=MAX_HITS)
    return CommandReply(text=text + note, data=data)


def _format_hit(context: CommandContext, hit: SearchHit) -> str:
    title = format_title(hit.title) if hit.title else UNTITLED
    is_here = context.session_row is not None and context.session_row.session.id == hit.session_id
    place = _HERE if is_here else quote_command(f"resume {hit.session_id}")
    snippet = "- " + quote_text(hit.snippet.text, MAX_SNIPPET_CHARS)
    return snippet + " – " + join_texts(", ", (title, format_age(hit.at, context.now), place))


# ---- export ------------------------------------------------------------------------------------------------


@read_action("export")
def export_conversation(
    context: CommandContext, *, export_format: DocumentFormat = DocumentFormat.MARKDOWN
) -> CommandReply:
    """Export the session: into the data, or as a file where one can be sent, or else into the text of a chat."""
    row = context.require_session()
    session = row.session
    name = join_texts(", ", (format_session_name(session), count_messages(session.message_count)))
    data: dict[str, Any] = {"format": export_format, "id": session.id, "messages": session.message_count}
    label = _get_label(export_format)
    done = say("export.done", "Exported as {format}: {name}.", format=label, name=name)
    if context.address is not None and context.max_file_bytes:
        request = ExportRequest(
            principal=context.principal,
            session_id=session.id,
            # A chat gets JSON line by line.
            format=DocumentFormat.JSONL if export_format is DocumentFormat.JSON else export_format,
            max_bytes=context.max_file_bytes,
            fallback_reply=_explain_other_ways(row, name, _TOO_LARGE),
        )
        return CommandReply(text=done, data=data, export=request)
    if context.address is not None:
        return CommandReply(text=_export_for_chat(context, row, export_format, name), data=data)
    is_short = session.message_count <= MAX_CHAT_EXPORT_MESSAGES
    match export_format:
        case DocumentFormat.JSON if is_short:
            data["document"] = export_session(context.tx, row)
        case DocumentFormat.MARKDOWN if is_short:
            data["text"] = export_markdown(context.tx, row)
        case _:
            done = say("export.download", "Download as {format}: {name}.", format=label, name=name)
    data["download"] = f"api/sessions/{session.id}/export?format={export_format}"
    return CommandReply(text=done, data=data)


def _export_for_chat(context: CommandContext, row: SessionRow, export_format: DocumentFormat, name: str) -> str:
    """Return a short Markdown export, or how to get the export, for a chat that takes no files."""
    reason = say("export.no_file", "{format} exports can't be sent to this chat", format=_get_label(export_format))
    if export_format is DocumentFormat.MARKDOWN:
        reason = say("export.too_long", "This conversation is too long to send here")
        if row.session.message_count <= MAX_CHAT_EXPORT_MESSAGES:
            text = export_markdown(context.tx, row)
            if len(text) <= MAX_CHAT_EXPORT_CHARS:
                return text
    return _explain_other_ways(row, name, reason)


def _get_label(export_format: DocumentFormat) -> str:
    return "Markdown" if export_format is DocumentFormat.MARKDOWN else export_format.value.upper()


def _explain_other_ways(row: SessionRow, name: str, reason: str) -> str:
    command = format_code(format_command(f"sessions export {row.session.id}", hide_folders=True))
    return say(
        "export.other_ways",
        "{reason}: {name}. Export it on the web page, or run {command} in a terminal.",
        reason=reason,
        name=name,
        command=command,
    )


# ---- the commands ------------------------------------------------------------------------------------------


def _parse_sessions(text: str) -> CommandCall:
    if not text:
        return list_sessions.call()
    if not text.isdecimal():
        typed = _parse_filters(text)
        if typed.role is not None:
            raise BadArguments.say("sessions.no_role", "`role:` only works with `/search`, which searches messages.")
        return find_sessions.call(typed=typed, query=text)
    page = parse_number(text, minimum=1, maximum=MAX_PAGES)
    if page is None:
        raise BadArguments.say(
            "sessions.bad_page",
            "Pages go from 1 to {limit}. Use `/search words` to find older conversations.",
            limit=MAX_PAGES,
        )
    return list_sessions.call(page=page)


def _parse_search(text: str) -> CommandCall:
    typed = _parse_filters(text)
    if parse_query(typed.words).is_empty:
        raise BadArguments.say(
            "search.no_words",
            'What are you looking for? Use `/search words`, or "a phrase" in quotes for an exact match.',
        )
    return search_messages.call(typed=typed, query=text)


def _parse_filters(text: str) -> FilterText:
    try:
        return parse_filter_text(make_storable(text))
    except InvalidInput as error:
        raise BadArguments(error.text) from None


def _parse_export(text: str) -> CommandCall:
    name = {"": "markdown", "md": "markdown", "htm": "html"}.get(text.lower(), text.lower())
    if name not in set(DocumentFormat):
        raise BadArguments.say(
            "export.bad_format",
            "Use `/export markdown` or `/export html` for what you see, or `/export jsonl` for the complete log,"
            " which can be imported again.",
        )
    return export_conversation.call(export_format=DocumentFormat(name))


_FILTER_HELP = say(
    "help.filters",
    "Filters: `platform:telegram`, `after:2026-01-01` (that day or later), `before:2026-02-01` (earlier than that day),"
    ' `project:name` or `project:"two words"`, `person:name`, `archived:only`.',
)
SESSIONS = Command(
    name="sessions",
    scopes=CommandScopes(read=READ),
    usage="[page | words and filters]",
    summary="List your conversations",
    help=say(
        "command.sessions.help",
        "Newest first. With words, lists the conversations that have all of them in the title or last message; -word"
        " excludes a word. {filters} Use /search to search all messages.",
        filters=_FILTER_HELP,
    ),
    example="/sessions lisbon platform:telegram",
    parse=_parse_sessions,
)
SEARCH = Command(
    name="search",
    scopes=CommandScopes(read=READ),
    usage="words and filters",
    summary="Search your messages",
    help=say(
        "command.search.help",
        'Newest first. All words have to match. "a phrase" matches exactly, word* a prefix, -word excludes a word.'
        " {filters} `role:user`, `role:assistant` and `role:tool` limit who wrote the message.",
        filters=_FILTER_HELP,
    ),
    example='/search "night train" lisbon after:2026-01-01',
    parse=_parse_search,
)
EXPORT = Command(
    name="export",
    scopes=CommandScopes(read=READ),
    usage="[markdown | html | jsonl | json]",
    summary="Export this conversation",
    help=(
        "Markdown and HTML contain what you see; JSONL and JSON the complete log, and JSONL can be imported again."
        " Chats get a file; where that isn't possible, they only get short Markdown exports."
    ),
    example="/export html",
    parse=_parse_export,
    makes_file=True,
)
