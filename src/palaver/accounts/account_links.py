"""A person's linked accounts on the web page: what /link and /unlink do in a chat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from palaver.accounts import link_requests, linking, pairing
from palaver.core.engines.base import Read, Write
from palaver.core.errors import NotFound
from palaver.core.operation import AsyncRunner, Operations, operation
from palaver.people import linked_rows, table as people
from palaver.people.pairing_model import LINK_CODE_LIFETIME
from palaver.sessions.conversations import build_person_source

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.accounts.link_requests import LinkResult, PendingLink
    from palaver.core.engines.base import Transaction, Work
    from palaver.core.ids import PersonId
    from palaver.people.account import SignedInPerson
    from palaver.people.model import Person
    from palaver.sessions.store import SessionStore


@dataclass(frozen=True, slots=True)
class LinkedAccount:
    """A chat account of a person."""

    platform: str
    account: str
    is_linked: bool  # it was linked to the person's others, and has back what it had when it is unlinked


@dataclass(frozen=True, slots=True)
class LinkOverview:
    """A person's chat accounts, and the link that waits for them."""

    accounts: tuple[LinkedAccount, ...]
    pending: PendingLink | None


@dataclass(frozen=True, slots=True)
class NewLinkCode:
    """A code to send from another account; it is shown once."""

    code: str
    expires_at: datetime


class AccountLinks(Operations[AsyncRunner]):
    """Links and unlinks accounts of the person who is signed in on the page."""

    def __init__(self, store: SessionStore) -> None:
        super().__init__(AsyncRunner(store.engine))
        self._clock = store.clock
        self._config = store.config

    @operation
    def load(self, person: Person) -> Work[LinkOverview]:
        now = self._clock.now()

        def run(tx: Transaction) -> LinkOverview:
            accounts = tuple(
                LinkedAccount(
                    str(each.platform),
                    each.account,
                    linked_rows.find_origin(tx, each.platform, each.account) is not None,
                )
                for each in linking.list_chat_accounts(tx, person.id)
            )
            return LinkOverview(accounts, link_requests.find_pending(tx, build_person_source(person), person, now))

        return Read(run)

    @operation
    def create_code(self, caller: SignedInPerson) -> Work[NewLinkCode]:
        """Create a code to send from another account; the one before no longer works, and it ends with the sign-in."""
        now = self._clock.now()

        def run(tx: Transaction) -> NewLinkCode:
            current = _get_person(tx, caller.person.id)
            source = build_person_source(current)
            code = link_requests.create_link_code(tx, current.id, source, now, issued_by=caller.credential_id)
            return NewLinkCode(code, now + LINK_CODE_LIFETIME)

        return Write(run)

    @operation
    def use(self, person: Person, text: str) -> Work[LinkResult]:
        """Use a code of another account, or `confirm` or `cancel` the link that waits."""
        now = self._clock.now()

        def run(tx: Transaction) -> LinkResult:
            current = _get_person(tx, person.id)
            return pairing.use_code(tx, text, build_person_source(current), current, self._config, now)

        return Write(run)

    @operation
    def unlink(self, person: Person, account: str) -> Work[None]:
        """Take a chat account, `platform` or `platform:id`, out of the person. It gets back what it had."""
        now = self._clock.now()

        def run(tx: Transaction) -> None:
            current = _get_person(tx, person.id)
            identity = linking.find_linked_account(tx, current.id, account)
            linking.unlink_account(tx, current, identity, self._config, now)

        return Write(run)


def _get_person(tx: Transaction, person_id: PersonId) -> Person:
    row = people.find_by_id(tx, person_id)
    if row is None:
        raise NotFound("This account is closed.")
    return row.person
