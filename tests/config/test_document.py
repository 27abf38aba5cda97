"""Reading config.yaml: what YAML allows us, and where it stops."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from palaver.config import load_settings
from palaver.domain.errors import ConfigError
from palaver.domain.gateway_config import GatewayConfig
from palaver.domain.policy import ResetMode, ResetPolicy
from palaver.domain.source import ChatType

if TYPE_CHECKING:
    from pathlib import Path

    from config.conftest import Load, Mistakes


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "session_reset:\n  # mode: idle\nplatforms:\n"])
def test_an_empty_file_or_section_says_nothing(load: Load, text: str) -> None:
    assert load(text).gateway == GatewayConfig()


def test_a_byte_order_mark_and_foreign_line_ends_do_no_harm(load: Load) -> None:
    assert load("\ufeffagent: helper\r\ntimezone: UTC\r\n").gateway.agent == "helper"


def test_one_policy_may_be_written_once_and_used_again(load: Load) -> None:
    text = "session_reset: &p {mode: idle}\nreset_by_type:\n  dm: *p\n  group: {<<: *p, idle_minutes: 5}\n"
    config = load(text).gateway
    assert config.reset_by_type == {
        ChatType.DM: ResetPolicy(mode=ResetMode.IDLE),
        ChatType.GROUP: ResetPolicy(mode=ResetMode.IDLE, idle_minutes=5),
    }


def test_a_key_given_twice_is_found_at_every_depth(mistakes: Mistakes) -> None:
    text = "platforms:\n  irc:\n    settings:\n      a: 1\n      b: {c: 1, d: 2, c: 3}\n      a: 2\n  irc:\n"
    assert mistakes(text) == [
        "config.yaml:5: platforms.irc.settings.b.c: given twice (first on line 5)",
        "config.yaml:6: platforms.irc.settings.a: given twice (first on line 4)",
        "config.yaml:7: platforms.irc: given twice (first on line 2)",
    ]


@pytest.mark.parametrize(
    ("text", "place", "what"),
    [
        ("agent: main\nsessions: [1, 2", "2:16", "expected ',' or ']'"),
        ("a: b: c", "1:5", "mapping values are not allowed here"),
        ("agent: 'main", "1:13", "unexpected end of stream"),
        ("\tagent: main", "1:1", "found character '\\t' that cannot start any token"),
        ("agent: main\n---\nagent: other", "2:1", "single document"),
        ("agent: main\nx: a\x07b", "2:5", "U+0007"),
        ("session_reset: {<<: 5}", "1:21", "merging"),
    ],
)
def test_what_is_not_yaml_is_reported_with_line_and_column(
    mistakes: Mistakes, text: str, place: str, what: str
) -> None:
    [found] = mistakes(text)
    assert found.startswith(f"config.yaml:{place}: this is not YAML: ")
    assert what in found


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("- agent: main", "config.yaml:1: settings are lines of `key: value`, this is a list"),
        ("# hello\n\njust text", "config.yaml:3: settings are lines of `key: value`, this is a single value"),
        ("[" * 600, "config.yaml:1: this is nested too deeply"),
        (b"agent: main\nname: \xff", "config.yaml:2: this is not UTF-8 text"),
    ],
)
def test_a_file_of_another_shape_is_refused(mistakes: Mistakes, text: str | bytes, complaint: str) -> None:
    assert mistakes(text) == [complaint]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.mkdir()
    with pytest.raises(ConfigError, match=re.escape(f"{path}: cannot be read (Is a directory)")):
        load_settings({}, tmp_path)
