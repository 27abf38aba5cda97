"""Stores what a platform reports besides new messages: edits, deletions, reactions, moved chats, members.

Every update is found by the platform's own ids within one account and one chat, so it can only touch what came from
there or was sent there. An update about something that is not stored is ignored.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from palaver.accounts import access, sender_merge
from palaver.accounts.commands import LINK, link_account
from palaver.commands.runner import CommandRejected, CommandRunner
from palaver.core.clock import to_micros
from palaver.core.dataclass import dataclass
from palaver.core.errors import NotAllowed, NothingToDo, PalaverError, SessionNotFound
from palaver.core.ids import SessionId
from palaver.core.text import strip_markdown
from palaver.core.texts import say
from palaver.delivery import accounts_table as platform_accounts, chat_moves, table as deliveries
from palaver.delivery.notices import find_reader, send_notice_to_address
from palaver.inbox.receipts import (
    ReceivedMessage,
    build_reader,
    find_duplicate,
    find_received,
    find_sender,
    save_receipt,
    write_receipt,
)
from palaver.jobs import table as jobs
from palaver.jobs.commands import JOBS, confirm_job, reject_job
from palaver.people.sender_ids import FOLDED_PLATFORMS
from palaver.sessions import (
    inbound_table as group_messages,
    lanes_table as lanes,
    log_table as events,
    message_edits,
    table as sessions,
    turns_table as turns,
)
from palaver.sessions.delivery import AccountKey, Address, Button
from palaver.sessions.events import EventKind
from palaver.sessions.inbound import (
    ButtonPressed,
    ChatMoved,
    Cursor,
    Inbound,
    MembersChanged,
    MessageDeleted,
    MessageEdited,
    MessageReaction,
    Outcome,
    Receipt,
    find_delivery_address,
    parse_button,
)
from palaver.sessions.message import MAX_MESSAGE_CHARS
from palaver.sessions.turn import TurnState
from palaver.turns.commands.versions import find_last_question, retry_turn, stop_run

if TYPE_CHECKING:
    from datetime import datetime

    from palaver.agent.profiles import CurrentSettings
    from palaver.commands.command import CommandCall
    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId
    from palaver.delivery.accounts_table import Fence
    from palaver.people.model import Person
    from palaver.sessions.message_edits import MessagePlace
    from palaver.sessions.store import SessionStore
    from palaver.sessions.table import SessionRow

    Update = MessageEdited | MessageDeleted | MessageReaction | ChatMoved | MembersChanged

_NO_ACCESS: Final = say("button.no_access", "You don't have access to this agent.")
_NOT_YOURS: Final = say("button.not_yours", "This button belongs to a conversation that you don't have access to.")
_OUTDATED: Final = say("button.outdated", "The conversation has continued since. Send your message again instead.")
_ENDED: Final = say("button.ended", "This answer is already complete.")
_NOT_YOUR_JOB: Final = say("button.not_your_job", "Only the person who asked for this job can decide.")
_OLD_QUESTION: Final = say(
    "button.old_question", "This was decided, or the agent has changed it since. Answer the newest question instead."
)
_UNKNOWN: Final = say("button.old", "This button no longer works.")
MAX_EMOJI_CHARS: Final = 64
MAX_NAMED_MEMBERS: Final = 20
_RERUN_OFFER: Final = say("edit.offer", "You edited your message. Send /retry to answer the edited message.")
_DELETED: Final = "The message was deleted before it was answered."
_REMOVED: Final = say(
    "chat.account_removed", "Palaver's account was removed from this chat. Add it again to get messages there."
)
_IGNORED: Final = Receipt(outcome=Outcome.IGNORED)
_RECORDED: Final = Receipt(outcome=Outcome.RECORDED)


def build_press_record(press: ButtonPressed) -> Inbound:
    """Build the message under which a press is known when it comes again."""
    return Inbound(source=press.source, content="", message_id=f"press:{press.press_id}")


def _find_call(tx: Transaction, press: ButtonPressed, person: Person) -> tuple[CommandCall, SessionRow | None]:
    action, subject = parse_button(press.data)
    if action in {"link-confirm", "link-cancel"}:
        return link_account.call(code=action.removeprefix("link-"), asked=subject), None
    if action in {"confirm", "reject"}:
        return _find_decision(tx, action, subject, person), None
    if action in {"stop", "retry"}:
        turn = turns.find(tx, subject)
        if turn is None:
            raise CommandRejected(NothingToDo(_UNKNOWN))
        row = _get_session(tx, turn.session_id, person)
        if action == "stop":
            if turn.state is not TurnState.RUNNING:
                raise CommandRejected(NothingToDo(_ENDED))
            return stop_run.call(), row
        _check_last_question(tx, row, turn.input_seq)
        return retry_turn.call(), row
    session_id, _, seq = subject.rpartition(":")
    if action != "rerun" or not seq.isdecimal() or len(seq) > 18:
        raise CommandRejected(NothingToDo(_UNKNOWN))
    row = _get_session(tx, session_id, person)
    _check_last_question(tx, row, int(seq))
    return retry_turn.call(), row


def _find_decision(tx: Transaction, action: str, subject: str, person: Person) -> CommandCall:
    """Return the call that confirms or rejects what the agent has proposed; only the job's person may decide."""
    job_id, _, asked_at = subject.partition(":")
    job_row = jobs.find_by_id(tx, job_id)
    if job_row is None:
        raise CommandRejected(NothingToDo(_UNKNOWN))
    if job_row.job.person_id != person.id:
        raise CommandRejected(NotAllowed(_NOT_YOUR_JOB))
    if job_row.job.asked_at is None or asked_at != str(to_micros(job_row.job.asked_at)):
        raise CommandRejected(NothingToDo(_OLD_QUESTION))
    return (confirm_job if action == "confirm" else reject_job).call(job=job_id)


