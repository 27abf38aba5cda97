"""An account that is unlinked has what it had before it was linked, and nothing of the person it was linked to."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, SessionSource
from palaver.accounts import merge_table as person_merge
from palaver.accounts.accounts import Accounts
from palaver.accounts.person_tables import PERSON_DATA, PROCESS_COLUMNS
from palaver.core.engines.base import Conflict, Read, Write
from palaver.core.errors import StoreError
from palaver.media.attachments import Attachments
from palaver.memory import table as memories
from palaver.memory.service import MemoryOperations
from palaver.operation.erasure import Erasures
from palaver.people import linked_rows, table as people
from palaver.people.model import Role
from palaver.prompts import table as saved_prompts
from palaver.prompts.service import SavedPromptOperations
from palaver.sessions import projects_table as projects
from palaver.sessions.keys import DmScope
from support.erased_people import MARK, OTHER_MARK, execute, find_everywhere, leave_traces
from support.people import Town, chat, find_code
from support.store_content import dump_tables

if TYPE_CHECKING:
    from pathlib import Path

    from conftest import OpenStore
    from palaver import SessionStore
    from palaver.core.engines.base import Transaction
    from palaver.people.model import Person
    from palaver.testing import FakeClock

OLGA, ADA, EVE, MATRIX = chat("olga"), chat("ada"), chat("eve"), chat("ada-m", "matrix")
# What linking and unlinking leave changed: codes end, both have read as far as one of them, notices are sent.
CHANGED_TABLES = {"link_code", "read_mark", "delivery", "audience_member", "search"}


@pytest.fixture
def town(store: SessionStore, clock: FakeClock) -> Town:
    return Town(store, clock)


async def link(town: Town, first: SessionSource, second: SessionSource) -> None:
    code = find_code(await town.ask(first, "/link"))
    await town.ask(second, f"/link {code}")
    await town.ask(first, "/link confirm")
    assert (await town.ask(second, "/link confirm")).startswith("Linked")


async def list_texts(town: Town, person: Person) -> set[str]:
    """Return the first message of every conversation that a person sees."""
    found = await town.store.aio.seen_by(person.principal).list()
    return {str(town.store.load_transcript(session.id)[0]["content"]) for session in found}


async def get_person(town: Town, source: SessionSource) -> Person:
    person = await town.find_person(source)
    assert person is not None
    return person


def get_row(tx: Transaction, person: Person) -> people.PersonRow:
    row = people.find_by_id(tx, person.id)
    assert row is not None
    return row


# ---- nothing is forgotten ------------------------------------------------------------------------------------


@pytest.mark.both_engines
def test_every_column_that_names_a_person_is_moved_or_has_a_reason_not_to(store: SessionStore) -> None:
    """A new table with a person in it fails here, until it is decided what linking does with it."""
    columns = store.engine.run(Read(_list_person_columns))
    declared = [f"{each.table}.{each.column}" for each in PERSON_DATA if each.column not in {"audience_no", "address"}]
    assert len(declared) == len(set(declared))
    assert PROCESS_COLUMNS.isdisjoint(declared)
    assert columns - set(declared) - PROCESS_COLUMNS == set()
    assert {*declared, *PROCESS_COLUMNS} - columns == set(), "a column that does not exist"


def _list_person_columns(tx: Transaction) -> set[str]:
    """List the columns that refer to a person, by a foreign key or by their name."""
    if tx.name == "sqlite":
        columns = tx.fetch_all(
            "SELECT t.name, c.name FROM pragma_table_list t JOIN pragma_table_info(t.name) c"
            " WHERE t.type = 'table' AND t.schema = 'main'"
        )
        references = tx.fetch_all(
            'SELECT t.name, f."from" FROM pragma_table_list t JOIN pragma_foreign_key_list(t.name) f'
            " WHERE t.type = 'table' AND f.\"table\" IN ('person', 'account')"
        )
    else:
        columns = tx.fetch_all(
            "SELECT table_name::text, column_name::text FROM information_schema.columns"
            " WHERE table_schema = current_schema()"
        )
        references = tx.fetch_all(
            "SELECT c.conrelid::regclass::text, a.attname::text FROM pg_constraint c JOIN pg_attribute a"
            " ON a.attrelid = c.conrelid AND a.attnum = ANY (c.conkey) WHERE c.contype = 'f'"
            " AND c.confrelid::regclass::text IN ('person', 'account')"
            " AND c.connamespace = current_schema()::regnamespace"
        )
    by_name = {
        (table, column)
        for table, column in columns
        if column in {"person_id", "owner", "subject", "set_by", "granted_by", "stopped_by", "claim_person_id"}
        and (table, column) != ("sign_in_attempt", "subject")  # an address or a name that is limited
    }
    return {f"{table}.{column}" for table, column in {*by_name, *references}}


@pytest.mark.both_engines
async def test_linking_and_unlinking_leave_every_table_as_it_was(store: SessionStore, tmp_path: Path) -> None:
    ada, bob = await settle_two_people(store, tmp_path)
    tables = list_tables(store)
    before, members = dump_tables(store, *tables), list_members(store)

    def link_people(tx: Transaction) -> None:
        person_merge.merge_people(tx, get_row(tx, ada), get_row(tx, bob), 1)

    store.engine.run(Write(link_people))
    linked = dump_tables(store, *tables)
    left = {table: [row for row in linked[table] if bob.id in row] for table in tables}
    assert {table for table, rows in left.items() if rows} == {
        *("person", "linked_row", "budget_window", "event", "memory", "turn", "inbound_message"),
        *("budget_limit",),  # the one that the survivor has, too
        *("identity",),  # of the page, where the id of the person is that of the account
    }, "nothing else is in their name"
    store.engine.run(Write(lambda tx: person_merge.unmerge(tx, get_row(tx, ada), get_row(tx, bob), 1)))
    after = dump_tables(store, *tables)
    assert {table: after[table] for table in tables} == {table: before[table] for table in tables}
    assert list_members(store) == members


def list_members(store: SessionStore) -> list[Any]:
    sql = "SELECT person_id, audience_no FROM audience_member ORDER BY 1, 2"
    return store.engine.run(Read(lambda tx: tx.fetch_all(sql)))


async def settle_two_people(store: SessionStore, folder: Path) -> tuple[Person, Person]:
    """Let two people use everything; the second one can't sign in any more."""
    attachments = Attachments(store, folder / "attachments")
    ada = await leave_traces(store, attachments, MARK)
    bob = await leave_traces(store, attachments, OTHER_MARK)
    for table in ("account", "link_code"):
        execute(store, f"DELETE FROM {table} WHERE person_id = $1", bob.id)
    return ada, bob


