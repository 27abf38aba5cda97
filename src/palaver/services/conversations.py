"""Beginning and branching conversations for a person at a surface of Palaver's own: the web, the API.

There a conversation is not the place somebody writes from: each has a lane of its own, and several go on side by side.
What is said in them goes through the inbox, like everything else.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.domain.errors import InvalidInput, NoSuchSession
from palaver.domain.events import EventKind
from palaver.domain.inbound import Inbound
from palaver.domain.session import StartReason
from palaver.domain.source import ChatType, Platform, SessionSource
from palaver.services.commands.conversation_commands import BRANCH
from palaver.services.commands.registry import check_may
from palaver.services.view import ViewWithin
from palaver.storage import (
    events,
    inbound_messages,
    lanes,
    people,
    projects,
    session_settings,
    sessions,
    transcript_queries,
)
from palaver.storage.engines.base import Write
from palaver.storage.timestamps import to_micros

if TYPE_CHECKING:
    from palaver.domain.person import Person, Principal
    from palaver.domain.session import Session
    from palaver.domain.session_summary import Overview
    from palaver.services.store import SessionStore
    from palaver.storage.engines.base import Transaction
    from palaver.storage.session_rows import SessionRow

EDITS = "edits"  # under which a key of an edit is known, beside those of messages
BEGINNINGS = "beginnings"  # and that of a new conversation


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a new conversation is to be like."""

    title: str | None = None
    project: str | None = None
    model: str | None = None  # already checked by the agent


def source_in(person: Person, session: Session, platform: Platform = Platform.WEB) -> SessionSource:
    """Where somebody speaks from who looks at a conversation on a surface of ours."""
    born_here = session.platform == platform and session.origin.user_id == person.id
    return _source(person, session.origin.chat_id if born_here else session.id, platform)


def source_of(person: Person, platform: Platform = Platform.WEB) -> SessionSource:
    """Where somebody speaks from who looks at no conversation."""
    return _source(person, person.id, platform)


def _source(person: Person, chat_id: str, platform: Platform) -> SessionSource:
    return SessionSource(platform, chat_id, chat_type=ChatType.DM, user_id=person.id, user_name=person.name)


class Conversations:
    """Begins and branches conversations."""

    def __init__(self, store: SessionStore) -> None:
        self._store = store

    async def begin(
        self, person: Person, wanted: Wanted, platform: Platform = Platform.WEB, *, key: str | None = None
    ) -> Overview:
        """A new conversation in a lane of its own; lists show it once something is said in it.

        The same key twice is the same conversation, so that whoever did not hear of it may ask again.
        """
        source = _source(person, secrets.token_urlsafe(9), platform)
        now = self._store.clock.now()
        arrival = self._store.arrival(source, now)
        beginning = Inbound(source=source_of(person, platform), content="", message_id=key, account=BEGINNINGS)

        def run(tx: Transaction) -> Overview:
            before = inbound_messages.find(tx, beginning)
            if before is not None:
                return ViewWithin(tx, self._store.clock, person.principal).overview(before["session_id"])
            found = sessions.get(tx, lanes.enter(tx, arrival, force_new=True).session_id)
            inbound_messages.keep(tx, beginning, {"outcome": "command", "session_id": found.session.id}, to_micros(now))
            if wanted.title is not None:
                sessions.rename(tx, found, wanted.title, to_micros(now), person.id)
            if wanted.project is not None:
                project_no, project = projects.find(tx, person.id, wanted.project)
                sessions.move(tx, found, project.id, project_no, to_micros(now), person.id)
            if wanted.model is not None:
                session_settings.choose_model(tx, found.no, wanted.model, to_micros(now), person.id)
            return _shown(tx, found, person.principal)

        return await self._store.engine.arun(Write(run))

    async def fork(self, principal: Principal, session_id: str, at: int | None, title: str | None) -> Overview:
        """A copy up to and including the turn of message `at`, in which somebody goes on by themselves."""
        check_may(principal, BRANCH)
        now = to_micros(self._store.clock.now())

        def run(tx: Transaction) -> Overview:
            view = ViewWithin(tx, self._store.clock, principal)
            parent = sessions.get(tx, view.get(session_id).id)
            found = sessions.get(tx, view.fork(session_id, at).id)
            session_settings.inherit(tx, parent.no, found.no, now, principal.person_id)
            if title is not None:
                sessions.rename(tx, found, title, now, principal.person_id)
            return _shown(tx, found, principal)

        overview = await self._store.engine.arun(Write(run))
        self._store.indexer.soon()
        return overview

    async def fork_before(self, person: Person, session_id: str, at: int, key: str) -> Overview:
        """A copy of what was said before message `at` of a person, to say something else there.

        The same key twice is the same copy, so that whoever did not hear of it may ask again.
        """
        principal = person.principal
        check_may(principal, BRANCH)
        now = to_micros(self._store.clock.now())

        def run(tx: Transaction) -> Overview:
            view = ViewWithin(tx, self._store.clock, principal)
            parent = sessions.get(tx, view.get(session_id).id)
            edit = Inbound(
                source=source_in(person, parent.session),
                content="",
                message_id=key,
                account=EDITS,
                session_id=parent.session.id,
            )
            before = inbound_messages.find(tx, edit)
            if before is not None:
                return view.overview(before["session_id"])
            found = _copied_before(tx, view, parent, at, principal, now)
            session_settings.inherit(tx, parent.no, found.no, now, principal.person_id)
            inbound_messages.keep(tx, edit, {"outcome": "command", "session_id": found.session.id}, now)
            return _shown(tx, found, principal)

        overview = await self._store.engine.arun(Write(run))
        self._store.indexer.soon()
        return overview


def _copied_before(
    tx: Transaction, view: ViewWithin, parent: SessionRow, at: int, principal: Principal, now: int
) -> SessionRow:
    if transcript_queries.question_at(tx, parent.no, at) is None:
        raise InvalidInput(f"there is no message number {at} of a person in this conversation", at=at)
    earlier = events.messages(tx, parent.no, before=at, limit=1)
    if earlier:
        return sessions.get(tx, view.fork(parent.session.id, earlier[0].seq).id)
    return _emptied(tx, parent, at, principal, now)


def _emptied(tx: Transaction, parent: SessionRow, at: int, principal: Principal, now: int) -> SessionRow:
    """A conversation that begins where another does, with nothing of it."""
    mine = people.get(tx, principal.person_id)
    if mine is None:
        raise NoSuchSession
    place = sessions.Place(
        key=parent.session.key,
        source=parent.session.origin,
        audience_no=mine.audience_no if parent.session.shared else parent.audience_no,
        shared=False,
    )
    no = sessions.create(tx, place, StartReason.FORK, now, previous=parent.session, parent_no=parent.no)
    found = sessions.by_number(tx, no)
    events.note(tx, parent.no, EventKind.FORKED, now, principal.person_id, into=found.session.id, at=at)
    return found


def _shown(tx: Transaction, found: SessionRow, principal: Principal) -> Overview:
    return transcript_queries.overviews(tx, [sessions.by_number(tx, found.no).session], principal.person_id)[0]
