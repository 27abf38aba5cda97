"""The administration of people by an owner of this gateway.

Always true: the person at the terminal is an owner and stays one, so there is always an owner; a guest cannot sign in;
a person who becomes a guest or is removed is signed out everywhere, has no access to direct messages any more, their
jobs are paused, the runs of these are stopped and their messages that wait are not answered, in the same transaction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from palaver.accounts import linking, pairing
from palaver.core.clock import from_micros, to_micros
from palaver.core.engines.base import Read, Transaction, Work, Write
from palaver.core.errors import InvalidInput, NotAllowed, NotFound, OwnerRequired
from palaver.core.operation import AsyncRunner, Operations, Page, operation
from palaver.core.text import is_storable
from palaver.core.texts import say
from palaver.jobs import runs_table as job_runs, table as jobs
from palaver.jobs.model import NO_ACCESS_REASON
from palaver.people import (
    access_table as chat_access,
    account_table as accounts,
    pairing_table as pairing_requests,
    table as people,
)
from palaver.people.model import (
    INVITATION_LIFETIME,
    Invitation,
    Member,
    Principal,
    Role,
    check_is_owner,
    clean_person_name,
    generate_secret,
    hash_secret,
)
from palaver.people.pairing_table import MAX_PENDING_REQUESTS, Grant, PairingRequest
from palaver.sessions import turn_leases as turn_access, turns_table as turns
from palaver.sessions.turn import StopRequest

if TYPE_CHECKING:
    from collections.abc import Sequence

    from palaver.core.ids import PersonId
    from palaver.sessions.store import SessionStore


class People(Operations[AsyncRunner]):
    """All people of this gateway; only an owner can open it."""

    def __init__(self, store: SessionStore, principal: Principal) -> None:
        check_is_owner(principal)
        super().__init__(AsyncRunner(store.engine))
        self._clock = store.clock
        self._config = store.config
        self._principal = principal

    @operation
    def list(self, *, role: Role | None = None, limit: int = 100, cursor: str | None = None) -> Work[Page[Member]]:
        """List people, newest first."""
        return Read(lambda tx: people.list_people(tx, role, limit, cursor))

    @operation
    def get(self, person_id: str) -> Work[Member]:
        return Read(lambda tx: _get_member(tx, person_id))

    @operation
    def add(self, name: str, role: Role = Role.MEMBER, *, issued_by: str | None = None) -> Work[Invitation]:
        """Add a person who can sign in, with the secret of a link for their first sign-in.

        `issued_by` is the device of the owner that gets the link: when they sign it out, the link stops working.
        """
        clean = clean_person_name(name)
        if role is Role.GUEST:
            raise InvalidInput(
                say("accounts.no_sign_in_for_guests", "role: a guest can't sign in. Add a member or an owner.")
            )
        now = to_micros(self._clock.now())
        secret = generate_secret()

        def run(tx: Transaction) -> Invitation:
            person = people.add_person(tx, clean, role, now).person
            accounts.open_account(tx, person, now)
            return _invite(tx, person.id, secret, now, issued_by)

        return Write(run)

    @operation
    def create_link(self, person_id: str, *, issued_by: str | None = None) -> Work[Invitation]:
        """Create a link that signs a person in once; their earlier links no longer work. `issued_by` as in `add`."""
        now = to_micros(self._clock.now())
        secret = generate_secret()

        def run(tx: Transaction) -> Invitation:
            person = _get_member(tx, person_id).person
            if person.role is Role.GUEST:
                raise NotAllowed(
                    say(
                        "accounts.guest_cannot_sign_in",
                        "{name} is a guest and can't sign in. Make them a member first.",
                        name=person.name,
                    )
                )
            accounts.open_account(tx, person, now)
            accounts.delete_sign_in_links(tx, person.id)
            return _invite(tx, person.id, secret, now, issued_by)

        return Write(run)

    @operation
    def update(self, person_id: str, *, name: str | None = None, role: Role | None = None) -> Work[Member]:
        """Change a person's name or role; a person who becomes a guest is signed out everywhere."""
        clean = None if name is None else clean_person_name(name)
        now = to_micros(self._clock.now())

        def run(tx: Transaction) -> Member:
            member = _get_member(tx, person_id)
            if role is not None and role is not member.person.role:
                _check_not_at_terminal(member)
                people.set_role(tx, member.person.id, role)
                if role is Role.GUEST:
                    _revoke_access(tx, member.person.id, self._principal.person_id, now)
            if clean is not None:
                accounts.rename_person(tx, member.person.id, clean)
            return people.find_person(tx, member.person.id) or _to_signed_out_guest(member)

        return Write(run)

    @operation
    def remove(self, person_id: str) -> Work[None]:
        """Make a person a guest again, who cannot sign in. Their messages stay."""
        now = to_micros(self._clock.now())

        def run(tx: Transaction) -> None:
            member = _get_member(tx, person_id)
            _check_not_at_terminal(member)
            people.set_role(tx, member.person.id, Role.GUEST)
            _revoke_access(tx, member.person.id, self._principal.person_id, now)

        return Write(run)

    @operation
    def unlink(self, person_id: str, account: str) -> Work[Member]:
        """Take a chat account, `platform` or `platform:id`, out of a person, and tell it. It gets back what it had."""
        now = self._clock.now()

        def run(tx: Transaction) -> Member:
            member = _get_member(tx, person_id)
            identity = linking.find_linked_account(tx, member.person.id, account)
            linking.unlink_account(tx, member.person, identity, self._config, now)
            return people.find_person(tx, member.person.id) or member

        return Write(run)

    # -- requests for access -------------------------------------------------------------------------------

    @operation
    def list_requests(self) -> Work[Sequence[PairingRequest]]:
        """List the strangers who ask for access, the oldest request first."""
        now = to_micros(self._clock.now())
        return Read(lambda tx: pairing_requests.list_pending(tx, now, MAX_PENDING_REQUESTS))

    @operation
    def approve(self, request: str, grant: Grant) -> Work[Member]:
        """Approve the request with this id or code, and tell the stranger; returns who has access now."""
        now = self._clock.now()

        def run(tx: Transaction) -> Member:
            approver = people.find_by_id(tx, self._principal.person_id)
            if approver is None:
                raise OwnerRequired
            found = pairing.get_request(tx, request, now)
            person = pairing.approve_request(tx, found, grant, approver.person, self._config, now)
            return _get_member(tx, person.id)

        return Write(run)

    @operation
    def deny(self, request: str) -> Work[PairingRequest]:
        """Deny the request with this id or code, and tell the stranger."""
        now = self._clock.now()

        def run(tx: Transaction) -> PairingRequest:
            found = pairing.get_request(tx, request, now)
            pairing.deny_request(tx, found, now)
            return found

        return Write(run)


