"""One conversation of Hermes, from all places where it is stored."""

from __future__ import annotations

import math
import re
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput, InvalidSource
from palaver.core.foreign_sqlite import InvalidForeignDatabase
from palaver.core.source import ChatType, SessionSource
from palaver.core.text import is_storable
from palaver.jobs.firing import PROJECT_NAME
from palaver.sessions.message import Author
from palaver.sessions.model import EndReason
from palaver.transfer.imported import (
    ImportedCompaction,
    ImportedConversation,
    ImportedEntry,
    ImportedFile,
    ImportedMessage,
    ImportedProject,
    ImportProblem,
)
from palaver.transfer.reader_kit.export_files import read_path
from palaver.transfer.reader_kit.values import (
    UNKNOWN_TIME,
    as_dict,
    as_text,
    build_message,
    format_missing_file,
    join_result_parts,
    read_data_url,
    read_time,
    read_title,
)
from palaver.transfer.readers.hermes.folding import (
    DROP,
    SUMMARIZE,
    ConversationPlan,
    Copy,
    plan_conversation,
    read_planned,
)
from palaver.transfer.readers.hermes.jobs import find_run_name
from palaver.transfer.readers.hermes.records import Record, clean_text, split_sender, sum_usage, to_datetime
from palaver.transfer.readers.hermes.state_database import Chain, Route, convert_origin, convert_row, parse_stored_json
from palaver.transfer.readers.hermes.transcripts import (
    WebuiSession,
    open_snapshot,
    open_transcript,
    open_webui_records,
    read_webui_session,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from palaver.transfer.readers.hermes.home import HermesHome

_IMAGE_TYPES: Final = frozenset({"image_url", "input_image", "image"})
_RUNS_PROJECT: Final = ImportedProject(name=PROJECT_NAME)  # as of runs here
_TITLE_NUMBER = re.compile(r" #\d{1,6}$")
_END_REASONS: Final = {
    "idle": EndReason.IDLE,
    "daily": EndReason.DAILY,
    "session_reset": EndReason.MANUAL,
    "new_command": EndReason.MANUAL,
    "suspended": EndReason.MANUAL,
    "session_switch": EndReason.SWITCHED,
}


@dataclass(frozen=True, slots=True)
class MessageRules:
    has_senders: bool  # several people write here, and their names stand before their words
    sender_ids: dict[str, str]  # by name, where they are known
    upload_folder: Path  # only files in it are read


class ConversationReader:
    def __init__(self, home: HermesHome, chain: Chain) -> None:
        self._home = home
        self._chain = chain
        self._rows: list[dict[str, Any]] = []
        self._pages: list[WebuiSession] = []
        self._problems: list[ImportProblem] = []

    def read(self) -> Iterator[ImportedConversation | ImportProblem]:
        try:
            conversation = self._build()
        except InvalidForeignDatabase as error:
            yield ImportProblem(where=f"session {self._chain.session_ids[0]}", what=str(error))
            return
        yield from self._problems
        if conversation is not None:
            yield conversation

    def find_chat(self) -> SessionSource | None:
        """Return where the conversation takes place, without reading its messages; None if it has none."""
        home, links = self._home, self._home.lineage.links
        known = [links[each] for each in self._chain.session_ids if each in links]
        if home.database is not None:
            self._rows = [home.database.read_session(link.id) for link in known]
        has_messages = len(known) < len(self._chain.session_ids) or any(link.message_count for link in known)
        return self._find_source(home.current.get(self._chain.session_ids[0])) if has_messages else None

    def _build(self) -> ImportedConversation | None:
        """Plan how the copies are folded; None if there are no messages, as Hermes lists no empty sessions."""
        home, chain = self._home, self._chain
        sessions = [self._find_copies(session_id) for session_id in chain.session_ids]
        root = chain.session_ids[0]
        last = self._rows[-1] if self._rows else {}
        page = self._pages[-1].fields if self._pages else {}
        route = home.current.get(root)
        source = self._find_source(route)
        rules = MessageRules(
            has_senders=source is not None and self._is_shared(source),
            sender_ids={source.user_name: source.user_id} if source and source.user_name and source.user_id else {},
            upload_folder=home.path / "webui" / "attachments",
        )
        plan = plan_conversation(sessions)
        if not plan.compactions.actions:
            return None
        started_at = to_datetime(chain.started_at) if chain.started_at > 0 else None
        times = (time for session in plan.sessions for time in session.marks.times if not math.isnan(time))
        starts = (started_at, read_time(page.get("created_at")), next(map(to_datetime, times), None))
        created_at = min((start for start in starts if start is not None), default=UNKNOWN_TIME)
        is_current = source is not None and root in home.current
        ended_at, end_reason = read_time(last.get("ended_at")), _END_REASONS.get(str(last.get("end_reason")))
        has_ended = not is_current and ended_at is not None and end_reason is not None
        model = as_text(last.get("model")) or as_text(page.get("model"))
        provider = as_text(last.get("billing_provider")) or as_text(page.get("model_provider"))
        profile = as_text(last.get("profile_name")) or as_text(page.get("profile"))
        origin_id = home.make_origin_id(root)
        title = self._find_title()
        run_name = find_run_name(home, root, title)
        return ImportedConversation(
            origin_id=origin_id,
            open_entries=lambda: read_entries(plan, rules, created_at),
            created_at=created_at,
            source=source,
            title=read_title(title) if run_name is None else None,
            auto_title=run_name or None,
            ended_at=ended_at if has_ended else None,
            end_reason=end_reason if has_ended else None,
            is_current=is_current,
            pinned=bool(page.get("pinned")),
            archived=bool(page.get("archived") or last.get("archived")),
            project=home.projects.get(as_text(page.get("project_id"))) if run_name is None else _RUNS_PROJECT,
            parent_origin_id=self._find_parent(page),
            model=(route.model if route else "") or model or None,
            provider=(route.provider if route else "") or provider or None,
            profile=home.profile or (profile if profile != "default" else None) or None,
            personality=as_text(page.get("personality")).strip() or None,
            workspace=as_text(page.get("workspace")).strip() or as_text(last.get("cwd")).strip() or None,
            usage=sum_usage(origin_id, self._list_usage(page), route.last_prompt_tokens if route else 0),
            folded=plan.folded,
        )

    def _find_copies(self, session_id: str) -> list[Copy]:
        home, zone, make_name = self._home, self._home.zone, self._home.make_name
        copies = []
        if home.database is not None and session_id in home.lineage.links:
            database = home.database
            self._rows.append(database.read_session(session_id))
            copies.append(Copy(database.name, lambda: database.open_records(session_id)))
        if path := home.transcripts.get(session_id):
            name = make_name(path)
            copies.append(Copy(name, lambda: open_transcript(path, name, zone), has_local_times=True))
        if page_path := home.pages.get(session_id):
            page = read_webui_session(page_path, make_name(page_path), zone)
            if isinstance(page, ImportProblem):
                self._problems.append(page)
            else:
                self._pages.append(page)
                records = (record for copy in copies for record in copy.open_records() if isinstance(record, Record))
                with_summary = bool(page.summary) and all(record.summary is None for record in records)
                copies.append(Copy(page.name, lambda: open_webui_records(page, zone, with_summary=with_summary)))
        if not copies and (snapshot := home.snapshots.get(session_id)):
            label = make_name(snapshot)
            copies.append(Copy(label, lambda: open_snapshot(snapshot, label, zone), has_local_times=True))
        return copies

    def _find_source(self, route: Route | None) -> SessionSource | None:
        """Return where the conversation takes place: the chat that is on it, else what its sessions say."""
        origins = [route.origin] if route else []
        origins += [as_dict(parse_stored_json(row["origin_json"], {})) for row in reversed(self._rows)]
        origins += [self._home.origins[each] for each in self._chain.session_ids if each in self._home.origins]
        try:
            for origin in filter(None, origins):
                return convert_origin(origin)
            for row in reversed(self._rows):
                if source := convert_row(row):
                    return source
        except InvalidSource as error:
            what = f"{error} The conversation comes in without its chat."
            self._problems.append(ImportProblem(where=f"session {self._chain.session_ids[0]}", what=what))
        return None

    def _is_shared(self, source: SessionSource) -> bool:
        """Return whether several people write here; then Hermes puts their names before their words."""
        if source.chat_type is ChatType.DM:
            return False
        keys = [key for row in self._rows if (key := as_text(row["session_key"]))]
        if keys and source.participant:
            return not keys[-1].endswith(f":{source.participant}")
        settings = self._home.settings
        return not (settings.thread_sessions_per_user if source.thread_id else settings.group_sessions_per_user)

    def _find_title(self) -> str:
        """Return the last title; a number that a compaction has appended is removed."""
        for page in reversed(self._pages):
            if page.title:
                return page.title
        titles = [title for row in self._rows if (title := as_text(row["title"]).strip())]
        if not titles:
            return ""
        base = _TITLE_NUMBER.sub("", titles[-1])
        is_numbered = any(_TITLE_NUMBER.sub("", title) == base for title in titles[:-1])
        return base if is_numbered else titles[-1]

    def _find_parent(self, page: dict[str, Any]) -> str | None:
        home = self._home
        parent = self._chain.parent_id or as_text(page.get("parent_session_id"))
        is_known = parent in home.lineage.links or parent in home.pages or parent in home.transcripts
        if not is_known or parent in self._chain.session_ids:
            return None
        return home.make_origin_id(home.lineage.roots.get(parent, parent))

    def _list_usage(self, page: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the usage of each model; older versions know only the sum, and some only what the page counted."""
        rows: list[dict[str, Any]] = []
        database = self._home.database
        for row in self._rows:
            by_model = database.read_usage(row["id"]) if database is not None else []
            rows += by_model or [row]
        if not any(row.get("input_tokens") or row.get("output_tokens") for row in rows) and page:
            provider, cost = page.get("model_provider"), page.get("estimated_cost")
            rows.append({**page, "billing_provider": provider, "estimated_cost_usd": cost})
        return rows


def read_entries(
    plan: ConversationPlan, rules: MessageRules, created_at: datetime
) -> Iterator[ImportedEntry | ImportProblem]:
    """Read the conversation as people saw it, with the summaries that the agent saw."""
    at = created_at
    for planned in read_planned(plan):
        if isinstance(planned, ImportProblem):
            yield planned
            continue
        record = planned.record
        if record.at is not None:
            at = to_datetime(record.at)
        if planned.action == DROP:
            continue
        try:
            if planned.action == SUMMARIZE:
                kept_count = max(planned.kept_count, record.kept_count)
                yield ImportedCompaction(summary=record.summary or "", at=at, kept_count=kept_count)
            else:
                yield build_imported_message(record, at, rules)
        except InvalidInput as error:
            yield ImportProblem(where=record.where, what=str(error))


def build_imported_message(record: Record, at: datetime, rules: MessageRules) -> ImportedMessage:
    if record.role == "tool":
        facts = {"tool_call_id": record.tool_call_id or "unknown", "tool_name": record.tool_name}
        message = build_message("tool", join_result_parts(record.content), **facts)
        return ImportedMessage(message=message, at=at, hidden=record.is_undone)
    content, files = _split_content(record)
    author: Author | None = None
    if record.role == "user" and rules.has_senders:
        name, sender_id, rest = split_sender(content)
        if name:
            content, author = rest, Author(as_text(name), sender_id or rules.sender_ids.get(name))
    notes = [note for item in record.attachments if (note := _attach(item, files, rules))]
    text = "\n".join([content, *notes] if content else notes)
    message = build_message(record.role, text, tool_calls=record.tool_calls, reasoning=record.reasoning)
    platform_id = record.platform_message_id if is_storable(record.platform_message_id) else ""
    if author or platform_id:
        message = replace(message, author=author, platform_message_id=platform_id or None)
    return ImportedMessage(message=message, at=at, hidden=record.is_undone, files=tuple(files))


def _split_content(record: Record) -> tuple[str, list[ImportedFile]]:
    if isinstance(record.content, str):
        return clean_text(record.role, record.content), []
    texts, files = [], []
    for part in record.content:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(text := as_dict(part).get("text"), str):
            texts.append(text)
        elif url := _find_url(as_dict(part)):
            if file := read_data_url(url):
                files.append(file)
            else:
                texts.append(url if not url.startswith("data:") else format_missing_file("image"))
        else:
            texts.append(format_missing_file(as_text(as_dict(part).get("type")) or "file"))
    return clean_text(record.role, "\n".join(texts)), files


def _find_url(part: dict[str, Any]) -> str:
    if part.get("type") not in _IMAGE_TYPES:
        return ""
    image = part.get("image_url", part.get("url"))
    return as_text(image) or as_text(as_dict(image).get("url"))


def _attach(item: object, files: list[ImportedFile], rules: MessageRules) -> str:
    """Add an uploaded file; return a note for the text if it no longer exists."""
    name = as_text(item) or as_text(as_dict(item).get("name"))
    path = as_text(as_dict(item).get("path")) or name
    if not path:
        return ""
    name = Path(name or path).name
    with suppress(OSError, ValueError):
        found = (rules.upload_folder / path).resolve()
        if found.is_relative_to(rules.upload_folder.resolve()) and found.is_file():
            files.append(ImportedFile(name=name, open_chunks=lambda: read_path(found)))
            return ""
    return format_missing_file(name)
