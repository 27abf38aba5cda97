"""Merges the ids of one person: on WhatsApp a message may carry a phone number, a LID or a BSUID, or two of them.

A person is stored under one of their ids, the main id, and their direct messages are the chat with that id. Whatever id
a later message carries, its source is rewritten to the main id before anything else looks at it.

| what the platform names | what follows |
|---|---|
| two ids, one of them known | the other one is remembered as the same person's |
| two ids, known as two people | these are one person now, and so are their conversations |
| a number with another lasting id than before | it has a new holder: it is taken from the person who had it |
| a known lasting id with a new number | the person has a new number: the old one belongs to no person |
| a changed number | the person and the chat go on under the new ids |

Always true: only ids that the platform itself has put on a message count, never what a person writes; a number that has
changed hands gives its new holder nothing of the old one (decision 27).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from palaver.accounts import linking, merge_table as person_merge
from palaver.core.clock import to_micros
from palaver.core.source import ChatType, SessionSource
from palaver.delivery import accounts_table as platform_accounts, chat_moves
from palaver.people import access_table as sender_ids, table as people
from palaver.people.model import ROLE_RANKS, Identity
from palaver.people.sender_ids import SenderId, list_sender_ids, parse_sender_ids

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from palaver.core.engines.base import Transaction
    from palaver.people.table import PersonRow
    from palaver.sessions.gateway_config import GatewayConfig
    from palaver.sessions.inbound import ChatMoved


def find_merged_source(tx: Transaction, source: SessionSource) -> SessionSource | None:
    """Return the source under the main id of its person; None if something has to be stored first."""
    ids = list_sender_ids(source)
    if not ids:
        return source
    known = sender_ids.find_main_ids(tx, source.platform, ids)
    if not known:
        return _keep_all_ids(source, ids)
    main_id = known.get(ids[0].id, "")
    is_settled = len(known) == len(ids) and set(known.values()) == {main_id}
    return _use_main_id(source, ids, main_id) if is_settled and not _has_new_number(source, ids, main_id) else None


def merge_source(tx: Transaction, source: SessionSource, config: GatewayConfig, now: datetime) -> SessionSource:
    """Return the source under the main id of its person, and remember the ids that are new.

    Until the transaction ends, no id on this platform changes hands: the answer goes to the address that is chosen now.
    """
    if not list_sender_ids(source):
        return source
    _lock_ids(tx, source.platform)
    found = find_merged_source(tx, source)
    return found if found is not None else _SenderMerge(tx, source, config, now).merge()


def move_person(tx: Transaction, update: ChatMoved, config: GatewayConfig, now: datetime) -> bool:
    """Let a person who has changed their number go on under their new ids; return whether they were known."""
    source = replace(update.source, chat_type=ChatType.DM)
    _lock_ids(tx, source.platform)
    return _SenderMerge(tx, source, config, now).move(parse_sender_ids(source.platform, update.new_user_ids))


def _lock_ids(tx: Transaction, platform: str) -> None:
    tx.lock_name(f"sender ids {platform}")


class _SenderMerge:
    """Stores what one message says about the ids of its sender."""

    def __init__(self, tx: Transaction, source: SessionSource, config: GatewayConfig, now: datetime) -> None:
        self._tx = tx
        self._source = source
        self._platform = str(source.platform)
        self._config = config
        self._now = to_micros(now)
        self._ids = list_sender_ids(source)
        self._lasting = [each.id for each in self._ids if each.is_lasting]

    def merge(self) -> SessionSource:
        if (late_id := self._find_replaced()) is not None:
            return _use_main_id(self._source, self._ids, late_id)
        main_id = self._find_person()
        if main_id is None:
            return _keep_all_ids(self._source, self._ids)
        if _has_new_number(self._source, self._ids, main_id):
            number = self._ids[0].id
            self._rename(main_id, number)
            main_id = number
        self._save(self._ids, main_id)
        return _use_main_id(self._source, self._ids, main_id)

    def move(self, new_ids: Sequence[SenderId]) -> bool:
        old_main = self._find_former_holder()
        if old_main is None or not new_ids or self._find_replaced() is not None:
            return False  # unknown, or it is known already
        self._save([each for each in self._ids if each.is_lasting], old_main)  # what carries one comes late
        for new_id in sorted(new_ids, key=lambda each: not each.is_lasting):
            other = sender_ids.find_main_ids(self._tx, self._platform, [new_id]).get(new_id.id)
            # A person with the same lasting id has written under the new ids before this came.
            if other in {None, old_main} or (new_id.is_lasting and self._unite(str(other), old_main)):
                continue
            self._release(str(other), new_id.id)
        sender_ids.mark_replaced(self._tx, self._platform, old_main)
        new_main = new_ids[0].id
        if old_main != new_main:
            self._rename(old_main, new_main)
        self._save(new_ids, new_main)
        return True

    def _save(self, ids: Sequence[SenderId], main_id: str) -> None:
        """Store the ids of a person. Another number that they had belongs to no person then: a person has one."""
        sender_ids.save_ids(self._tx, self._platform, ids, main_id, self._now)
        numbers = {each.id for each in ids if not each.is_lasting}
        if not numbers or len(numbers) == len(ids):
            return
        for text in sender_ids.list_ids(self._tx, self._platform, main_id):
            if text != main_id and text not in numbers and _is_number(self._platform, text):
                sender_ids.remove(self._tx, self._platform, text)

    def _find_former_holder(self) -> str | None:
        """Return the main id of the person who had these ids. The number alone may be another person's by now."""
        known = sender_ids.find_main_ids(self._tx, self._platform, self._ids)
        for each in sorted(self._ids, key=lambda each: not each.is_lasting):
            main_id = known.get(each.id)
            if main_id is not None:
                return None if not each.is_lasting and self._has_other_lasting_id(main_id) else main_id
        return None

    def _find_replaced(self) -> str | None:
        """Return the main id of a person whose lasting id here is an old one: what carries it was written before."""
        return sender_ids.find_replaced(self._tx, self._platform, self._lasting[0]) if self._lasting else None

    def _find_person(self) -> str | None:
        """Return the main id of the person with these ids; None for one who is not stored."""
        known = sender_ids.find_main_ids(self._tx, self._platform, self._ids)
        main_id = next((known[each] for each in self._lasting if each in known), None)
        for number in (each.id for each in self._ids if not each.is_lasting):
            holder = known.get(number)
            if holder is None or holder == main_id:
                continue
            if self._has_other_lasting_id(holder):
                self._release(holder, number)
            elif main_id is None:
                main_id = holder
            elif self._has_number(main_id) or not self._unite(holder, main_id):
                self._release(holder, number)  # it was another person's before it became theirs
        return main_id

    def _has_other_lasting_id(self, main_id: str) -> bool:
        if not self._lasting:
            return False
        return sender_ids.find_lasting_id(self._tx, self._platform, main_id, other_than=self._lasting) is not None

    def _has_number(self, main_id: str) -> bool:
        ids = sender_ids.list_ids(self._tx, self._platform, main_id)
        return any(_is_number(self._platform, each) for each in ids)

    def _release(self, main_id: str, released_id: str) -> None:
        """Take an id, mostly a number, from the person who had it: it belongs to another person now."""
        if main_id == released_id:
            lasting_id = sender_ids.find_lasting_id(self._tx, self._platform, main_id, other_than={released_id})
            # Without another id of theirs, nothing can be sent to them any more, but their conversations stay theirs.
            self._rename(main_id, lasting_id or f"{released_id}@former.{self._now}")
        sender_ids.remove(self._tx, self._platform, released_id)

    def _unite(self, from_id: str, to_id: str) -> bool:
        """Make two people one; False if both can sign in, which only an owner can decide."""
        tx, platform = self._tx, self._platform
        other, survivor = people.find_by_account(tx, platform, from_id), people.find_by_account(tx, platform, to_id)
        if other is None or survivor is None or linking.can_both_sign_in(tx, other, survivor):
            return False
        self._move_chats(from_id, to_id, other)
        sender_ids.change_main_id(tx, platform, from_id, to_id)
        people.remove_identity(tx, other.person.id, Identity(self._source.platform, from_id))
        if other.person.id != survivor.person.id:
            self._merge(survivor, other)
        return True

    def _merge(self, survivor: PersonRow, other: PersonRow) -> None:
        """Both have the higher role: the platform says that they are the same person."""
        role = max(survivor.person.role, other.person.role, key=ROLE_RANKS.__getitem__)
        if person_merge.can_sign_in(self._tx, other.person.id):
            survivor, other = other, survivor
        linking.merge_people(self._tx, survivor, other, self._config, self._now)
        people.set_role(self._tx, survivor.person.id, role)

    def _rename(self, old_id: str, new_id: str) -> None:
        """Store a person under another id. A number that they had belongs to no person then."""
        row = people.find_by_account(self._tx, self._platform, old_id)
        if row is None:
            return
        people.change_account(self._tx, self._platform, old_id, new_id)
        self._move_chats(old_id, new_id, row)
        if _is_number(self._platform, old_id):
            sender_ids.remove(self._tx, self._platform, old_id)

    def _move_chats(self, old_id: str, new_id: str, row: PersonRow) -> None:
        rows = platform_accounts.list_accounts(self._tx)
        accounts = {row.account for row in rows if row.platform == self._platform}
        for account in sorted({*accounts, self._source.account}):
            chat_moves.move_chat(self._tx, self._platform, account, old_id, new_id, self._now, keeps_message_ids=True)
        chat_moves.move_participant(self._tx, row.person.id, self._platform, old_id, new_id, self._now)