def _invite(tx: Transaction, person_id: PersonId, secret: str, now: int, issued_by: str | None) -> Invitation:
    expires_at = accounts.add_sign_in_link(
        tx, person_id, hash_secret(secret), now, INVITATION_LIFETIME, issued_by=issued_by
    )
    return Invitation(member=_get_member(tx, person_id), secret=secret, expires_at=from_micros(expires_at))


def _get_member(tx: Transaction, person_id: str) -> Member:
    member = people.find_person(tx, person_id) if is_storable(person_id) else None
    if member is None:
        raise NotFound(f"There is no person {person_id}.")
    return member


def _revoke_access(tx: Transaction, person_id: PersonId, revoked_by: PersonId, now: int) -> None:
    """Sign a person out everywhere, end their access to direct messages, pause their jobs, stop what runs for them."""
    accounts.close_account(tx, person_id)
    chat_access.revoke_from_person(tx, person_id)
    jobs.pause_all(tx, person_id, NO_ACCESS_REASON, now)
    for session_no in job_runs.list_running_sessions(tx, person_id):
        turns.request_stop(tx, session_no, StopRequest.STOP)
        turns.cancel_queued(tx, session_no, now, NO_ACCESS_REASON)
    turn_access.end_open_turns(tx, person_id, revoked_by, now)


def _to_signed_out_guest(member: Member) -> Member:
    """Build the answer for a person without a chat account who is a guest now: queries no longer return them."""
    return replace(member, person=replace(member.person, role=Role.GUEST), sign_in_methods=None, last_seen_at=None)


def _check_not_at_terminal(member: Member) -> None:
    if member.uses_terminal:
        raise NotAllowed(
            say(
                "accounts.terminal_person_is_owner",
                "The person at the terminal of this gateway is always an owner.",
            )
        )
