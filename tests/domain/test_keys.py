"""Which conversation a message belongs to: the table of keys, and a proof that no two lanes share one."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from palaver.domain.errors import ConfigError
from palaver.domain.keys import DmScope, build_session_key, canonical, is_shared
from palaver.domain.source import ChatType, Platform, SessionSource

if TYPE_CHECKING:
    from palaver.domain.ids import SessionKey

PHONE = "49170@s.whatsapp.net"
DEVICE = "49170:12@s.whatsapp.net"
LID = "123@lid"
UUID = "9D0652A3-DCC3-4D11-975F-74D61598733F"
NUMBER = "+49170"


def source(place: str, **fields: Any) -> SessionSource:
    """A source from `platform type`, and its fields."""
    platform, chat_type = place.split()
    return SessionSource(platform, chat_type=chat_type, **fields)


@pytest.mark.parametrize(
    ("place", "fields", "key"),
    [
        ("telegram dm", {"chat_id": 5}, "agent:main:telegram:dm:5"),
        ("telegram dm", {"chat_id": 5, "user_id": 7, "user_id_alt": 8}, "agent:main:telegram:dm:5"),
        ("telegram dm", {"chat_id": 5, "thread_id": 9}, "agent:main:telegram:dm:5:9"),
        ("telegram dm", {"thread_id": 9}, "agent:main:telegram:dm:thread=9"),
        ("telegram dm", {}, "agent:main:telegram:dm"),
        ("telegram dm", {"user_id": 7}, "agent:main:telegram:dm:user=7"),
        ("discord group", {}, "agent:main:discord:group"),
        ("discord group", {"chat_id": "c"}, "agent:main:discord:group:c"),
        ("discord group", {"chat_id": "c", "user_id": "u"}, "agent:main:discord:group:c:u"),
        (
            "discord group",
            {"chat_id": "c", "user_id": "u", "user_id_alt": "a"},
            "agent:main:discord:group:c:a",
        ),
        ("discord channel", {"chat_id": "c", "user_id": "u"}, "agent:main:discord:channel:c:u"),
        ("discord group", {"chat_id": "c", "thread_id": "t"}, "agent:main:discord:group:c:thread=t"),
        (
            "discord group",
            {"chat_id": "c", "thread_id": "t", "user_id": "u"},
            "agent:main:discord:group:c:thread=t",
        ),
        (
            "discord thread",
            {"chat_id": "c", "thread_id": "t", "user_id": "u"},
            "agent:main:discord:thread:c:thread=t",
        ),
        ("discord thread", {"chat_id": "c", "user_id": "u"}, "agent:main:discord:thread:c"),
        ("discord group", {"thread_id": "t"}, "agent:main:discord:group:thread=t"),
        ("discord group", {"user_id": "u"}, "agent:main:discord:group:user=u"),
        ("local dm", {"chat_id": "cli"}, "agent:main:local:dm:cli"),
        ("irc group", {"chat_id": "#palaver", "user_id": "ada"}, "agent:main:irc:group:#palaver:ada"),
    ],
)
def test_a_source_has_this_key(place: str, fields: dict[str, Any], key: str) -> None:
    assert build_session_key(source(place, **fields)) == key


@pytest.mark.parametrize(
    ("place", "fields", "per_group", "per_thread", "key"),
    [
        ("slack group", {"chat_id": "c", "user_id": "u"}, False, False, "slack:group:c"),
        ("slack group", {"chat_id": "c", "user_id": "u"}, False, True, "slack:group:c"),
        ("slack group", {"chat_id": "c", "user_id": "u"}, True, True, "slack:group:c:u"),
        ("slack group", {"chat_id": "c", "thread_id": "t", "user_id": "u"}, True, True, "slack:group:c:t:u"),
        ("slack group", {"chat_id": "c", "thread_id": "t", "user_id": "u"}, False, True, "slack:group:c:t:u"),
        ("slack group", {"chat_id": "c", "thread_id": "t"}, True, True, "slack:group:c:thread=t"),
        ("slack group", {"thread_id": "t", "user_id": "u"}, True, True, "slack:group:thread=t:u"),
        ("slack thread", {"chat_id": "c", "user_id": "u"}, False, True, "slack:thread:c:u"),
        ("slack thread", {"chat_id": "c", "user_id": "u"}, True, False, "slack:thread:c"),
        ("slack dm", {"chat_id": "c", "thread_id": "t", "user_id": "u"}, True, True, "slack:dm:c:t"),
    ],
)
def test_people_are_kept_apart_as_configured(
    place: str, fields: dict[str, Any], per_group: bool, per_thread: bool, key: str
) -> None:
    built = build_session_key(
        source(place, **fields), group_sessions_per_user=per_group, thread_sessions_per_user=per_thread
    )
    assert built == f"agent:main:{key}"


@pytest.mark.parametrize(
    ("scope", "person", "key"),
    [
        ("chat", "p_1", "agent:main:telegram:dm:5:9"),
        ("platform", "p_1", "agent:main:telegram:dm"),
        ("person", "p_1", "agent:main:person:p_1"),
        ("person", None, "agent:main:telegram:dm:5:9"),
        ("person", "a:b", "agent:main:person:a%3Ab"),
        ("person", "dm", "agent:main:person:%64m"),
        ("shared", None, "agent:main:dm"),
        (DmScope.SHARED, "p_1", "agent:main:dm"),
    ],
)
def test_a_direct_conversation_reaches_as_far_as_its_scope(scope: str, person: str | None, key: str) -> None:
    dm = SessionSource("telegram", 5, thread_id=9)
    assert build_session_key(dm, dm_scope=scope, person=person) == key


@pytest.mark.parametrize("scope", DmScope)
def test_the_scope_of_direct_messages_leaves_groups_alone(scope: DmScope) -> None:
    group = SessionSource("telegram", 5, chat_type="group", user_id=7)
    assert build_session_key(group, dm_scope=scope, person="p_1") == "agent:main:telegram:group:5:7"


@pytest.mark.parametrize("ask", [build_session_key, is_shared])
def test_an_unknown_scope_is_refused_with_the_list_of_good_ones(ask: Any) -> None:
    with pytest.raises(ConfigError, match=r"'family'.*chat, platform, person, shared"):
        ask(SessionSource("telegram", 5), dm_scope="family")


@pytest.mark.parametrize(
    ("chat_id", "written"),
    [
        ("!room:matrix.org", "!room%3Amatrix.org"),
        ("100%", "100%25"),
        ("%3A", "%253A"),
        ("thread=5", "thread%3D5"),
        ("user=5=6", "user%3D5=6"),
        ("a=b", "a=b"),
        ("spaces/AAA", "spaces/AAA"),
        ("żółć 漢字", "żółć 漢字"),
    ],
)
def test_an_id_is_escaped_only_where_it_must_be(chat_id: str, written: str) -> None:
    assert build_session_key(SessionSource("matrix", chat_id)) == f"agent:main:matrix:dm:{written}"


def test_the_agent_is_the_first_segment_and_escaped_too() -> None:
    dm = SessionSource("telegram", 5)
    assert build_session_key(dm, agent="work") == "agent:work:telegram:dm:5"
    assert build_session_key(dm, agent="a:b%") == "agent:a%3Ab%25:telegram:dm:5"


# ---- no two lanes share a key ------------------------------------------------------------------------------


class Lane(NamedTuple):
    """What a key says: everything that tells one lane from another."""

    agent: str
    platform: str
    chat_type: str
    chat: str = ""
    thread: str | None = None
    who: str | None = None


def expected(given_source: SessionSource, *, agent: str, group: bool, thread: bool) -> Lane:
    """The lane that the rules name, without any text being built."""
    where = Lane(agent, given_source.platform, given_source.chat_type, given_source.chat_id, given_source.thread_id)
    if given_source.chat_type is ChatType.DM:
        alone = not given_source.chat_id and given_source.thread_id is None
        return where._replace(who=given_source.participant) if alone else where
    apart = thread if given_source.thread_id or given_source.chat_type is ChatType.THREAD else group
    return where._replace(who=given_source.participant if apart else None)


# What follows the chat type (b: a bare id, t: a thread by name, u: a user by name), and what it means.
SHAPES = {
    "": [],
    "b": ["chat"],
    "t": ["thread"],
    "u": ["who"],
    "bb": ["chat", "who"],
    "bt": ["chat", "thread"],
    "tb": ["thread", "who"],
    "bbb": ["chat", "thread", "who"],
}
DM_SHAPES = {"": [], "b": ["chat"], "t": ["thread"], "u": ["who"], "bb": ["chat", "thread"]}


def read(key: SessionKey) -> Lane:
    """A key read back by the grammar alone."""
    _, agent, platform, chat_type, *ids = key.split(":")
    tags = [re.match("thread=|user=", one) for one in ids]
    shape = "".join(tag[0][0] if tag else "b" for tag in tags)
    meaning = (DM_SHAPES if chat_type == "dm" else SHAPES)[shape]
    values = [plain(one[tag.end() :] if tag else one) for one, tag in zip(ids, tags, strict=True)]
    return Lane(plain(agent), platform, chat_type, **dict(zip(meaning, values, strict=True)))


def plain(segment: str) -> str:
    return re.sub("%([0-9A-F]{2})", lambda code: chr(int(code[1], 16)), segment)


awkward = st.sampled_from(
    [
        "5",
        "thread=5",
        "user=5",
        "thread%3D5",
        "thread%253D5",
        "5:5",
        "5%3A5",
        ":",
        "%",
        "=",
        "thread=",
        "dm",
        "a\0b",
    ]
)
some_id = st.one_of(awkward, st.text(min_size=1, max_size=8), st.text(":%=35ADt", min_size=1, max_size=6))
maybe_id = st.one_of(st.none(), some_id)
plain_platforms = st.sampled_from([Platform.TELEGRAM, Platform.MATRIX, Platform("person"), Platform("dm")])
plain_sources = st.builds(
    SessionSource,
    plain_platforms,
    maybe_id,
    chat_type=st.sampled_from(ChatType),
    user_id=maybe_id,
    thread_id=maybe_id,
    user_id_alt=maybe_id,
)
flags = st.booleans()


@given(plain_sources, some_id, flags, flags)
def test_a_key_can_be_read_back(given_source: SessionSource, agent: str, group: bool, thread: bool) -> None:
    key = build_session_key(given_source, agent=agent, group_sessions_per_user=group, thread_sessions_per_user=thread)
    assert read(key) == expected(given_source, agent=agent, group=group, thread=thread)


@given(st.tuples(plain_sources, flags, flags, some_id), st.tuples(plain_sources, flags, flags, some_id))
def test_two_lanes_share_a_key_only_when_they_are_one(
    one: tuple[SessionSource, bool, bool, str], other: tuple[SessionSource, bool, bool, str]
) -> None:
    keys, lanes = [], []
    for given_source, group, thread, agent in (one, other):
        keys.append(
            build_session_key(given_source, group_sessions_per_user=group, thread_sessions_per_user=thread, agent=agent)
        )
        lanes.append(expected(given_source, group=group, thread=thread, agent=agent))
    assert (keys[0] == keys[1]) == (lanes[0] == lanes[1])


def test_no_two_lanes_share_a_key_in_an_exhaustive_small_world() -> None:
    world = (None, "5", "6", "thread=5", "user=5", "thread%3D5", "5:5", "5%3A5", "dm", "=")
    lanes: dict[SessionKey, Lane] = {}
    for platform, chat_type, chat, thread, who in itertools.product(
        ("telegram", "person", "dm"), ChatType, world, world, world
    ):
        one = SessionSource(platform, chat, chat_type=chat_type, thread_id=thread, user_id=who)
        key = build_session_key(one, thread_sessions_per_user=True)
        lane = expected(one, agent="main", group=True, thread=True)
        assert lanes.setdefault(key, lane) == lane
    assert len(set(lanes.values())) == len(lanes)


@given(some_id, some_id, plain_sources)
def test_a_persons_lane_is_no_other_lane(person: str, other: str, elsewhere: SessionSource) -> None:
    dm = SessionSource("telegram", 5)
    mine = build_session_key(dm, dm_scope="person", person=person)
    theirs = build_session_key(dm, dm_scope="person", person=other)
    assert (mine == theirs) == (person == other)
    assert mine != build_session_key(elsewhere)
    assert mine != build_session_key(elsewhere, dm_scope="shared")
    assert mine != build_session_key(elsewhere, dm_scope="platform")


@pytest.mark.parametrize("name", ChatType)
def test_a_person_named_like_a_chat_type_is_not_a_chat_on_a_platform_named_person(name: ChatType) -> None:
    lane = build_session_key(SessionSource("irc"), dm_scope="person", person=name)
    assert lane != build_session_key(SessionSource("person", chat_type=name))


# ---- aliases -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chat_id", "chat_id_alt", "folded"),
    [
        ("49170", None, "49170"),
        ("+49170", None, "49170"),
        (PHONE, None, "49170"),
        (DEVICE, None, "49170"),
        ("49170.0:12@s.whatsapp.net", None, "49170"),
        ("49170_1:12@s.whatsapp.net", None, "49170"),
        ("49170@c.us", None, "49170"),
        (LID, None, LID),
        ("123:4@lid", None, LID),
        (LID, PHONE, "49170"),
        (DEVICE, LID, "49170"),
        (LID, "status@broadcast", LID),
        ("", LID, LID),
        ("", None, ""),
        ("status@broadcast", None, "status@broadcast"),
        ("49170:12", None, "49170:12"),
    ],
)
def test_the_forms_of_a_whatsapp_chat_fold_into_one(chat_id: str, chat_id_alt: str | None, folded: str) -> None:
    dm = SessionSource("whatsapp", chat_id, chat_id_alt=chat_id_alt)
    assert canonical(dm) == SessionSource("whatsapp", folded)


@pytest.mark.parametrize(
    ("user_id", "user_id_alt", "folded"),
    [
        (UUID, None, UUID.lower()),
        (NUMBER, UUID, UUID.lower()),
        (UUID, NUMBER, UUID.lower()),
        (NUMBER, None, NUMBER),
        (NUMBER, "u:ada.01", NUMBER),
        ("one", "two", "two"),
        (None, None, None),
    ],
)
def test_the_forms_of_a_signal_user_fold_into_one(
    user_id: str | None, user_id_alt: str | None, folded: str | None
) -> None:
    there = SessionSource("signal", "group.abc=", chat_type="group", user_id=user_id, user_id_alt=user_id_alt)
    assert canonical(there) == SessionSource("signal", "group.abc=", chat_type="group", user_id=folded)


@pytest.mark.parametrize(
    "sources",
    [
        [
            SessionSource("whatsapp", PHONE),
            SessionSource("whatsapp", DEVICE, user_id=DEVICE),
            SessionSource("whatsapp", LID, chat_id_alt=PHONE),
            SessionSource("whatsapp", LID, user_id=LID, user_id_alt=PHONE),
            SessionSource("whatsapp", "123:3@lid", user_id=PHONE, user_id_alt=LID),
        ],
        [
            SessionSource("whatsapp", "1-2@g.us", chat_type="group", user_id=PHONE),
            SessionSource("whatsapp", "1-2@g.us", chat_type="group", user_id=DEVICE, user_id_alt=LID),
            SessionSource("whatsapp", "1-2@g.us", chat_type="group", user_id=LID, user_id_alt=PHONE),
        ],
        [
            SessionSource("signal", UUID),
            SessionSource("signal", UUID.lower(), user_id=NUMBER),
            SessionSource("signal", NUMBER, chat_id_alt=UUID),
            SessionSource("signal", NUMBER, user_id=NUMBER, user_id_alt=UUID),
        ],
        [
            SessionSource("signal", "group.abc=", chat_type="group", user_id=UUID),
            SessionSource("signal", "group.abc=", chat_type="group", user_id=NUMBER, user_id_alt=UUID.lower()),
        ],
    ],
)
def test_one_human_has_one_lane_in_whatever_form_the_platform_reports_them(
    sources: list[SessionSource],
) -> None:
    assert len({build_session_key(one) for one in sources}) == 1


def test_two_people_in_one_chat_are_not_folded() -> None:
    mine = SessionSource("whatsapp", LID, user_id="456@lid", user_id_alt="49999@s.whatsapp.net")
    assert canonical(mine).chat_id == LID
    assert canonical(mine).user_id == "49999"


def test_a_whatsapp_group_keeps_its_id() -> None:
    group = SessionSource("whatsapp", "1203630@g.us", chat_type="group", user_id=DEVICE)
    assert build_session_key(group) == "agent:main:whatsapp:group:1203630@g.us:49170"


@given(plain_sources)
def test_other_platforms_are_left_alone(given_source: SessionSource) -> None:
    assert canonical(given_source) is given_source


forms = st.one_of(
    st.none(), some_id, st.sampled_from([PHONE, DEVICE, LID, UUID, UUID.lower(), NUMBER, "49170", "1@g.us"])
)


aliased_sources = st.builds(
    SessionSource,
    st.sampled_from([Platform.WHATSAPP, Platform.SIGNAL]),
    forms,
    chat_type=st.sampled_from(ChatType),
    chat_id_alt=forms,
    user_id=forms,
    user_id_alt=forms,
    thread_id=maybe_id,
)


@given(aliased_sources)
def test_folding_twice_is_folding_once(given_source: SessionSource) -> None:
    once = canonical(given_source)
    assert canonical(once) == once
    assert build_session_key(once) == build_session_key(given_source)
    assert (once.participant is None) == (given_source.participant is None)


# ---- shared lanes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "fields", "settings", "shared"),
    [
        ("telegram dm", {"user_id": "u"}, {}, False),
        ("telegram dm", {"user_id": "u", "thread_id": 1}, {}, False),
        ("telegram dm", {}, {"dm_scope": "chat"}, False),
        ("telegram dm", {}, {"dm_scope": "person"}, False),
        ("telegram dm", {}, {"dm_scope": "platform"}, True),
        ("telegram dm", {}, {"dm_scope": "shared"}, True),
        ("telegram group", {"user_id": "u"}, {}, False),
        ("telegram group", {"user_id_alt": "u"}, {}, False),
        ("telegram group", {}, {}, True),
        ("telegram group", {"user_id": "u"}, {"group_sessions_per_user": False}, True),
        ("telegram channel", {"user_id": "u"}, {"dm_scope": "shared"}, False),
        ("telegram group", {"user_id": "u", "thread_id": 1}, {}, True),
        ("telegram thread", {"user_id": "u"}, {}, True),
        ("telegram thread", {"user_id": "u"}, {"thread_sessions_per_user": True}, False),
        ("telegram thread", {}, {"thread_sessions_per_user": True}, True),
    ],
)
def test_a_lane_is_shared_when_several_people_may_speak_in_it(
    place: str, fields: dict[str, Any], settings: dict[str, Any], shared: bool
) -> None:
    assert is_shared(source(place, **fields), **settings) is shared


@given(plain_sources, flags, flags, some_id)
def test_a_lane_outside_direct_messages_is_shared_exactly_when_its_key_names_nobody(
    given_source: SessionSource, group: bool, thread: bool, somebody_else: str
) -> None:
    assume(given_source.chat_type is not ChatType.DM)
    assume(given_source.participant not in {None, somebody_else})
    other = SessionSource(
        given_source.platform,
        given_source.chat_id,
        chat_type=given_source.chat_type,
        thread_id=given_source.thread_id,
        user_id=somebody_else,
    )
    settings: dict[str, Any] = {"group_sessions_per_user": group, "thread_sessions_per_user": thread}
    same_key = build_session_key(given_source, **settings) == build_session_key(other, **settings)
    assert is_shared(given_source, **settings) == same_key
