"""The chat accounts that the files of another program name: which of them belong to the person who imports.

Other programs know a person on Telegram and the person at the terminal as two. Only the operator can say that they are
one: by `--me`, or when they are asked.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from palaver.accounts.owner_links import format_account, is_account_of, link_to_owner
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Read
from palaver.core.errors import InvalidSource
from palaver.core.source import ChatType, SessionSource
from palaver.people import table as people
from palaver.transfer.imported import ImportedAccount, InvalidImport, ReaderOfChats

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from palaver.core.engines.base import Transaction
    from palaver.core.ids import PersonId
    from palaver.sessions.store import SessionStore
    from palaver.transfer.imported import ImportReader
    from palaver.transfer.report import Batch, ImportRun

MAX_NAMED_ACCOUNTS: Final = 12  # in a message or a question


@dataclass(slots=True)
class ChatAccount:
    source: SessionSource  # of a direct message, if there was one
    conversation_count: int = 0

    def __str__(self) -> str:
        count = self.conversation_count
        return f"{format_account(self.source)}: {count:,} {'conversation' if count == 1 else 'conversations'}"


def list_chat_accounts(reader: ImportReader) -> list[ChatAccount]:
    """List the accounts of a program's files, those with the most conversations first."""
    accounts: dict[tuple[str, str], ChatAccount] = {}
    for item in reader.list_chats() if isinstance(reader, ReaderOfChats) else ():
        try:
            source = _make_source(item)
        except InvalidSource:  # the import reports it
            continue
        account = None if source is None else people.find_account(source)
        if source is None or account is None:
            continue
        known = accounts.setdefault(account, ChatAccount(source))
        name = known.source.user_name or source.user_name
        if source.chat_type is ChatType.DM:
            known.source = source
            known.conversation_count += 1
        known.source = replace(known.source, user_name=name)
    return sorted(accounts.values(), key=lambda each: (-each.conversation_count, format_account(each.source)))


def _make_source(item: SessionSource | ImportedAccount) -> SessionSource | None:
    if isinstance(item, ImportedAccount):  # the chat of their direct messages may have another id than they have
        source = SessionSource(item.platform, item.user_id, chat_type=ChatType.GROUP, user_id=item.user_id)
        return replace(source, user_name=item.name or None)
    return item if item.chat_type is ChatType.DM else None


def find_accounts(accounts: Sequence[ChatAccount], names: Iterable[str]) -> tuple[SessionSource, ...]:
    """Find accounts by `platform:user id`, in any form that the user's id has; raises InvalidImport if one is none."""
    found: dict[str, SessionSource] = {}
    for name in names:
        matches = [each.source for each in accounts if _has_name(each.source, name)]
        if not matches:
            known = "; ".join(str(each) for each in accounts[:MAX_NAMED_ACCOUNTS])
            raise InvalidImport(
                f"{name!r} is not a chat account in these files. Write it as platform:user id."
                + (f" They have: {known}." if known else " They name no chat accounts.")
            )
        found.update((format_account(source), source) for source in matches)
    return tuple(found.values())


def _has_name(source: SessionSource, name: str) -> bool:
    platform, _, user_id = name.strip().partition(":")
    if not user_id or platform.lower() not in {str(source.platform), str(source.platform).partition("-")[0]}:
        return False
    ids = {each for each in (source.user_id, source.user_id_alt, source.chat_id_alt) if each} or {source.chat_id}
    wanted = _fold_id(source, user_id)
    return any(wanted == _fold_id(source, each) for each in ids)


def _fold_id(source: SessionSource, user_id: str) -> tuple[str, str] | None:
    """Return the account of a user's id alone, without other ids of the same user."""
    return people.find_account(replace(source, chat_id=user_id, user_id=user_id, user_id_alt=None, chat_id_alt=None))


def list_unlinked_accounts(
    store: SessionStore, accounts: Sequence[ChatAccount], person_id: PersonId
) -> list[ChatAccount]:
    """Return the accounts with conversations that may be the person's; none if one of the accounts is theirs."""

    def has_one(tx: Transaction) -> bool:
        return any(is_account_of(tx, each.source, person_id) for each in accounts)

    return [] if store.engine.run(Read(has_one)) else [each for each in accounts if each.conversation_count]


def link_accounts(run: ImportRun, tx: Transaction, batch: Batch) -> None:
    """Link the accounts that the operator named to the person who imports."""
    for link in link_to_owner(tx, run.person.id, run.own_accounts, run.config, run.store.clock.now()):
        batch.report.count("linked")
        had = f", with what it has here: {link.belongings}" if link.belongings else ""
        batch.report.notes.add(
            f"{link.account} is your account{had}. Its conversations belong to you, like those of the terminal. To undo"
            " it, use `palaver people unlink`."
        )


def report_unlinked_accounts(run: ImportRun) -> None:
    """Say that no account belongs to the owner, and how to change that."""
    if run.person.id != run.store.get_owner().id:
        return
    accounts = list_unlinked_accounts(run.store, list_chat_accounts(run.reader), run.person.id)
    if accounts:
        names = "; ".join(str(each) for each in accounts[:MAX_NAMED_ACCOUNTS])
        account = ":".join(people.find_account(accounts[0].source) or ())
        run.report.notes.add(
            f"None of the chat accounts is yours, so each is a person of their own here: {names}. If one is yours, run"
            f" this import again with it, for example `--me {account}`: its conversations are then yours, too."
        )
