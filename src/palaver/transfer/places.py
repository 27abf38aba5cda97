"""The places of imported conversations: chats, with the people who wrote there, or the person who imports them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Read, Transaction, Write
from palaver.core.recent_entries import RecentEntries
from palaver.core.source import ChatType, SessionSource, encode_source
from palaver.people import table as people
from palaver.sessions import table as sessions
from palaver.sessions.keys import DmScope, build_session_key
from palaver.sessions.model import EndReason
from palaver.transfer import import_rows
from palaver.transfer.imported import ImportedConversation, InvalidImport

if TYPE_CHECKING:
    from palaver.core.ids import PersonId, SessionId, SessionKey
    from palaver.sessions.message import Author
    from palaver.transfer.report import ImportRun


_MAX_CACHED_PEOPLE: Final = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A chat, or a person's own place, in which a conversation is held."""

    source: SessionSource
    key: SessionKey
    shared: bool
    person_id: PersonId | None  # whose it is; of a shared one, who wrote there
    audience_no: int | None  # of the person; None: that of the shared lane

    def find_audience(self, tx: Transaction, now: int) -> int:
        """Return the audience of the conversation; the first one in a shared place makes it."""
        if self.audience_no is not None:
            return self.audience_no
        audience_no = import_rows.find_shared_audience(tx, self.key)
        if audience_no is None:
            audience_no = people.create_audience(tx, now)
        if self.person_id is not None:
            people.join_audience(tx, audience_no, self.person_id, now)
        return audience_no


class PlaceFinder:
    """Finds the places of conversations, and the people who wrote there; adds people who are not known yet."""

    def __init__(self, run: ImportRun) -> None:
        self._run = run
        self._people: RecentEntries[tuple[str, str], tuple[PersonId, int] | None] = RecentEntries(_MAX_CACHED_PEOPLE)
        row = run.store.engine.run(Read(lambda tx: people.find_by_id(tx, run.person.id)))
        if row is None:
            raise InvalidImport("The person of this import was erased while it ran.")
        self._own_audience_no = row.audience_no

    def find(self, conversation: ImportedConversation, session_id: SessionId, tx: Transaction | None = None) -> Place:
        """Find the place of a conversation. Only the operator's import looks at the source that its files name.

        With `tx`, people who are not known yet are added in it, and nothing of what was found is kept.
        """
        run = self._run
        if conversation.source is None or not run.is_trusted:
            return self._make_own_place(session_id)
        source = conversation.source
        person = self._find_person(source) if tx is None else self._find_or_add_person(tx, source)
        person_id, audience_no = person or (None, None)
        scope_person = person_id if run.config.get_dm_scope(source) is DmScope.PERSON else None
        shared = run.config.is_shared(source)
        return Place(
            source=source,
            key=run.config.build_session_key(source, person=scope_person),
            shared=shared,
            person_id=person_id,
            audience_no=None if shared else audience_no,
        )

    def _make_own_place(self, session_id: SessionId) -> Place:
        run = self._run
        source = SessionSource(
            run.reader.platform,
            session_id,
            chat_type=ChatType.DM,
            user_id=run.person.id,
            user_name=run.person.name,
        )
        key = build_session_key(source, agent=run.config.agent)
        return Place(source=source, key=key, shared=False, person_id=run.person.id, audience_no=self._own_audience_no)

    def find_author(self, place: Place, author: Author | None) -> PersonId | None:
        """Return the person who wrote a message in a shared place."""
        if not place.shared or author is None or author.id is None:
            return None
        person = self._find_person(replace(place.source, user_id=author.id, user_id_alt=None, user_name=author.name))
        return person[0] if person else None

    def _find_person(self, source: SessionSource) -> tuple[PersonId, int] | None:
        account = people.find_account(source)
        if account is None:
            return None
        if account not in self._people:
            found = self._run.store.engine.run(Write(lambda tx: self._find_or_add_person(tx, source)))
            self._people.remember(account, found)
        return self._people[account]

    def _find_or_add_person(self, tx: Transaction, source: SessionSource) -> tuple[PersonId, int] | None:
        row = people.find_or_add_by_source(tx, source, self._run.now)
        return None if row is None else (row.person.id, row.audience_no)


def put_on_lane(tx: Transaction, place: Place, session_no: int, audience_no: int, now: int) -> bool:
    """Let the next message at the place continue this session, unless people have another conversation there."""
    current_no, has_messages = import_rows.find_lane_session(tx, place.key)
    if has_messages:
        return current_no == session_no
    sql = """INSERT INTO lane (key, session_no, source, audience_no, shared, updated_at) VALUES ($1, $2, $3, $4, $5, $6)
        ON CONFLICT (key) DO UPDATE SET session_no = excluded.session_no, audience_no = excluded.audience_no,
        updated_at = excluded.updated_at"""
    tx.execute(sql, place.key, session_no, encode_source(place.source), audience_no, int(place.shared), now)
    if current_no is not None:
        sessions.end(tx, current_no, EndReason.SWITCHED, now)
    if place.source.chat_type is ChatType.DM:
        people.remember_dm_source(tx, place.source, None)
    return True
