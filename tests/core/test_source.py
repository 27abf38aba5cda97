"""Platform names, chat types, sources, and the JSON form of a source."""

from __future__ import annotations

import json
import pickle
from dataclasses import FrozenInstanceError, replace
from typing import Any, cast

import pytest
from hypothesis import given, strategies as st

from palaver.core.errors import InvalidSource
from palaver.core.source import BUILT_IN_PLATFORMS, ChatType, Platform, SessionSource

ids = st.one_of(st.none(), st.text(max_size=20), st.integers())
names = st.one_of(st.none(), st.text(max_size=20))
sources = st.builds(
    SessionSource,
    st.one_of(st.sampled_from(BUILT_IN_PLATFORMS), st.from_regex(r"[a-z][a-z0-9_-]{0,31}", fullmatch=True)),
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


@pytest.mark.parametrize("platform", BUILT_IN_PLATFORMS)
def test_a_built_in_platform_behaves_like_its_lower_case_name(platform: Platform) -> None:
    assert platform == str(platform) == str(platform).lower()
    assert getattr(Platform, platform.upper().replace("-", "_")) is platform
    assert hash(platform) == hash(str(platform))
    assert {platform: 1}[str(platform)] == 1
    assert json.dumps({"p": platform}) == json.dumps({"p": str(platform)})


def test_the_built_in_platforms() -> None:
    expected = "local web api telegram discord slack whatsapp whatsapp-web signal matrix email webhook cron"
    assert " ".join(BUILT_IN_PLATFORMS) == expected


@pytest.mark.parametrize(
    ("text", "name"),
    [("TELEGRAM", "telegram"), ("irc", "irc"), ("My_Plugin-2", "my_plugin-2"), ("x" * 32, "x" * 32)],
)
def test_a_platform_name_can_be_a_plugins_and_in_any_case(text: str, name: str) -> None:
    assert Platform(text) == name
    assert isinstance(Platform(text), Platform)


@pytest.mark.parametrize(
    "name",
    ["", "2fast", "-x", "a b", "a:b", "a/b", "x" * 33, "irc\n", "télé", "sla\N{KELVIN SIGN}", " telegram"],
)
def test_an_invalid_platform_name_is_rejected_with_the_rule(name: str) -> None:
    with pytest.raises(InvalidSource, match="up to 32 letters") as caught:
        Platform(name)
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize("name", [None, 7, b"telegram", ["telegram"], True])
def test_a_platform_name_must_be_text(name: Any) -> None:
    with pytest.raises(InvalidSource):
        Platform(name)


def test_a_platform_cannot_be_changed_and_survives_pickling() -> None:
    with pytest.raises(AttributeError):
        cast("Any", Platform.WEB).name = "x"
    copy = pickle.loads(pickle.dumps(Platform.WEB))
    assert isinstance(copy, Platform)
    assert copy == Platform.WEB
    assert repr(copy) == "Platform('web')"


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("local", "Terminal"),
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
    ("text", "chat_type"),
    [("dm", "dm"), ("group", "group"), ("channel", "channel"), ("thread", "thread"), ("forum", "group")],
)
def test_a_chat_type_is_parsed_from_text(text: str, chat_type: str) -> None:
    assert ChatType(text) == chat_type


@pytest.mark.parametrize("text", ["", "DM", "private", None, 3, ["dm"]])
def test_an_invalid_chat_type_is_rejected_with_the_valid_ones(text: Any) -> None:
    with pytest.raises(InvalidSource, match="dm, group, channel, thread") as caught:
        ChatType(text)
    assert repr(text) in str(caught.value)


def test_a_source_accepts_plain_text_and_numbers() -> None:
    source = SessionSource("Telegram", -100123, chat_type="forum", user_id=5, thread_id=0, user_id_alt=6, chat_id_alt=7)
    assert (source.platform, source.chat_type) == (Platform.TELEGRAM, ChatType.GROUP)
    assert isinstance(source.platform, Platform)
    assert isinstance(source.chat_type, ChatType)
    assert (source.chat_id, source.user_id, source.thread_id) == ("-100123", "5", "0")
    assert (source.user_id_alt, source.chat_id_alt) == ("6", "7")


def test_fields_that_are_not_given_are_unknown() -> None:
    source = SessionSource("irc")
    assert source.chat_id == ""
    assert source.chat_type is ChatType.DM
    unknown = (source.chat_name, source.user_id, source.user_name, source.thread_id, source.chat_topic)
    assert unknown == (None,) * 5


def test_an_empty_id_is_unknown() -> None:
    empty = SessionSource("irc", None, user_id="", thread_id="", user_id_alt="", chat_id_alt="", chat_name="")
    assert empty == SessionSource("irc")


def test_only_platform_and_chat_are_positional() -> None:
    with pytest.raises(TypeError):
        cast("Any", SessionSource)("irc", "#palaver", "Palaver")


@pytest.mark.parametrize("field", ["chat_id", "user_id", "thread_id", "user_id_alt", "chat_id_alt", "chat_name"])
@pytest.mark.parametrize("value", [1.5, True, b"1", [1], {}])
def test_an_id_of_another_type_is_rejected_by_field_name(field: str, value: Any) -> None:
    with pytest.raises(InvalidSource, match=field):
        SessionSource("irc", **{field: value})


def test_a_source_is_immutable_hashable_and_picklable() -> None:
    source = SessionSource("irc", "#palaver", user_id="ada")
    with pytest.raises(FrozenInstanceError):
        cast("Any", source).chat_id = "#other"
    assert len({source, SessionSource("IRC", "#palaver", user_id="ada")}) == 1
    assert replace(source, thread_id="3") == SessionSource("irc", "#palaver", user_id="ada", thread_id="3")
    assert pickle.loads(pickle.dumps(source)) == source


@pytest.mark.parametrize(
    ("source", "description"),
    [
        (SessionSource.local_cli(), "Terminal"),
        (SessionSource("local", thread_id="5"), "Terminal"),
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
def test_the_description_of_a_source(source: SessionSource, description: str) -> None:
    assert source.description == description


@pytest.mark.parametrize(
    ("user_id", "user_id_alt", "participant"),
    [("7", None, "7"), ("7", "uuid", "uuid"), (None, "uuid", "uuid"), (None, None, None)],
)
def test_the_participant_is_the_more_stable_id(
    user_id: str | None, user_id_alt: str | None, participant: str | None
) -> None:
    assert SessionSource("signal", user_id=user_id, user_id_alt=user_id_alt).participant == participant


def test_the_source_of_the_terminal() -> None:
    cli = SessionSource.local_cli()
    assert (cli.platform, cli.chat_id, cli.chat_name, cli.chat_type) == ("local", "cli", "Terminal", "dm")


def test_the_json_form_has_second_ids_only_if_they_are_known() -> None:
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
    with_second_ids = SessionSource("telegram", 1, user_id_alt="a", chat_id_alt="b").to_dict()
    assert with_second_ids == {**plain, "user_id_alt": "a", "chat_id_alt": "b"}


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
def test_missing_and_unknown_fields_are_accepted(fields: dict[str, object], source: SessionSource) -> None:
    assert SessionSource.from_dict(fields) == source


@pytest.mark.parametrize(
    ("fields", "message"),
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
def test_invalid_fields_are_rejected(fields: Any, message: str) -> None:
    with pytest.raises(InvalidSource, match=message):
        SessionSource.from_dict(fields)
