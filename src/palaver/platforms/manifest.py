"""The manifest of a platform: everything about it that is needed before its adapter is loaded.

Each platform has a manifest, found through the entry points of the group `palaver.platforms`; built-in platforms and
those of third parties in the same way. Importing a manifest imports nothing heavy: `create` imports the adapter and
its SDK.
"""

from __future__ import annotations

from dataclasses import field
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Self

from pydantic import BaseModel, ConfigDict

from palaver.core.dataclass import dataclass
from palaver.delivery.model import Capabilities

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from palaver.core.source import Platform
    from palaver.delivery.adapter import Adapter

ENTRY_POINT_GROUP: Final = "palaver.platforms"


class AccountSettings(BaseModel):
    """The settings of one account; each platform has a subclass. Secrets are `SecretStr`, so that no log shows them."""

    model_config = ConfigDict(extra="forbid", frozen=True, defer_build=True)  # few are used


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountPlace:
    """The name, the folder and the webhook of an account, for its adapter."""

    account: str  # its name in config.yaml; empty for the only one
    folder: Path  # its own folder for files that must survive a restart, such as encryption keys; it need not exist yet
    webhook_url: str | None  # where the platform reaches its webhook; None: `web.public_url` is not set


class FieldHelp(NamedTuple):
    """The help text of a setting of an account."""

    text: str  # what it is
    where: str = ""  # where to get it

    @classmethod
    def for_own_server(cls, text: str) -> Self:
        """Describe the address of an API that people hardly ever change."""
        return cls(text, "Only if you run a server of your own with the same API.")


@dataclass(frozen=True, slots=True, kw_only=True)
class PlatformManifest:
    """A platform: its settings, and how its adapter is created."""

    platform: Platform
    settings: type[AccountSettings]
    # Makes an adapter: a function, or `package.module:name` of one whose module imports the SDK.
    create: str | Callable[[Any, AccountPlace], Adapter]
    capabilities: Capabilities = field(default_factory=Capabilities)  # of its adapters: the same value
    extra: str | None = None  # the extra to install: `pip install 'palaver[telegram]'`
    modules: tuple[str, ...] = ()  # that the extra brings; to say what is missing
    environment: Mapping[str, str] = field(default_factory=dict)  # variable → setting, for the account without a name
    addresses: tuple[str, ...] | None = None  # settings that say where secrets are sent; None: all that are not secret
    summary: str = ""  # one line for people
    steps: tuple[str, ...] = ()  # how to connect it, in short steps; the guides in docs/platforms/ say more
    help: Mapping[str, FieldHelp] = field(default_factory=dict)  # by setting; or a note of its type is its help
    terminal_only: frozenset[str] = frozenset()  # settings that start a program on the server
    needs_public_url: bool = False  # the platform calls this server
    self_chosen: frozenset[str] = frozenset()  # secrets that protect nothing: whatever people choose is no placeholder
    can_be_linked: bool = False  # an account is linked on a phone, with a QR code or a code

    def create_adapter(self, settings: AccountSettings, place: AccountPlace) -> Adapter:
        """Create the adapter of an account; only now its SDK is imported."""
        create = resolve_name(self.create) if isinstance(self.create, str) else self.create
        adapter: Adapter = create(settings, place)
        return adapter

    def list_addresses(self) -> frozenset[str]:
        """Return the settings that say where the secrets of an account are sent."""
        if self.addresses is not None:
            return frozenset(self.addresses)
        return frozenset(self.settings.model_fields) - self.list_secrets()

    def may_be_secret(self, setting: str) -> bool:
        """Whether the value of a setting is not to be shown; what has no setting may be a secret with a wrong name."""
        return setting not in self.settings.model_fields or setting in self.list_secrets()

    def list_secrets(self) -> frozenset[str]:
        fields = self.settings.model_fields.items()
        return frozenset(name for name, info in fields if "SecretStr" in str(info.annotation))
