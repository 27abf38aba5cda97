"""Where a message came from: names of platforms, types of chats, sources and their JSON form."""

from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError, replace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from palaver.domain.errors import InvalidSource
from palaver.domain.source import BUILT_IN, ChatType, Platform, SessionSource

ids = st.one_of(st.none(), st.text(max_size=20), st.integers())
names = st.one_of(st.none(), st.text(max_size=20))
sources = st.builds(
    SessionSource,
    st.one_of(st.sampled_from(BUILT_IN), st.from_regex(r"[a-z][a-z0-9_-]{0,31}", fullmatch=True)),
    ids,
    chat_name=names,
    chat_type=st.sampled_from([*ChatType, "forum"]),
    user_id=ids,
    user_name=names,
    thread_id=ids,
    chat_topic=names,
    user_id_alt=ids,
    chat_id_alt=ids,
)


@pytest.mark.parametrize("platform", BUILT_IN)
def test_a_built_in_platform_is_its_lower_case_name(platform: Platform) -> None:
    assert platform == str(platform) == str(platform).lower()
    assert getattr(Platform, platform.upper()) is platform
    assert hash(platform) == hash(str(platform))
    assert {platform: 1}[str(platform)] == 1
    assert json.dumps({"p": platform}) == json.dumps({"p": str(platform)})


def test_there_are_eleven_built_in_platforms() -> None:
    assert " ".join(BUILT_IN) == "local web api telegram discord slack whatsapp signal matrix webhook cron"


@pytest.mark.parametrize(
    ("given_name", "name"),
    [("TELEGRAM", "telegram"), ("irc", "irc"), ("My_Plugin-2", "my_plugin-2"), ("x" * 32, "x" * 32)],
)
def test_a_platform_may_come_from_a_plugin_and_in_any_case(given_name: str, name: str) -> None:
    assert Platform(given_name) == name
    assert isinstance(Platform(given_name), Platform)


@pytest.mark.parametrize(
    "name",
    ["", "2fast", "-x", "a b", "a:b", "a/b", "x" * 33, "irc\n", "télé", "sla\N{KELVIN SIGN}", " telegram"],
)
def test_a_bad_platform_name_is_refused_with_what_is_allowed(name: str) -> None:
    with pytest.raises(InvalidSource, match="up to 32 letters") as refused:
        Platform(name)
    assert repr(name) in str(refused.value)


@pytest.mark.parametrize("name", [None, 7, b"telegram", ["telegram"], True])
def test_what_is_not_text_is_no_platform(name: Any) -> None:
    with pytest.raises(InvalidSource):
        Platform(name)


def test_a_platform_cannot_be_changed_and_survives_pickling() -> None:
    with pytest.raises(AttributeError):
        cast("Any", Platform.WEB).name = "x"
    again = pickle.loads(pickle.dumps(Platform.WEB))
    assert isinstance(again, Platform)
    assert again == Platform.WEB
    assert repr(again) == "Platform('web')"


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("local", "CLI"),
        ("web", "Web"),
        ("api", "API"),
        ("whatsapp", "WhatsApp"),
        ("telegram", "Telegram"),
        ("irc", "Irc"),
        ("google_chat", "Google Chat"),
        ("x-", "X"),
    ],
)
def test_a_platform_has_a_label_for_people(name: str, label: str) -> None:
    assert Platform(name).label == label


@pytest.mark.parametrize(
    ("word", "chat_type"),
    [("dm", "dm"), ("group", "group"), ("channel", "channel"), ("thread", "thread"), ("forum", "group")],
)
def test_a_chat_type_is_read_from_its_word(word: str, chat_type: str) -> None:
    assert ChatType(word) == chat_type


@pytest.mark.parametrize("word", ["", "DM", "private", None, 3, ["dm"]])
def test_any_other_chat_type_is_refused_with_the_list_of_good_ones(word: Any) -> None:
    with pytest.raises(InvalidSource, match="dm, group, channel, thread") as refused:
        ChatType(word)
    assert repr(word) in str(refused.value)


def test_a_source_takes_plain_words_and_numbers() -> None:
    source = SessionSource("Telegram", -100123, chat_type="forum", user_id=5, thread_id=0, user_id_alt=6, chat_id_alt=7)
    assert (source.platform, source.chat_type) == (Platform.TELEGRAM, ChatType.GROUP)
    assert isinstance(source.platform, Platform)
    assert isinstance(source.chat_type, ChatType)
    assert (source.chat_id, source.user_id, source.thread_id) == ("-100123", "5", "0")
    assert (source.user_id_alt, source.chat_id_alt) == ("6", "7")


def test_a_source_knows_only_what_it_was_told() -> None:
    source = SessionSource("irc")
    assert source.chat_id == ""
    assert source.chat_type is ChatType.DM
    unknown = (source.chat_name, source.user_id, source.user_name, source.thread_id, source.chat_topic)
    assert unknown == (None,) * 5


def test_an_empty_id_is_an_unknown_one() -> None:
    empty = SessionSource("irc", None, user_id="", thread_id="", user_id_alt="", chat_id_alt="", chat_name="")
    assert empty == SessionSource("irc")


def test_only_platform_and_chat_are_given_by_position() -> None:
    with pytest.raises(TypeError):
        cast("Any", SessionSource)("irc", "#palaver", "Palaver")


