"""Reading config.yaml: YAML features, and files that can't be read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from palaver.config import load_settings
from palaver.core.errors import ConfigError
from palaver.core.source import ChatType
from palaver.sessions.gateway_config import GatewayConfig
from palaver.sessions.policy import ResetMode, ResetPolicy

if TYPE_CHECKING:
    from pathlib import Path

    from config.conftest import FindProblems, LoadSettings


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "session_reset:\n  # mode: idle\nplatforms:\n"])
def test_an_empty_file_or_section_has_the_defaults(load: LoadSettings, text: str) -> None:
    assert load(text).gateway == GatewayConfig()


def test_a_byte_order_mark_and_windows_line_endings_are_accepted(load: LoadSettings) -> None:
    assert load("\ufeffagent: helper\r\ntimezone: UTC\r\n").gateway.agent == "helper"


def test_anchors_and_merge_keys_work(load: LoadSettings) -> None:
    text = "session_reset: &p {mode: idle}\nreset_by_type:\n  dm: *p\n  group: {<<: *p, idle_minutes: 5}\n"
    config = load(text).gateway
    assert config.reset_by_type == {
        ChatType.DM: ResetPolicy(mode=ResetMode.IDLE),
        ChatType.GROUP: ResetPolicy(mode=ResetMode.IDLE, idle_minutes=5),
    }


def test_a_duplicate_key_is_found_at_every_depth(find_problems: FindProblems) -> None:
    text = "platforms:\n  irc:\n    settings:\n      a: 1\n      b: {c: 1, d: 2, c: 3}\n      a: 2\n  irc:\n"
    assert find_problems(text) == [
        "config.yaml:5: platforms.irc.settings.b.c: given twice (first on line 5)",
        "config.yaml:6: platforms.irc.settings.a: given twice (first on line 4)",
        "config.yaml:7: platforms.irc: given twice (first on line 2)",
    ]


@pytest.mark.parametrize(
    ("text", "location", "reason"),
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
def test_invalid_yaml_is_reported_with_line_and_column(
    find_problems: FindProblems, text: str, location: str, reason: str
) -> None:
    [problem] = find_problems(text)
    assert problem.startswith(f"config.yaml:{location}: this is not valid YAML: ")
    assert reason in problem


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("- agent: main", "config.yaml:1: expected lines of `key: value`, found a list"),
        ("# hello\n\njust text", "config.yaml:3: expected lines of `key: value`, found a single value"),
        ("[" * 600, "config.yaml:1: this is nested too deeply"),
        (b"agent: main\nname: \xff", "config.yaml:2: this is not UTF-8 text"),
    ],
)
def test_a_file_without_settings_is_rejected(find_problems: FindProblems, text: str | bytes, problem: str) -> None:
    assert find_problems(text) == [problem]


def test_a_file_that_cannot_be_read_is_reported_with_its_path(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.mkdir()
    with pytest.raises(ConfigError, match=re.escape(f"{path}: can't read this file (Is a directory)")):
        load_settings({}, tmp_path)