def list_tables(store: SessionStore) -> list[str]:
    if store.engine.name == "sqlite":
        sql = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
    else:
        sql = "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'"
    names = [name for (name,) in store.engine.run(Read(lambda tx: tx.fetch_all(sql)))]
    return sorted(
        name for name in {*names} - CHANGED_TABLES - {"migration", "access_change"} if not name.startswith("search")
    )


@pytest.mark.both_engines
@pytest.mark.parametrize("first", ["the unlinked one", "the other one"])
async def test_each_of_both_can_be_erased_completely_after_unlinking(
    store: SessionStore, tmp_path: Path, first: str
) -> None:
    ada, bob = await settle_two_people(store, tmp_path)

    def link_and_unlink(tx: Transaction) -> None:
        person_merge.merge_people(tx, get_row(tx, ada), get_row(tx, bob), 1)
        person_merge.unmerge(tx, get_row(tx, ada), get_row(tx, bob), 1)

    store.engine.run(Write(link_and_unlink))
    folder = tmp_path / "attachments"
    erased, mark, other = (bob, OTHER_MARK, MARK) if first == "the unlinked one" else (ada, MARK, OTHER_MARK)
    erasures = Erasures(store, Attachments(store, folder))
    await erasures.erase(store.get_owner().principal, erased.id)
    assert find_everywhere(store, folder, mark) == []
    assert find_everywhere(store, folder, erased.id) == []
    assert find_everywhere(store, folder, other) != []
    await erasures.erase(store.get_owner().principal, (ada if erased is bob else bob).id)
    assert find_everywhere(store, folder, other) == []