@pytest.mark.parametrize("field", ["chat_id", "user_id", "thread_id", "user_id_alt", "chat_id_alt", "chat_name"])
@pytest.mark.parametrize("value", [1.5, True, b"1", [1], {}])
def test_an_id_that_is_neither_text_nor_a_whole_number_is_refused_by_name(field: str, value: Any) -> None:
    with pytest.raises(InvalidSource, match=field):
        SessionSource("irc", **{field: value})


def test_a_source_is_a_value() -> None:
    source = SessionSource("irc", "#palaver", user_id="ada")
    with pytest.raises(FrozenInstanceError):
        cast("Any", source).chat_id = "#other"
    assert len({source, SessionSource("IRC", "#palaver", user_id="ada")}) == 1
    assert replace(source, thread_id="3") == SessionSource("irc", "#palaver", user_id="ada", thread_id="3")
    assert pickle.loads(pickle.dumps(source)) == source


@pytest.mark.parametrize(
    ("source", "description"),
    [
        (SessionSource.local_cli(), "CLI terminal"),
        (SessionSource("local", thread_id="5"), "CLI terminal"),
        (SessionSource("telegram", "1", user_id="7", user_name="Ada"), "DM with Ada"),
        (SessionSource("telegram", "1", user_id="7"), "DM with 7"),
        (SessionSource("telegram", "1"), "DM with user"),
        (SessionSource("telegram", "1", user_name="Ada", thread_id="9"), "DM with Ada, thread: 9"),
        (SessionSource("slack", "C1", chat_type="group", chat_name="ops"), "group: ops"),
        (SessionSource("slack", "C1", chat_type="group", thread_id="9"), "group: C1, thread: 9"),
        (SessionSource("slack", "C1", chat_type="channel", chat_name="ops"), "channel: ops"),
        (SessionSource("slack", "C1", chat_type="thread"), "thread: C1"),
        (
            SessionSource("slack", "C1", chat_type="thread", chat_name="ops", thread_id="9"),
            "thread: ops, thread: 9",
        ),
        (SessionSource("slack", chat_type="channel"), "channel: unknown"),
    ],
)
def test_a_source_describes_itself(source: SessionSource, description: str) -> None:
    assert source.description == description


@pytest.mark.parametrize(
    ("user_id", "user_id_alt", "participant"),
    [("7", None, "7"), ("7", "uuid", "uuid"), (None, "uuid", "uuid"), (None, None, None)],
)
def test_the_participant_is_the_steadier_id(
    user_id: str | None, user_id_alt: str | None, participant: str | None
) -> None:
    assert SessionSource("signal", user_id=user_id, user_id_alt=user_id_alt).participant == participant


def test_the_terminal_is_a_source_too() -> None:
    cli = SessionSource.local_cli()
    assert (cli.platform, cli.chat_id, cli.chat_name, cli.chat_type) == ("local", "cli", "CLI terminal", "dm")


def test_the_json_form_has_every_plain_field_and_second_ids_only_when_known() -> None:
    plain = SessionSource("telegram", 1).to_dict()
    assert plain == {
        "platform": "telegram",
        "chat_id": "1",
        "chat_name": None,
        "chat_type": "dm",
        "user_id": None,
        "user_name": None,
        "thread_id": None,
        "chat_topic": None,
    }
    assert {type(plain["platform"]), type(plain["chat_type"])} == {str}
    known = SessionSource("telegram", 1, user_id_alt="a", chat_id_alt="b").to_dict()
    assert known == {**plain, "user_id_alt": "a", "chat_id_alt": "b"}


@given(sources)
def test_a_source_survives_json(source: SessionSource) -> None:
    assert SessionSource.from_dict(json.loads(json.dumps(source.to_dict()))) == source


@pytest.mark.parametrize(
    ("fields", "source"),
    [
        ({"platform": "telegram"}, SessionSource("telegram")),
        ({"platform": "telegram", "chat_type": None}, SessionSource("telegram")),
        ({"platform": "telegram", "chat_id": None}, SessionSource("telegram")),
        ({"platform": "Telegram", "chat_id": 5, "user_id": 6}, SessionSource("telegram", "5", user_id="6")),
        ({"platform": "telegram", "chat_type": "forum"}, SessionSource("telegram", chat_type="group")),
        ({"platform": "telegram", "mood": ["good"]}, SessionSource("telegram")),
        ({"platform": "nextcloud", "thread_id": 3}, SessionSource("nextcloud", thread_id="3")),
    ],
)
def test_stored_fields_are_read_with_patience(fields: dict[str, object], source: SessionSource) -> None:
    assert SessionSource.from_dict(fields) == source


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({}, "platform"),
        ({"platform": None}, "platform"),
        ({"platform": 3}, "platform"),
        ({"platform": ""}, "platform"),
        ({"platform": "no such name!"}, "no such name!"),
        ({"platform": "irc", "chat_type": "salon"}, "salon"),
        ({"platform": "irc", "user_id": [1]}, "user_id"),
        (None, "NoneType"),
        ("irc", "str"),
        ([("platform", "irc")], "list"),
    ],
)
def test_fields_that_say_no_source_are_refused(fields: Any, named: str) -> None:
    with pytest.raises(InvalidSource, match=named):
        SessionSource.from_dict(fields)
