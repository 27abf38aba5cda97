"""Settings: what the file and the environment say, which wins, and how a mistake is reported."""

from __future__ import annotations

import re
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier

import pytest

from palaver.config import (
    CHAT_PLATFORMS,
    SECRET_BYTES,
    VARIABLES,
    Settings,
    install_secret,
    known_keys,
    load_settings,
)
from palaver.domain.errors import ConfigError
from palaver.domain.gateway import GatewayConfig, HomeChannel
from palaver.domain.keys import DmScope
from palaver.domain.policy import ResetMode, ResetPolicy
from palaver.domain.source import ChatType, Platform

REFERENCE = Path(__file__).parent.parent / "docs/reference/settings.md"


def load(home: Path, text: str | bytes, **environ: str) -> Settings:
    raw = text if isinstance(text, bytes) else text.encode()
    (home / "config.yaml").write_bytes(raw)
    return load_settings(environ, home)


def mistakes(home: Path, text: str | bytes, **environ: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        load(home, text, **environ)
    assert caught.value.facts["file"] == str(home / "config.yaml")
    return str(caught.value).split("\n")


# ---- defaults, home and database ---------------------------------------------------------------------------


def test_without_a_file_the_defaults_hold_and_nothing_is_written(tmp_path: Path) -> None:
    home = tmp_path / "not there yet"
    settings = load_settings({}, home)
    assert settings.home == home
    assert settings.database_url == f"sqlite:///{home}/palaver.db"
    assert settings.gateway == GatewayConfig()
    assert settings.platform_settings == {}
    assert not home.exists()


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n", "session_reset:\n  # mode: idle\nplatforms:\n"])
def test_an_empty_file_or_section_says_nothing(tmp_path: Path, text: str) -> None:
    assert load(tmp_path, text).gateway == GatewayConfig()


def test_home_is_the_argument_or_the_variable_or_a_folder_of_the_user(tmp_path: Path) -> None:
    user = {"HOME": str(tmp_path)}
    assert load_settings(user).home == tmp_path / ".palaver"
    assert load_settings({**user, "PALAVER_HOME": ""}).home == tmp_path / ".palaver"
    assert load_settings({**user, "PALAVER_HOME": "~/elsewhere"}).home == tmp_path / "elsewhere"
    assert load_settings({**user, "PALAVER_HOME": "/srv/x"}).home == Path("/srv/x")
    assert load_settings({**user, "PALAVER_HOME": "/srv/x"}, tmp_path).home == tmp_path
    assert load_settings({**user, "PALAVER_HOME": "here"}).home == Path("here").absolute()


@pytest.mark.parametrize(
    ("given", "url"),
    [
        ("sqlite:////srv/talk.db", "sqlite:////srv/talk.db"),
        ("/srv/talk.db", "sqlite:////srv/talk.db"),
        ("talk.db", "sqlite:///{home}/talk.db"),
        ("sqlite:///talk.db", "sqlite:///{home}/talk.db"),
        ("~/talk.db", "sqlite:////users/ada/talk.db"),
        ("sqlite:///~/talk.db", "sqlite:////users/ada/talk.db"),
        (
            "postgresql://ada:pw@db:5432/talk?sslmode=require",
            "postgresql://ada:pw@db:5432/talk?sslmode=require",
        ),
        ("postgres://ada@db/talk", "postgresql://ada@db/talk"),
        ("postgres.db", "sqlite:///{home}/postgres.db"),
    ],
)
def test_the_database_is_named_by_url_or_path(tmp_path: Path, given: str, url: str) -> None:
    expected = url.format(home=tmp_path)
    assert load(tmp_path, f"database_url: {given}", HOME="/users/ada").database_url == expected
    assert load(tmp_path, "", HOME="/users/ada", PALAVER_DATABASE_URL=given).database_url == expected


@pytest.mark.parametrize(
    ("given", "shown"),
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
def test_a_database_that_cannot_be_is_refused_without_its_password(tmp_path: Path, given: str, shown: str) -> None:
    allowed = "is not allowed (sqlite:///path, postgresql://user@host/name or the path of a file)"
    assert mistakes(tmp_path, f"database_url: '{given}'") == [f"config.yaml:1: database_url: {shown} {allowed}"]
    assert mistakes(tmp_path, "", PALAVER_DATABASE_URL=given) == [f"PALAVER_DATABASE_URL: {shown} {allowed}"]


# ---- what the file says ------------------------------------------------------------------------------------

EVERYTHING = """\
database_url: talk.db
timezone: Europe/Berlin
session_reset: {mode: both, idle_minutes: 60, at_hour: 5, notify: false}
reset_by_platform:
  telegram: {mode: idle, timezone: Asia/Tokyo}
reset_by_type:
  group:
    mode: daily
sessions:
  group_per_user: false
  thread_per_user: yes
  dm_scope: person
privacy:
  redact_pii: true
agent: helper
platforms:
  telegram:
    enabled: true
    home_channel: {chat_id: -100123, name: 2026, thread_id: 007}
    settings:
      bot_token: "123:abc"
      nested: {deep: [1, two]}
  slack:
    enabled: false
    home_channel:
      chat_id: C1
      thread_id: 1712345678.123400
  irc:
"""


def test_everything_that_the_file_says_arrives(tmp_path: Path) -> None:
    settings = load(tmp_path, EVERYTHING)
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
        reset_by_platform={Platform.TELEGRAM: ResetPolicy(mode=ResetMode.IDLE, timezone="Asia/Tokyo")},
        reset_by_type={ChatType.GROUP: ResetPolicy(mode=ResetMode.DAILY, timezone=berlin)},
        group_sessions_per_user=False,
        thread_sessions_per_user=True,
        dm_scope=DmScope.PERSON,
        agent="helper",
        redact_pii=True,
    )
    own = settings.platform_settings
    assert own == {Platform.TELEGRAM: {"bot_token": "123:abc", "nested": {"deep": [1, "two"]}}}


def test_passwords_and_tokens_are_not_in_the_repr(tmp_path: Path) -> None:
    text = "database_url: postgresql://ada:hunter2@db/talk\nplatforms: {telegram: {settings: {token: hunter3}}}"
    assert "hunter" not in repr(load(tmp_path, text))


def test_a_byte_order_mark_and_foreign_line_ends_do_no_harm(tmp_path: Path) -> None:
    assert load(tmp_path, "\ufeffagent: helper\r\ntimezone: UTC\r\n").gateway.agent == "helper"


def test_one_policy_may_be_written_once_and_used_again(tmp_path: Path) -> None:
    text = "session_reset: &p {mode: idle}\nreset_by_type:\n  dm: *p\n  group: {<<: *p, idle_minutes: 5}\n"
    config = load(tmp_path, text).gateway
    assert config.reset_by_type == {
        ChatType.DM: ResetPolicy(mode=ResetMode.IDLE),
        ChatType.GROUP: ResetPolicy(mode=ResetMode.IDLE, idle_minutes=5),
    }


# ---- what the environment says -----------------------------------------------------------------------------


def test_the_environment_wins_over_the_file(tmp_path: Path) -> None:
    settings = load(
        tmp_path,
        EVERYTHING,
        PALAVER_DATABASE_URL="postgresql://db/talk",
        PALAVER_TIMEZONE="America/New_York",
        PALAVER_SESSION_RESET_MODE="daily",
        PALAVER_SESSION_RESET_IDLE_MINUTES="7",
        PALAVER_SESSION_RESET_AT_HOUR="0",
        PALAVER_DM_SCOPE="shared",
        PALAVER_REDACT_PII="off",
    )
    config = settings.gateway
    assert settings.database_url == "postgresql://db/talk"
    assert config.default_reset_policy == ResetPolicy(
        mode=ResetMode.DAILY, idle_minutes=7, at_hour=0, timezone="America/New_York", notify=False
    )
    assert config.reset_by_platform[Platform.TELEGRAM].timezone == "Asia/Tokyo"
    assert config.reset_by_type[ChatType.GROUP].timezone == "America/New_York"
    assert (config.dm_scope, config.redact_pii) == (DmScope.SHARED, False)


def test_an_empty_variable_says_nothing(tmp_path: Path) -> None:
    empty = {variable.name: " " for variable in VARIABLES}
    assert load(tmp_path, EVERYTHING, **empty) == load(tmp_path, EVERYTHING)


@pytest.mark.parametrize("platform", CHAT_PLATFORMS)
def test_a_home_channel_may_come_from_the_environment_alone(tmp_path: Path, platform: Platform) -> None:
    name = f"{platform.upper()}_HOME_CHANNEL"
    settings = load_settings({name: "1", f"{name}_NAME": "Home", f"{name}_THREAD_ID": "7"}, tmp_path)
    assert settings.gateway.home_for(platform) == HomeChannel(platform, "1", "Home", "7")
    assert settings.gateway.connected_platforms == ()


@pytest.mark.parametrize(
    ("environ", "home"),
    [
        ({}, ("-1", "Family", "7")),
        ({"TELEGRAM_HOME_CHANNEL": "-2"}, ("-2", "", None)),
        ({"TELEGRAM_HOME_CHANNEL": "-1"}, ("-1", "Family", "7")),
        ({"TELEGRAM_HOME_CHANNEL": "-2", "TELEGRAM_HOME_CHANNEL_NAME": "Work"}, ("-2", "Work", None)),
        ({"TELEGRAM_HOME_CHANNEL_NAME": "Work"}, ("-1", "Work", "7")),
        ({"TELEGRAM_HOME_CHANNEL_THREAD_ID": "8"}, ("-1", "Family", "8")),
    ],
)
def test_a_variable_changes_only_what_it_names_unless_it_names_another_chat(
    tmp_path: Path, environ: dict[str, str], home: tuple[str, str, str | None]
) -> None:
    text = "platforms: {telegram: {home_channel: {chat_id: -1, name: Family, thread_id: 7}}}"
    settings = load(tmp_path, text, **environ)
    assert settings.gateway.home_for("telegram") == HomeChannel(Platform.TELEGRAM, *home)
    assert settings.gateway.connected_platforms == (Platform.TELEGRAM,)


@pytest.mark.parametrize(
    ("name", "value", "complaint"),
    [
        ("PALAVER_SESSION_RESET_MODE", "weekly", '"weekly" is not allowed (none, idle, daily or both)'),
        (
            "PALAVER_SESSION_RESET_IDLE_MINUTES",
            "0",
            "0 is not allowed (a whole number of minutes, 1 to 52560000)",
        ),
        ("PALAVER_SESSION_RESET_AT_HOUR", "24", "24 is not allowed (0 to 23)"),
        ("PALAVER_SESSION_RESET_AT_HOUR", "4x", '"4x" is not allowed (0 to 23)'),
        ("PALAVER_SESSION_RESET_AT_HOUR", "-1", "-1 is not allowed (0 to 23)"),
        ("PALAVER_TIMEZONE", "Berlin", '"Berlin" is not allowed (an IANA name such as Europe/Berlin or UTC)'),
        ("PALAVER_DM_SCOPE", "all", '"all" is not allowed (chat, platform, person or shared)'),
        ("PALAVER_REDACT_PII", "maybe", '"maybe" is not allowed (true or false)'),
        (
            "SLACK_HOME_CHANNEL_THREAD_ID",
            "7",
            "there is no home channel to go with it (set SLACK_HOME_CHANNEL)",
        ),
    ],
)
def test_a_mistake_in_the_environment_names_the_variable(tmp_path: Path, name: str, value: str, complaint: str) -> None:
    assert mistakes(tmp_path, "", **{name: value}) == [f"{name}: {complaint}"]


# ---- mistakes in the file ----------------------------------------------------------------------------------


def test_all_mistakes_are_reported_at_once_in_the_order_of_the_file(tmp_path: Path) -> None:
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
    assert mistakes(tmp_path, text, PALAVER_DM_SCOPE="all", PALAVER_REDACT_PII="x") == [
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
            "reset_by_platform: {discrod: {}}",
            "reset_by_platform.discrod: unknown name (did you mean discord?)",
        ),
        ("session_reset: {at_hour: }", "session_reset.at_hour: nothing is not allowed (0 to 23)"),
        ("session_reset: {at_hour: '4'}", 'session_reset.at_hour: "4" is not allowed (0 to 23)'),
        (
            "session_reset: {mode: off}",
            "session_reset.mode: false is not allowed (none, idle, daily or both)",
        ),
        ("privacy: {redact_pii: {}}", "privacy.redact_pii: a section is not allowed (true or false)"),
        (
            "platforms: {irc: {home_channel: {chat_id: ''}}}",
            'platforms.irc.home_channel.chat_id: "" is not allowed (text)',
        ),
        ("sesions: {}", "sesions: unknown key (did you mean sessions?)"),
        (
            "platforms: {irc: {home_chanel: 1}}",
            "platforms.irc.home_chanel: unknown key (did you mean home_channel?)",
        ),
        (
            "sessions: {qqqqq: 1}",
            "sessions.qqqqq: unknown key (known: dm_scope, group_per_user, thread_per_user)",
        ),
        ("redact_pii: true", "redact_pii: unknown key (did you mean privacy.redact_pii?)"),
        ("agent: 1\nagent: 2", "agent: given twice (first on line 1)"),
        ("agent: !!python/name:os.system x", "agent: a tag has no meaning here"),
        (
            "privacy: {redact_pii: !!bool x}",
            "privacy.redact_pii: this is not a value of the kind it is written as",
        ),
        ("sessions: !!set {a}", "sessions: a tag has no meaning here"),
        ("platforms: {irc: {settings: &a {b: *a}}}", "platforms.irc.settings.b: this holds itself"),
        ("? [a]\n: 1", "a key is plain text, not a list or a section"),
    ],
)
def test_each_kind_of_mistake_is_said_in_words(tmp_path: Path, text: str, complaint: str) -> None:
    line = 2 if "twice" in complaint else 1
    assert mistakes(tmp_path, text) == [f"config.yaml:{line}: {complaint}"]


