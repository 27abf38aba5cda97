"""Mistakes in the file: all of them, in words, and nothing secret."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from config.conftest import Mistakes


def test_all_mistakes_are_reported_at_once_in_the_order_of_the_file(mistakes: Mistakes) -> None:
    text = """\
timezone: Atlantis
session_reset:
  at_hour: 24
  idle_minutes: yes
  at_huor: 3
platforms:
  telegrm:
  telegram:
    enabled: maybe
    home_channel: {name: Family}
reset_by_type:
  crowd: {mode: weekly}
agent: Main Agent
at_hour: 3
"""
    assert mistakes(text, PALAVER_DM_SCOPE="all", PALAVER_REDACT_PII="x") == [
        'config.yaml:1: timezone: "Atlantis" is not allowed (an IANA name such as Europe/Berlin or UTC)',
        "config.yaml:3: session_reset.at_hour: 24 is not allowed (0 to 23)",
        "config.yaml:4: session_reset.idle_minutes: true is not allowed (a whole number of minutes, 1 to 52560000)",
        "config.yaml:5: session_reset.at_huor: unknown key (did you mean at_hour?)",
        "config.yaml:7: platforms.telegrm: unknown name (did you mean telegram?)",
        'config.yaml:9: platforms.telegram.enabled: "maybe" is not allowed (true or false)',
        "config.yaml:10: platforms.telegram.home_channel.chat_id: this is missing",
        "config.yaml:12: reset_by_type.crowd: unknown name (known: dm, group, channel, thread)",
        'config.yaml:12: reset_by_type.crowd.mode: "weekly" is not allowed (none, idle, daily or both)',
        "config.yaml:13: agent: \"Main Agent\" is not allowed (up to 32 small letters, digits, '_' or '-', "
        "beginning with a letter or digit, such as main)",
        "config.yaml:14: at_hour: unknown key (did you mean session_reset.at_hour?)",
        'PALAVER_DM_SCOPE: "all" is not allowed (chat, platform, person or shared)',
        'PALAVER_REDACT_PII: "x" is not allowed (true or false)',
    ]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("sessions: [1]", "sessions: a list is not allowed (a section with keys of its own)"),
        ("privacy: true", "privacy: true is not allowed (a section with keys of its own)"),
        ("platforms: telegram", 'platforms: "telegram" is not allowed (a section with keys of its own)'),
        ("platforms: {irc: 5}", "platforms.irc: 5 is not allowed (a section with keys of its own)"),
        (
            "platforms: {irc: {settings: 5}}",
            "platforms.irc.settings: 5 is not allowed (a section with keys of its own)",
        ),
        ("platforms: {Telegram: {}}", "platforms.Telegram: unknown name (did you mean telegram?)"),
        (
            "reset_by_platform: {web: {mode: idle}}",
            "reset_by_platform: conversations on web never start afresh by themselves; leave web out",
        ),
        ("reset_by_platform: {discrod: {}}", "reset_by_platform.discrod: unknown name (did you mean discord?)"),
        ("session_reset: {at_hour: }", "session_reset.at_hour: nothing is not allowed (0 to 23)"),
        ("session_reset: {at_hour: '4'}", 'session_reset.at_hour: "4" is not allowed (0 to 23)'),
        ("session_reset: {mode: off}", "session_reset.mode: false is not allowed (none, idle, daily or both)"),
        ("privacy: {redact_pii: {}}", "privacy.redact_pii: a section is not allowed (true or false)"),
        (
            "platforms: {irc: {home_channel: {chat_id: ''}}}",
            'platforms.irc.home_channel.chat_id: "" is not allowed (text)',
        ),
        ("sesions: {}", "sesions: unknown key (did you mean sessions?)"),
        ("platforms: {irc: {home_chanel: 1}}", "platforms.irc.home_chanel: unknown key (did you mean home_channel?)"),
        ("sessions: {qqqqq: 1}", "sessions.qqqqq: unknown key (known: dm_scope, group_per_user, thread_per_user)"),
        ("redact_pii: true", "redact_pii: unknown key (did you mean privacy.redact_pii?)"),
        ("agent: 1\nagent: 2", "agent: given twice (first on line 1)"),
        ("agent: !!python/name:os.system x", "agent: a tag has no meaning here"),
        ("privacy: {redact_pii: !!bool x}", "privacy.redact_pii: this is not a value of the kind it is written as"),
        ("sessions: !!set {a}", "sessions: a tag has no meaning here"),
        ("platforms: {irc: {settings: &a {b: *a}}}", "platforms.irc.settings.b: this holds itself"),
        ("? [a]\n: 1", "a key is plain text, not a list or a section"),
    ],
)
def test_each_kind_of_mistake_is_said_in_words(mistakes: Mistakes, text: str, complaint: str) -> None:
    line = 2 if "twice" in complaint else 1
    assert mistakes(text) == [f"config.yaml:{line}: {complaint}"]


@pytest.mark.parametrize(
    "text",
    [
        "platforms: {telegram: {bot_token: hunter2}}",
        "api_key: hunter2",
        "platforms: {telegram: {enabled: true, password: [hunter2]}}",
        "platforms: {telegram: {settings: {token: *hunter2}}}",
        "platforms: {telegram: {settings: {token: !hunter2 x}}}",
        "platforms: {telegram: {settings: {token: !!int hunter2}}}",
        "platforms: {my_token_chat: hunter2}",
        "platforms:\n  telegram:\n    settings:\n      secret: 'hunter2\n",
        "database_url: mysql://ada:hunter2@db",
        "providers: {openai: hunter2}",
        "providers: [hunter2]",
        "providers: {openai: {api_key: [hunter2]}}",
        "providers: {openai: {api_key: 'Bearer hunter2'}}",
        "providers: {openai: {apikey: hunter2}}",
        "providers: {openai: {api_key: !hunter2 x}}",
        "providers: {openai: {api_key: hunter2, api_key: hunter2}}",
        "providers: {openai: {api_key=hunter2}}",
        "providers: {openai: {base_url: 'ftp://ada:hunter2@db'}}",
        "providers: {openai: {base_url: 'ada:hunter2@db'}}",
        "mcp_servers: {one: hunter2}",
        "mcp_servers: {one: {args: --token=hunter2, command: x}}",
        "mcp_servers: {one: {args: [{token: hunter2}], command: x}}",
        "mcp_servers: {one: {env: [TOKEN=hunter2], command: x}}",
        "mcp_servers: {one: {env: {TOKEN=hunter2}, command: x}}",
        "mcp_servers: {one: {env: {T=hunter2: 1, T=hunter2: 2}, command: x}}",
        'mcp_servers: {one: {env: {A: "hunter2\\0"}, command: x}}',
        "mcp_servers: {one: {headers: 'Authorization: hunter2', url: 'http://x'}}",
        "mcp_servers: {one: {headers: {'Authorization: hunter2': }, url: 'http://x'}}",
        "mcp_servers: {one: {headers: {Authorization: \"hunter2\\n\"}, url: 'http://x'}}",
        "mcp_servers: {one: {url: 'ws://example.org?k=hunter2'}}",
        "mcp_servers: {one: {command: x --token hunter2, url: 'http://hunter2@x'}}",
        "mcp_servers: {one: {command: x, env: {A: hunter2}, headers: {B: hunter2}}}",
    ],
)
def test_a_secret_is_never_shown(mistakes: Mistakes, text: str) -> None:
    assert "hunter2" not in "\n".join(mistakes(text))
