"""The administration of people by an owner of this gateway.

Always true: the person at the terminal is an owner and stays one, so there is always an owner; a guest cannot sign in;
a person who becomes a guest or is removed is signed out everywhere, has no access to direct messages any more, their
jobs are paused, the runs of these are stopped and their messages that wait are not answered, in the same transaction.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

from palaver.accounts import linking, pairing
from palaver.core.clock import check_timezone, from_micros, to_micros
from palaver.core.errors import InvalidInput, NotAllowed, NotFound, OwnerRequired
from palaver.core.operation import Operations, Page, read_operation, write_operation
from palaver.core.text import is_storable
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
    Person,
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

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId
    from palaver.sessions.store import SessionStore

R = TypeVar("R")


class People(Operations[R]):
    """All people of this gateway; only an owner can open it."""

    def __init__(self, runner: R, store: SessionStore, principal: Principal) -> None:
        check_is_owner(principal)
        super().__init__(runner)
        self._clock = store.clock
        self._config = store.config
        self._principal = principal

    @read_operation
    def list(
        self, tx: Transaction, *, role: Role | None = None, limit: int = 100, cursor: str | None = None
    ) -> Page[Member]:
        """List people, newest first."""
        return people.list_people(tx, role, limit, cursor)

    @read_operation
    def get(self, tx: Transaction, person_id: str) -> Member:
        return _get_member(tx, person_id)

    @write_operation
    def add(self, tx: Transaction, name: str, role: Role = Role.MEMBER, *, issued_by: str | None = None) -> Invitation:
        """Add a person who can sign in, with the secret of a link for their first sign-in.

        `issued_by` is the device of the owner that gets the link: when they sign it out, the link stops working.
        """
        clean = clean_person_name(name)
        if role is Role.GUEST:
            raise InvalidInput.say(
                "accounts.no_sign_in_for_guests", "role: a guest can't sign in. Add a member or an owner."
            )
        now = self._now()
        person = people.add_person(tx, clean, role, now).person
        return _invite(tx, person, now, issued_by)

    @write_operation
    def create_link(self, tx: Transaction, person_id: str, *, issued_by: str | None = None) -> Invitation:
        """Create a link that signs a person in once; their earlier links no longer work. `issued_by` as in `add`."""
        person = _get_member(tx, person_id).person
        check_can_sign_in(person)
        return _invite(tx, person, self._now(), issued_by)

    @write_operation
    def update(self, tx: Transaction, person_id: str, *, name: str | None = None, role: Role | None = None) -> Member:
        """Change a person's name or role; a person who becomes a guest is signed out everywhere."""
        clean = None if name is None else clean_person_name(name)
        member = _get_member(tx, person_id)
        if role is not None and role is not member.person.role:
            self._change_role(tx, member, role)
        if clean is not None:
            accounts.rename_person(tx, member.person.id, clean)
        # A person without a chat account who is a guest now is listed no more.
        guest = replace(member.person, role=Role.GUEST)
        signed_out = replace(member, person=guest, sign_in_methods=None, last_seen_at=None)
        return people.find_person(tx, member.person.id) or signed_out

    @write_operation
    def set_timezone(self, tx: Transaction, person_id: str, timezone: str | None) -> Member:
        """Set a person's time zone by its IANA name; None: the gateway's."""
        member = _get_member(tx, person_id)
        people.set_timezone(tx, member.person.id, None if timezone is None else check_timezone(timezone))
        return _get_member(tx, person_id)

    @write_operation
    def remove(self, tx: Transaction, person_id: str) -> None:
        """Make a person a guest again, who cannot sign in. Their messages stay."""
        self._change_role(tx, _get_member(tx, person_id), Role.GUEST)

    @write_operation
    def unlink(self, tx: Transaction, person_id: str, account: str) -> Member:
        """Take a chat account, `platform` or `platform:id`, out of a person, and tell it. It gets back what it had."""
        member = _get_member(tx, person_id)
        identity = linking.find_linked_account(tx, member.person.id, account)
        linking.unlink_account(tx, member.person, identity, self._config, self._clock.now())
        return people.find_person(tx, member.person.id) or member

    # -- requests for access -------------------------------------------------------------------------------

    @read_operation
    def list_requests(self, tx: Transaction) -> Sequence[PairingRequest]:
        """List the strangers who ask for access, the oldest request first."""
        return pairing_requests.list_pending(tx, self._now(), MAX_PENDING_REQUESTS)

    @write_operation
    def approve(self, tx: Transaction, request: str, grant: Grant) -> Member:
        """Approve the request with this id or code, and tell the stranger; returns who has access now."""
        now = self._clock.now()
        approver = people.find_by_id(tx, self._principal.person_id)
        if approver is None:
            raise OwnerRequired
        found = pairing.get_request(tx, request, now)
        person = pairing.approve_request(tx, found, grant, approver.person, self._config, now)
        return _get_member(tx, person.id)

    @write_operation
    def deny(self, tx: Transaction, request: str) -> PairingRequest:
        """Deny the request with this id or code, and tell the stranger."""
        now = self._clock.now()
        found = pairing.get_request(tx, request, now)
        pairing.deny_request(tx, found, now)
        return found

    def _now(self) -> int:
        return to_micros(self._clock.now())

    def _change_role(self, tx: Transaction, member: Member, role: Role) -> None:
        if member.uses_terminal:
            raise NotAllowed.say(
                "accounts.terminal_person_is_owner", "The person at the terminal of this gateway is always an owner."
            )
        people.set_role(tx, member.person.id, role)
        if role is Role.GUEST:
            _revoke_access(tx, member.person.id, self._principal.person_id, self._now())


def check_can_sign_in(person: Person) -> None:
    if person.role is Role.GUEST:
        raise NotAllowed.say(
            "accounts.guest_cannot_sign_in",
            "{name} is a guest and can't sign in. Make them a member first.",
            name=person.name,
        )


def _invite(tx: Transaction, person: Person, now: int, issued_by: str | None) -> Invitation:
    """Let a person sign in with a new link; their earlier ones no longer work."""
    secret = generate_secret()
    accounts.open_account(tx, person, now)
    accounts.delete_sign_in_links(tx, person.id)
    expires_at = accounts.add_sign_in_link(
        tx, person.id, hash_secret(secret), now, INVITATION_LIFETIME, issued_by=issued_by
    )
    return Invitation(member=_get_member(tx, person.id), secret=secret, expires_at=from_micros(expires_at))


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