async def test_erasing_a_person_erases_the_linked_one_with_all_marks(store: SessionStore, tmp_path: Path) -> None:
    ada, bob = await settle_two_people(store, tmp_path)
    store.engine.run(Write(lambda tx: person_merge.merge_people(tx, get_row(tx, ada), get_row(tx, bob), 1)))
    assert store.engine.run(Read(lambda tx: tx.fetch_all("SELECT 1 FROM linked_row"))) != []
    await Erasures(store, Attachments(store, tmp_path / "attachments")).erase(store.get_owner().principal, ada.id)
    for text in (MARK, OTHER_MARK, ada.id, bob.id):
        assert find_everywhere(store, tmp_path / "attachments", text) == []


# ---- who has what afterwards ---------------------------------------------------------------------------------


@pytest.mark.both_engines
async def test_an_account_linked_to_the_owner_by_a_stolen_code_has_only_its_own_after_unlinking(town: Town) -> None:
    """The worst case: the owner has confirmed, and the account has acted as the owner."""
    owner = town.store.get_owner()
    terminal = SessionSource.local_cli()
    await town.send(terminal, "the owner's secret")
    await town.add_person(EVE)
    own = await town.send(EVE, "eve before")
    eve = await get_person(town, EVE)

    def add_belongings(tx: Transaction) -> None:
        for person, text in ((owner, "the owner likes tea"), (eve, "eve likes coffee")):
            memories.add(tx, get_row(tx, person).audience_no, memories.NewMemory(text=text, person_id=person.id), 1)
            projects.create(tx, person.id, "Plans", None, 1)
            saved_prompts.create(tx, person.id, {"name": "Explain", "text": text}, 1)

    await town.write(add_belongings)
    await link(town, terminal, EVE)
    assert (await get_person(town, EVE)).id == owner.id
    await town.ask(EVE, "/new")
    after = await town.send(EVE, "eve as the owner")
    listed = await town.ask(EVE, "/sessions")
    assert "the owner's secret" in listed
    await town.ask(EVE, f"/resume {(await town.store.aio.seen_by(owner.principal).list())[-1].id}")
    assert "It has back what it had before the link" in await town.ask(terminal, "/unlink telegram")
    assert await get_person(town, EVE) == eve
    assert town.store.get_owner() == owner
    assert await list_texts(town, eve) == {"eve before"}
    assert await list_texts(town, owner) == {"the owner's secret", "eve as the owner"}
    view, owners_view = (town.store.aio.seen_by(each.principal) for each in (eve, owner))
    assert [each.memory.text for each in await view.part(MemoryOperations).list()] == ["eve likes coffee"]
    assert [each.memory.text for each in await owners_view.part(MemoryOperations).list()] == ["the owner likes tea"]
    assert len(await view.projects.list()) == len(await owners_view.projects.list()) == 1
    assert [each.text for each in await view.part(SavedPromptOperations).list()] == ["eve likes coffee"]
    assert "secret" not in await town.ask(EVE, "/sessions")
    new = await town.send(EVE, "eve again")
    assert new.session_id not in {after.session_id, None}
    assert "secret" not in " ".join(str(each) for each in town.store.load_transcript(new.session_id or ""))
    assert "the owner" not in await town.ask(EVE, "/restore")
    assert new.session_id != own.session_id or "eve before" in str(town.store.load_transcript(new.session_id or ""))
    assert await town.rows("SELECT 1 FROM linked_row") == []