def _has_new_number(source: SessionSource, ids: Sequence[SenderId], main_id: str) -> bool:
    """Return whether a person is stored under a number, and the platform names another one with their lasting id."""
    has_other = not ids[0].is_lasting and ids[0].id != main_id and any(each.is_lasting for each in ids)
    return has_other and _is_number(source.platform, main_id)


def _is_number(platform: str, text: str) -> bool:
    return not any(each.is_lasting for each in parse_sender_ids(platform, [text]))


def _use_main_id(source: SessionSource, ids: Sequence[SenderId], main_id: str) -> SessionSource:
    return replace(_use_main_chat(source, ids, main_id), user_id=main_id, user_id_alt=None)


def _keep_all_ids(source: SessionSource, ids: Sequence[SenderId]) -> SessionSource:
    """Keep all ids of a person who is not stored: if they get access, all of them are remembered."""
    return _use_main_chat(source, ids, ids[0].id)


def _use_main_chat(source: SessionSource, ids: Sequence[SenderId], main_id: str) -> SessionSource:
    if source.chat_type is not ChatType.DM:
        return source
    chat_ids = {each.id for each in parse_sender_ids(source.platform, (source.chat_id, source.chat_id_alt))}
    is_with_sender = not chat_ids or not chat_ids.isdisjoint({each.id for each in ids})
    return replace(source, chat_id=main_id, chat_id_alt=None) if is_with_sender else source