def _get_session(tx: Transaction, session_id: str, person: Person) -> SessionRow:
    try:
        return sessions.get_visible(tx, SessionId(session_id), person.id)
    except SessionNotFound:
        raise CommandRejected(NotAllowed(_NOT_YOURS)) from None


def _check_last_question(tx: Transaction, row: SessionRow, seq: int) -> None:
    """Reject a button of a message that is no longer the last one of its conversation: `retry` asks the last one."""
    if not _is_last_question(tx, row.no, seq):
        raise CommandRejected(NothingToDo(_OUTDATED))


def _is_last_question(tx: Transaction, session_no: int, seq: int) -> bool:
    question = find_last_question(tx, session_no)
    return question is not None and question.seq == seq


class UpdateHandler:
    """Stores updates, and runs the commands of buttons, inside a transaction."""

    def __init__(self, store: SessionStore, settings: CurrentSettings, commands: CommandRunner) -> None:
        self._store = store
        self._settings = settings
        self._commands = commands

    def handle(self, tx: Transaction, update: Update, now: datetime) -> Receipt:
        if not isinstance(update, ChatMoved):  # which names ids that the person had before
            update = replace(update, source=sender_merge.merge_source(tx, update.source, self._store.config, now))
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

    # -- buttons -------------------------------------------------------------------------------------------

    def press(self, tx: Transaction, press: ButtonPressed, now: datetime) -> Receipt:
        """Run the command and record the press. Raises `CommandRejected` if it can't be carried out; then roll back."""
        speaker = access.find_speaker(tx, press.source, self._settings.rules)
        if speaker is None or not speaker.can_speak or speaker.person is None:
            raise CommandRejected(NotAllowed(_NO_ACCESS))
        record = build_press_record(press)
        duplicate = find_duplicate(tx, record)
        if duplicate is not None:
            return duplicate
        call, row = _find_call(tx, press, speaker.person)
        receipt = self._commands.run(tx, Inbound(source=press.source, content=""), call, speaker.person, row, now)
        receipt = write_receipt(receipt, build_reader(record, speaker, self._settings.rules, is_private=True))
        if call.command in {JOBS.name, LINK.name}:
            line = (receipt.reply or "").partition("\n\n")[0]  # the details are in the question
            receipt = replace(receipt, reply=strip_markdown(line))
            # The chat keeps what was decided: platforms show the reply to a press only for a moment.
            if (address := find_delivery_address(press.source)) is not None:
                send_notice_to_address(tx, str(address), line, to_micros(now), reply_to=press.message_id)
        save_receipt(tx, record, receipt, to_micros(now))
        return receipt

    def reject_press(self, tx: Transaction, press: ButtonPressed, error: PalaverError, now: datetime) -> Receipt:
        """Record a press that had no effect."""
        record = build_press_record(press)
        duplicate = find_duplicate(tx, record)
        if duplicate is not None:
            return duplicate
        facts = {**error.facts, "error": error.code}
        rejection = Receipt(outcome=Outcome.REJECTED, reply=error.text, facts=facts)
        speaker = access.find_speaker(tx, press.source, self._settings.rules)
        receipt = write_receipt(rejection, build_reader(record, speaker, self._settings.rules, is_private=True))
        save_receipt(tx, record, receipt, to_micros(now))
        return receipt

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
            _offer_rerun(tx, update, received, place, actor.person_id, now)
        return Receipt(outcome=Outcome.RECORDED, session_id=received.session_id)

    def _should_offer_rerun(self, tx: Transaction, place: MessagePlace, previous_edit: int | None) -> bool:
        """Return whether the edited message is the last one here, and was answered with its earlier text."""
        session_no, seq = place
        if turns.is_queued_at(tx, session_no, seq) or not _is_last_question(tx, session_no, seq):
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
        reaction = message_edits.Reaction(emoji, update.is_removed, source.user_name or person.name, person.id)
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
    tx: Transaction,
    update: MessageEdited,
    received: ReceivedMessage,
    place: MessagePlace,
    person_id: PersonId | None,
    now: int,
) -> None:
    address = str(Address.from_source(update.source))
    send_notice_to_address(
        tx,
        address,
        _RERUN_OFFER,
        now,
        session_no=place.session_no,
        reply_to=update.message_id,
        buttons=(Button(say("edit.again", "Answer again"), f"rerun:{received.session_id}:{place.seq}"),),
        reader=find_reader(tx, person_id, address),
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
            platform_accounts.save_cursor(tx, self.account, self.cursor, now)
