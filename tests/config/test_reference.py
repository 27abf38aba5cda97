"""docs/reference/settings.md matches the code."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from palaver.config import ENVIRONMENT_VARIABLES, list_setting_keys
from palaver.core.source import ChatType, Platform
from palaver.people.model import Role
from palaver.sessions.gateway_config import HomeChannel

if TYPE_CHECKING:
    from config.conftest import LoadSettings

REFERENCE = Path(__file__).parents[2] / "docs/reference/settings.md"


def test_every_key_and_variable_is_documented() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    names = [
        *list_setting_keys(),
        "PALAVER_HOME",
        "PALAVER_SECRET_KEY",
        *(variable.name for variable in ENVIRONMENT_VARIABLES),
    ]
    assert [name for name in names if f"\n| `{name}` |" not in text] == []


def test_every_documented_key_and_variable_exists() -> None:
    rows = re.findall(r"^\| `([^`]+)` \|", REFERENCE.read_text(encoding="utf-8"), re.MULTILINE)
    names = {
        *list_setting_keys(),
        "PALAVER_HOME",
        "PALAVER_SECRET_KEY",
        *(variable.name for variable in ENVIRONMENT_VARIABLES),
    }
    assert [row for row in rows if row not in names] == []


def test_the_documented_key_of_a_variable_is_the_one_it_overrides() -> None:
    text = REFERENCE.read_text(encoding="utf-8")
    assert [each.name for each in ENVIRONMENT_VARIABLES if f"| `{each.name}` | `{each.key}`" not in text] == []


def test_the_documented_example_is_valid(load: LoadSettings) -> None:
    [example] = re.findall(r"```yaml\n(.*?)```", REFERENCE.read_text(encoding="utf-8"), re.DOTALL)
    settings = load(example)
    config = settings.gateway
    assert config.reset_by_type[ChatType.GROUP].at_hour == 5
    assert config.home_channels[Platform.TELEGRAM] == HomeChannel(Platform.TELEGRAM, "-1001234567890", "Family")
    assert set(settings.agent.mcp_servers) == {"files", "calendar"}
    assert settings.turns.toolsets["memory"].roles == {Role.OWNER}
