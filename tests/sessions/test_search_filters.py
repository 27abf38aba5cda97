"""Filters of searches and lists: each finds exactly its matches, and never anything of other people."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from palaver import SessionSource, SessionStore, SessionView
from palaver.accounts import merge_table as person_merge
from palaver.core.engines.base import Write
from palaver.core.errors import InvalidInput, NotFound, ProjectNotFound
from palaver.people import table as people
from palaver.sessions import search_table as search_scope
from palaver.sessions.search_table import _iter_periods
from palaver.sessions.search_text import ArchivedFilter, SearchFilter

if TYPE_CHECKING:
    from collections.abc import Callable

    from palaver.core.ids import SessionId
    from palaver.testing import FakeClock

    Source = Callable[..., SessionSource]

pytestmark = pytest.mark.both_engines


JUNE = datetime(2026, 6, 15, 12, tzinfo=UTC)


class Trip:
    """Ada's conversations, and Bob's with the same words on the same platforms, at the same times."""

    def __init__(self, store: SessionStore, clock: FakeClock) -> None:
        self.store, self.clock = store, clock
        self.ada = self.open_view("ada")
        self.bob = self.open_view("bob")
        clock.set(JUNE)
        self.telegram = self.add("ada", "telegram", "train to lisbon", "the train leaves at nine")
        self.add("bob", "telegram", "secret train", "a secret answer about a train")
        clock.set(JUNE + timedelta(days=40))
        self.slack = self.add("ada", "slack-team_1", "train to porto", "the porto train")
        self.add("bob", "slack-team_1", "secret train to porto")
        clock.set(JUNE + timedelta(days=400))
        self.store.append_to_transcript(self.telegram, {"role": "tool", "content": "train table", "tool_call_id": "1"})

    def open_view(self, user: str) -> SessionView:
        source = SessionSource("telegram", user, user_id=user)
        return self.store.seen_by(self.store.get_or_create_person(source).principal)

    def add(self, user: str, platform: str, question: str, *answers: str) -> SessionId:
        source = SessionSource(platform, user, user_id=user)
        if platform != "telegram":
            self.link(user, platform)
        recorded = self.store.record_user_message(source, question)
        for answer in answers:
            self.store.append_to_transcript(recorded.session_id, answer)
        return recorded.session_id

    def link(self, user: str, platform: str) -> None:
        person = self.store.get_or_create_person(SessionSource("telegram", user, user_id=user))

        def insert(tx: Any) -> None:
            tx.execute(
                "INSERT INTO identity (platform, account, person_id, created_at) VALUES ($1, $2, $3, 0)",
                platform,
                user,
                person.id,
            )

        self.store.engine.run(Write(insert))

    def find(self, text: str = "train", **conditions: Any) -> list[str]:
        return [hit.message.text for hit in self.ada.search(text, search_filter=SearchFilter(**conditions))]

    def list(self, **conditions: Any) -> list[str]:
        return [session.id for session in self.ada.list(**conditions)]


@pytest.fixture
def trip(store: SessionStore, clock: FakeClock) -> Trip:
    return Trip(store, clock)


LISBON, LEAVES, PORTO, PORTO_TRAIN, TABLE = (
    *("train to lisbon", "the train leaves at nine", "train to porto", "the porto train", "train table"),
)

SEARCHES: list[tuple[dict[str, Any], list[str]]] = [
    ({}, [TABLE, PORTO_TRAIN, PORTO, LEAVES, LISBON]),
    ({"platform": "telegram"}, [TABLE, LEAVES, LISBON]),
    ({"platform": "Slack-Team_1"}, [PORTO_TRAIN, PORTO]),
    ({"platform": "matrix"}, []),
    ({"role": "user"}, [PORTO, LISBON]),
    ({"role": "assistant"}, [PORTO_TRAIN, LEAVES]),
    ({"role": "tool"}, [TABLE]),
    ({"after": JUNE + timedelta(days=1)}, [TABLE, PORTO_TRAIN, PORTO]),
    ({"after": JUNE}, [TABLE, PORTO_TRAIN, PORTO, LEAVES, LISBON]),
    ({"after": JUNE + timedelta(microseconds=1)}, [TABLE, PORTO_TRAIN, PORTO]),
    ({"before": JUNE + timedelta(days=40)}, [LEAVES, LISBON]),
    ({"before": JUNE}, []),
    ({"after": JUNE + timedelta(days=30), "before": JUNE + timedelta(days=50)}, [PORTO_TRAIN, PORTO]),
    ({"after": JUNE + timedelta(days=500)}, []),
    ({"without": "porto"}, [TABLE, LEAVES, LISBON]),
    ({"without": '"to lisbon" table'}, [PORTO_TRAIN, PORTO, LEAVES]),
    ({"role": "user", "platform": "telegram", "before": JUNE + timedelta(days=1)}, [LISBON]),
]


@pytest.mark.parametrize(("conditions", "expected"), SEARCHES)
def test_a_filtered_search_finds_exactly_its_matches_and_nothing_of_others(
    trip: Trip, conditions: dict[str, Any], expected: list[str]
) -> None:
    assert trip.find(**conditions) == expected


@pytest.mark.parametrize("conditions", [conditions for conditions, _ in SEARCHES])
def test_a_filter_shows_no_person_what_they_may_not_see(trip: Trip, conditions: dict[str, Any]) -> None:
    stranger = trip.open_view("eve")
    assert list(stranger.search("train", search_filter=SearchFilter(**conditions))) == []
    for hit in trip.bob.search("train", search_filter=SearchFilter(**conditions)):
        assert "secret" in hit.message.text


def test_a_project_is_searched_however_many_sessions_it_has(trip: Trip, monkeypatch: pytest.MonkeyPatch) -> None:
    project = trip.ada.projects.create("Journeys")
    assert trip.find(project="journeys") == []
    trip.ada.move(trip.slack, "Journeys")
    for most_sessions in (100, 0):  # looked up in the index, and checked for each match
        monkeypatch.setattr(search_scope, "MAX_LISTED_SESSIONS", most_sessions)
        assert trip.find(project="journeys") == [PORTO_TRAIN, PORTO]
        assert trip.find(project=project.id, role="user") == [PORTO]
        with pytest.raises(ProjectNotFound):
            trip.bob.search("train", search_filter=SearchFilter(project=project.id))
    trip.ada.move(trip.slack, None)
    assert trip.find(project="journeys") == []


def test_archived_conversations_are_searched_alone_or_left_out(trip: Trip, monkeypatch: pytest.MonkeyPatch) -> None:
    trip.ada.archive(trip.slack)
    for most_sessions in (100, 0):  # looked up in the index, and checked for each match
        monkeypatch.setattr(search_scope, "MAX_LISTED_SESSIONS", most_sessions)
        assert trip.find(archived=ArchivedFilter.ONLY) == [PORTO_TRAIN, PORTO]
        assert trip.find(archived=ArchivedFilter.WITHOUT) == [TABLE, LEAVES, LISBON]
        assert trip.find(archived=ArchivedFilter.BOTH) == [TABLE, PORTO_TRAIN, PORTO, LEAVES, LISBON]
        only = SearchFilter(archived=ArchivedFilter.ONLY)
        assert list(trip.bob.search("train", search_filter=only)) == []
        assert list(trip.open_view("eve").search("train", search_filter=only)) == []
    trip.ada.archive(trip.slack, archived=False)
    assert trip.find(archived=ArchivedFilter.ONLY) == []


class GroupTrip:
    """Ada and Bob write in one group, and each of them with the agent alone; Eve writes elsewhere."""

    def __init__(self, store: SessionStore) -> None:
        self.store = store
        self.ids = {}
        for user in ("ada", "bob", "eve"):
            source = SessionSource("telegram", user, user_id=user, user_name=user.title())
            store.record_user_message(source, f"private train of {user}")
            self.ids[user] = store.get_or_create_person(source).id
        for user in ("ada", "bob"):
            source = SessionSource(
                "telegram", "trip", chat_type="group", user_id=user, user_name=user.title(), thread_id="t"
            )
            store.record_user_message(source, f"group train of {user}")

    def open_view(self, user: str) -> SessionView:
        source = SessionSource("telegram", user, user_id=user)
        return self.store.seen_by(self.store.get_or_create_person(source).principal)

    def find(self, user: str, person: str) -> list[str]:
        hits = self.open_view(user).search("train", search_filter=SearchFilter(person=person))
        return [hit.message.text for hit in hits]


def test_a_search_by_person_finds_what_they_wrote_where_both_take_part(store: SessionStore) -> None:
    trip = GroupTrip(store)
    assert trip.find("ada", "Bob") == ["group train of bob"]
    assert trip.find("ada", trip.ids["bob"]) == ["group train of bob"]
    assert trip.find("ada", "ada") == ["group train of ada", "private train of ada"]
    owner = store.seen_by(store.get_owner().principal, everything=True)
    found = [hit.message.text for hit in owner.search("train", search_filter=SearchFilter(person="eve"))]
    assert found == ["private train of eve"]


def test_people_of_other_conversations_look_as_if_they_did_not_exist(store: SessionStore) -> None:
    trip = GroupTrip(store)
    assert {person.id for person in trip.open_view("ada").list_people()} == {trip.ids["ada"], trip.ids["bob"]}
    assert [person.id for person in trip.open_view("eve").list_people()] == [trip.ids["eve"]]
    texts = set()
    for person in ("Eve", trip.ids["eve"], "p_0123456789ab", "Zoe"):
        with pytest.raises(NotFound) as refused:
            trip.find("ada", person)
        texts.add(str(refused.value).replace(person, "…"))
    assert len(texts) == 1
    assert [session.id for session in trip.open_view("ada").list(person="Eve")] == []


def test_a_person_who_was_linked_is_found_under_both_accounts(store: SessionStore) -> None:
    trip = GroupTrip(store)

    def merge(tx: Any) -> None:
        survivor, other = people.find_by_id(tx, trip.ids["ada"]), people.find_by_id(tx, trip.ids["eve"])
        assert survivor is not None
        assert other is not None
        person_merge.merge_people(tx, survivor, other, 0)

    store.engine.run(Write(merge))
    assert set(trip.find("ada", "ada")) == {"group train of ada", "private train of ada", "private train of eve"}


def test_pages_of_a_filtered_search_continue(trip: Trip) -> None:
    search_filter = SearchFilter(platform="telegram")
    first = trip.ada.search("train", limit=2, search_filter=search_filter)
    rest = trip.ada.search("train", limit=2, cursor=first[-1].cursor, search_filter=search_filter)
    assert [hit.message.text for hit in (*first, *rest)] == [TABLE, LEAVES, LISBON]


def test_an_unknown_role_is_refused() -> None:
    with pytest.raises(InvalidInput):
        SearchFilter(role="boss")


@pytest.mark.parametrize(
    "moment",
    [datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC), datetime(9999, 12, 31, 23, tzinfo=UTC)],
)
def test_extreme_dates_are_no_error(trip: Trip, moment: datetime) -> None:
    trip.find(after=moment)
    trip.find(before=moment)
    trip.list(after=moment)
    trip.list(before=moment)


def test_a_range_of_dates_is_covered_by_few_words() -> None:
    def cover(after: datetime | None, before: datetime | None) -> list[str]:
        epoch = datetime(1970, 1, 1, tzinfo=UTC)
        micros = [None if each is None else (each - epoch) // timedelta(microseconds=1) for each in (after, before)]
        return list(_iter_periods(*micros))

    def at(year: int, month: int, day: int = 1) -> datetime:
        return datetime(year, month, day, tzinfo=UTC)

    assert cover(at(2026, 6, 3), at(2026, 6, 4)) == ["m202606"]
    assert cover(at(2024, 11), at(2027, 3)) == ["m202411", "m202412", "y2025", "y2026", "m202701", "m202702"]
    assert cover(at(2024, 1), at(2025, 1)) == ["y2024"]
    assert cover(at(2026, 6), at(2026, 6)) == []
    assert len(cover(None, at(2026, 6))) < 70
    assert len(cover(at(2026, 6), None)) < 100


def test_a_search_while_typing_finds_words_that_begin_with_the_last_one(trip: Trip) -> None:
    def find(view: SessionView, text: str) -> list[str]:
        return [hit.message.text for hit in view.search(text, is_typing=True)]

    assert find(trip.ada, "lis") == find(trip.ada, "train lisb") == [LISBON]
    assert find(trip.ada, "tra") == [TABLE, PORTO_TRAIN, PORTO, LEAVES, LISBON]
    assert find(trip.ada, "lis train") == find(trip.ada, "lis ") == []  # only the last word is incomplete
    assert find(trip.open_view("eve"), "tra") == []
    assert find(trip.bob, "tra") == find(trip.bob, "train") != []
    assert all("secret" in text for text in find(trip.bob, "tra"))


def test_a_match_in_an_archived_conversation_is_found_and_marked(trip: Trip) -> None:
    trip.ada.update(trip.slack, {"archived": True})
    assert {hit.session_id: hit.archived for hit in trip.ada.search("train")} == {
        trip.slack: True,
        trip.telegram: False,
    }


# -- lists ---------------------------------------------------------------------------------------------------


def test_lists_are_filtered_by_platform_date_and_words(trip: Trip) -> None:
    assert trip.list() == [trip.telegram, trip.slack]
    assert trip.list(platform="TELEGRAM") == [trip.telegram]
    assert trip.list(platform="slack-team_1") == [trip.slack]
    assert trip.list(platform="matrix") == trip.list(platform="\ud800") == []
    moved = JUNE + timedelta(days=400)  # a tool's result came in
    assert trip.list(after=moved) == [trip.telegram]
    assert trip.list(before=moved) == [trip.slack]
    assert trip.list(after=JUNE, before=JUNE + timedelta(days=41)) == [trip.slack]
    assert trip.list(text="porto") == [trip.slack]
    assert trip.list(text="-porto") == [trip.telegram]
    assert trip.list(platform="telegram", text="train -porto", after=JUNE) == [trip.telegram]


def test_a_search_for_titles_ignores_everything_else(trip: Trip) -> None:
    trip.ada.update(trip.slack, {"title": "Café plans"})

    def find_titles(title: str) -> list[str]:
        return [each.session.id for each in trip.ada.summaries.list(title=title)]

    assert find_titles("caf pla") == find_titles('"cafe plans"') == [trip.slack]
    assert find_titles("porto") == find_titles("afe") == []
    assert find_titles("-cafe") == [trip.telegram]
    assert list(trip.open_view("eve").summaries.list(title="caf")) == []


def test_pages_of_a_filtered_list_continue(trip: Trip) -> None:
    trip.clock.set(JUNE + timedelta(days=500))
    ids = []
    for _ in range(5):
        trip.clock.advance(days=1)
        trip.store.reset_session(
            trip.store.get_or_create_session(SessionSource("telegram", "ada", user_id="ada")).session_key
        )
        ids.append(trip.add("ada", "telegram", "again"))
    page = trip.ada.list(platform="telegram", limit=2, before=trip.clock.now())
    found = [session.id for session in page]
    while page.cursor is not None:
        page = trip.ada.list(platform="telegram", limit=2, before=trip.clock.now(), cursor=page.cursor)
        found += [session.id for session in page]
    assert found == [*reversed(ids[:-1]), trip.telegram]


@pytest.mark.parametrize(
    "conditions", [{"platform": "telegram"}, {"after": JUNE}, {"before": JUNE + timedelta(days=999)}, {"text": "-x"}]
)
def test_a_filtered_list_shows_no_person_what_they_may_not_see(trip: Trip, conditions: dict[str, Any]) -> None:
    assert list(trip.open_view("eve").list(**conditions)) == []
    mine = {trip.telegram, trip.slack}
    assert {session.id for session in trip.ada.list(**conditions)} <= mine
    assert not {session.id for session in trip.bob.list(**conditions)} & mine
    summaries = trip.bob.summaries.list(**conditions)
    assert not {summary.session.id for summary in summaries} & mine
