"""Exports a store in Palaver's own format: some sessions, everything of one person, or everything.

Memory stays small however much there is: rows are read in pages, files in chunks. Each page is a read of its own, so
that a running server is not held up; what is changed during an export may be in it or not, but every line is valid.
"""

from __future__ import annotations

from base64 import b64encode
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

from palaver.core.clock import from_micros
from palaver.core.engines.base import Read
from palaver.core.ids import PersonId
from palaver.media.attachments import READ_CHUNK_BYTES
from palaver.people import table as people
from palaver.sessions import table as sessions
from palaver.sessions.speech import Attachment, AttachmentNotFound
from palaver.transfer import export_rows
from palaver.transfer.export_records import (
    ATTACHMENT_FIELDS,
    AUDIENCE_FIELDS,
    HOME_CHANNEL_FIELDS,
    IDENTITY_FIELDS,
    JOB_FIELDS,
    LANE_FIELDS,
    LANE_MOVE_FIELDS,
    MEMBER_FIELDS,
    MEMORY_FIELDS,
    PERSON_FIELDS,
    PROJECT_FIELDS,
    READ_MARK_FIELDS,
    SAVED_PROMPT_FIELDS,
    SENDER_ID_FIELDS,
    SESSION_FIELDS,
    USAGE_FIELDS,
    encode_fields,
    get_event_fields,
)
from palaver.transfer.own_format import CHUNK_BYTES, Record, ScopeKind, format_lines, make_header

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from palaver.core.engines.base import Engine, Row, Transaction
    from palaver.media.attachments import Attachments
    from palaver.sessions.store import SessionStore

P = ParamSpec("P")
T = TypeVar("T")

_PAGE_ROWS: Final = 500
_EVENTS_PER_PAGE: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportScope:
    """What to export. The caller has checked who asks: an export reads what it is told to."""

    kind: ScopeKind
    person_id: PersonId | None = None  # everything of this person
    session_ids: tuple[str, ...] = ()

    @classmethod
    def everything(cls) -> ExportScope:
        return cls(kind="all")

    @classmethod
    def of_person(cls, person_id: PersonId) -> ExportScope:
        """Everything that a person owns, and the sessions of several people that they take part in."""
        return cls(kind="person", person_id=person_id)

    @classmethod
    def of_sessions(cls, session_ids: Sequence[str]) -> ExportScope:
        return cls(kind="sessions", session_ids=tuple(session_ids))


class Exporter:
    """Exports from one store."""

    def __init__(self, store: SessionStore, attachments: Attachments | None = None) -> None:
        self._engine = store.engine
        self._attachments = attachments

    def export_lines(self, scope: ExportScope) -> Iterator[bytes]:
        """Yield the lines of an export, with their line ends."""
        return format_lines(self.export_records(scope))

    def export_records(self, scope: ExportScope) -> Iterator[Record]:
        """Yield the records of an export, all but the footer."""
        return _Export(self._engine, self._attachments, scope).iterate()


