"""Exports a store in Palaver's own format: some sessions, everything of one person, or everything.

Memory stays small however much there is: rows are read in pages, files in chunks. Each page is a read of its own, so
that a running server is not held up; what is changed during an export may be in it or not, but every line is valid.
"""

from __future__ import annotations

from base64 import b64encode
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, TypeVar

from palaver.core.clock import from_micros
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Engine, Read, Row, Transaction, build_placeholders
from palaver.core.ids import PersonId
from palaver.jobs import table as jobs
from palaver.media import table as attachments_table
from palaver.media.attachments import READ_CHUNK_BYTES, Attachments
from palaver.memory import table as memories
from palaver.people import table as people
from palaver.people.access_table import SENDER_ID_EXPORT
from palaver.prompts import table as saved_prompts
from palaver.sessions import (
    hidden_ranges as read_marks,
    home_channels,
    lanes_table as lanes,
    log_table as events,
    projects_table as projects,
    table as sessions,
    usage_table as usage,
)
from palaver.sessions.speech import Attachment, AttachmentNotFound
from palaver.transfer import export_rows
from palaver.transfer.own_format import CHUNK_BYTES, Record, ScopeKind, encode_fields, get_event_fields, make_header

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence

    from palaver.people.person_data import ExportedTable
    from palaver.sessions.store import SessionStore
    from palaver.transfer.export_rows import ExportedRow

P = ParamSpec("P")
T = TypeVar("T")

_PAGE_ROWS: Final = 500
_EVERYTHING: Final = "1 = 1"


@dataclass(frozen=True, slots=True)
class ExportScope:
    """The part of a store to export, or all of it. The caller has checked who asks: an export reads what it is told to.

    Of a person: everything that they own, and the sessions of several people that they take part in.
    """

    person_id: PersonId | None = None
    session_ids: tuple[str, ...] | None = None  # they alone

    @property
    def kind(self) -> ScopeKind:
        return "sessions" if self.session_ids is not None else "all" if self.person_id is None else "person"


def export_records(store: SessionStore, attachments: Attachments | None, scope: ExportScope) -> Iterator[Record]:
    """Yield the records of an export, all but the footer."""
    return _Export(store.engine, attachments, scope).iterate()