@pytest.mark.both_engines
async def test_an_owner_without_a_sign_in_whose_code_was_stolen_by_a_person_who_has_one_is_the_owner_again(
    town: Town,
) -> None:
    await town.add_person(OLGA, Role.OWNER)
    olga = await get_person(town, OLGA)
    await town.send(OLGA, "olga's secret")
    mallory = await town.add_account("Mallory")
    await town.send(town.page(mallory), "mallory before")
    await link(town, OLGA, town.page(mallory))
    assert (await get_person(town, town.page(mallory))).role is Role.OWNER
    await town.ask(OLGA, "/unlink")
    assert await get_person(town, OLGA) == olga
    assert await get_person(town, town.page(mallory)) == mallory, "a member again"
    assert await list_texts(town, mallory) == {"mallory before"}
    assert await list_texts(town, olga) == {"olga's secret"}


@pytest.mark.both_engines
async def test_the_account_that_others_were_linked_to_undoes_the_link_and_never_loses_its_own(town: Town) -> None:
    ada = await town.add_person(ADA)
    await town.add_person(MATRIX)
    await town.send(ADA, "ada before")
    await town.send(MATRIX, "matrix before")
    await link(town, ADA, MATRIX)
    assert "Your other accounts were linked to this one" in await town.ask(MATRIX, "/unlink telegram")
    assert (await town.ask(ADA, "/unlink")).startswith("Unlinked: Matrix, ada-m.")
    assert (await get_person(town, ADA)).id == ada.id
    assert await list_texts(town, ada) == {"ada before"}
    assert await list_texts(town, await get_person(town, MATRIX)) == {"matrix before"}


@pytest.mark.both_engines
async def test_conversations_jobs_and_access_go_back_and_answers_stay_away(town: Town) -> None:
    ada = await town.add_account("Ada")
    guest_source = chat("guest")
    await town.add_person(OLGA, Role.OWNER)
    code = find_code(await town.ask(guest_source, "hello"))
    await town.ask(OLGA, f"/pair {code} guest")
    guest = await get_person(town, guest_source)
    before = await town.send(guest_source, "guest before")
    await link(town, town.page(ada), guest_source)
    continued = await town.send(guest_source, "goes on")
    assert continued.session_id == before.session_id
    await town.ask(guest_source, "/new")
    await town.send(guest_source, "a question as ada")
    await town.ask(town.page(ada), "/unlink telegram")
    assert await get_person(town, guest_source) == guest
    assert guest.role is Role.GUEST
    assert await list_texts(town, guest) == {"guest before"}
    assert (await town.send(guest_source, "may I?")).is_stored, "as a guest, as before"
    turns_of_ada = await town.rows(
        "SELECT t.person_id, t.state FROM turn t JOIN session s ON s.no = t.session_no WHERE s.audience_no = $1",
        await town.read(lambda tx: get_row(tx, ada).audience_no),
    )
    assert turns_of_ada == [(ada.id, "interrupted")], "what was asked there as Ada is not answered anymore"


@pytest.mark.both_engines
async def test_a_job_goes_back_without_the_conversations_that_it_had_as_the_other_person(town: Town) -> None:
    ada, eve = await town.add_person(ADA), await town.add_person(MATRIX)
    said = await town.send(ADA, "ada's secret")

    def add_job(tx: Transaction) -> None:
        tx.execute(
            "INSERT INTO job (id, person_id, name, name_key, prompt, schedule, timezone, anchor, targets, origin,"
            " toolsets, state, created_at, updated_at) VALUES ('j_1', $1, 'News', 'news', 'Tell', 'every 1h', 'UTC', 0,"
            " '[]', '{}', '[]', 'paused', 1, 1)",
            eve.id,
        )

    def run_as_ada(tx: Transaction) -> None:
        for number, ended_at in ((1, 2), (2, None)):
            tx.execute(
                "INSERT INTO job_run (id, job_no, slot, kind, state, start_after, created_at, ended_at, session_no)"
                " SELECT $1, j.no, $2, 'manual', $3, 0, 1, $4, s.no FROM job j, session s WHERE s.id = $5",
                f"r_{number}",
                number,
                "running" if ended_at is None else "done",
                ended_at,
                said.session_id,
            )

    await town.write(add_job)
    await link(town, ADA, MATRIX)
    await town.write(run_as_ada)
    await town.ask(ADA, "/unlink matrix")
    assert await town.rows("SELECT person_id FROM job") == [(eve.id,)]
    ended = "SELECT session_no FROM job_run WHERE ended_at IS NOT NULL"
    assert await town.rows(ended) == [(None,)], "its runs lead to no conversation of Ada's"
    states = await town.rows("SELECT state, error FROM turn WHERE person_id = $1", ada.id)
    assert states == [("interrupted", "The account of this job was unlinked.")]


