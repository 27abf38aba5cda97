"""What the settings need to know about platforms. `palaver.app` passes it in: adapters are above the services."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from palaver.config import Settings
    from palaver.config.layers import SettingProblem
    from palaver.config.setting_keys import SettingPath
    from palaver.gateway.configured_account import ConfiguredAccount


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformField:
    """One setting of an account, for a form."""

    name: str
    label: str
    kind: str  # text, integer, number, boolean, choice, list
    help: str = ""
    where: str = ""  # where to get the value, in words
    is_secret: bool = False
    is_required: bool = False
    is_list: bool = False
    choices: tuple[str, ...] = ()
    pattern: str | None = None
    minimum: float | None = None
    maximum: float | None = None
    default: object = None
    is_terminal_only: bool = False  # it starts a program on the server
    variable: str | None = None  # the environment variable that sets it, for the account without a name


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformForm:
    """A platform that can be connected, and the settings of its accounts."""

    platform: str
    label: str
    summary: str
    fields: tuple[PlatformField, ...]
    problem: str | None = None  # why it can't be connected here, such as a package that is not installed
    steps: tuple[str, ...] = ()  # how to connect it, in words
    needs_public_url: bool = False
    can_be_linked: bool = False  # an account is linked with a QR code or a code


class PlatformCatalog(Protocol):
    """The platforms that are installed."""

    def list_forms(self) -> Sequence[PlatformForm]: ...

    def is_secret(self, platform: str, setting: str) -> bool:
        """Whether a setting of an account is secret; one that is not known may be."""
        ...

    def list_addresses(self, platform: str) -> Mapping[str, object] | None:
        """Return the settings of an account that say where its secrets are sent, and their defaults.

        None if the platform is not known.
        """
        ...

    def is_terminal_only(self, platform: str, setting: str) -> bool:
        """Whether a setting of an account starts a program on the server."""
        ...

    def find_variable(self, path: SettingPath) -> str | None:
        """Return the environment variable that sets this setting of an account now; None if none does."""
        ...

    def find_problems(
        self, before: Settings, after: Settings, changed: Collection[SettingPath]
    ) -> Sequence[SettingProblem]:
        """Return what is wrong with the accounts whose settings are changed."""
        ...

    def list_accounts(self, settings: Settings, unreadable: Mapping[SettingPath, str]) -> list[ConfiguredAccount]:
        """Return the accounts that are set up; one with a secret that can't be decrypted can't be connected."""
        ...

    def build_account(
        self, settings: Settings, platform: str, account: str, values: Mapping[str, object]
    ) -> ConfiguredAccount:
        """Build an account from values that are not stored, to test them. Raises NotFound for an unknown platform."""
        ...
