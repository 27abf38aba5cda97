"""Problems in the file: all are reported, with clear messages, and no secret is shown."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from config.conftest import FindProblems


def test_all_problems_are_reported_in_the_order_of_the_file(find_problems: FindProblems) -> None:
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
    assert find_problems(text, PALAVER_DM_SCOPE="all", PALAVER_REDACT_PII="x") == [
        'config.yaml:1: timezone: "Atlantis" is not allowed (an IANA name such as Europe/Berlin or UTC)',
        "config.yaml:3: session_reset.at_hour: 24 is not allowed (0 to 23)",
        "config.yaml:4: session_reset.idle_minutes: true is not allowed (a whole number of minutes, 1 to 52560000)",
        "config.yaml:5: session_reset.at_huor: unknown key (did you mean at_hour?)",
        "config.yaml:7: platforms.telegrm: unknown name (did you mean telegram?)",
        'config.yaml:9: platforms.telegram.enabled: "maybe" is not allowed (true or false)',
        "config.yaml:10: platforms.telegram.home_channel.chat_id: this key is required",
        "config.yaml:12: reset_by_type.crowd: unknown name (known: dm, group, channel, thread)",
        'config.yaml:12: reset_by_type.crowd.mode: "weekly" is not allowed (none, idle, daily or both)',
        "config.yaml:13: agent: \"Main Agent\" is not allowed (up to 32 lowercase letters, digits, '_' or '-', "
        "starting with a letter or digit, such as main)",
        "config.yaml:14: at_hour: unknown key (did you mean session_reset.at_hour?)",
        'PALAVER_DM_SCOPE: "all" is not allowed (chat, platform, person or shared)',
        'PALAVER_REDACT_PII: "x" is not allowed (true or false)',
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("sessions: [1]", "sessions: a list is not allowed (a section with keys)"),
        ("privacy: true", "privacy: true is not allowed (a section with keys)"),
        ("platforms: telegram", 'platforms: "telegram" is not allowed (a section with keys)'),
        ("platforms: {irc: 5}", "platforms.irc: 5 is not allowed (a section with keys)"),
        (
            "platforms: {irc: {settings: 5}}",
            "platforms.irc.settings: … is not allowed (a section with keys)",
        ),
        ("platforms: {Telegram: {}}", "platforms.Telegram: unknown name (did you mean telegram?)"),
        (
            "reset_by_platform: {web: {mode: idle}}",
            "reset_by_platform: conversations on web never restart automatically; remove web",
        ),
        ("reset_by_platform: {discrod: {}}", "reset_by_platform.discrod: unknown name (did you mean discord?)"),
        ("session_reset: {at_hour: }", "session_reset.at_hour: an empty value is not allowed (0 to 23)"),
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
        ("agent: !!python/name:os.system x", "agent: YAML tags are not supported here"),
        ("privacy: {redact_pii: !!bool x}", "privacy.redact_pii: this value does not match its YAML tag"),
        ("sessions: !!set {a}", "sessions: YAML tags are not supported here"),
        ("platforms: {irc: {settings: &a {b: *a}}}", "platforms.irc.settings.b: this contains itself"),
        ("? [a]\n: 1", "a key must be plain text, not a list or a section"),
    ],
)
def test_each_problem_has_a_clear_message(find_problems: FindProblems, text: str, problem: str) -> None:
    line = 2 if "twice" in problem else 1
    assert find_problems(text) == [f"config.yaml:{line}: {problem}"]


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
def test_no_message_contains_a_secret(find_problems: FindProblems, text: str) -> None:
    assert "hunter2" not in "\n".join(find_problems(text))
