"""Who may send where: no person reaches the chats of others, which look like chats that do not exist."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from palaver import GatewayConfig, Platform, Role, SessionSource
from palaver.core.engines.base import Read, Write
from palaver.core.errors import InvalidInput
from palaver.delivery.reachable_chats import ChatKind, Origin
from palaver.sessions import home_channels, table as sessions
from palaver.sessions.context import Redactor
from palaver.sessions.gateway_config import HomeChannel
from palaver.sessions.keys import DmScope
from support.messaging import add_writer, get_now, list_targets, resolve

if TYPE_CHECKING:
    from collections.abc import Callable

    from conftest import OpenStore
    from palaver import SessionStore

    Source = Callable[..., SessionSource]

REDACTOR = Redactor(b"a secret of this installation...")
HOME = HomeChannel(Platform.TELEGRAM, "-100777", "Family")
CONFIG = GatewayConfig(
    connected_platforms=(Platform.TELEGRAM, Platform.DISCORD), home_channels={Platform.TELEGRAM: HOME}
)


@pytest.fixture
def store(open_store: OpenStore) -> SessionStore:
    return open_store(CONFIG)


def get_error(store: SessionStore, *arguments: Any, **options: Any) -> str:
    with pytest.raises(InvalidInput) as caught:
        resolve(store, *arguments, **options)
    return str(caught.value)


def test_people_cannot_reach_the_chats_of_others(store: SessionStore, dm: Source, group: Source) -> None:
    ada = add_writer(store, dm("ada"))
    add_writer(store, group("ada", chat="club"))
    ben = add_writer(store, dm("ben"))
    assert list_targets(store, ada) == ["telegram:ada", "telegram:-100777"]
    assert list_targets(store, ben) == ["telegram:ben", "telegram:-100777"]
    foreign = get_error(store, ben, "telegram:ada")
    assert foreign == get_error(store, ben, "telegram:unknown").replace("unknown", "ada")
    assert foreign.endswith('Valid targets: telegram, "telegram:ben", "telegram:-100777".')
    assert get_error(store, ben, "discord:club") == foreign.replace("telegram:ada", "discord:club")


def test_a_member_reaches_the_groups_in_which_they_have_written(open_store: OpenStore, group: Source) -> None:
    for is_separate in (True, False):
        store = open_store(GatewayConfig(group_sessions_per_user=is_separate))
        chat = f"club{is_separate}"
        ada = add_writer(store, group("ada", chat=chat))
        ben = add_writer(store, group("ben", chat="other"))
        found = resolve(store, ada, f"discord:{chat}")
        assert found.source is not None
        assert (found.target, found.source.user_id, found.name) == (f"discord:{chat}", None, chat.title())
        assert f"discord:{chat}" in list_targets(store, ada)
        assert f"discord:{chat}" not in list_targets(store, ben)
        get_error(store, ben, f"discord:{chat}")


def test_a_thread_of_a_known_chat_is_reachable(store: SessionStore, group: Source) -> None:
    ada = add_writer(store, group("ada", thread_id="t1"))
    sources = [resolve(store, ada, target).source for target in ("discord:club:t1", "discord:club:t2", "discord:club")]
    assert [source and source.thread_id for source in sources] == ["t1", "t2", None]


def test_a_guest_reaches_only_their_own_direct_messages(store: SessionStore, dm: Source, group: Source) -> None:
    guest = add_writer(store, dm("eve"), Role.GUEST)
    add_writer(store, group("eve"), Role.GUEST)
    assert list_targets(store, guest) == ["telegram:eve"]
    assert resolve(store, guest, "telegram:eve").kind is ChatKind.CHAT
    for target in ("telegram", "telegram:-100777", "discord:club", "local"):
        assert get_error(store, guest, target).endswith('Valid targets: "telegram:eve".')


def test_an_owner_reaches_every_chat_that_is_known_and_others_on_connected_platforms(
    store: SessionStore, dm: Source, group: Source
) -> None:
    add_writer(store, dm("ben"))
    add_writer(store, group("ben"))
    owner = add_writer(store, dm("ada"), Role.OWNER)
    assert set(list_targets(store, owner)) == {"telegram:ada", "telegram:ben", "telegram:-100777", "discord:club"}
    found = resolve(store, owner, "telegram:ben")
    assert found.is_known
    assert found.source == dm("ben")
    unknown = resolve(store, owner, "discord:never-seen:7")
    assert not unknown.is_known
    assert unknown.source is not None
    assert (unknown.source.chat_id, unknown.source.thread_id) == ("never-seen", "7")
    get_error(store, owner, "slack:C1")
    get_error(store, owner, "telegram@work:1")


@pytest.mark.parametrize("scope", [DmScope.PLATFORM, DmScope.SHARED, DmScope.PERSON])
def test_direct_messages_that_share_a_lane_stay_those_of_their_person(
    open_store: OpenStore, dm: Source, scope: DmScope
) -> None:
    store = open_store(GatewayConfig(dm_scope=scope))
    add_writer(store, dm("ada"))
    ben = add_writer(store, dm("ben"))
    assert list_targets(store, ben) == ["telegram:ben"]
    assert resolve(store, ben, "telegram:ben").source == dm("ben")
    get_error(store, ben, "telegram:ada")


def test_a_home_channel_is_where_an_owner_chose_it(store: SessionStore, dm: Source, group: Source) -> None:
    ada = add_writer(store, dm("ada"))
    assert not resolve(store, ada, "telegram").is_known
    owner = add_writer(store, group("olga"), Role.OWNER)
    store._engine.run(Write(lambda tx: home_channels.choose(tx, group("olga"), owner.person_id, get_now(store))))
    found = resolve(store, ada, "discord")
    assert found.source is not None
    assert (found.target, found.source.chat_id, found.source.user_id) == ("discord", "club", None)
    assert "has no home channel" in get_error(store, ada, "matrix")


def test_people_who_read_along_limit_a_conversation_to_its_own_chat_and_home_channels(
    store: SessionStore, dm: Source, group: Source
) -> None:
    add_writer(store, dm("ada"), Role.OWNER)
    owner = add_writer(store, group("olga"), Role.OWNER)
    add_writer(store, group("olga", chat="secret"), Role.OWNER)
    here = group("olga")
    assert list_targets(store, owner, only_chat=here) == ["discord:club", "telegram:-100777"]
    assert resolve(store, owner, "discord:club:t9", only_chat=here).target == "discord:club:t9"
    assert resolve(store, owner, "telegram", only_chat=here).target == "telegram"
    for target in ("discord:secret", "telegram:ada", "local", "discord:never-seen"):
        get_error(store, owner, target, only_chat=here)
    # Direct messages that several people share are the chat of none of them.
    assert list_targets(store, owner, only_chat=dm("ada")) == ["telegram:-100777"]
    get_error(store, owner, "telegram:ada", only_chat=dm("ada"))


def test_the_origin_is_a_chat_or_a_conversation_that_still_exists(store: SessionStore, dm: Source) -> None:
    ada = add_writer(store, dm("ada"))
    ben = add_writer(store, dm("ben"))
    assert resolve(store, ada, "origin", origin=Origin(dm("ada"))).source == dm("ada")
    assert "no longer send" in get_error(store, ben, "origin", origin=Origin(dm("ada")))
    entry = store.get_or_create_session(SessionSource("web", "page", user_id="ada", user_name="Ada"))
    store.append_to_transcript(entry.session_id, "hi")
    session_no = store._engine.run(Read(lambda tx: sessions.get_no(tx, entry.session_id)))
    page = Origin(SessionSource("web", "page"), session_no)
    owner = store.get_or_create_person(SessionSource("web", "page", user_id="ada")).principal
    assert resolve(store, owner, "origin", origin=page).session_no == session_no
    assert "was deleted" in get_error(store, ben, "origin", origin=page)
    store.delete_session(entry.session_id)
    assert "was deleted" in get_error(store, owner, "origin", origin=page)


def test_local_needs_a_home_folder(open_store: OpenStore, dm: Source) -> None:
    ada = add_writer(open_store(), dm("ada"))
    assert "no home folder" in get_error(open_store(), ada, "local")
    assert resolve(open_store(GatewayConfig(saves_local_files=True)), ada, "local").kind is ChatKind.LOCAL


def test_the_agent_may_repeat_what_it_was_shown(store: SessionStore, dm: Source) -> None:
    ada = add_writer(store, dm("ada"))
    add_writer(store, dm("ben"))
    hidden = {name: REDACTOR.redact_chat("telegram", name) for name in ("ada", "ben", "-100777")}
    options: dict[str, Any] = {"redactor": REDACTOR, "is_from_agent": True}
    assert resolve(store, ada, hidden["ada"], **options).source == dm("ada")
    assert resolve(store, ada, f'"{hidden["ada"]}"', **options).source == dm("ada")
    assert resolve(store, ada, hidden["-100777"], **options).target == "telegram:-100777"
    error = get_error(store, ada, hidden["ben"], **options)
    assert "ben" not in error
    assert "-100777" not in error
    get_error(store, ada, hidden["ada"])  # a person does not write hidden ids
    owner = add_writer(store, dm("olga"), Role.OWNER)
    get_error(store, owner, "telegram:0123456789ab", **options)  # not a chat that is new to the gateway


def test_a_search_looks_into_names_and_targets(store: SessionStore, dm: Source, group: Source) -> None:
    ada = add_writer(store, dm("ada"))
    for chat in ("rowing", "chess"):
        add_writer(store, group("ada", chat=chat))
    discord = store.get_or_create_person(group("ada")).principal
    assert list_targets(store, discord, search="ROW") == ["discord:rowing"]
    assert list_targets(store, discord, search="discord chess") == ["discord:chess"]
    assert list_targets(store, discord, search="tennis") == []
    assert len(list_targets(store, discord, limit=2)) == 2
    assert list_targets(store, ada, search="chess") == []


def test_conversations_on_the_page_are_skipped_by_the_index(sqlite_store: SessionStore, group: Source) -> None:
    store = sqlite_store
    ada = add_writer(store, group("ada"))
    person = store.get_or_create_person(group("ada"))
    for number in range(30):
        store.get_or_create_session(SessionSource("web", f"c{number}", user_id=person.id, user_name="Ada"))
    assert list_targets(store, ada) == ["discord:club"]
    statement = (
        "SELECT l.key FROM lane l WHERE l.key >= $1 AND l.key < $2 AND l.audience_no = $3 ORDER BY l.key LIMIT 1"
    )
    plan = store._engine.run(Read(lambda tx: tx.fetch_all(f"EXPLAIN QUERY PLAN {statement}", "a", "b", 1)))
    assert "lane_audience (audience_no=? AND key>? AND key<?)" in str(plan)
