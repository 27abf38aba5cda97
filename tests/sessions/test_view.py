"""Views: two people on one gateway each see and change only their own sessions, and learn nothing of the rest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, Principal, Role, SessionSource, SessionStore, SessionView
from palaver.core.engines.base import Read, Write
from palaver.core.errors import (
    AmbiguousMatch,
    InvalidInput,
    InvalidTitle,
    NotAllowed,
    NotFound,
    ProjectNotFound,
    SessionNotFound,
    TitleTaken,
)
from palaver.core.ids import JobId, PersonId
from palaver.core.operation import Operations
from palaver.delivery.view import DeliveryOperations
from palaver.memory.service import MemoryOperations
from palaver.prompts.service import SavedPromptOperations
from palaver.sessions import projects_table as projects, table as sessions, turns_table as turns
from palaver.sessions.deletions import SESSION_PIECES, delete_piece, find_hidden
from palaver.sessions.view import ViewScope
from palaver.sessions.view.scope import ViewPart
from palaver.sessions.view.session_view import ViewOperations
from palaver.transfer import export_rows

if TYPE_CHECKING:
    from conftest import OpenStore
    from palaver.core.engines.base import Transaction
    from palaver.core.ids import TurnId
    from palaver.testing import FakeClock

Source = Callable[..., SessionSource]
SHARED = GatewayConfig(group_sessions_per_user=False)
MISSING_ID = "20200101_000000_00000000"


def open_view(store: SessionStore, source: SessionSource) -> SessionView:
    return store.seen_by(store.get_or_create_person(source).principal)


def open_owner_view(store: SessionStore, *, everything: bool = False) -> SessionView:
    return store.seen_by(store.get_owner().principal, everything=everything)


# -- the boundary --------------------------------------------------------------------------------------------

# Every operation of a view that takes the id of a session.
BY_SESSION_ID: dict[str, Callable[[SessionView, str], Any]] = {
    "get": lambda view, session_id: view.get(session_id),
    "find": lambda view, session_id: view.find(session_id),
    "load_messages": lambda view, session_id: view.load_messages(session_id),
    "search": lambda view, session_id: view.search("secret", within=session_id),
    "export": lambda view, session_id: view.export(session_id),
    "export_markdown": lambda view, session_id: view.export_markdown(session_id),
    "update": lambda view, session_id: view.update(session_id, {"title": "mine now"}),
    "rename": lambda view, session_id: view.rename(session_id, "mine now"),
    "pin": lambda view, session_id: view.pin(session_id),
    "archive": lambda view, session_id: view.archive(session_id),
    "move": lambda view, session_id: view.move(session_id, None),
    "undo": lambda view, session_id: view.undo(session_id),
    "redo": lambda view, session_id: view.redo(session_id),
    "fork": lambda view, session_id: view.fork(session_id),
    "delete": lambda view, session_id: view.delete(session_id),
    "delete_completely": lambda view, session_id: view.delete_completely(session_id),
    "summaries.get": lambda view, session_id: view.summaries.get(session_id),
    "transcripts.load_page": lambda view, session_id: view.transcripts.load_page(session_id),
    "transcripts.load_log_page": lambda view, session_id: view.transcripts.load_log_page(session_id),
    "transcripts.load_events": lambda view, session_id: view.transcripts.load_events(session_id),
    "transcripts.load_person_names": lambda view, session_id: view.transcripts.load_person_names(session_id, []),
    "transcripts.mark_read": lambda view, session_id: view.transcripts.mark_read(session_id, 1),
    "deliveries.list": lambda view, session_id: view.part(DeliveryOperations).list(session_id),
    "deliveries.count": lambda view, session_id: view.part(DeliveryOperations).count(session_id),
    "deliveries.send_again": lambda view, session_id: view.part(DeliveryOperations).send_again(
        session_id, "d_0000000000000000"
    ),
}
PARTS_OF_ROOMS: dict[Any, str] = {
    DeliveryOperations: "deliveries",
    MemoryOperations: "memories",
    SavedPromptOperations: "saved_prompts",
}
# Every other operation has a test of its own with two people.
TESTED_WITHOUT_SESSION_ID = {
    *("list", "summaries.list", "usage.report"),  # test_lists_searches_and_reports_contain_only_what_is_yours
    "get_turn",  # test_a_turn_of_another_person_looks_like_one_that_does_not_exist
    *("projects.list", "projects.create", "projects.update"),  # test_projects_belong_to_one_person
    *("projects.delete", "projects.delete_completely"),
    "list_people",  # test_search_filters.py
    *("saved_prompts.list", "saved_prompts.create"),  # test_saved_prompts.py
    *("saved_prompts.update", "saved_prompts.delete"),
    *("memories.list", "memories.remember", "memories.update", "memories.forget"),  # test_memories.py
    *("deliveries.list_undelivered", "deliveries.get_undelivered", "deliveries.resolve"),  # test_undelivered.py
}


def list_operations(operations: Operations[Any], prefix: str = "") -> set[str]:
    """List the public operations of a view and of all its parts."""
    names = set()
    for name in dir(operations):
        value = None if name.startswith("_") else getattr(operations, name)
        if isinstance(value, Operations):
            names |= list_operations(value, f"{prefix}{name}.")
        elif value is not None and name != "part":
            names.add(f"{prefix}{name}")
    return names


def list_all_operations(view: SessionView) -> set[str]:
    """List the operations of a view, and those of the parts that other rooms add."""
    names = list_operations(view)
    for kind, name in PARTS_OF_ROOMS.items():
        names |= list_operations(view.part(kind), f"{name}.")
    return names


def test_the_leak_tests_cover_every_operation_of_a_view_and_its_parts(store: SessionStore, dm: Source) -> None:
    view = open_view(store, dm())
    assert list_all_operations(view) == BY_SESSION_ID.keys() | TESTED_WITHOUT_SESSION_ID
    own_parts = {type(value) for value in vars(view).values() if isinstance(value, ViewPart)}
    kinds = {kind for kind in ViewPart.__subclasses__() if not issubclass(kind, ViewOperations)}
    assert kinds == own_parts | PARTS_OF_ROOMS.keys()


@pytest.mark.parametrize("name", BY_SESSION_ID)
def test_a_session_of_another_person_looks_like_one_that_does_not_exist(
    store: SessionStore, dm: Source, name: str
) -> None:
    session_id = store.record_user_message(dm("ada"), "a secret").session_id
    before = store.export(session_id)
    bob = open_view(store, dm("bob"))
    with pytest.raises(SessionNotFound) as for_ada:
        BY_SESSION_ID[name](bob, session_id)
    with pytest.raises(SessionNotFound) as for_missing:
        BY_SESSION_ID[name](bob, MISSING_ID)
    assert str(for_ada.value).replace(session_id, "?") == str(for_missing.value).replace(MISSING_ID, "?")
    assert for_ada.value.facts.keys() == for_missing.value.facts.keys()
    assert store.export(session_id) == before


@pytest.mark.parametrize("name", BY_SESSION_ID)
def test_a_session_outside_the_scope_looks_like_one_that_does_not_exist(
    store: SessionStore, dm: Source, name: str
) -> None:
    session_id = store.record_user_message(dm("ada"), "a secret").session_id
    ada = store.get_or_create_person(dm("ada")).principal
    for limits in ({"lane_key": "agent:main:telegram:dm:elsewhere"}, {"audience_no": 0}):
        view = SessionView(store.engine, ViewScope(principal=ada, clock=store.clock, **limits))
        with pytest.raises(SessionNotFound) as for_hidden:
            BY_SESSION_ID[name](view, session_id)
        with pytest.raises(SessionNotFound) as for_missing:
            BY_SESSION_ID[name](view, MISSING_ID)
        assert str(for_hidden.value).replace(session_id, "?") == str(for_missing.value).replace(MISSING_ID, "?")
        assert for_hidden.value.facts.keys() == for_missing.value.facts.keys()
        assert view.list() == ()
        assert view.summaries.list() == ()
        assert view.search("secret") == []


def test_a_turn_of_another_person_looks_like_one_that_does_not_exist(store: SessionStore, dm: Source) -> None:
    recorded = store.record_user_message(dm("ada"), "a secret")

    def queue(tx: Transaction) -> TurnId:
        request = turns.TurnRequest(session_no=sessions.get_no(tx, recorded.session_id), input_seq=recorded.seq)
        return turns.enqueue(tx, request, 0)

    turn_id = store.engine.run(Write(queue))
    assert open_view(store, dm("ada")).get_turn(turn_id).session_id == recorded.session_id
    for missing in (turn_id, "t_0000000000000000"):
        with pytest.raises(NotFound) as refused:
            open_view(store, dm("bob")).get_turn(missing)
        assert str(refused.value) == f"There is no turn {missing}."


def test_lists_searches_and_reports_contain_only_what_is_yours(store: SessionStore, dm: Source) -> None:
    for user in ("ada", "bob", "eve"):
        recorded = store.record_user_message(dm(user), f"{user} shares the password")
        store.update_session(recorded.session_id, turn_id="t", model="m", input_tokens=10)
    view = open_view(store, dm("bob"))
    assert [session.preview for session in view.list()] == ["bob shares the password"]
    assert [summary.session.preview for summary in view.summaries.list()] == ["bob shares the password"]
    assert [hit.message.content for hit in view.search("password")] == ["bob shares the password"]
    assert view.search("ada") == []
    assert view.usage.report().total.input_tokens == 10
    stranger = open_view(store, dm("stranger"))
    assert stranger.list() == ()
    assert stranger.summaries.list() == ()
    assert stranger.usage.report().total.input_tokens == 0


@pytest.mark.both_engines
def test_an_id_prefix_does_not_match_sessions_of_other_people(store: SessionStore, dm: Source) -> None:
    theirs = store.record_user_message(dm("ada"), "x").session_id
    mine = store.record_user_message(dm("bob"), "y").session_id
    view = open_view(store, dm("bob"))
    assert view.find("20261115_081200_").id == mine  # Ada's session has the same prefix, and it is not ambiguous
    with pytest.raises(SessionNotFound):
        view.find(theirs[:-1])


def test_a_title_does_not_match_sessions_of_other_people(store: SessionStore, dm: Source) -> None:
    ada, bob = (store.record_user_message(dm(user), user).session_id for user in ("ada", "bob"))
    open_view(store, dm("ada")).rename(ada, "Divorce")
    view = open_view(store, dm("bob"))
    with pytest.raises(SessionNotFound):
        view.find("Divorce")
    assert view.rename(bob, "Divorce").title == "Divorce"  # titles are unique per owner, not per gateway
    assert view.find("divorce").id == bob


def test_a_principal_without_a_person_sees_nothing(store: SessionStore, dm: Source) -> None:
    recorded = store.record_user_message(dm(), "hello")
    stranger = store.seen_by(Principal(PersonId("p_made_up")))
    assert stranger.list() == ()
    assert stranger.search("hello") == []
    with pytest.raises(SessionNotFound):
        stranger.load_messages(recorded.session_id)


def test_the_same_user_id_on_two_platforms_is_two_people(store: SessionStore) -> None:
    telegram = SessionSource("telegram", "5", user_id="5")
    discord = SessionSource("discord", "5", user_id="5")
    store.record_user_message(telegram, "on telegram")
    assert open_view(store, discord).list() == ()
    assert store.get_or_create_person(telegram).id != store.get_or_create_person(discord).id


# -- shared sessions -----------------------------------------------------------------------------------------


def test_a_shared_session_is_visible_to_everyone_who_wrote_in_it(open_store: OpenStore, group: Source) -> None:
    store = open_store(SHARED)
    recorded = store.record_user_message(group("ada"), "who is in?")
    assert store.record_user_message(group("bob"), "me").session_id == recorded.session_id
    for user in ("ada", "bob"):
        view = open_view(store, group(user))
        assert [session.id for session in view.list()] == [recorded.session_id]
        assert len(view.load_messages(recorded.session_id)) == 2
        assert [hit.message.content for hit in view.search("who")] == ["who is in?"]
    assert open_view(store, group("eve")).list() == ()
    with pytest.raises(SessionNotFound):
        open_view(store, group("eve")).get(recorded.session_id)


def test_members_of_a_shared_lane_also_see_its_sessions_after_a_reset(open_store: OpenStore, group: Source) -> None:
    store = open_store(SHARED)
    recorded = store.record_user_message(group("ada"), "one")
    store.record_user_message(group("bob"), "two")
    store.reset_session(recorded.session_key)
    new = store.record_user_message(group("ada"), "three")
    assert {session.id for session in open_view(store, group("bob")).list()} == {recorded.session_id, new.session_id}


def test_members_of_a_shared_lane_also_see_its_sessions_after_a_deletion(open_store: OpenStore, group: Source) -> None:
    store = open_store(SHARED)
    recorded = store.record_user_message(group("ada"), "one")
    store.record_user_message(group("bob"), "two")
    store.delete_session(recorded.session_id)
    new = store.record_user_message(group("ada"), "three")
    assert [session.id for session in open_view(store, group("bob")).list()] == [new.session_id]


def test_a_persons_own_lane_in_a_group_is_visible_only_to_them(store: SessionStore, group: Source) -> None:
    store.record_user_message(group("ada"), "mine")
    store.record_user_message(group("bob"), "and mine")
    assert [session.preview for session in open_view(store, group("bob")).list()] == ["and mine"]


def test_each_message_in_a_shared_session_has_its_author(open_store: OpenStore, group: Source) -> None:
    store = open_store(SHARED)
    recorded = store.record_user_message(group("ada"), "hello")
    store.record_user_message(group("bob"), "hello")
    authors = [message["author"] for message in store.load_transcript(recorded.session_id)]
    assert authors == [{"id": "ada", "name": "Ada"}, {"id": "bob", "name": "Bob"}]
    people = [event.person_id for event in store.load_events(recorded.session_id) if event.message]
    assert people == [store.get_or_create_person(group(user)).id for user in ("ada", "bob")]


def test_a_private_session_continued_in_a_group_stays_private(open_store: OpenStore, dm: Source, group: Source) -> None:
    store = open_store(SHARED)
    private = store.record_user_message(dm("ada"), "my diary")
    lane = store.record_user_message(group("bob"), "hi all")
    store.switch_session(lane.session_key, private.session_id)
    assert store.record_user_message(group("bob"), "what diary?").session_id == private.session_id
    assert store.load_transcript(private.session_id)[-1]["author"] == {"id": "bob", "name": "Bob"}
    with pytest.raises(SessionNotFound):
        open_view(store, group("bob")).load_messages(private.session_id)


@pytest.mark.parametrize(
    "change",
    [lambda v, s: v.delete(s), lambda v, s: v.archive(s), lambda v, s: v.pin(s), lambda v, s: v.move(s, None)],
    ids=["delete", "archive", "pin", "move"],
)
def test_only_an_owner_can_delete_or_organize_a_shared_session(
    open_store: OpenStore, group: Source, change: Callable[[SessionView, str], Any]
) -> None:
    store = open_store(SHARED)
    recorded = store.record_user_message(group("ada"), "ours")
    with pytest.raises(NotAllowed, match="share"):
        change(open_view(store, group("ada")), recorded.session_id)
    change(open_owner_view(store, everything=True), recorded.session_id)


def test_a_fork_of_a_shared_session_belongs_to_one_person(open_store: OpenStore, group: Source) -> None:
    store = open_store(SHARED)
    recorded = store.record_user_message(group("ada"), "ours")
    store.record_user_message(group("bob"), "yes, ours")
    copy = open_view(store, group("bob")).fork(recorded.session_id)
    assert not copy.shared
    assert copy.id in {session.id for session in open_view(store, group("bob")).list()}
    assert copy.id not in {session.id for session in open_view(store, group("ada")).list()}


# -- the owner -----------------------------------------------------------------------------------------------


def test_the_owner_sees_all_sessions_only_with_everything(store: SessionStore, dm: Source) -> None:
    recorded = store.record_user_message(dm("ada"), "a secret")
    assert open_owner_view(store).list() == ()
    assert open_owner_view(store).search("secret") == []
    view = open_owner_view(store, everything=True)
    assert [session.id for session in view.list()] == [recorded.session_id]
    assert [hit.session_id for hit in view.search("secret")] == [recorded.session_id]
    assert view.find(recorded.session_id[:-1]).id == recorded.session_id


@pytest.mark.parametrize(
    "principal",
    [
        Principal(PersonId("p"), Role.MEMBER),
        Principal(PersonId("p"), Role.GUEST),
        Principal(PersonId("p"), Role.OWNER, JobId("nightly")),
    ],
    ids=["member", "guest", "job"],
)
def test_only_an_owner_can_open_a_view_of_everything(store: SessionStore, principal: Principal) -> None:
    with pytest.raises(NotAllowed):
        store.seen_by(principal, everything=True)
    with pytest.raises(NotAllowed):
        store.aio.seen_by(principal, everything=True)


def test_the_person_at_the_terminal_is_the_owner(store: SessionStore) -> None:
    recorded = store.record_user_message(SessionSource.local_cli(), "hello")
    assert store.get_or_create_person(SessionSource.local_cli()) == store.get_owner()
    assert [session.id for session in open_owner_view(store).list()] == [recorded.session_id]


def test_a_new_account_becomes_a_guest(store: SessionStore, dm: Source) -> None:
    assert store.get_or_create_person(dm()).role is Role.GUEST
    assert store.get_or_create_person(dm()).name == "Ada"


def test_a_session_from_a_source_without_a_user_belongs_to_no_person(store: SessionStore) -> None:
    channel = SessionSource("slack", "general", chat_type="channel")
    recorded = store.record_user_message(channel, "posted by a bot")
    with pytest.raises(InvalidInput, match="user_id"):
        store.get_or_create_person(channel)
    assert open_owner_view(store).list() == ()
    assert [session.id for session in open_owner_view(store, everything=True).list()] == [recorded.session_id]


# -- finding and titles --------------------------------------------------------------------------------------


@pytest.fixture
def ada(store: SessionStore, dm: Source) -> SessionView:
    return open_view(store, dm())


def create_session(store: SessionStore, dm: Source, text: str = "hi") -> str:
    entry = store.get_or_create_session(dm(), force_new=True)
    store.append_to_transcript(entry.session_id, {"role": "user", "content": text})
    return entry.session_id


def test_a_session_is_found_by_id_by_id_prefix_and_by_title(
    store: SessionStore, dm: Source, ada: SessionView, clock: FakeClock
) -> None:
    one = create_session(store, dm)
    clock.advance(days=1)
    other = create_session(store, dm)
    ada.rename(one, "My Project")
    assert ada.find(one).id == ada.find("20261115").id == ada.find("my project").id == one
    assert ada.find("20261116").id == other
    with pytest.raises(AmbiguousMatch, match=one):
        ada.find("2026111")


@pytest.mark.both_engines
def test_the_same_title_of_two_people_is_ambiguous_for_an_owner_who_sees_both(store: SessionStore, dm: Source) -> None:
    ids = []
    for user in ("ada", "bob"):
        ids.append(store.record_user_message(dm(user), "milk").session_id)
        open_view(store, dm(user)).rename(ids[-1], "Groceries")
    with pytest.raises(AmbiguousMatch, match=ids[0]) as ambiguous:
        open_owner_view(store, everything=True).find("groceries")
    assert set(ambiguous.value.facts["matches"]) == set(ids)  # type: ignore[call-overload]


@pytest.mark.parametrize("text", ["", "  ", "202", "nothing", "%", "_", "20261115_081200_zzzzzzzz", "💥", "\0"])
def test_a_text_that_matches_no_session_is_reported(
    store: SessionStore, dm: Source, ada: SessionView, text: str
) -> None:
    create_session(store, dm)
    with pytest.raises(SessionNotFound, match="No conversation matches"):
        ada.find(text)


def test_a_title_finds_the_newest_of_its_numbered_line(store: SessionStore, dm: Source, ada: SessionView) -> None:
    ids = [create_session(store, dm) for _ in range(4)]
    for session_id, title in zip(
        ids, ["My Project", "My Project #3", "My Project #2", "My Project #draft"], strict=True
    ):
        ada.rename(session_id, title)
    assert ada.find("my project").id == ids[1]
    assert ada.find("My Project #2").id == ids[2]
    assert ada.find("My Project #1").id == ids[0]
    assert ada.find("MY PROJECT #DRAFT").id == ids[3]
    assert store.find_free_title(ids[0], "My Project") == "My Project #4"
    assert store.find_free_title(ids[0], "Another") == "Another"


def test_a_taken_title_is_refused_with_a_free_one(store: SessionStore, dm: Source, ada: SessionView) -> None:
    one, other = create_session(store, dm), create_session(store, dm)
    ada.rename(one, "Plan")
    with pytest.raises(TitleTaken, match=r"'Plan'.*'PLAN #2'"):
        ada.rename(other, "PLAN")
    assert ada.rename(other, "PLAN #2").title == "PLAN #2"
    assert ada.rename(one, "plan").title == "plan"  # its own title in different case
    ada.rename(one, None)
    assert ada.rename(other, "Plan").title == "Plan"


@pytest.mark.parametrize("title", ["", " \t ", "\u200b\u202e", "x" * 101])
def test_an_invalid_title_is_refused(store: SessionStore, dm: Source, ada: SessionView, title: str) -> None:
    session_id = create_session(store, dm)
    with pytest.raises(InvalidTitle):
        ada.rename(session_id, title)
    assert ada.get(session_id).title is None


# -- lists, projects, export ---------------------------------------------------------------------------------


@pytest.mark.both_engines
def test_pages_contain_own_and_shared_sessions_in_one_order(
    open_store: OpenStore, dm: Source, group: Source, clock: FakeClock
) -> None:
    store = open_store(SHARED)
    expected = []
    for number in range(15):
        clock.advance(seconds=1)
        source = group("ada", chat=f"club{number}")
        if number % 3:  # the others are shared lanes
            source = replace(dm("ada"), platform=source.platform)
            store.get_or_create_session(source, force_new=True)
        expected.append(store.record_user_message(source, str(number)).session_id)
        store.record_user_message(dm("bob"), "noise")
    view = open_view(store, group("ada"))
    listed: list[str] = []
    cursor = None
    while True:
        page = view.list(limit=4, cursor=cursor)
        listed += [session.id for session in page]
        cursor = page.cursor
        if cursor is None:
            break
    assert listed == expected[::-1]


def test_messages_are_loaded_page_by_page_from_the_end(store: SessionStore, dm: Source, ada: SessionView) -> None:
    session_id = create_session(store, dm, "0")
    for number in range(1, 10):
        store.append_to_transcript(session_id, str(number))
    last = ada.load_messages(session_id, limit=3)
    assert [event.message.content for event in last if event.message] == ["7", "8", "9"]
    before = ada.load_messages(session_id, before=last[0].seq, limit=3)
    assert [event.message.content for event in before if event.message] == ["4", "5", "6"]
    assert len(ada.load_messages(session_id, limit=None)) == 10


@pytest.mark.both_engines
def test_a_person_organizes_sessions_in_projects(store: SessionStore, dm: Source, ada: SessionView) -> None:
    session_id = create_session(store, dm)
    project = ada.projects.create("Garden", "#3b82f6")
    assert ada.move(session_id, "garden").project_id == project.id
    assert [session.id for session in ada.list(project="Garden")] == [session_id]
    assert [(each.name, each.session_count, each.color) for each in ada.projects.list()] == [("Garden", 1, "#3b82f6")]
    assert ada.projects.update("garden", name="Allotment").name == "Allotment"
    ada.projects.delete("Allotment")
    assert ada.get(session_id).project_id is None
    with pytest.raises(ProjectNotFound):
        ada.list(project="Garden")


@pytest.mark.both_engines
def test_a_project_with_many_sessions_disappears_at_once_and_they_leave_it_in_pieces(
    store: SessionStore, dm: Source, ada: SessionView, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(projects, "SESSIONS_PER_PIECE", 2)
    gone, other = ada.projects.create("Garden"), ada.projects.create("House")
    ada.projects.update("garden", instructions="Be brief.")
    mine = [create_session(store, dm) for _ in range(6)]
    for session_id in mine:
        ada.move(session_id, (other if session_id == mine[0] else gone).id)
    no = store.engine.run(Read(lambda tx: projects.get_by_id(tx, gone.id)[0]))

    assert ada.projects.delete("garden").session_count == 5
    assert [project.name for project in ada.projects.list()] == ["House"]
    assert [ada.get(session_id).project_id for session_id in mine] == [other.id, *[None] * 5]
    assert len(ada.list()) == 6
    for text in (gone.id, "Garden", f"deleted-{no}", f"deleted  {no}"):
        with pytest.raises(ProjectNotFound):
            ada.list(project=text)
        with pytest.raises(ProjectNotFound):
            ada.move(mine[0], text)
    with pytest.raises(ProjectNotFound):
        store.move_to_project(mine[0], f"deleted-{no}")
    owner_id = store.get_or_create_person(dm()).id
    last_no = store.engine.run(Read(lambda tx: sessions.get(tx, mine[5]).no))
    assert store.engine.run(Read(lambda tx: projects.load_instructions(tx, last_no, owner_id))) is None
    [exported] = store.engine.run(Read(lambda tx: export_rows.list_rows(tx, sessions.EXPORT, "t.no = $1", [last_no])))
    assert exported.references["project"] is None
    of_session = "t.no = (SELECT s.project_no FROM session s WHERE s.no = $1)"
    assert not store.engine.run(Read(lambda tx: export_rows.list_rows(tx, projects.EXPORT, of_session, [last_no])))
    of_person = "t.person_id = $1"
    found = store.engine.run(Read(lambda tx: export_rows.list_rows(tx, projects.EXPORT, of_person, [owner_id])))
    assert len(found) == 1
    again = ada.projects.create("Garden")
    ada.move(mine[1], "Garden")

    pieces = 0
    while (hidden := store.engine.run(find_hidden(SESSION_PIECES))) is not None:
        store.engine.run(delete_piece(hidden, SESSION_PIECES))
        pieces += 1
    assert pieces == 3  # two, two and none of the four that were left
    assert [ada.get(session_id).project_id for session_id in mine] == [other.id, again.id, *[None] * 4]
    assert [project.session_count for project in ada.projects.list()] == [1, 1]

    for session_id in mine:
        ada.move(session_id, "House")
    ada.projects.delete_completely("House")
    assert store.engine.run(Read(lambda tx: tx.fetch_all("SELECT id FROM project"))) == [(again.id,)]


@pytest.mark.both_engines
def test_the_store_moves_a_session_by_the_id_of_a_project(store: SessionStore, dm: Source, ada: SessionView) -> None:
    session_id = create_session(store, dm)
    project = ada.projects.create("Garden")
    assert store.move_to_project(session_id, project.id).project_id == project.id
    assert store.move_to_project(session_id, None).project_id is None
    with pytest.raises(ProjectNotFound):
        store.move_to_project(session_id, "proj_none")


def test_projects_belong_to_one_person(store: SessionStore, dm: Source, ada: SessionView) -> None:
    bob = open_view(store, dm("bob"))
    project = ada.projects.create("Secret plan")
    mine = store.record_user_message(dm("bob"), "hi").session_id
    assert bob.projects.list() == []
    for attempt in (
        lambda: bob.move(mine, project.id),
        lambda: bob.list(project="Secret plan"),
        lambda: bob.projects.update(project.id, name="Mine"),
        lambda: bob.projects.delete("Secret plan"),
        lambda: bob.projects.delete_completely("Secret plan"),
    ):
        with pytest.raises(ProjectNotFound):
            attempt()
    assert bob.projects.create("Secret plan").id != project.id


@pytest.mark.parametrize(
    ("name", "color", "reason"), [("", None, "printable"), ("ok", "red", "color"), ("Garden", None, "'garden'")]
)
def test_an_invalid_project_is_refused(ada: SessionView, name: str, color: str | None, reason: str) -> None:
    ada.projects.create("garden")
    with pytest.raises(InvalidInput, match=reason):
        ada.projects.create(name, color)


def test_an_export_contains_the_complete_log(store: SessionStore, dm: Source, ada: SessionView) -> None:
    session_id = create_session(store, dm, "one")
    store.append_to_transcript(session_id, {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]})
    ada.rename(session_id, "Plan")
    ada.undo(session_id)
    data = ada.export(session_id)
    assert (data["format"], data["title"], data["message_count"]) == ("palaver.session/1", "Plan", 0)
    assert [event["kind"] for event in data["events"]] == ["started", "message", "message", "renamed", "undone"]
    started, message, _, renamed, _ = data["events"]
    assert (message["message"]["content"], message["hidden"]) == ("one", True)
    assert (started["message"], started["person"]) == (None, None)
    assert (renamed["person"]["name"], renamed["facts"]["title"]) == ("Ada", "Plan")


# -- search --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("zebra", ["the zebra crossed"]),
        ("ZEBRA crossed", ["the zebra crossed"]),
        ('"zebra crossed"', ["the zebra crossed"]),
        ('"crossed zebra"', []),
        ("zeb*", ["the zebra crossed"]),
        ("zeb", []),
        ("the -zebra", ["über the Café"]),
        ("uber", ["über the Café"]),
        ("cafe", ["über the Café"]),
        ("服务", ["部署服务器"]),
        ("务器", ["部署服务器"]),
        ("器务", []),
        ("", []),
        ("-zebra", []),
        ("' OR 1=1 --", []),
        ('"*^():{}[]', []),
    ],
)
def test_a_search_finds_messages_by_words(
    store: SessionStore, dm: Source, ada: SessionView, query: str, expected: list[str]
) -> None:
    for text in ("the zebra crossed", "über the Café", "部署服务器"):
        create_session(store, dm, text)
    assert [hit.message.content for hit in ada.search(query)] == expected


@pytest.mark.both_engines
def test_a_search_returns_newest_first_and_continues_at_a_position(
    store: SessionStore, dm: Source, ada: SessionView
) -> None:
    session_id = create_session(store, dm, "apple 0")
    for number in range(1, 7):
        store.append_to_transcript(session_id, f"apple {number}")
    first = ada.search("apple", limit=4)
    assert [hit.message.content for hit in first] == [f"apple {number}" for number in (6, 5, 4, 3)]
    rest = ada.search("apple", limit=4, cursor=first[-1].cursor)
    assert [hit.message.content for hit in rest] == [f"apple {number}" for number in (2, 1, 0)]
    assert first[0].snippet.highlight() == "[apple] 6"
    assert ada.search("apple", within=create_session(store, dm)) == []


def test_a_search_finds_every_stored_message_and_no_hidden_one(
    store: SessionStore, dm: Source, ada: SessionView
) -> None:
    session_id = create_session(store, dm, "needle one")
    assert len(ada.search("needle")) == 1
    store.append_to_transcript(session_id, {"role": "user", "content": "needle two"})
    assert len(ada.search("needle")) == 2
    store.undo(session_id)
    assert [hit.message.content for hit in ada.search("needle")] == ["needle one"]
    store.redo(session_id)
    assert len(ada.search("needle")) == 2
    store.rewrite_transcript(session_id, [{"role": "user", "content": "needle three"}])
    assert [hit.message.content for hit in ada.search("needle")] == ["needle three"]
    copy = store.fork(session_id)
    assert {hit.session_id for hit in ada.search("three")} == {session_id, copy.id}


@pytest.mark.parametrize("limit", [0, 201])
def test_a_limit_out_of_range_is_refused(ada: SessionView, limit: int) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        ada.search("x", limit=limit)
