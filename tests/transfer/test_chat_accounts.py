"""Which chat accounts of an import are the owner's: one person stays one, and a wrong account is refused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from palaver import SessionSource
from palaver.accounts import linking
from palaver.core.clock import to_micros
from palaver.core.engines.base import Read, Write
from palaver.core.errors import NotAllowed
from palaver.memory.service import MemoryOperations
from palaver.people import account_table as accounts, table as people
from palaver.people.model import Role
from palaver.transfer.chat_accounts import find_accounts, list_chat_accounts
from palaver.transfer.imported import ImportedAccount, ImportedConversation, ImportedMemory, InvalidImport
from palaver.transfer.importer import Importer
from support.made_reader import MadeReader, make_conversation, make_exchange
from support.store_content import dump_tables

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from palaver import SessionStore
    from palaver.core.engines.base import Transaction
    from palaver.transfer.imported import ImportedItem
    from palaver.transfer.report import ImportReport

ADA = SessionSource("telegram", "42", user_id="42", user_name="Ada")
BO = SessionSource("telegram", "43", user_id="43", user_name="Bo")
GROUP = SessionSource("telegram", "-1", chat_type="group", user_id="42", user_name="Ada")
TABLES = ("session", "event", "lane", "person", "identity", "memory", "audience_member", "imported_item")


@dataclass
class ChatReader(MadeReader):
    def list_chats(self) -> Iterator[SessionSource | ImportedAccount]:
        for item in self.items:
            if isinstance(item, ImportedConversation) and item.source is not None:
                yield item.source
            elif isinstance(item, ImportedAccount):
                yield item


ITEMS: tuple[ImportedItem, ...] = (
    ImportedAccount(platform="telegram", user_id="42", name="Ada", is_owner=True),
    make_conversation("terminal", make_exchange("Which seeds?", "Beans.")),
    make_conversation("telegram", make_exchange("And when?", "In May."), source=ADA, is_current=True, title="Garden"),
    make_conversation("bo", make_exchange("Hello"), source=BO, is_current=True),
    make_conversation("group", make_exchange("All here?"), source=GROUP, is_current=True),
    ImportedMemory(origin_id="m1", text="Likes short answers"),
)


@pytest.fixture
def run(store: SessionStore) -> Callable[..., ImportReport]:
    def run(*names: str, items: tuple[ImportedItem, ...] = ITEMS, **options: Any) -> ImportReport:
        reader = ChatReader(items)
        own = find_accounts(list_chat_accounts(reader), names)
        return Importer(store, None).import_files(reader, store.get_owner(), own_accounts=own, **options)

    return run


def list_titles(store: SessionStore, person: Any) -> set[str | None]:
    return {session.title or session.auto_title for session in store.seen_by(person.principal).list()}


def check_is_one_person(store: SessionStore) -> None:
    owner = store.get_owner()
    assert store.get_or_create_person(ADA).id == owner.id
    assert store.get_owner().role is Role.OWNER
    assert list_titles(store, owner) == {"Which seeds?", "Garden", "All here?"}
    assert store.get_or_create_session(ADA).session.title == "Garden"
    memories = store.seen_by(owner.principal).part(MemoryOperations).list()
    assert [each.memory.text for each in memories] == ["Likes short answers"]
    assert list_titles(store, store.get_or_create_person(BO)) == {"Hello"}


@pytest.mark.both_engines
def test_a_named_account_is_the_owners_at_once(store: SessionStore, run: Callable[..., ImportReport]) -> None:
    store.get_owner()
    before = dump_tables(store, *TABLES)
    dry = run("telegram:42", dry_run=True)
    assert dump_tables(store, *TABLES) == before
    report = run("telegram:42")
    assert dry.counts == report.counts
    assert (report.counts["linked"], report.counts["people"]) == (1, 0)
    assert sorted(dry.notes.lines) == sorted(report.notes.lines)
    assert [line for line in report.notes.lines if line.startswith("telegram:42 (Ada) is your account.")]
    check_is_one_person(store)
    written = dump_tables(store, *TABLES)
    assert run("telegram:42").counts == run().counts == {"unchanged": 6}
    assert dump_tables(store, *TABLES) == written


@pytest.mark.both_engines
def test_naming_an_account_later_makes_two_people_one(store: SessionStore, run: Callable[..., ImportReport]) -> None:
    report = run()
    (note,) = [line for line in report.notes.lines if "None of the chat accounts is yours" in line]
    assert "telegram:42 (Ada): 1 conversation; telegram:43 (Bo): 1 conversation" in note
    assert "`--me telegram:42`" in note
    assert list_titles(store, store.get_owner()) == {"Which seeds?"}
    for is_dry_run in (True, False):
        report = run("telegram:42", dry_run=is_dry_run)
        assert report.counts == {"linked": 1, "unchanged": 6}
        (note,) = report.notes.lines
        assert "with what it has here: 2 conversations" in note
    check_is_one_person(store)
    assert run().notes.lines == []

    def unlink(tx: Transaction) -> None:
        owner = store.get_owner()
        identity = linking.find_linked_account(tx, owner.id, "telegram:42")
        linking.unlink_account(tx, owner, identity, store.config, store.clock.now())

    store.engine.run(Write(unlink))
    assert store.get_or_create_person(ADA).id != store.get_owner().id
    assert list_titles(store, store.get_owner()) == {"Which seeds?"}


def test_only_a_direct_message_says_where_the_owner_gets_notices(
    store: SessionStore, run: Callable[..., ImportReport]
) -> None:
    slack = SessionSource("slack", "D7", user_id="U7", user_name="Ada")
    items = (
        ImportedAccount(platform="slack", user_id="U7"),
        ImportedAccount(platform="discord", user_id="77", name="Ada"),
        make_conversation("c1", make_exchange("Hello"), source=slack),
    )
    run("slack:U7", "discord:77", items=items)
    found = store.engine.run(Read(lambda tx: people.list_chat_accounts(tx, store.get_owner().id)))
    assert [(str(each.platform), each.dm_source and each.dm_source.chat_id) for each in found] == [
        ("discord", None),
        ("slack", "D7"),
    ]


def test_an_account_of_a_person_who_can_sign_in_is_refused_and_nothing_is_written(
    store: SessionStore, run: Callable[..., ImportReport]
) -> None:
    store.get_owner()
    ada = store.get_or_create_person(ADA)
    now = to_micros(store.clock.now())
    store.engine.run(Write(lambda tx: accounts.open_account(tx, ada, now)))
    before = dump_tables(store, *TABLES)
    for is_dry_run in (True, False):
        with pytest.raises(NotAllowed, match=r"^telegram:42 \(Ada\) belongs to 'Ada' here, who can sign in"):
            run("telegram:43", "telegram:42", dry_run=is_dry_run)
    assert dump_tables(store, *TABLES) == before


def test_an_account_of_a_person_with_other_accounts_is_refused_unless_all_are_named(
    store: SessionStore, run: Callable[..., ImportReport]
) -> None:
    store.get_owner()
    ada = store.get_or_create_person(ADA)
    now = to_micros(store.clock.now())
    store.engine.run(Write(lambda tx: people.add_identity(tx, ("signal", "+4366"), ada.id, now)))
    before = dump_tables(store, *TABLES)
    with pytest.raises(NotAllowed, match=r"who also has signal:\+4366"):
        run("telegram:42")
    assert dump_tables(store, *TABLES) == before
    items = (*ITEMS, ImportedAccount(platform="signal", user_id="+4366"))
    run("telegram:42", "signal:+4366", items=items)
    check_is_one_person(store)


async def test_a_persons_own_import_links_nothing_and_asks_nothing(store: SessionStore) -> None:
    bo = store.get_or_create_person(BO)
    before = dump_tables(store, "person", "identity", "audience_member")
    report = await Importer(store, None).import_for_person(bo.principal, ChatReader(ITEMS))
    assert dump_tables(store, "person", "identity", "audience_member") == before
    assert "telegram:42" not in "".join(report.notes.lines)


@pytest.mark.parametrize(
    ("source", "names"),
    [
        (ADA, ["telegram:42", " Telegram:42 "]),
        (
            SessionSource("whatsapp-web", "4366012345", user_id="4366012345", user_id_alt="99@lid"),
            [
                "whatsapp:4366012345",
                "whatsapp:+4366012345",
                "whatsapp-web:4366012345@s.whatsapp.net",
                "whatsapp:99@lid",
            ],
        ),
        (
            SessionSource(
                "signal", "+4366", user_id="+4366", user_id_alt="AAAAAAAA-0000-4000-8000-000000000001", user_name="Ada"
            ),
            ["signal:+4366", "signal:aaaaaaaa-0000-4000-8000-000000000001"],
        ),
    ],
)
def test_an_account_is_found_by_every_form_of_its_id(source: SessionSource, names: list[str]) -> None:
    accounts = list_chat_accounts(ChatReader([make_conversation("c1", [], source=source), *ITEMS]))
    for name in names:
        (found,) = find_accounts(accounts, [name, name])
        assert found.platform == source.platform


@pytest.mark.parametrize("name", ["telegram:24", "telegram", "42", "", "signal:42", "telegram:", ":42"])
def test_an_account_that_the_files_do_not_have_is_refused(name: str) -> None:
    with pytest.raises(InvalidImport, match="is not a chat account in these files") as refused:
        find_accounts(list_chat_accounts(ChatReader(ITEMS)), ["telegram:42", name])
    assert "telegram:42 (Ada): 1 conversation; telegram:43 (Bo): 1 conversation" in str(refused.value)
