"""Two people on one gateway: each sees and changes what is theirs, and nothing tells them of the rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, Principal, Role, SessionSource, SessionStore
from palaver.domain.errors import (
    Ambiguous,
    InvalidInput,
    InvalidTitle,
    NoSuchProject,
    NoSuchSession,
    NotAllowed,
    NotFound,
    TitleTaken,
)
from palaver.domain.ids import JobId, PersonId
from palaver.storage import sessions, turns
from palaver.storage.engines.base import Write

if TYPE_CHECKING:
    from conftest import OpenStore
    from palaver import SessionView
    from palaver.domain.ids import TurnId
    from palaver.storage.engines.base import Transaction
    from palaver.testing import FakeClock

Source = Callable[..., SessionSource]
SHARED = GatewayConfig(group_sessions_per_user=False)


def view_of(store: SessionStore, source: SessionSource) -> SessionView:
    return store.seen_by(store.person_for(source).principal)


def owner_of(store: SessionStore, *, everything: bool = False) -> SessionView:
    return store.seen_by(store.owner().principal, everything=everything)


# -- the boundary --------------------------------------------------------------------------------------------

# Everything that can be asked of a session by its id.
BY_ID: dict[str, Callable[[SessionView, str], Any]] = {
    "get": lambda view, it: view.get(it),
    "find": lambda view, it: view.find(it),
    "load": lambda view, it: view.load(it),
    "events": lambda view, it: view.events(it),
    "export": lambda view, it: view.export(it),
    "search within": lambda view, it: view.search("secret", within=it),
    "rename": lambda view, it: view.rename(it, "mine now"),
    "pin": lambda view, it: view.pin(it),
    "archive": lambda view, it: view.archive(it),
    "move": lambda view, it: view.move(it, None),
    "undo": lambda view, it: view.undo(it),
    "redo": lambda view, it: view.redo(it),
    "fork": lambda view, it: view.fork(it),
    "delete": lambda view, it: view.delete(it),
    "overview": lambda view, it: view.overview(it),
    "excerpt": lambda view, it: view.excerpt(it),
    "log": lambda view, it: view.log(it),
    "mark_read": lambda view, it: view.mark_read(it, 1),
    "change": lambda view, it: view.change(it, {"title": "mine now"}),
    "deliveries": lambda view, it: view.deliveries(it),
    "send_again": lambda view, it: view.send_again(it, "d_0000000000000000"),
}


def test_every_way_to_reach_a_session_is_tried_by_the_leak_test(store: SessionStore, dm: Source) -> None:
    view = view_of(store, dm())
    verbs = {name for name in dir(view) if not name.startswith("_")}
    own = {"list", "overviews", "search", "usage", "turn"}
    own |= {"projects", "create_project", "change_project", "delete_project"}
    own |= {
        "memories",
        "remember",
        "change_memory",
        "forget_memory",
    }  # tests/services/test_memory.py has its two people
    assert verbs - own == {name.split()[0] for name in BY_ID} - {"search"}


def test_a_turn_of_somebody_else_looks_like_one_that_does_not_exist(store: SessionStore, dm: Source) -> None:
    said = store.record_user_message(dm("ada"), "a secret")

    def queue(tx: Transaction) -> TurnId:
        wanted = turns.TurnRequest(session_no=sessions.number_of(tx, said.session_id), input_seq=said.seq)
        return turns.enqueue(tx, wanted, 0)

    turn_id = store.engine.run(Write(queue))
    assert view_of(store, dm("ada")).turn(turn_id).session_id == said.session_id
    for missing in (turn_id, "t_0000000000000000"):
        with pytest.raises(NotFound) as refused:
            view_of(store, dm("bob")).turn(missing)
        assert str(refused.value) == f"there is no turn {missing}"


@pytest.mark.parametrize("way", BY_ID)
def test_what_is_not_yours_looks_like_what_does_not_exist(store: SessionStore, dm: Source, way: str) -> None:
    said = store.record_user_message(dm("ada"), "a secret")
    before = store.export(said.session_id)
    bob = view_of(store, dm("bob"))
    with pytest.raises(NoSuchSession) as of_ada:
        BY_ID[way](bob, said.session_id)
    with pytest.raises(NoSuchSession) as of_nobody:
        BY_ID[way](bob, "20200101_000000_00000000")
    assert str(of_ada.value).replace(said.session_id, "?") == str(of_nobody.value).replace(
        "20200101_000000_00000000", "?"
    )
    assert of_ada.value.facts.keys() == of_nobody.value.facts.keys()
    assert store.export(said.session_id) == before


def test_lists_and_searches_hold_only_what_is_yours(store: SessionStore, dm: Source) -> None:
    for user in ("ada", "bob", "eve"):
        store.record_user_message(dm(user), f"{user} shares the password")
    view = view_of(store, dm("bob"))
    assert [session.preview for session in view.list()] == ["bob shares the password"]
    assert [hit.message.content for hit in view.search("password")] == ["bob shares the password"]
    assert view.search("ada") == []
    assert view_of(store, dm("nobody")).list() == ()


def test_an_id_prefix_reveals_nothing_of_others(store: SessionStore, dm: Source) -> None:
    theirs = store.record_user_message(dm("ada"), "x").session_id
    mine = store.record_user_message(dm("bob"), "y").session_id
    view = view_of(store, dm("bob"))
    assert view.find("20261115_081200_").id == mine  # Ada's begins the same and does not make it ambiguous
    with pytest.raises(NoSuchSession):
        view.find(theirs[:-1])


def test_a_title_reveals_nothing_of_others(store: SessionStore, dm: Source) -> None:
    ada, bob = (store.record_user_message(dm(user), user).session_id for user in ("ada", "bob"))
    view_of(store, dm("ada")).rename(ada, "Divorce")
    bobs = view_of(store, dm("bob"))
    with pytest.raises(NoSuchSession):
        bobs.find("Divorce")
    assert bobs.rename(bob, "Divorce").title == "Divorce"  # titles are unique per owner, not per gateway
    assert bobs.find("divorce").id == bob


def test_a_principal_that_nobody_has_sees_nothing(store: SessionStore, dm: Source) -> None:
    said = store.record_user_message(dm(), "hello")
    stranger = store.seen_by(Principal(PersonId("p_made_up")))
    assert stranger.list() == ()
    assert stranger.search("hello") == []
    with pytest.raises(NoSuchSession):
        stranger.load(said.session_id)


def test_two_accounts_of_one_platform_are_two_people_and_two_platforms_too(store: SessionStore) -> None:
    one = SessionSource("telegram", "5", user_id="5")
    other = SessionSource("discord", "5", user_id="5")
    store.record_user_message(one, "on telegram")
    assert view_of(store, other).list() == ()
    assert store.person_for(one).id != store.person_for(other).id


# -- shared sessions -----------------------------------------------------------------------------------------


def test_a_shared_session_is_visible_to_those_who_took_part(open_store: OpenStore, group: Source) -> None:
    store = open_store(SHARED)
    said = store.record_user_message(group("ada"), "who is in?")
    assert store.record_user_message(group("bob"), "me").session_id == said.session_id
    for user in ("ada", "bob"):
        view = view_of(store, group(user))
        assert [session.id for session in view.list()] == [said.session_id]
        assert len(view.load(said.session_id)) == 2
        assert [hit.message.content for hit in view.search("who")] == ["who is in?"]
    assert view_of(store, group("eve")).list() == ()
    with pytest.raises(NoSuchSession):
        view_of(store, group("eve")).get(said.session_id)


def test_taking_part_lasts_over_a_reset(open_store: OpenStore, group: Source) -> None:
    store = open_store(SHARED)
    said = store.record_user_message(group("ada"), "one")
    store.record_user_message(group("bob"), "two")
    store.reset_session(said.session_key)
    new = store.record_user_message(group("ada"), "three")
    assert {session.id for session in view_of(store, group("bob")).list()} == {said.session_id, new.session_id}


def test_taking_part_lasts_when_the_lanes_session_is_deleted(open_store: OpenStore, group: Source) -> None:
    store = open_store(SHARED)
    said = store.record_user_message(group("ada"), "one")
    store.record_user_message(group("bob"), "two")
    store.delete_session(said.session_id)
    new = store.record_user_message(group("ada"), "three")
    assert [session.id for session in view_of(store, group("bob")).list()] == [new.session_id]


def test_a_persons_own_lane_in_a_group_is_theirs(store: SessionStore, group: Source) -> None:
    store.record_user_message(group("ada"), "mine")
    store.record_user_message(group("bob"), "and mine")
    assert [session.preview for session in view_of(store, group("bob")).list()] == ["and mine"]


def test_each_message_in_a_shared_session_carries_its_author(open_store: OpenStore, group: Source) -> None:
    store = open_store(SHARED)
    said = store.record_user_message(group("ada"), "hello")
    store.record_user_message(group("bob"), "hello")
    authors = [message["author"] for message in store.load_transcript(said.session_id)]
    assert authors == [{"id": "ada", "name": "Ada"}, {"id": "bob", "name": "Bob"}]
    people = [event.person_id for event in store.events(said.session_id) if event.message]
    assert people == [store.person_for(group(user)).id for user in ("ada", "bob")]


def test_a_private_session_continued_in_a_group_stays_private(open_store: OpenStore, dm: Source, group: Source) -> None:
    store = open_store(SHARED)
    private = store.record_user_message(dm("ada"), "my diary")
    lane = store.record_user_message(group("bob"), "hi all")
    store.switch_session(lane.session_key, private.session_id)
    assert store.record_user_message(group("bob"), "what diary?").session_id == private.session_id
    assert store.load_transcript(private.session_id)[-1]["author"] == {"id": "bob", "name": "Bob"}
    with pytest.raises(NoSuchSession):
        view_of(store, group("bob")).load(private.session_id)


@pytest.mark.parametrize(
    "change",
    [lambda v, s: v.delete(s), lambda v, s: v.archive(s), lambda v, s: v.pin(s), lambda v, s: v.move(s, None)],
    ids=["delete", "archive", "pin", "move"],
)
def test_members_may_not_take_a_shared_session_from_the_others(
    open_store: OpenStore, group: Source, change: Callable[[SessionView, str], Any]
) -> None:
    store = open_store(SHARED)
    said = store.record_user_message(group("ada"), "ours")
    with pytest.raises(NotAllowed, match="share"):
        change(view_of(store, group("ada")), said.session_id)
    change(owner_of(store, everything=True), said.session_id)


def test_a_fork_of_a_shared_session_is_ones_own(open_store: OpenStore, group: Source) -> None:
    store = open_store(SHARED)
    said = store.record_user_message(group("ada"), "ours")
    store.record_user_message(group("bob"), "yes, ours")
    copy = view_of(store, group("bob")).fork(said.session_id)
    assert not copy.shared
    assert copy.id in {session.id for session in view_of(store, group("bob")).list()}
    assert copy.id not in {session.id for session in view_of(store, group("ada")).list()}


# -- the owner -----------------------------------------------------------------------------------------------


def test_the_owner_sees_everything_only_when_asking_for_it(store: SessionStore, dm: Source) -> None:
    said = store.record_user_message(dm("ada"), "a secret")
    assert owner_of(store).list() == ()
    assert owner_of(store).search("secret") == []
    whole = owner_of(store, everything=True)
    assert [session.id for session in whole.list()] == [said.session_id]
    assert [hit.session_id for hit in whole.search("secret")] == [said.session_id]
    assert whole.find(said.session_id[:-1]).id == said.session_id


@pytest.mark.parametrize(
    "principal",
    [
        Principal(PersonId("p"), Role.MEMBER),
        Principal(PersonId("p"), Role.GUEST),
        Principal(PersonId("p"), Role.OWNER, JobId("nightly")),
    ],
    ids=["member", "guest", "job"],
)
def test_nobody_else_may_ask_for_everything(store: SessionStore, principal: Principal) -> None:
    with pytest.raises(NotAllowed):
        store.seen_by(principal, everything=True)
    with pytest.raises(NotAllowed):
        store.aio.seen_by(principal, everything=True)


def test_the_terminal_belongs_to_the_owner(store: SessionStore) -> None:
    said = store.record_user_message(SessionSource.local_cli(), "hello")
    assert store.person_for(SessionSource.local_cli()) == store.owner()
    assert [session.id for session in owner_of(store).list()] == [said.session_id]


def test_strangers_are_guests(store: SessionStore, dm: Source) -> None:
    assert store.person_for(dm()).role is Role.GUEST
    assert store.person_for(dm()).name == "Ada"


def test_a_source_without_anybody_belongs_to_nobody(store: SessionStore) -> None:
    channel = SessionSource("slack", "general", chat_type="channel")
    said = store.record_user_message(channel, "posted by nobody")
    with pytest.raises(InvalidInput, match="user_id"):
        store.person_for(channel)
    assert owner_of(store).list() == ()
    assert [session.id for session in owner_of(store, everything=True).list()] == [said.session_id]


# -- finding and titles --------------------------------------------------------------------------------------


@pytest.fixture
def ada(store: SessionStore, dm: Source) -> SessionView:
    return view_of(store, dm())


def new_session(store: SessionStore, dm: Source, text: str = "hi") -> str:
    entry = store.get_or_create_session(dm(), force_new=True)
    store.append_to_transcript(entry.session_id, {"role": "user", "content": text})
    return entry.session_id


def test_a_session_is_found_by_id_by_its_beginning_and_by_title(
    store: SessionStore, dm: Source, ada: SessionView, clock: FakeClock
) -> None:
    one = new_session(store, dm)
    clock.advance(days=1)
    other = new_session(store, dm)
    ada.rename(one, "My Project")
    assert ada.find(one).id == ada.find("20261115").id == ada.find("my project").id == one
    assert ada.find("20261116").id == other
    with pytest.raises(Ambiguous, match=one):
        ada.find("2026111")


def test_one_title_of_two_people_is_ambiguous_for_whoever_sees_both(store: SessionStore, dm: Source) -> None:
    ids = []
    for user in ("ada", "bob"):
        ids.append(store.record_user_message(dm(user), "milk").session_id)
        view_of(store, dm(user)).rename(ids[-1], "Groceries")
    with pytest.raises(Ambiguous, match=ids[0]) as several:
        owner_of(store, everything=True).find("groceries")
    assert set(several.value.facts["matches"]) == set(ids)  # type: ignore[call-overload]


@pytest.mark.parametrize("text", ["", "  ", "202", "nothing", "%", "_", "20261115_081200_zzzzzzzz", "💥", "\0"])
def test_what_matches_nothing_is_said_so(store: SessionStore, dm: Source, ada: SessionView, text: str) -> None:
    new_session(store, dm)
    with pytest.raises(NoSuchSession, match="no session matches"):
        ada.find(text)


def test_a_line_of_titles_is_found_by_its_newest(store: SessionStore, dm: Source, ada: SessionView) -> None:
    ids = [new_session(store, dm) for _ in range(4)]
    for session_id, title in zip(
        ids, ["My Project", "My Project #3", "My Project #2", "My Project #draft"], strict=True
    ):
        ada.rename(session_id, title)
    assert ada.find("my project").id == ids[1]
    assert ada.find("My Project #2").id == ids[2]
    assert ada.find("My Project #1").id == ids[0]
    assert ada.find("MY PROJECT #DRAFT").id == ids[3]
    assert store.next_title(ids[0], "My Project") == "My Project #4"
    assert store.next_title(ids[0], "Another") == "Another"


def test_a_title_that_is_taken_offers_a_free_one(store: SessionStore, dm: Source, ada: SessionView) -> None:
    one, other = new_session(store, dm), new_session(store, dm)
    ada.rename(one, "Plan")
    with pytest.raises(TitleTaken, match=r"'Plan'.*'PLAN #2'"):
        ada.rename(other, "PLAN")
    assert ada.rename(other, "PLAN #2").title == "PLAN #2"
    assert ada.rename(one, "plan").title == "plan"  # its own title in another case
    ada.rename(one, None)
    assert ada.rename(other, "Plan").title == "Plan"


@pytest.mark.parametrize("title", ["", " \t ", "\u200b\u202e", "x" * 101])
def test_what_cannot_be_a_title_is_refused(store: SessionStore, dm: Source, ada: SessionView, title: str) -> None:
    session_id = new_session(store, dm)
    with pytest.raises(InvalidTitle):
        ada.rename(session_id, title)
    assert ada.get(session_id).title is None


# -- pages, projects, export ---------------------------------------------------------------------------------


def test_pages_run_through_own_and_shared_sessions_together(
    open_store: OpenStore, dm: Source, group: Source, clock: FakeClock
) -> None:
    store = open_store(SHARED)
    expected = []
    for number in range(15):
        clock.advance(seconds=1)
        source = dm("ada") if number % 3 else group("ada", chat=f"club{number}")
        if number % 3:
            store.get_or_create_session(source, force_new=True)
        expected.append(store.record_user_message(source, str(number)).session_id)
        store.record_user_message(dm("bob"), "noise")
    view, seen, cursor = view_of(store, dm("ada")), [], None
    discord = view_of(store, group("ada"))
    assert len(discord.list()) == 5
    while True:
        page = view.list(limit=4, cursor=cursor)
        seen += [session.id for session in page]
        cursor = page.cursor
        if cursor is None:
            break
    assert seen == [one for number, one in enumerate(expected) if number % 3][::-1]


def test_messages_are_paged_backwards(store: SessionStore, dm: Source, ada: SessionView) -> None:
    session_id = new_session(store, dm, "0")
    for number in range(1, 10):
        store.append_to_transcript(session_id, str(number))
    last = ada.load(session_id, limit=3)
    assert [event.message.content for event in last if event.message] == ["7", "8", "9"]
    before = ada.load(session_id, before=last[0].seq, limit=3)
    assert [event.message.content for event in before if event.message] == ["4", "5", "6"]
    assert len(ada.load(session_id, limit=None)) == 10


def test_projects_hold_a_persons_sessions(store: SessionStore, dm: Source, ada: SessionView) -> None:
    session_id = new_session(store, dm)
    project = ada.create_project("Garden", "#3b82f6")
    assert ada.move(session_id, "garden").project_id == project.id
    assert [session.id for session in ada.list(project="Garden")] == [session_id]
    assert [(each.name, each.session_count, each.colour) for each in ada.projects()] == [("Garden", 1, "#3b82f6")]
    assert ada.change_project("garden", name="Allotment").name == "Allotment"
    ada.delete_project("Allotment")
    assert ada.get(session_id).project_id is None
    with pytest.raises(NoSuchProject):
        ada.list(project="Garden")


def test_trusted_code_moves_sessions_by_the_id_of_a_project(store: SessionStore, dm: Source, ada: SessionView) -> None:
    session_id = new_session(store, dm)
    project = ada.create_project("Garden")
    assert store.move_to_project(session_id, project.id).project_id == project.id
    assert store.move_to_project(session_id, None).project_id is None
    with pytest.raises(NoSuchProject):
        store.move_to_project(session_id, "proj_none")


def test_projects_are_their_owners_alone(store: SessionStore, dm: Source, ada: SessionView) -> None:
    bob = view_of(store, dm("bob"))
    project = ada.create_project("Secret plan")
    mine = store.record_user_message(dm("bob"), "hi").session_id
    assert bob.projects() == []
    for attempt in (
        lambda: bob.move(mine, project.id),
        lambda: bob.list(project="Secret plan"),
        lambda: bob.change_project(project.id, name="Mine"),
        lambda: bob.delete_project("Secret plan"),
    ):
        with pytest.raises(NoSuchProject):
            attempt()
    assert bob.create_project("Secret plan").id != project.id


@pytest.mark.parametrize(
    ("name", "colour", "names"), [("", None, "printable"), ("ok", "red", "colour"), ("Garden", None, "'garden'")]
)
def test_a_project_that_cannot_be_is_refused(ada: SessionView, name: str, colour: str | None, names: str) -> None:
    ada.create_project("garden")
    with pytest.raises(InvalidInput, match=names):
        ada.create_project(name, colour)


def test_an_export_holds_the_whole_log(store: SessionStore, dm: Source, ada: SessionView) -> None:
    session_id = new_session(store, dm, "one")
    store.append_to_transcript(session_id, {"role": "assistant", "content": None, "tool_calls": [{"id": "c"}]})
    ada.rename(session_id, "Kept")
    ada.undo(session_id)
    data = ada.export(session_id)
    assert (data["format"], data["title"], data["message_count"]) == ("palaver.session/1", "Kept", 0)
    assert [event["kind"] for event in data["events"]] == ["started", "message", "message", "renamed", "undone"]
    assert data["events"][1]["content"] == "one"
    assert data["events"][1]["hidden"]


# -- search --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("query", "finds"),
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
def test_a_search_finds_words(store: SessionStore, dm: Source, ada: SessionView, query: str, finds: list[str]) -> None:
    for text in ("the zebra crossed", "über the Café", "部署服务器"):
        new_session(store, dm, text)
    assert [hit.message.content for hit in ada.search(query)] == finds


def test_hits_are_newest_first_and_continue(store: SessionStore, dm: Source, ada: SessionView) -> None:
    session_id = new_session(store, dm, "apple 0")
    for number in range(1, 7):
        store.append_to_transcript(session_id, f"apple {number}")
    first = ada.search("apple", limit=4)
    assert [hit.message.content for hit in first] == [f"apple {number}" for number in (6, 5, 4, 3)]
    rest = ada.search("apple", limit=4, before=first[-1].position)
    assert [hit.message.content for hit in rest] == [f"apple {number}" for number in (2, 1, 0)]
    assert first[0].snippet == "[apple] 6"
    assert ada.search("apple", within=new_session(store, dm)) == []


def test_a_stored_message_is_always_found_and_a_hidden_one_never(
    store: SessionStore, dm: Source, ada: SessionView
) -> None:
    session_id = new_session(store, dm, "needle one")
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
def test_a_number_of_hits_that_cannot_be_is_refused(ada: SessionView, limit: int) -> None:
    with pytest.raises(InvalidInput, match="limit"):
        ada.search("x", limit=limit)