@pytest.mark.both_engines
async def test_both_unlink_at_once_and_it_is_done_once(town: Town) -> None:
    await town.add_person(ADA, Role.OWNER)
    await town.add_person(MATRIX, Role.OWNER)
    await link(town, ADA, MATRIX)
    await asyncio.gather(town.ask(ADA, "/unlink matrix"), town.ask(MATRIX, "/unlink matrix"))
    ada, matrix = await get_person(town, ADA), await get_person(town, MATRIX)
    assert ada.id != matrix.id
    assert (ada.role, matrix.role) == (Role.OWNER, Role.OWNER)


@pytest.mark.both_engines
async def test_a_person_who_was_linked_meanwhile_is_not_linked_or_unlinked_as_before(town: Town) -> None:
    """What another process has done since the rows were read is seen: everything is read again."""
    ada, bob, eve = [await town.add_person(source) for source in (ADA, MATRIX, EVE)]
    rows = [await town.read(lambda tx, each=each: get_row(tx, each)) for each in (ada, bob, eve)]  # type: ignore[misc]
    await town.write(lambda tx: person_merge.merge_people(tx, rows[0], rows[1], 1))
    for work in (
        lambda tx: person_merge.merge_people(tx, rows[1], rows[2], 1),
        lambda tx: person_merge.merge_people(tx, rows[2], rows[1], 1),
        lambda tx: person_merge.unmerge(tx, rows[2], rows[1], 1),
    ):
        with pytest.raises((Conflict, StoreError)):
            await town.write(work)
    assert await town.rows("SELECT merged_into FROM person WHERE id = $1", bob.id) == [(ada.id,)]


async def test_accounts_that_were_one_person_before_leave_together(town: Town) -> None:
    """B has linked X; both are linked to A. B leaves with X; X alone leaves alone."""
    a, b, x = chat("a"), chat("b", "matrix"), chat("x", "discord")
    for source in (a, b, x):
        await town.add_person(source)
        await town.send(source, f"{source.user_id} before")
    await link(town, b, x)
    await link(town, a, b)
    assert len({(await get_person(town, source)).id for source in (a, b, x)}) == 1
    await town.ask(a, "/unlink matrix")
    assert await list_texts(town, await get_person(town, a)) == {"a before"}
    assert await list_texts(town, await get_person(town, b)) == {"b before", "x before"}
    assert (await get_person(town, x)).id == (await get_person(town, b)).id
    await town.ask(b, "/unlink discord")
    assert await list_texts(town, await get_person(town, b)) == {"b before"}
    assert await list_texts(town, await get_person(town, x)) == {"x before"}
    await link(town, b, x)
    await link(town, a, b)
    await town.ask(a, "/unlink discord")
    assert await list_texts(town, await get_person(town, x)) == {"x before"}
    assert await list_texts(town, await get_person(town, a)) == {"a before", "b before"}
    await town.ask(a, "/unlink matrix")
    assert await list_texts(town, await get_person(town, b)) == {"b before"}
    assert await town.rows("SELECT 1 FROM linked_row") == []


