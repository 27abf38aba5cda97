"""Finds changes that would send a stored secret to another address.

Secrets can't be read on the page. They must not be readable by changing the address that they are sent to either, so
the secret has to be entered again together with the new address. In the terminal of the server this is not needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from palaver.config.layers import SettingProblem
from palaver.config.setting_templates import find_template

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Set

    from palaver.config.setting_keys import SettingPath
    from palaver.services.settings.overview import SettingsOverview

# The last part of keys with an address that secrets of the same section are sent to.
ADDRESS_NAMES: Final = frozenset(
    {"base_url", "url", "api_url", "homeserver", "imap_host", "smtp_host", "imap_security", "smtp_security"}
)
_TEXT: Final = "{key} would be sent to this address, so enter it again together with the address{hint}"


def find_exposed_secrets(
    changes: Mapping[SettingPath, Any], entered: Set[SettingPath], overview: SettingsOverview
) -> Iterator[SettingProblem]:
    """Yield a problem for each secret that is set, is not entered, and would be sent to an address that changes."""
    secrets = [value for value in overview.list_values() if value.is_secret and value.is_set]
    for path in changes:
        if path[-1] not in ADDRESS_NAMES or find_template(path) is None:
            continue
        for secret in secrets:
            is_same_section = secret.path[: len(path) - 1] == path[:-1]
            if is_same_section and secret.path != path and secret.path not in entered:
                hint = "" if secret.can_change else f". It is set by {secret.source}: change the address there"
                yield SettingProblem(path=path, text=_TEXT.format(key=secret.key, hint=hint))