def test_a_key_given_twice_is_found_at_every_depth(tmp_path: Path) -> None:
    text = "platforms:\n  irc:\n    settings:\n      a: 1\n      b: {c: 1, d: 2, c: 3}\n      a: 2\n  irc:\n"
    assert mistakes(tmp_path, text) == [
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
def test_what_is_not_yaml_is_reported_with_line_and_column(tmp_path: Path, text: str, place: str, what: str) -> None:
    [found] = mistakes(tmp_path, text)
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
def test_a_file_of_another_shape_is_refused(tmp_path: Path, text: str | bytes, complaint: str) -> None:
    assert mistakes(tmp_path, text) == [complaint]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.mkdir()
    with pytest.raises(ConfigError, match=re.escape(f"{path}: cannot be read (Is a directory)")):
        load_settings({}, tmp_path)


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
    ],
)
def test_a_secret_is_never_shown(tmp_path: Path, text: str) -> None:
    assert "hunter2" not in "\n".join(mistakes(tmp_path, text))


# ---- what is loaded ----------------------------------------------------------------------------------------


def test_without_a_file_no_parser_is_loaded(tmp_path: Path) -> None:
    program = (
        "import sys, pathlib; from palaver.config import load_settings; "
        "load_settings({'PALAVER_DM_SCOPE': 'person'}, pathlib.Path(sys.argv[1])); "
        "print(sorted({'pydantic', 'pydantic_core', 'yaml'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


# ---- the install secret ------------------------------------------------------------------------------------


def test_the_secret_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    secret = install_secret(home)
    assert len(secret) == SECRET_BYTES
    assert install_secret(home) == secret
    assert [path.name for path in home.iterdir()] == ["secret"]
    assert stat.S_IMODE((home / "secret").stat().st_mode) == 0o600
    assert stat.S_IMODE(home.stat().st_mode) == 0o700
    assert install_secret(tmp_path / "other") != secret


def test_all_who_ask_for_the_first_time_at_once_get_the_same_secret(tmp_path: Path) -> None:
    start = Barrier(8)

    def ask(_: int) -> bytes:
        start.wait()
        return install_secret(tmp_path)

    with ThreadPoolExecutor(8) as pool:
        answers = set(pool.map(ask, range(8)))
    assert answers == {(tmp_path / "secret").read_bytes()}
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


def test_a_secret_that_somebody_else_kept_meanwhile_stands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def too_late(count: int) -> bytes:
        (tmp_path / "secret").write_bytes(b"theirs" * 8)
        return b"x" * count

    monkeypatch.setattr("secrets.token_bytes", too_late)
    assert install_secret(tmp_path) == b"theirs" * 8
    assert [path.name for path in tmp_path.iterdir()] == ["secret"]


@pytest.mark.parametrize("content", [b"", b"short", b"x" * 31])
def test_a_secret_that_is_too_short_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "secret").write_bytes(content)
    with pytest.raises(ConfigError, match=f"at least 32 bytes, this has {len(content)}") as caught:
        install_secret(tmp_path)
    assert str(tmp_path / "secret") in str(caught.value)
    assert (tmp_path / "secret").read_bytes() == content