@pytest.mark.both_engines
@pytest.mark.parametrize("lowered", [Role.GUEST, Role.MEMBER])
async def test_a_role_after_unlinking_is_never_more_than_both_have_now(town: Town, lowered: Role) -> None:
    await town.add_person(ADA, Role.OWNER)
    await town.add_person(MATRIX, Role.OWNER)
    await link(town, ADA, MATRIX)
    owner = Accounts(town.store).open_people(town.store.get_owner().principal)
    await owner.update((await get_person(town, ADA)).id, role=lowered)
    person = await get_person(town, ADA)
    await owner.unlink(person.id, "matrix")
    assert (await get_person(town, MATRIX)).role is lowered
    assert (await get_person(town, ADA)).role is lowered


@pytest.mark.both_engines
async def test_budgets_are_added_and_taken_away_again(town: Town) -> None:
    a, b, x = chat("a"), chat("b", "matrix"), chat("x", "discord")
    ids = [(await town.add_person(source)).id for source in (a, b, x)]

    def use(tx: Transaction) -> None:
        for person_id, tokens in zip(ids, (100, 20, 3), strict=True):
            tx.execute(
                "INSERT INTO budget_window (scope, subject, period, starts_at, used_tokens)"
                " VALUES ('person', $1, 'day', 0, $2)",
                person_id,
                tokens,
            )

    async def get_used() -> list[int]:
        rows = await town.rows("SELECT subject, used_tokens FROM budget_window WHERE scope = 'person'")
        used = {str(subject): int(tokens) for subject, tokens in rows}
        return [used[person_id] for person_id in ids]

    await town.write(use)
    await link(town, b, x)
    assert (await get_used())[:2] == [100, 23]
    await link(town, a, b)
    assert (await get_used())[0] == 123
    await town.write(
        lambda tx: tx.execute("UPDATE budget_window SET used_tokens = used_tokens + 1000 WHERE subject = $1", ids[0])
    )
    await town.ask(a, "/unlink matrix")
    assert (await get_used())[:2] == [1100, 23], "what was used after the link stays"
    await town.ask(b, "/unlink discord")
    assert await get_used() == [1100, 20, 3]


@pytest.mark.both_engines
async def test_with_dm_scope_person_each_has_a_lane_of_their_own_again(open_store: OpenStore, clock: FakeClock) -> None:
    town = Town(open_store(GatewayConfig(dm_scope=DmScope.PERSON)), clock)
    await town.add_person(ADA)
    await town.add_person(MATRIX)
    before = await town.send(MATRIX, "matrix before")
    await link(town, ADA, MATRIX)
    together = await town.send(ADA, "from telegram")
    assert together.session_id == before.session_id, "one conversation everywhere"
    await town.ask(ADA, "/unlink matrix")
    in_telegram, in_matrix = await town.send(ADA, "ada"), await town.send(MATRIX, "matrix")
    assert in_telegram.session_id not in {before.session_id, in_matrix.session_id}
    assert await list_texts(town, await get_person(town, ADA)) == {"ada"}
    assert "matrix before" in await list_texts(town, await get_person(town, MATRIX))


async def test_an_account_that_was_linked_before_that_was_recorded_leaves_with_nothing(town: Town) -> None:
    ada = await town.add_account("Ada")
    await link(town, town.page(ada), MATRIX)
    said = await town.send(MATRIX, "as ada")
    await town.write(lambda tx: tx.execute("DELETE FROM linked_row"))
    await town.ask(town.page(ada), "/unlink matrix")
    assert await town.find_person(MATRIX) is None
    assert said.session_id in {each.id for each in await town.store.aio.seen_by(ada.principal).list()}


async def test_an_account_with_another_id_is_still_known_as_linked(town: Town) -> None:
    await town.add_person(ADA)
    await town.add_person(MATRIX)
    await town.send(MATRIX, "matrix before")
    await link(town, ADA, MATRIX)
    await town.write(lambda tx: people.change_account(tx, "matrix", "ada-m", "ada-n"))
    assert await town.read(lambda tx: linked_rows.find_origin(tx, "matrix", "ada-n")) is not None
    await town.ask(ADA, "/unlink matrix")
    assert await list_texts(town, await get_person(town, chat("ada-n", "matrix"))) == {"matrix before"}
