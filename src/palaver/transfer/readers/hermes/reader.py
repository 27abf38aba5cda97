"""The reader of Hermes: accounts, home channels, conversations from the oldest to the newest, memories, jobs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from palaver.core.errors import InvalidSource
from palaver.core.foreign_sqlite import InvalidForeignDatabase
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.transfer.imported import (
    ImportedConversation,
    ImportedHomeChannel,
    ImportedItem,
    ImportProblem,
    ImportReader,
    InvalidImport,
)
from palaver.transfer.readers.hermes.conversations import ConversationParts, MessageRules, build_conversation
from palaver.transfer.readers.hermes.folding import Copy
from palaver.transfer.readers.hermes.home import HermesHome, open_home, read_accounts, read_home_channels
from palaver.transfer.readers.hermes.jobs import JobContext, convert_origin, convert_row, read_jobs, read_memories
from palaver.transfer.readers.hermes.records import Record, sum_usage, to_datetime
from palaver.transfer.readers.hermes.state_database import parse_stored_json
from palaver.transfer.readers.hermes.transcripts import (
    WebuiSession,
    open_snapshot,
    open_transcript,
    open_webui_records,
    read_webui_session,
)
from palaver.transfer.readers.values import as_dict, as_text, is_plain

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from palaver.transfer.readers.hermes.state_database import Chain, Route

_TITLE_NUMBER = re.compile(r" #\d{1,6}$")
_EXPECTED: Final = ("state.db", "sessions", "webui", "cron", "memories")


def open_reader(path: Path) -> ImportReader:
    """Open the folder of Hermes, usually `~/.hermes`; also a single `state.db` in it."""
    folder = path.expanduser().absolute()
    folder = folder.parent if folder.name == "state.db" and folder.is_file() else folder
    folder = folder.resolve()
    if not folder.is_dir():
        raise InvalidImport(f"{folder}: there is no such folder. Name the folder of Hermes, usually ~/.hermes.")
    if not any((folder / name).exists() for name in _EXPECTED):
        raise InvalidImport(
            f"{folder}: this is not the folder of Hermes: it has none of {', '.join(_EXPECTED)}.", path=str(folder)
        )
    return HermesReader(folder)


class HermesReader:
    def __init__(self, folder: Path) -> None:
        self._homes = [open_home(folder, folder, "")]
        for profile in sorted((folder / "profiles").glob("*")):
            if is_plain(profile) and any((profile / name).exists() for name in _EXPECTED):
                self._homes.append(open_home(profile, folder, profile.name))
        self._chains = sorted(
            (
                (chain.started_at, number, chain)
                for number, home in enumerate(self._homes)
                for chain in home.list_chains()
            ),
            key=lambda found: (found[0], found[1], found[2].session_ids[0]),
        )

    @property
    def format(self) -> str:
        return "hermes"

    @property
    def platform(self) -> Platform:
        return Platform("hermes")

    def count_conversations(self) -> int:
        return len(self._chains)

    def read_items(self) -> Iterator[ImportedItem]:
        for home in self._homes:
            yield from home.problems
            chats = home.list_chats()
            names = {
                (str(chat.platform), chat.user_id): chat.user_name
                for chat in chats.values()
                if chat.user_id and chat.user_name
            }
            yield from read_accounts(home.folder, home.make_name, home.settings, names)
            yield from read_home_channels(home.settings, chats)
        for _, number, chain in self._chains:
            yield from _ConversationReader(self._homes[number], chain).read()
        for home in self._homes:
            yield from read_memories(home.folder, home.make_name)
            path = home.folder / "cron" / "jobs.json"
            yield from read_jobs(path, home.make_name(path), _make_job_context(home))

    def close(self) -> None:
        for home in self._homes:
            if home.database is not None:
                home.database.close()


def _make_job_context(home: HermesHome) -> JobContext:
    chats = home.list_chats()
    channels = [found for found in read_home_channels(home.settings, chats) if isinstance(found, ImportedHomeChannel)]
    return JobContext(
        timezone=home.settings.timezone,
        zone=home.zone,
        home_platforms=[str(channel.source.platform) for channel in channels],
        chats=chats,
    )


class _ConversationReader:
    """Collects what is known about one conversation."""

    def __init__(self, home: HermesHome, chain: Chain) -> None:
        self._home = home
        self._chain = chain
        self._rows: list[dict[str, Any]] = []
        self._pages: list[WebuiSession] = []
        self._problems: list[ImportProblem] = []

    def read(self) -> Iterator[ImportedConversation | ImportProblem]:
        try:
            conversation = build_conversation(self._collect())
        except InvalidForeignDatabase as error:
            yield ImportProblem(where=f"session {self._chain.session_ids[0]}", what=str(error))
            return
        yield from self._problems
        if conversation is not None:
            yield conversation

    def _collect(self) -> ConversationParts:
        home, chain = self._home, self._chain
        sessions = [self._find_copies(session_id) for session_id in chain.session_ids]
        root = chain.session_ids[0]
        first, last = (self._rows[0], self._rows[-1]) if self._rows else ({}, {})
        page = self._pages[-1].fields if self._pages else {}
        route = home.current.get(root)
        source = self._find_source(route)
        model = as_text(last.get("model")) or as_text(page.get("model"))
        provider = as_text(last.get("billing_provider")) or as_text(page.get("model_provider"))
        return ConversationParts(
            origin_id=home.make_origin_id(root),
            sessions=sessions,
            rules=self._make_rules(source),
            source=source,
            is_current=source is not None and root in home.current,
            title=self._find_title(),
            parent_id=self._find_parent(page),
            first=first,
            last=last,
            page=page,
            project=home.projects.get(as_text(page.get("project_id"))),
            profile=home.profile or _find_profile(last, page),
            model=route.model if route and route.model else model,
            provider=route.provider if route and route.provider else provider,
            usage=sum_usage(
                home.make_origin_id(root), self._list_usage(page), route.last_prompt_tokens if route else 0
            ),
            created_at=to_datetime(chain.started_at) if chain.started_at > 0 else None,
        )

    def _find_copies(self, session_id: str) -> list[Copy]:
        home = self._home
        copies = []
        has_summary = False
        if home.database is not None and session_id in home.lineage.links:
            database = home.database
            self._rows.append(database.read_session(session_id))
            copies.append(Copy(database.name, lambda: database.open_records(session_id)))
        if path := home.transcripts.get(session_id):
            name = home.make_name(path)
            copies.append(Copy(name, lambda: open_transcript(path, name, home.zone), has_local_times=True))
        if page_path := home.pages.get(session_id):
            page = read_webui_session(page_path, home.make_name(page_path), home.zone)
            if isinstance(page, ImportProblem):
                self._problems.append(page)
            else:
                self._pages.append(page)
                has_summary = bool(page.summary) and _has_summary(copies)
                copies.append(
                    Copy(page.name, lambda: open_webui_records(page, home.zone, with_summary=not has_summary))
                )
        if not copies and (snapshot := home.snapshots.get(session_id)):
            snapshot_name = home.make_name(snapshot)
            copies.append(
                Copy(snapshot_name, lambda: open_snapshot(snapshot, snapshot_name, home.zone), has_local_times=True)
            )
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
            self._problems.append(
                ImportProblem(
                    where=f"session {self._chain.session_ids[0]}",
                    what=f"{error} The conversation comes in without its chat.",
                )
            )
        return None

    def _make_rules(self, source: SessionSource | None) -> MessageRules:
        sender_ids = {source.user_name: source.user_id} if source and source.user_name and source.user_id else {}
        return MessageRules(
            has_senders=source is not None and self._is_shared(source),
            sender_ids=sender_ids,
            upload_folder=self._home.folder / "webui" / "attachments",
        )

    def _is_shared(self, source: SessionSource) -> bool:
        """Whether several people write here; then Hermes puts their names before their words."""
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

    def _find_parent(self, page: dict[str, Any]) -> str:
        home = self._home
        parent = self._chain.parent_id or as_text(page.get("parent_session_id"))
        is_known = parent in home.lineage.links or parent in home.pages or parent in home.transcripts
        if not is_known or parent in self._chain.session_ids:
            return ""
        return home.make_origin_id(home.lineage.roots.get(parent, parent))

    def _list_usage(self, page: dict[str, Any]) -> list[dict[str, Any]]:
        """Return the usage of each model; older versions know only the sum, and some only what the page counted."""
        rows: list[dict[str, Any]] = []
        database = self._home.database
        for row in self._rows:
            by_model = database.read_usage(row["id"]) if database is not None else []
            rows += by_model or [row]
        if not any(row.get("input_tokens") or row.get("output_tokens") for row in rows) and page:
            rows.append(
                {
                    **page,
                    "billing_provider": page.get("model_provider"),
                    "estimated_cost_usd": page.get("estimated_cost"),
                }
            )
        return rows


def _has_summary(copies: list[Copy]) -> bool:
    return any(
        isinstance(record, Record) and record.summary is not None for copy in copies for record in copy.open_records()
    )


def _find_profile(row: dict[str, Any], page: dict[str, Any]) -> str:
    profile = as_text(row.get("profile_name")) or as_text(page.get("profile"))
    return "" if profile == "default" else profile
