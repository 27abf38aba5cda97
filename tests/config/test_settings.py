"""Settings: the home folder, the database URL, and the values of a complete file."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from palaver.config import AccountEntry, load_settings
from palaver.config.agent_rules import DEFAULT_MESSAGES_PER_MINUTE, AgentProfile, TurnRules
from palaver.core.source import ChatType, Platform
from palaver.sessions.gateway_config import GatewayConfig, HomeChannel
from palaver.sessions.keys import DmScope
from palaver.sessions.policy import ResetMode, ResetPolicy

if TYPE_CHECKING:
    from config.conftest import FindProblems, LoadSettings

DEFAULT_RULES = TurnRules(messages_per_minute=DEFAULT_MESSAGES_PER_MINUTE)


def test_without_a_file_the_defaults_apply_and_nothing_is_written(tmp_path: Path) -> None:
    home = tmp_path / "missing"
    settings = load_settings({}, home)
    assert settings.home == home
    assert settings.database_url == f"sqlite:///{home}/palaver.db"
    assert settings.gateway == GatewayConfig()
    assert settings.accounts == ()
    assert (settings.agent, settings.turns) == (AgentProfile(), DEFAULT_RULES)
    assert not home.exists()


def test_home_is_the_argument_else_the_variable_else_a_folder_of_the_user(tmp_path: Path) -> None:
    user = {"HOME": str(tmp_path)}
    assert load_settings(user).home == tmp_path / ".palaver"
    assert load_settings({**user, "PALAVER_HOME": ""}).home == tmp_path / ".palaver"
    assert load_settings({**user, "PALAVER_HOME": "~/elsewhere"}).home == tmp_path / "elsewhere"
    assert load_settings({**user, "PALAVER_HOME": "/srv/x"}).home == Path("/srv/x")
    assert load_settings({**user, "PALAVER_HOME": "/srv/x"}, tmp_path).home == tmp_path
    assert load_settings({**user, "PALAVER_HOME": "relative"}).home == Path("relative").absolute()


@pytest.mark.parametrize(
    ("value", "url"),
    [
        ("sqlite:////srv/talk.db", "sqlite:////srv/talk.db"),
        ("/srv/talk.db", "sqlite:////srv/talk.db"),
        ("talk.db", "sqlite:///{home}/talk.db"),
        ("sqlite:///talk.db", "sqlite:///{home}/talk.db"),
        ("~/talk.db", "sqlite:////users/ada/talk.db"),
        ("sqlite:///~/talk.db", "sqlite:////users/ada/talk.db"),
        ("postgresql://ada:pw@db:5432/talk?sslmode=require", "postgresql://ada:pw@db:5432/talk?sslmode=require"),
        ("postgres://ada@db/talk", "postgresql://ada@db/talk"),
        ("postgres.db", "sqlite:///{home}/postgres.db"),
    ],
)
def test_the_database_is_given_by_url_or_path(load: LoadSettings, tmp_path: Path, value: str, url: str) -> None:
    expected = url.format(home=tmp_path)
    assert load(f"database_url: {value}", HOME="/users/ada").database_url == expected
    assert load("", HOME="/users/ada", PALAVER_DATABASE_URL=value).database_url == expected


@pytest.mark.parametrize(
    ("value", "shown_value"),
    [
        ("mysql://ada:hunter2@db/talk", "mysql://…"),
        ("sqlite://hunter2", "sqlite://…"),
        ("sqlite:hunter2", "…"),
        ("sqlite:///:memory:", "sqlite://…"),
        (":memory:", "…"),
        ("host=db password=hunter2", "…"),
        ("postgresql://", "postgresql://…"),
    ],
)
def test_an_invalid_database_url_is_rejected_without_showing_its_password(
    find_problems: FindProblems, value: str, shown_value: str
) -> None:
    allowed = "is not allowed (sqlite:///path, postgresql://user@host/name or a file path)"
    assert find_problems(f"database_url: '{value}'") == [f"config.yaml:1: database_url: {shown_value} {allowed}"]
    assert find_problems("", PALAVER_DATABASE_URL=value) == [f"PALAVER_DATABASE_URL: {shown_value} {allowed}"]


def test_the_gateway_config_has_all_settings_of_the_file(load: LoadSettings, full_config: str, tmp_path: Path) -> None:
    settings = load(full_config)
    berlin, irc = "Europe/Berlin", Platform("irc")
    assert settings.database_url == f"sqlite:///{tmp_path}/talk.db"
    assert settings.gateway == GatewayConfig(
        connected_platforms=(Platform.TELEGRAM, irc),
        home_channels={
            Platform.TELEGRAM: HomeChannel(Platform.TELEGRAM, "-100123", "2026", "007"),
            Platform.SLACK: HomeChannel(Platform.SLACK, "C1", "", "1712345678.123400"),
        },
        default_reset_policy=ResetPolicy(
            mode=ResetMode.BOTH, idle_minutes=60, at_hour=5, timezone=berlin, notify=False
        ),
        timezone=berlin,
        reset_by_platform={Platform.TELEGRAM: ResetPolicy(mode=ResetMode.IDLE, timezone="Asia/Tokyo")},
        reset_by_type={ChatType.GROUP: ResetPolicy(mode=ResetMode.DAILY, timezone=berlin)},
        group_sessions_per_user=False,
        thread_sessions_per_user=True,
        dm_scope=DmScope.PERSON,
        agent="helper",
        redact_pii=True,
    )
    telegram_settings = {"bot_token": "123:abc", "nested": {"deep": [1, "two"]}}
    assert settings.accounts == (
        AccountEntry(platform=Platform.TELEGRAM, name="", settings=telegram_settings),
        AccountEntry(platform=irc, name=""),
    )
    assert settings.disabled_platforms == {Platform.SLACK}


def test_several_accounts_on_one_platform_have_settings_of_their_own(load: LoadSettings) -> None:
    settings = load("""\
