"""People, as an owner of this gateway sees and changes them.

Always true: whoever sits at the terminal is and stays an owner, so there always is one; a guest cannot sign in;
whoever loses their role or is removed is signed out in the same moment, everywhere.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from palaver.domain.account import INVITATION_LASTS, Invitation, clean_name, digest, new_secret
from palaver.domain.errors import InvalidInput, NotAllowed, NotFound, OwnerOnly
from palaver.domain.person import Role
from palaver.domain.text import is_storable
from palaver.services.operation import Awaiting, operation
from palaver.storage import accounts, people, people_queries
from palaver.storage.engines.base import Read, Write
from palaver.storage.timestamps import from_micros, to_micros

if TYPE_CHECKING:
    from palaver.domain.account import Member
    from palaver.domain.clock import Clock
    from palaver.domain.person import Principal
    from palaver.domain.session import Page
    from palaver.storage.engines.base import Engine, Transaction, Work


class People(Awaiting):
    """Everybody this gateway knows."""

    def __init__(self, engine: Engine, clock: Clock, principal: Principal) -> None:
        if principal.role is not Role.OWNER or principal.job_id is not None:
            raise OwnerOnly
        self._engine = engine
        self._clock = clock

    @operation
    def list(self, *, role: Role | None = None, limit: int = 100, cursor: str | None = None) -> Work[Page[Member]]:
        """A page of people, those who came last first."""
        return Read(lambda tx: people_queries.listed(tx, role, limit, cursor))

    @operation
    def get(self, person_id: str) -> Work[Member]:
        """Somebody by their id."""
        return Read(lambda tx: _known(tx, person_id))

    @operation
    def add(self, name: str, role: Role = Role.MEMBER) -> Work[Invitation]:
        """Somebody new who can sign in, and the secret of a link that lets them do it for the first time."""
        clean = clean_name(name)
        if role is Role.GUEST:
            raise InvalidInput("role: a guest cannot sign in; make them a member or an owner")
        now = to_micros(self._clock.now())
        secret = new_secret()

        def run(tx: Transaction) -> Invitation:
            person = people.add(tx, clean, role, now).person
            accounts.open_account(tx, person, now)
            ends = accounts.add_link(tx, person.id, digest(secret), now, INVITATION_LASTS)
            return Invitation(member=_known(tx, person.id), secret=secret, expires_at=from_micros(ends))

        return Write(run)

    @operation
    def link(self, person_id: str) -> Work[Invitation]:
        """The secret of a link that signs somebody in once; links made before are worthless from now on."""
        now = to_micros(self._clock.now())
        secret = new_secret()

        def run(tx: Transaction) -> Invitation:
            person = _known(tx, person_id).person
            if person.role is Role.GUEST:
                raise NotAllowed(f"{person.name} is a guest, and guests cannot sign in; make them a member first")
            accounts.open_account(tx, person, now)
            accounts.drop_links(tx, person.id)
            ends = accounts.add_link(tx, person.id, digest(secret), now, INVITATION_LASTS)
            return Invitation(member=_known(tx, person.id), secret=secret, expires_at=from_micros(ends))

        return Write(run)

    @operation
    def change(self, person_id: str, *, name: str | None = None, role: Role | None = None) -> Work[Member]:
        """Give somebody another name or another role; a guest is signed out everywhere."""
        clean = None if name is None else clean_name(name)

        def run(tx: Transaction) -> Member:
            member = _known(tx, person_id)
            if role is not None and role is not member.person.role:
                _check_not_at_terminal(member)
                people_queries.set_role(tx, member.person.id, role)
                if role is Role.GUEST:
                    accounts.close_account(tx, member.person.id)
            if clean is not None:
                accounts.rename(tx, member.person.id, clean)
            return people_queries.get(tx, member.person.id) or _shut_out(member)

        return Write(run)

    @operation
    def remove(self, person_id: str) -> Work[None]:
        """Make somebody a stranger again: they cannot sign in, and their role is gone. What they said stays."""

        def run(tx: Transaction) -> None:
            member = _known(tx, person_id)
            _check_not_at_terminal(member)
            people_queries.set_role(tx, member.person.id, Role.GUEST)
            accounts.close_account(tx, member.person.id)

        return Write(run)


def _known(tx: Transaction, person_id: str) -> Member:
    member = people_queries.get(tx, person_id) if is_storable(person_id) else None
    if member is None:
        raise NotFound(f"there is no person {person_id}")
    return member


def _shut_out(member: Member) -> Member:
    """Somebody who came by the web alone and is a guest now: nobody lists them any more."""
    return replace(member, person=replace(member.person, role=Role.GUEST), ways=None, seen_at=None)


def _check_not_at_terminal(member: Member) -> None:
    if member.at_terminal:
        raise NotAllowed("whoever sits at the terminal of this gateway is its owner, and stays it")
