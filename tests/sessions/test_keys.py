"""Session keys: the table of keys, proof that two lanes never share a key, id aliases, and shared lanes."""

from __future__ import annotations

import itertools
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import assume, given, strategies as st

from palaver.core.errors import ConfigError
from palaver.core.source import ChatType, Platform, SessionSource
from palaver.people.sender_ids import fold_id_aliases
from palaver.sessions.keys import DmScope, build_session_key, is_shared

if TYPE_CHECKING:
    from palaver.core.ids import SessionKey

PHONE = "49170@s.whatsapp.net"
DEVICE = "49170:12@s.whatsapp.net"
LID = "123@lid"
UUID = "9D0652A3-DCC3-4D11-975F-74D61598733F"
NUMBER = "+49170"


def make_source(chat: str, **fields: Any) -> SessionSource:
    """Make a source from `platform type` and its fields."""
    platform, chat_type = chat.split()
    return SessionSource(platform, chat_type=chat_type, **fields)


@pytest.mark.parametrize(
    ("chat", "fields", "key"),
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
def test_the_key_of_a_source(chat: str, fields: dict[str, Any], key: str) -> None:
    assert build_session_key(make_source(chat, **fields)) == key


@pytest.mark.parametrize(
    ("chat", "fields", "per_group", "per_thread", "key"),
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
def test_the_configuration_decides_whether_each_user_has_a_session(
    chat: str, fields: dict[str, Any], per_group: bool, per_thread: bool, key: str
) -> None:
    built_key = build_session_key(
        make_source(chat, **fields), group_sessions_per_user=per_group, thread_sessions_per_user=per_thread
    )
    assert built_key == f"agent:main:{key}"


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
def test_the_dm_scope_decides_which_direct_messages_share_a_lane(scope: str, person: str | None, key: str) -> None:
    dm = SessionSource("telegram", 5, thread_id=9)
    assert build_session_key(dm, dm_scope=scope, person=person) == key


@pytest.mark.parametrize("scope", DmScope)
def test_the_dm_scope_does_not_affect_groups(scope: DmScope) -> None:
    group = SessionSource("telegram", 5, chat_type="group", user_id=7)
    assert build_session_key(group, dm_scope=scope, person="p_1") == "agent:main:telegram:group:5:7"


@pytest.mark.parametrize("function", [build_session_key, is_shared])
def test_an_unknown_scope_is_rejected_with_the_valid_ones(function: Any) -> None:
    with pytest.raises(ConfigError, match=r"'family'.*chat, platform, person, shared"):
        function(SessionSource("telegram", 5), dm_scope="family")


@pytest.mark.parametrize(
    ("chat_id", "segment"),
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
def test_an_id_is_escaped_only_where_necessary(chat_id: str, segment: str) -> None:
    assert build_session_key(SessionSource("matrix", chat_id)) == f"agent:main:matrix:dm:{segment}"


def test_the_agent_is_the_first_segment_and_is_escaped() -> None:
    dm = SessionSource("telegram", 5)
    assert build_session_key(dm, agent="work") == "agent:work:telegram:dm:5"
    assert build_session_key(dm, agent="a:b%") == "agent:a%3Ab%25:telegram:dm:5"


# ---- two lanes never share a key ---------------------------------------------------------------------------


class Lane(NamedTuple):
    """Everything that distinguishes one lane from another."""

    agent: str
    platform: str
    chat_type: str
    chat: str = ""
    thread: str | None = None
    who: str | None = None


def lane_by_rules(source: SessionSource, *, agent: str, group: bool, thread: bool) -> Lane:
    """Return the lane of a source by the rules, without building a key."""
    lane = Lane(agent, source.platform, source.chat_type, source.chat_id, source.thread_id)
    if source.chat_type is ChatType.DM:
        only_user_known = not source.chat_id and source.thread_id is None
        return lane._replace(who=source.participant) if only_user_known else lane
    per_user = thread if source.thread_id or source.chat_type is ChatType.THREAD else group
    return lane._replace(who=source.participant if per_user else None)


# The segments after the chat type (b: a bare id, t: `thread=`, u: `user=`), and what they mean.
GROUP_PLACES = {
    "": [],
    "b": ["chat"],
    "t": ["thread"],
    "u": ["who"],
    "bb": ["chat", "who"],
    "bt": ["chat", "thread"],
    "tb": ["thread", "who"],
    "bbb": ["chat", "thread", "who"],
}
DM_PLACES = {"": [], "b": ["chat"], "t": ["thread"], "u": ["who"], "bb": ["chat", "thread"]}


def parse_key(key: SessionKey) -> Lane:
    """Parse a key by the grammar alone."""
    _, agent, platform, chat_type, *ids = key.split(":")
    labels = [re.match("thread=|user=", segment) for segment in ids]
    place = "".join(label[0][0] if label else "b" for label in labels)
    meaning = (DM_PLACES if chat_type == "dm" else GROUP_PLACES)[place]
    values = [
        unescape(segment[label.end() :] if label else segment) for segment, label in zip(ids, labels, strict=True)
    ]
    return Lane(unescape(agent), platform, chat_type, **dict(zip(meaning, values, strict=True)))


def unescape(segment: str) -> str:
    return re.sub("%([0-9A-F]{2})", lambda code: chr(int(code[1], 16)), segment)


difficult_ids = st.sampled_from(
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
some_id = st.one_of(difficult_ids, st.text(min_size=1, max_size=8), st.text(":%=35ADt", min_size=1, max_size=6))
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
def test_a_key_can_be_parsed_back(source: SessionSource, agent: str, group: bool, thread: bool) -> None:
    key = build_session_key(source, agent=agent, group_sessions_per_user=group, thread_sessions_per_user=thread)
    assert parse_key(key) == lane_by_rules(source, agent=agent, group=group, thread=thread)


@given(st.tuples(plain_sources, flags, flags, some_id), st.tuples(plain_sources, flags, flags, some_id))
def test_two_sources_have_the_same_key_only_if_they_have_the_same_lane(
    one: tuple[SessionSource, bool, bool, str], other: tuple[SessionSource, bool, bool, str]
) -> None:
    keys, lanes = [], []
    for source, group, thread, agent in (one, other):
        keys.append(
            build_session_key(source, group_sessions_per_user=group, thread_sessions_per_user=thread, agent=agent)
        )
        lanes.append(lane_by_rules(source, group=group, thread=thread, agent=agent))
    assert (keys[0] == keys[1]) == (lanes[0] == lanes[1])


def test_no_two_lanes_share_a_key_among_all_combinations_of_some_ids() -> None:
    some_ids = (None, "5", "6", "thread=5", "user=5", "thread%3D5", "5:5", "5%3A5", "dm", "=")
    lanes: dict[SessionKey, Lane] = {}
    for platform, chat_type, chat, thread, who in itertools.product(
        ("telegram", "person", "dm"), ChatType, some_ids, some_ids, some_ids
    ):
        source = SessionSource(platform, chat, chat_type=chat_type, thread_id=thread, user_id=who)
        key = build_session_key(source, thread_sessions_per_user=True)
        lane = lane_by_rules(source, agent="main", group=True, thread=True)
        assert lanes.setdefault(key, lane) == lane
    assert len(set(lanes.values())) == len(lanes)


@given(some_id, some_id, plain_sources)
def test_the_lane_of_a_person_differs_from_every_other_lane(
    person: str, other_person: str, source: SessionSource
) -> None:
    dm = SessionSource("telegram", 5)
    lane = build_session_key(dm, dm_scope="person", person=person)
    other_lane = build_session_key(dm, dm_scope="person", person=other_person)
    assert (lane == other_lane) == (person == other_person)
    assert lane != build_session_key(source)
    assert lane != build_session_key(source, dm_scope="shared")
    assert lane != build_session_key(source, dm_scope="platform")


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
def test_the_aliases_of_a_whatsapp_chat_fold_into_one_id(chat_id: str, chat_id_alt: str | None, folded: str) -> None:
    dm = SessionSource("whatsapp", chat_id, chat_id_alt=chat_id_alt)
    assert fold_id_aliases(dm) == SessionSource("whatsapp", folded)


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
def test_the_aliases_of_a_signal_user_fold_into_one_id(
    user_id: str | None, user_id_alt: str | None, folded: str | None
) -> None:
    source = SessionSource("signal", "group.abc=", chat_type="group", user_id=user_id, user_id_alt=user_id_alt)
    assert fold_id_aliases(source) == SessionSource("signal", "group.abc=", chat_type="group", user_id=folded)


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
def test_one_human_has_one_lane_whichever_aliases_the_platform_reports(
    sources: list[SessionSource],
) -> None:
    assert len({build_session_key(source) for source in sources}) == 1


def test_different_people_are_not_folded() -> None:
    source = SessionSource("whatsapp", LID, user_id="456@lid", user_id_alt="49999@s.whatsapp.net")
    assert fold_id_aliases(source).chat_id == LID
    assert fold_id_aliases(source).user_id == "49999"


def test_a_whatsapp_group_keeps_its_id() -> None:
    group = SessionSource("whatsapp", "1203630@g.us", chat_type="group", user_id=DEVICE)
    assert build_session_key(group) == "agent:main:whatsapp:group:1203630@g.us:49170"


@given(plain_sources)
def test_sources_of_other_platforms_are_unchanged(source: SessionSource) -> None:
    assert fold_id_aliases(source) is source


aliases = st.one_of(
    st.none(), some_id, st.sampled_from([PHONE, DEVICE, LID, UUID, UUID.lower(), NUMBER, "49170", "1@g.us"])
)


aliased_sources = st.builds(
    SessionSource,
    st.sampled_from([Platform.WHATSAPP, Platform.SIGNAL]),
    aliases,
    chat_type=st.sampled_from(ChatType),
    chat_id_alt=aliases,
    user_id=aliases,
    user_id_alt=aliases,
    thread_id=maybe_id,
)


@given(aliased_sources)
def test_folding_is_idempotent_and_keeps_the_key(source: SessionSource) -> None:
    folded = fold_id_aliases(source)
    assert fold_id_aliases(folded) == folded
    assert build_session_key(folded) == build_session_key(source)
    assert (folded.participant is None) == (source.participant is None)


# ---- shared lanes ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chat", "fields", "settings", "shared"),
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
def test_a_lane_is_shared_if_several_people_may_write_in_it(
    chat: str, fields: dict[str, Any], settings: dict[str, Any], shared: bool
) -> None:
    assert is_shared(make_source(chat, **fields), **settings) is shared


@given(plain_sources, flags, flags, some_id)
def test_a_group_lane_is_shared_exactly_if_its_key_names_no_user(
    source: SessionSource, group: bool, thread: bool, other_user: str
) -> None:
    assume(source.chat_type is not ChatType.DM)
    assume(source.participant not in {None, other_user})
    other_source = SessionSource(
        source.platform,
        source.chat_id,
        chat_type=source.chat_type,
        thread_id=source.thread_id,
        user_id=other_user,
    )
    settings: dict[str, Any] = {"group_sessions_per_user": group, "thread_sessions_per_user": thread}
    same_key = build_session_key(source, **settings) == build_session_key(other_source, **settings)
    assert is_shared(source, **settings) == same_key