class _Export:
    """One export: the numbers that audiences have in its file."""

    def __init__(self, engine: Engine, attachments: Attachments | None, scope: ExportScope) -> None:
        self._engine = engine
        self._attachments = attachments
        self._scope = scope
        self._refs: dict[int, int] = {}  # audience number → ref
        self._member_ids: set[str] = set()  # people who may see what is exported
        self._session_nos: list[int] = []  # for scope `sessions`
        self._audiences: list[int] | None = None  # None: all

    def _read(self, query: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function of storage in a read of its own."""
        return self._engine.run(Read(lambda tx: query(tx, *args, **kwargs)))

    def iterate(self) -> Iterator[Record]:
        scope = self._scope
        yield make_header(scope.kind, scope.person_id)
        self._resolve_scope()
        yield from self._iterate_audiences()
        person_ids = yield from self._iterate_people()
        if scope.kind != "sessions":
            for person_id in person_ids:
                yield from self._iterate_projects(person_id)
        else:
            yield from self._iterate_used_projects()
        yield from self._iterate_attachments()
        yield from self._iterate_sessions()
        if scope.kind == "sessions":
            return
        yield from self._iterate_orphan_usage()
        yield from self._iterate_lanes()
        yield from self._iterate_memories()
        yield from self._iterate_jobs()
        if scope.kind == "all":
            for row in self._read(export_rows.list_home_channels):
                yield {"type": "home_channel", **encode_fields(HOME_CHANNEL_FIELDS, row)}

    def _resolve_scope(self) -> None:
        scope = self._scope
        if scope.person_id is not None:
            person_id = scope.person_id
            self._audiences = self._read(people.list_audiences, person_id)
        elif scope.kind == "sessions":
            rows = [self._read(sessions.get, each) for each in dict.fromkeys(scope.session_ids)]
            self._session_nos = sorted(row.no for row in rows)
            self._audiences = sorted({row.audience_no for row in rows})

    # -- people --------------------------------------------------------------------------------------------

    def _iterate_audiences(self) -> Iterator[Record]:
        """Yield audiences in an order that an import does not change: those of people by id, then the others by age."""
        wanted = None if self._audiences is None else set(self._audiences)
        rows: list[export_rows.AudienceRow] = []
        after = 0
        while page := self._read(export_rows.list_audiences, after, _PAGE_ROWS):
            rows += [row for row in page if wanted is None or row.no in wanted]
            after = page[-1].no
        rows.sort(key=lambda row: (row.owner_id is None, *map(str, row.sort_key)))
        for row in rows:
            yield self._make_audience(row)

    def _make_audience(self, row: export_rows.AudienceRow) -> Record:
        self._refs[row.no] = ref = len(self._refs) + 1
        record: Record = {"type": "audience", "ref": ref, **encode_fields(AUDIENCE_FIELDS, [row.created_at])}
        anchors = {"owner": row.owner_id, "session": row.session_id, "lane": row.lane_key, "memory": row.memory_id}
        record |= {name: anchor for name, anchor in anchors.items() if anchor is not None}
        members = self._read(export_rows.list_members, row.no)
        self._member_ids.update(person_id for person_id, _ in members)
        record["members"] = [
            {"person": person_id, **encode_fields(MEMBER_FIELDS, [joined_at])} for person_id, joined_at in members
        ]
        return record

    def _iterate_people(self) -> Generator[Record, None, list[str]]:
        """Yield the people; return the ids of those who are exported with all that they own."""
        if self._audiences is None:
            return (yield from self._iterate_all_people())
        ids = yield from self._iterate_scope_people(sorted(self._member_ids))
        return ids if self._scope.person_id is None else [self._scope.person_id]

    def _iterate_all_people(self) -> Generator[Record, None, list[str]]:
        ids: list[str] = []
        for merged in (False, True):
            after = ""
            while rows := self._read(export_rows.list_people, after, _PAGE_ROWS, merged=merged):
                for row in rows:
                    ids.append(row[0])
                    yield self._make_person(row, with_accounts=True)
                after = rows[-1][0]
        return ids

    def _iterate_scope_people(self, member_ids: list[str]) -> Generator[Record, None, list[str]]:
        """Yield the people who may see what is exported; the accounts of other people stay here."""
        own = self._scope.person_id
        merged = [each for person in ([own] if own else member_ids) for each in self._list_merged(person)]
        for person_id in [*member_ids, *merged]:
            row = self._read(export_rows.find_person, person_id)
            if row is not None:
                yield self._make_person(row, with_accounts=own is None or person_id == own)
        return member_ids

    def _list_merged(self, person_id: str) -> list[str]:
        return self._read(export_rows.list_merged_ids, person_id)

    def _make_person(self, row: Row, *, with_accounts: bool) -> Record:
        *values, audience_no, merged_into = row
        record: Record = {"type": "person", **encode_fields(PERSON_FIELDS, values)}
        if audience_no in self._refs:
            record["audience"] = self._refs[audience_no]
        if merged_into is not None:
            record["merged_into"] = merged_into
        identities = self._read(export_rows.list_identities, row[0]) if with_accounts else []
        if identities:
            record["accounts"] = [self._make_identity(*each) for each in identities]
        return record

    def _make_identity(self, identity: Row, sender_ids: list[Row]) -> Record:
        record = encode_fields(IDENTITY_FIELDS, identity)
        if sender_ids:
            record["sender_ids"] = [encode_fields(SENDER_ID_FIELDS, each) for each in sender_ids]
        return record

    def _iterate_projects(self, person_id: str) -> Iterator[Record]:
        for row in self._read(export_rows.list_projects, person_id):
            yield {"type": "project", "person": person_id, **encode_fields(PROJECT_FIELDS, row)}
        for row in self._read(export_rows.list_saved_prompts, person_id):
            yield {"type": "saved_prompt", "person": person_id, **encode_fields(SAVED_PROMPT_FIELDS, row)}

    def _iterate_used_projects(self) -> Iterator[Record]:
        seen: set[str] = set()
        for session_no in self._session_nos:
            found = self._read(export_rows.find_session_project, session_no)
            if found is not None and found[0] not in seen:
                seen.add(found[0])
                *values, person_id = found
                yield {"type": "project", "person": person_id, **encode_fields(PROJECT_FIELDS, values)}

    # -- files ---------------------------------------------------------------------------------------------

    def _iterate_attachments(self) -> Iterator[Record]:
        if self._scope.kind == "sessions":
            rows: dict[int, Row] = {}
            for session_no in self._session_nos:
                found = self._read(export_rows.list_session_attachments, session_no)
                rows |= {row[-1]: row for row in found}
            for no in sorted(rows):
                yield from self._iterate_attachment(rows[no])
            return
        after = 0
        while page := self._read(export_rows.list_attachments, self._audiences, after, _PAGE_ROWS):
            for row in page:
                yield from self._iterate_attachment(row)
            after = page[-1][-1]

    def _iterate_attachment(self, row: Row) -> Iterator[Record]:
        *values, person_id, _ = row
        record = encode_fields(ATTACHMENT_FIELDS, values)
        yield {"type": "attachment", "person": person_id, **record}
        if self._attachments is None:
            return
        attachment = Attachment(
            id=record["id"],
            name=record["name"],
            media_type=record["media_type"],
            size=record["size"],
            sha256=record["sha256"],
            person_id=PersonId(person_id),
            created_at=from_micros(values[-1]),
        )
        for data in _read_file(self._attachments, attachment):
            yield {"type": "chunk", "attachment": attachment.id, "data": b64encode(data).decode()}

    # -- sessions ------------------------------------------------------------------------------------------

    def _iterate_session_nos(self) -> Iterator[int]:
        if self._scope.kind == "sessions":
            yield from self._session_nos
        elif self._audiences is not None:
            yield from sorted(no for audience_no in self._audiences for no in self._list_audience_nos(audience_no))
        else:
            after = 0
            while page := self._read(export_rows.list_session_nos, after, _PAGE_ROWS):
                yield from page
                after = page[-1]

    def _list_audience_nos(self, audience_no: int) -> Iterator[int]:
        after = ""
        while page := self._read(export_rows.list_audience_sessions, audience_no, after, _PAGE_ROWS):
            yield from (no for _, no in page)
            after = page[-1][0]

    def _iterate_sessions(self) -> Iterator[Record]:
        for session_no in self._iterate_session_nos():
            session = self._read(export_rows.load_session, session_no)
            if session is None or session.audience_no not in self._refs:  # it was deleted, or has just been started
                continue
            record = self._make_session(session)
            yield record
            yield from self._iterate_events(session_no, record["id"], record["last_seq"])
            yield from self._iterate_usage(session_no, record["id"])

    def _make_session(self, session: export_rows.SessionExport) -> Record:
        record: Record = {"type": "session", **encode_fields(SESSION_FIELDS, session.values)}
        record["audience"] = self._refs[session.audience_no]
        if session.project_id is not None:
            record["project"] = session.project_id
        if session.parent_id is not None:
            record["parent"] = session.parent_id
        if session.attachment_ids:
            record["attachments"] = session.attachment_ids
        if session.read_marks:
            record["read_marks"] = [
                {"person": person_id, **encode_fields(READ_MARK_FIELDS, values)}
                for person_id, *values in session.read_marks
            ]
        return record

    def _iterate_events(self, session_no: int, session_id: str, last_seq: int) -> Iterator[Record]:
        """Yield the log up to what the session's own record counts."""
        after = 0
        while after < last_seq and (rows := self._read(export_rows.list_events, session_no, after, _EVENTS_PER_PAGE)):
            for row in rows:
                if row[0] <= last_seq:
                    yield {"type": "event", "session": session_id, **encode_fields(get_event_fields(row[1]), row)}
            after = rows[-1][0]

    def _iterate_usage(self, session_no: int, session_id: str) -> Iterator[Record]:
        after = ("", "")
        while rows := self._read(export_rows.list_usage, session_no, after, _PAGE_ROWS):
            for *values, audience_no in rows:
                yield self._make_usage(values, audience_no) | {"session": session_id}
            after = (rows[-1][0], rows[-1][1])

    def _make_usage(self, values: Sequence[Any], audience_no: int | None) -> Record:
        record: Record = {"type": "usage", **encode_fields(USAGE_FIELDS, values)}
        if audience_no in self._refs:
            record["audience"] = self._refs[audience_no]
        return record

    def _iterate_orphan_usage(self) -> Iterator[Record]:
        after: tuple[int, str, str, int] = (-(2**62), "", "", -(2**62))
        while rows := self._read(export_rows.list_orphan_usage, self._audiences, after, _PAGE_ROWS):
            for *values, audience_no, _ in rows:
                yield self._make_usage(values, audience_no)
            last = rows[-1]
            after = (last[3], last[0], last[1], last[-1])

    # -- everything else -----------------------------------------------------------------------------------

    def _iterate_lanes(self) -> Iterator[Record]:
        after = ""
        while rows := self._read(export_rows.list_lanes, self._audiences, after, _PAGE_ROWS):
            for row in rows:
                if row[-2] in self._refs:
                    yield self._make_lane(row)
            after = rows[-1][0]

    def _make_lane(self, row: Row) -> Record:
        *values, audience_no, session_id = row
        record: Record = {"type": "lane", **encode_fields(LANE_FIELDS, values), "audience": self._refs[audience_no]}
        if session_id is not None:
            record["session"] = session_id
        moves = self._read(export_rows.list_lane_moves, row[0])
        if moves:
            record["moves"] = [
                {**encode_fields(LANE_MOVE_FIELDS, fields), "from": from_id, "to": to_id}
                for *fields, from_id, to_id in moves
            ]
        return record

    def _iterate_memories(self) -> Iterator[Record]:
        after = 0
        while rows := self._read(export_rows.list_memories, self._audiences, after, _PAGE_ROWS):
            for *values, audience_no, _ in rows:
                if audience_no in self._refs:
                    yield {
                        "type": "memory",
                        **encode_fields(MEMORY_FIELDS, values),
                        "audience": self._refs[audience_no],
                    }
            after = rows[-1][-1]

    def _iterate_jobs(self) -> Iterator[Record]:
        after = 0
        while rows := self._read(export_rows.list_jobs, self._scope.person_id, after, _PAGE_ROWS):
            for *values, origin_id, proposed_id, _ in rows:
                record: Record = {"type": "job", **encode_fields(JOB_FIELDS, values)}
                if origin_id is not None:
                    record["origin_session"] = origin_id
                if proposed_id is not None:
                    record["proposed_session"] = proposed_id
                yield record
            after = rows[-1][-1]


def _read_file(attachments: Attachments, attachment: Attachment) -> Iterator[bytes]:
    """Read a file in pieces of `CHUNK_BYTES`; nothing, if its bytes are gone."""
    try:
        path = attachments.get_path(attachment)
    except AttachmentNotFound:
        return
    with attachments.translate_errors(), path.open("rb", buffering=READ_CHUNK_BYTES) as stream:
        while data := stream.read(CHUNK_BYTES):
            yield data