def test_a_secret_that_cannot_be_read_or_kept_is_named(tmp_path: Path) -> None:
    (tmp_path / "secret").mkdir()
    with pytest.raises(ConfigError, match="the install secret: Is a directory"):
        install_secret(tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match="the install secret: "):
        install_secret(tmp_path / "file")


# ---- the reference -----------------------------------------------------------------------------------------


def test_every_key_and_variable_is_documented() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    names = [*known_keys(), "PALAVER_HOME", *(variable.name for variable in VARIABLES)]
    assert [name for name in names if f"\n| `{name}` |" not in text] == []


def test_nothing_is_documented_that_does_not_exist() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)
    names = {*known_keys(), "PALAVER_HOME", *(variable.name for variable in VARIABLES)}
    assert [row for row in rows if row not in names] == []


def test_the_documented_key_of_a_variable_is_the_one_it_wins_over() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    assert [one.name for one in VARIABLES if f"| `{one.name}` | `{one.key}`" not in text] == []


def test_the_documented_example_is_a_valid_file(tmp_path: Path) -> None:
    [example] = re.findall(r"```yaml\n(.*?)```", REFERENCE.read_text(encoding="utf-8"), re.DOTALL)
    config = load(tmp_path, example).gateway
    assert config.reset_by_type[ChatType.GROUP].at_hour == 5
    assert config.home_for("telegram") == HomeChannel(Platform.TELEGRAM, "-1001234567890", "Family")