platforms:
  telegram:
    accounts:
      work: {settings: {bot_token: one}}
      family:
      old: {enabled: false}
  matrix:
    settings: {homeserver: two}
    accounts: {bridge: {settings: {homeserver: three}}}
""")
    assert [(entry.platform, entry.name, entry.settings_key) for entry in settings.accounts] == [
        ("telegram", "work", "platforms.telegram.accounts.work.settings"),
        ("telegram", "family", "platforms.telegram.accounts.family.settings"),
        ("matrix", "", "platforms.matrix.settings"),
        ("matrix", "bridge", "platforms.matrix.accounts.bridge.settings"),
    ]
    assert settings.gateway.account_names == {Platform.TELEGRAM: ("work", "family"), Platform.MATRIX: ("", "bridge")}


def test_how_the_agent_behaves_on_a_platform(load: LoadSettings) -> None:
    text = "platforms: {telegram: {streaming: false}, matrix: {group_activation: always, allow_bots: true}, irc: {}}"
    turns = load(text).turns
    assert turns.unstreamed_platforms == {Platform.TELEGRAM}
    assert turns.always_active_platforms == turns.bot_platforms == {Platform.MATRIX}


def test_a_problem_in_the_settings_of_an_account_shows_no_value(find_problems: FindProblems) -> None:
    text = """\
platforms:
  telegram:
    settings: hunter2
    accounts:
      Work: {}
      one: {settings: {token: !secret hunter3}}
      two: {tokn: hunter4}
      three: {settings: [hunter5]}
"""
    problems = find_problems(text)
    assert "hunter" not in "\n".join(problems)
    rule = "up to 32 lowercase letters, digits, '_' or '-', starting with a letter"
    assert problems == [
        "config.yaml:3: platforms.telegram.settings: … is not allowed (a section with keys)",
        f"config.yaml:5: platforms.telegram.accounts.Work: this name is not valid ({rule})",
        "config.yaml:6: platforms.telegram.accounts.one.settings.token: YAML tags are not supported here",
        "config.yaml:7: platforms.telegram.accounts.two.tokn: unknown key (known: enabled, settings)",
        "config.yaml:8: platforms.telegram.accounts.three.settings: a list is not allowed (a section with keys)",
    ]


def test_passwords_and_tokens_are_not_in_the_repr(load: LoadSettings) -> None:
    text = """\
database_url: postgresql://ada:hunter2@db/talk
platforms: {telegram: {settings: {token: hunter3}}}
providers: {openai: {api_key: hunter4, base_url: "https://ada:hunter5@example.org"}}
mcp_servers:
  one: {command: serve, args: [--token, hunter6], env: {TOKEN: hunter7}}
  two: {url: "https://example.org?token=hunter8", headers: {Authorization: hunter9}}
"""
    assert "hunter" not in repr(load(text))


def test_without_a_file_no_parser_is_imported(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib; from palaver.config import load_settings; "
        "environ = {'PALAVER_DM_SCOPE': 'person', 'PALAVER_MODEL': 'demo', 'OPENAI_API_KEY': 'k'}; "
        "load_settings(environ, pathlib.Path(sys.argv[1])); "
        "print(sorted({'pydantic', 'pydantic_core', 'yaml'} & set(sys.modules)))"
    )
    result = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"
