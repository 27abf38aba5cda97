"""Stores what a platform reports besides new messages: edits, deletions, reactions, moved chats, members.

Every update is found by the platform's own ids within one account and one chat, so it can only touch what came from
there or was sent there. An update about something that is not stored is ignored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from palaver.accounts import access, sender_merge
from palaver.core.clock import to_micros
from palaver.core.errors import SessionNotFound
from palaver.delivery import accounts_table as platform_accounts, chat_moves, table as deliveries
from palaver.delivery.notices import send_notice_to_address
from palaver.inbox.buttons import find_last_question
from palaver.inbox.receipts import find_received, find_sender
from palaver.people.sender_ids import FOLDED_PLATFORMS
from palaver.sessions import (
    inbound_table as group_messages,
    lanes_table as lanes,
    log_table as events,
    message_edits,
    table as sessions,
    turns_table as turns,
)
from palaver.sessions.delivery import Address, Button
from palaver.sessions.events import EventKind
from palaver.sessions.inbound import (
    ChatMoved,
    MembersChanged,
    MessageDeleted,
    MessageEdited,
    MessageReaction,
    Outcome,
    Receipt,
)
from palaver.sessions.message import MAX_MESSAGE_CHARS

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.agent.current import CurrentSettings
    from palaver.core.engines.base import Transaction
    from palaver.delivery.accounts_table import Fence
    from palaver.inbox.receipts import ReceivedMessage
    from palaver.people.model import Person
    from palaver.sessions.delivery import AccountKey
    from palaver.sessions.inbound import Cursor
    from palaver.sessions.message_edits import MessagePlace
    from palaver.sessions.store import SessionStore

    Update = MessageEdited | MessageDeleted | MessageReaction | ChatMoved | MembersChanged

MAX_EMOJI_CHARS: Final = 64
MAX_NAMED_MEMBERS: Final = 20
_RERUN_OFFER: Final = "You edited your message. Send /retry to answer the edited message."
_DELETED: Final = "The message was deleted before it was answered."
_REMOVED: Final = "Palaver's account was removed from this chat. Add it again to get messages there."
_IGNORED: Final = Receipt(outcome=Outcome.IGNORED)
_RECORDED: Final = Receipt(outcome=Outcome.RECORDED)


class UpdateHandler:
    """Stores updates, inside a transaction."""

    def __init__(self, store: SessionStore, settings: CurrentSettings) -> None:
        self._store = store
        self._settings = settings

    def handle(self, tx: Transaction, update: Update, now: datetime) -> Receipt:
        if not isinstance(update, ChatMoved):  # which names ids that the person had before
            source = sender_merge.merge_source(tx, update.source, self._store.config, now)
            update = replace(update, source=source)
        match update:
            case MessageEdited():
                return self._edit(tx, update, to_micros(now))
            case MessageDeleted():
                return self._delete(tx, update, to_micros(now))
            case MessageReaction():
                return self._react(tx, update, to_micros(now))
            case ChatMoved():
                return self._move_chat(tx, update, now)
            case MembersChanged():
                return self._change_members(tx, update, now)

    # -- messages ------------------------------------------------------------------------------------------

    def _edit(self, tx: Transaction, update: MessageEdited, now: int) -> Receipt:
        source, message_id, text = update.source, update.message_id, update.content
        sender = find_sender(source)
        if group_messages.edit(tx, source, message_id, sender, text):
            return _RECORDED
        received = find_received(tx, source, message_id)
        if received is None or received.sender != sender or not text.strip() or len(text) > MAX_MESSAGE_CHARS:
            return _IGNORED
        speaker = access.find_speaker(tx, source, self._settings.rules)
        if speaker is None or not speaker.can_speak:
            return _IGNORED
        place = message_edits.find_current_place(tx, received.place, message_id)
        previous_edit = message_edits.find_edit(tx, place)
        actor = message_edits.Actor(str(source.platform), speaker.person.id if speaker.person else None)
        if not message_edits.edit_message(tx, place, text, actor, now):
            return _IGNORED
        if self._should_offer_rerun(tx, place, previous_edit):
            _offer_rerun(tx, update, received, place, now)
        return Receipt(outcome=Outcome.RECORDED, session_id=received.session_id)

    def _should_offer_rerun(self, tx: Transaction, place: MessagePlace, previous_edit: int | None) -> bool:
        """Whether the edited message is the last one of its conversation and was answered with its text of before."""
        session_no, seq = place
        if turns.is_queued_at(tx, session_no, seq) or find_last_question(tx, session_no) != seq:
            return False
        last_message = events.list_messages(tx, session_no, limit=1)[-1]
        return previous_edit is None or previous_edit < last_message.seq  # otherwise it was offered already

    def _delete(self, tx: Transaction, update: MessageDeleted, now: int) -> Receipt:
        author = find_sender(update.source) if update.is_by_author else None
        if update.is_by_author and author is None:
            return _IGNORED
        if group_messages.delete(tx, update.source, update.message_id, author):
            return _RECORDED
        received = find_received(tx, update.source, update.message_id)
        if received is None or (author is not None and received.sender != author):
            return _IGNORED
        place = message_edits.find_current_place(tx, received.place, update.message_id)
        speaker = access.find_speaker(tx, update.source, self._settings.rules)
        person_id = speaker.person.id if speaker and speaker.person and find_sender(update.source) else None
        actor = message_edits.Actor(str(update.source.platform), person_id)
        if not message_edits.delete_message(tx, place, actor, now, first_seq=received.place.seq):
            return _IGNORED
        previous = events.list_messages(tx, place.session_no, before=place.seq, limit=1)
        previous_seq = previous[0].seq if previous else None
        turns.drop_queued_message(tx, place.session_no, place.seq, previous_seq, now, _DELETED)
        return Receipt(outcome=Outcome.RECORDED, session_id=received.session_id)

    def _react(self, tx: Transaction, update: MessageReaction, now: int) -> Receipt:
        """Record a reaction of a person who may see the conversation; reactions of others are ignored."""
        source, emoji = update.source, update.emoji[:MAX_EMOJI_CHARS]
        speaker = access.find_speaker(tx, source, self._settings.rules)
        received = find_received(tx, source, update.message_id)
        if received is not None:
            place: MessagePlace | None = message_edits.find_current_place(tx, received.place, update.message_id)
        else:
            place = message_edits.find_sent_answer(tx, source, update.message_id)
        person = speaker.person if speaker and speaker.can_speak else None
        if place is None or person is None or not emoji or not _can_see(tx, place, person):
            return _IGNORED
        author = source.user_name or person.name
        reaction = message_edits.Reaction(emoji, update.is_removed, author, person.id)
        return _RECORDED if message_edits.record_reaction(tx, place, reaction, now) else _IGNORED

    # -- chats ---------------------------------------------------------------------------------------------

    def _move_chat(self, tx: Transaction, update: ChatMoved, now: datetime) -> Receipt:
        source = update.source
        if update.new_user_ids and source.platform in FOLDED_PLATFORMS:
            is_moved = sender_merge.move_person(tx, update, self._store.config, now)
        else:
            key = str(source.platform), source.account
            is_moved = chat_moves.move_chat(tx, *key, source.chat_id, update.new_chat_id, to_micros(now))
        return _RECORDED if is_moved else _IGNORED

    def _change_members(self, tx: Transaction, update: MembersChanged, now: datetime) -> Receipt:
        if update.is_own_account:
            address = str(Address.from_source(update.source))
            if update.left:
                deliveries.mark_target_dead(tx, address, _REMOVED, to_micros(now))
            else:
                deliveries.mark_target_alive(tx, address)
            return _RECORDED
        # Only a session that everybody there shares: who joins a chat is no matter of one person's conversation.
        source = replace(update.source, user_id=None, user_name=None, user_id_alt=None)
        row = lanes.find_current_session(tx, lanes.resolve_key(tx, self._store.build_arrival(source, now)))
        if row is None or not row.session.shared:
            return _IGNORED
        facts = {"joined": list(update.joined[:MAX_NAMED_MEMBERS]), "left": list(update.left[:MAX_NAMED_MEMBERS])}
        last = events.list_events(tx, row.no, after=events.get_last_seq(tx, row.no) - 1)
        if last and last[0].kind is EventKind.MEMBERS_CHANGED and last[0].facts == facts:
            return Receipt(outcome=Outcome.DUPLICATE, session_id=row.session.id)
        events.append_event(tx, row.no, EventKind.MEMBERS_CHANGED, to_micros(now), None, **facts)
        return Receipt(outcome=Outcome.RECORDED, session_id=row.session.id)


def _can_see(tx: Transaction, place: MessagePlace, person: Person) -> bool:
    try:
        sessions.get_visible(tx, sessions.get_by_no(tx, place.session_no).session.id, person.id)
    except SessionNotFound:
        return False
    return True


def _offer_rerun(
    tx: Transaction, update: MessageEdited, received: ReceivedMessage, place: MessagePlace, now: int
) -> None:
    """Offer to answer an edited message again."""
    send_notice_to_address(
        tx,
        str(Address.from_source(update.source)),
        _RERUN_OFFER,
        now,
        session_no=place.session_no,
        reply_to=update.message_id,
        buttons=(Button("Answer again", f"rerun:{received.session_id}:{place.seq}"),),
    )


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The account that reports an update; without a fence and a cursor there is nothing to check and to store."""

    account: AccountKey
    fence: Fence | None = None
    cursor: Cursor | None = None

    @property
    def is_empty(self) -> bool:
        return self.fence is None and self.cursor is None

    def save(self, tx: Transaction, now: int) -> None:
        """Store the cursor. Raises LeaseLost if another process runs the account now."""
        if self.fence is not None:
            platform_accounts.check_fence(tx, self.fence)
        if self.cursor is not None:
            platform_accounts.save(tx, self.account, self.cursor, now)