class _Export:
    def __init__(self, engine: Engine, attachments: Attachments | None, scope: ExportScope) -> None:
        self._engine = engine
        self._attachments = attachments
        self._scope = scope
        self._refs: dict[int, int] = {}  # audience number → ref
        self._member_ids: set[str] = set()  # people who may see what is exported
        self._session_nos: list[int] = []  # for scope `sessions`
        self._audiences: list[int] | None = None  # None: all

    def _read(self, query: Callable[Concatenate[Transaction, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a function of a table in a read of its own."""
        return self._engine.run(Read(lambda tx: query(tx, *args, **kwargs)))

    def _read_pages(self, list_page: Callable[..., Sequence[Any]], after: object, *params: object) -> Iterator[Any]:
        """Yield the rows of all pages; the first value of a row says where the next page begins."""
        while page := self._read(list_page, *params, after, _PAGE_ROWS):
            yield from page
            after = page[-1][0]

    def _iterate_rows(self, exported: ExportedTable, condition: str, *params: object) -> Iterator[ExportedRow]:
        """Yield the rows of a table `t` in their order, a page at a time."""
        after: Row | None = None
        while page := self._read(export_rows.list_rows, exported, condition, params, after, _PAGE_ROWS):
            yield from page
            after = page[-1].position

    def _iterate_records(self, exported: ExportedTable, condition: str, *params: object) -> Iterator[Record]:
        for row in self._iterate_rows(exported, condition, *params):
            if not exported.needs_audience or row.references["audience"] in self._refs:
                yield {"type": exported.table, **self._make_record(exported, row)}

    def _iterate_of_audiences(self, exported: ExportedTable) -> Iterator[Record]:
        if self._audiences is None:
            return self._iterate_records(exported, _EVERYTHING)
        some = build_placeholders(len(self._audiences))
        return self._iterate_records(exported, f"t.audience_no IN ({some})", *self._audiences)

    def _list_parts(self, exported: ExportedTable, condition: str, *params: object) -> list[Record]:
        """List the rows that a record has inside itself."""
        rows = self._read(export_rows.list_rows, exported, condition, params)
        return [self._make_record(exported, row) for row in rows]

    def _make_record(self, exported: ExportedTable, row: ExportedRow) -> Record:
        record = encode_fields(exported.fields, row.values)
        for name, value in row.references.items():
            shown = self._refs.get(value) if name == "audience" else value
            if shown is not None:
                record[name] = shown
        return record

    def iterate(self) -> Iterator[Record]:
        scope = self._scope
        yield make_header(scope.kind, scope.person_id)
        self._resolve_scope()
        yield from self._iterate_audiences()
        person_ids = yield from self._iterate_people()
        if scope.kind != "sessions":
            for person_id in person_ids:
                yield from self._iterate_records(projects.EXPORT, "t.person_id = $1", person_id)
                yield from self._iterate_records(saved_prompts.EXPORT, "t.person_id = $1", person_id)
        else:
            some = build_placeholders(len(self._session_nos))
            is_used = f"t.no IN (SELECT s.project_no FROM session s WHERE s.no IN ({some}))"
            yield from self._iterate_records(projects.EXPORT, is_used, *self._session_nos)
        yield from self._iterate_attachments()
        yield from self._iterate_sessions()
        if scope.kind == "sessions":
            return
        yield from self._iterate_of_audiences(usage.ORPHAN_EXPORT)
        for record in self._iterate_of_audiences(lanes.EXPORT):
            moves = self._list_parts(lanes.MOVE_EXPORT, "t.lane_key = $1", record["key"])
            yield record | ({"moves": moves} if moves else {})
        yield from self._iterate_of_audiences(memories.EXPORT)
        if scope.person_id is not None:
            yield from self._iterate_records(jobs.EXPORT, "t.person_id = $1", scope.person_id)
        else:
            yield from self._iterate_records(jobs.EXPORT, _EVERYTHING)
        if scope.kind == "all":
            yield from self._iterate_records(home_channels.EXPORT, _EVERYTHING)

    def _resolve_scope(self) -> None:
        scope = self._scope
        if scope.session_ids is not None:
            rows = [self._read(sessions.get, each) for each in dict.fromkeys(scope.session_ids)]
            self._session_nos = sorted(row.no for row in rows)
            self._audiences = sorted({row.audience_no for row in rows})
        elif scope.person_id is not None:
            self._audiences = self._read(people.list_audiences, scope.person_id)

    def _iterate_audiences(self) -> Iterator[Record]:
        """Yield audiences in an order that an import does not change: those of people by id, then the others by age."""
        wanted = None if self._audiences is None else set(self._audiences)
        rows = [row for row in self._read_pages(export_rows.list_audiences, 0) if wanted is None or row.no in wanted]
        rows.sort(key=lambda row: (row.owner_id is None, *map(str, row.sort_key)))
        for row in rows:
            self._refs[row.no] = ref = len(self._refs) + 1
            record: Record = {"type": "audience", "ref": ref, **encode_fields(people.AUDIENCE_FIELDS, [row.created_at])}
            record |= {name: anchor for name, anchor in row.anchors.items() if anchor is not None}
            record["members"] = self._list_parts(people.MEMBER_EXPORT, "t.audience_no = $1", row.no)
            self._member_ids.update(member["person"] for member in record["members"])
            yield record

    def _iterate_people(self) -> Generator[Record, None, list[str]]:
        """Yield the people; return the ids of those who are exported with all that they own."""
        own = self._scope.person_id
        ids: list[str] = []
        if self._audiences is None:
            conditions: list[tuple[str, tuple[str, ...]]] = [("t.merged_into IS NULL", ()), ("t.merged_into <> ''", ())]
        else:  # those who may see what is exported, and those who were linked to them
            members = sorted(self._member_ids)
            conditions = [("t.id = $1", (each,)) for each in members]
            conditions += [("t.merged_into = $1", (each,)) for each in ([own] if own else members)]
        for condition, params in conditions:
            for record in self._iterate_records(people.PERSON_EXPORT, condition, *params):
                ids.append(record["id"])
                # The accounts of other people stay here.
                yield self._add_accounts(record) if own is None or record["id"] == own else record
        return ids if own is None else [own]

    def _add_accounts(self, record: Record) -> Record:
        accounts = self._list_parts(people.IDENTITY_EXPORT, "t.person_id = $1", record["id"])
        for account in accounts:
            main_id = (account["platform"], account["account"])
            sender_ids = self._list_parts(SENDER_ID_EXPORT, "t.platform = $1 AND t.main_id = $2", *main_id)
            if sender_ids:
                account["sender_ids"] = sender_ids
        return record | ({"accounts": accounts} if accounts else {})

    def _iterate_attachments(self) -> Iterator[Record]:
        """Yield the files that exported sessions use, each with its bytes."""
        is_used = "SELECT u.attachment_no FROM attachment_use u JOIN session s ON s.no = u.session_no"
        params: Sequence[int] = ()
        if self._scope.kind == "sessions":
            params = self._session_nos
            condition = f"t.no IN ({is_used} WHERE u.session_no IN ({build_placeholders(len(params))}))"
        elif self._audiences is not None:
            params = self._audiences
            some = build_placeholders(len(params))
            condition = f"t.no IN ({is_used} WHERE s.audience_no IN ({some}) AND s.is_deleted = 0)"
        else:
            condition = f"EXISTS ({is_used} WHERE u.attachment_no = t.no AND s.is_deleted = 0)"
        exported = attachments_table.EXPORT
        for row in self._iterate_rows(exported, condition, *params):
            record = self._make_record(exported, row)
            yield {"type": exported.table, **record}
            if self._attachments is not None:
                values = dict(zip((field.name for field in exported.fields), row.values, strict=True))
                created_at = from_micros(values.pop("created_at"))
                attachment = Attachment(person_id=PersonId(record["person"]), created_at=created_at, **values)
                for data in _read_file(self._attachments, attachment):
                    yield {"type": "chunk", "attachment": attachment.id, "data": b64encode(data).decode()}

    def _iterate_session_nos(self) -> Iterator[int]:
        if self._scope.kind == "sessions":
            yield from self._session_nos
        elif self._audiences is not None:
            yield from sorted(
                no
                for audience_no in self._audiences
                for _, no in self._read_pages(export_rows.list_audience_sessions, "", audience_no)
            )
        else:
            yield from (no for (no,) in self._read_pages(export_rows.list_session_nos, 0))

    def _iterate_sessions(self) -> Iterator[Record]:
        for session_no in self._iterate_session_nos():
            # None, if it was deleted, or has just been started.
            for record in self._iterate_records(sessions.EXPORT, "t.no = $1", session_no):
                parts = {
                    "attachments": self._read(export_rows.list_attachment_ids, session_no),
                    "read_marks": self._list_parts(read_marks.EXPORT, "t.session_no = $1", session_no),
                }
                yield record | {name: part for name, part in parts.items() if part}
                yield from self._iterate_events(session_no, record["id"], record["last_seq"])
                for used in self._iterate_records(usage.EXPORT, "t.session_no = $1", session_no):
                    yield used | {"session": record["id"]}

    def _iterate_events(self, session_no: int, session_id: str, last_seq: int) -> Iterator[Record]:
        """Yield the log up to what the session's own record counts."""
        condition = "t.session_no = $1 AND t.seq <= $2"
        for row in self._iterate_rows(events.MESSAGE_EXPORT, condition, session_no, last_seq):
            _, kind, *_ = row.values
            yield {"type": "event", "session": session_id, **encode_fields(get_event_fields(kind), row.values)}


def _read_file(attachments: Attachments, attachment: Attachment) -> Iterator[bytes]:
    """Read a file in pieces of `CHUNK_BYTES`; nothing, if its bytes are gone."""
    try:
        path = attachments.get_path(attachment)
    except AttachmentNotFound:
        return
    with attachments.translate_errors(), path.open("rb", buffering=READ_CHUNK_BYTES) as stream:
        while data := stream.read(CHUNK_BYTES):
            yield data
