"""The settings of a running process: read again when any process has changed them, and applied at once.

Always true: the settings are one immutable value that is replaced as a whole. `apply` gets the value before and the
value after, one change at a time, in the order of their versions.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from palaver.config.setting_templates import SettingPath, find_template, format_path
from palaver.core.background import PollLoop
from palaver.core.engines.base import Read
from palaver.core.errors import InvalidInput
from palaver.core.texts import say
from palaver.core.wire import build_json
from palaver.gateway.account_runner import describe_connection_error
from palaver.settings import table as settings_storage
from palaver.settings.overview import SecretPairs, SettingsOverview, find_exposed_secrets
from palaver.settings.wire import AccountTestJson

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping

    from palaver.config.layers import SettingProblem
    from palaver.delivery.adapter import AccountInfo
    from palaver.gateway.account_link import ConfiguredAccount
    from palaver.live.feed import Feed
    from palaver.people.model import Principal
    from palaver.settings.editor import EditResult, SettingsEdit, SettingsEditor
    from palaver.settings.encryption import SettingsChange
    from palaver.settings.reader import LoadedSettings

    Apply = Callable[[LoadedSettings, LoadedSettings], Awaitable[None]]

IDLE_SECONDS: Final = 60.0  # between two looks when nothing changes; every change wakes it

log = logging.getLogger(__name__)


class LiveSettings:
    """Follows the settings of one store, and changes them for owners."""

    def __init__(self, editor: SettingsEditor, loaded: LoadedSettings, apply: Apply) -> None:
        self.reader = editor.reader
        self.catalog = editor.catalog
        self.current = loaded
        self._started_with = loaded  # settings that need a restart are in force as they were then
        self._editor = editor
        self._apply = apply
        self._listeners: list[Callable[[LoadedSettings], None]] = []
        self._lock = asyncio.Lock()  # one change at a time

    @asynccontextmanager
    async def follow(self, feed: Feed) -> AsyncIterator[None]:
        """Follow the changes of all processes inside an `async with` block."""
        loop = PollLoop(self._poll, "palaver-settings", log=log, failure_event="settings_not_applied")
        feed.add_settings_listener(loop.wake)
        loop.start()  # polls at once, for what has changed since the settings were read
        try:
            yield
        finally:
            await loop.cancel()

    def add_listener(self, listener: Callable[[LoadedSettings], None]) -> None:
        """Call `listener` after other settings were applied."""
        self._listeners.append(listener)

    async def refresh(self) -> LoadedSettings:
        """Read the settings if they have changed, and apply them."""
        async with self._lock:
            state = await self.reader.engine.arun(Read(settings_storage.load_state, is_quick=True))
            if state != self.current.state:
                loaded = await asyncio.to_thread(self.reader.load)
                log_problems(loaded)
                before, self.current = self.current, loaded
                await self._apply(before, loaded)
                for listener in self._listeners:
                    listener(loaded)
                log.info("settings_applied", extra={"version": loaded.state.version})
            return self.current

    async def change(self, principal: Principal, edit: SettingsEdit) -> EditResult:
        """Change settings; when this returns, they are in force in this process. See `SettingsEditor.change`."""
        result = await asyncio.to_thread(self._editor.change, principal, edit)
        await self.refresh()
        return result

    async def undo(self, principal: Principal, number: int, expected_version: int | None = None) -> EditResult:
        result = await asyncio.to_thread(
            self._editor.undo, principal, number, origin="page", expected_version=expected_version
        )
        await self.refresh()
        return result

    def find_exposed_secrets(self, values: Mapping[SettingPath, object]) -> list[SettingProblem]:
        """Return the stored secrets that a test with these values would send where they were not entered for."""
        secrets = SecretPairs(self.current.settings.fixed_layers, self.catalog)
        now = self.current.values_with_encrypted
        return list(find_exposed_secrets(secrets.find({**now, **values}), [secrets.find(now)], values))

    async def list_history(self, principal: Principal, *, before: int | None, limit: int) -> list[SettingsChange]:
        return await asyncio.to_thread(self._editor.list_history, principal, before=before, limit=limit)

    async def describe(self) -> SettingsOverview:
        """Return the settings as they are now, in any process."""
        loaded = await self.refresh()
        return SettingsOverview(loaded, self.catalog)

    def list_pending_restarts(self) -> list[str]:
        """Return the keys of the settings that were changed since the start and apply only after a restart."""
        before, after = self._started_with.values, self.current.values
        missing = object()
        return [
            format_path(path)
            for path in sorted({*before, *after})
            if before.get(path, missing) != after.get(path, missing)
            and (template := find_template(path)) is not None
            and template.needs_restart
        ]

    async def _poll(self) -> float:
        await self.refresh()
        return IDLE_SECONDS


def log_problems(loaded: LoadedSettings) -> None:
    """Report the stored values that can't be used; the defaults apply instead."""
    for problem in loaded.problems:
        log.warning("setting_ignored", extra={"problem": str(problem)})


PROBE_SECONDS: Final = 30.0
CLOSE_SECONDS: Final = 10.0


async def run_account_test(
    live: LiveSettings, platform: str, account: str, values: Mapping[str, object]
) -> AccountTestJson:
    """Build the adapter from values, and from the stored ones that are left out, and let it sign in."""
    complete = _add_stored(live, platform, account, values)
    configured = await asyncio.to_thread(live.catalog.build_account, live.current.settings, platform, account, complete)
    started_at, problem, info = time.monotonic(), configured.problem, None
    if problem is None:
        try:
            info = await probe_account(configured)
        except Exception as error:  # noqa: BLE001  (an SDK may raise anything; its text may have a secret, so it is not logged)
            log.info("account_test_failed", extra={"platform": platform, "error": type(error).__name__})
            problem = describe_connection_error(error, configured)
    return build_json(
        AccountTestJson,
        None,
        ok=problem is None,
        seconds=round(time.monotonic() - started_at, 3),
        name=None if info is None else info.name,
        is_linked=info is None or info.is_linked,
        warnings=[] if info is None else list(map(configured.hide_secrets, info.warnings)),
        details=[] if info is None else list(map(configured.hide_secrets, info.details)),
        error=problem,
    )


async def probe_account(configured: ConfiguredAccount) -> AccountInfo:
    """Sign in with an account for a moment, as the server does before it connects it."""
    async with asyncio.timeout(PROBE_SECONDS):
        adapter = await configured.create()
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            return await adapter.probe()
    finally:
        async with asyncio.timeout(CLOSE_SECONDS):
            await adapter.close()


def _add_stored(live: LiveSettings, platform: str, account: str, values: Mapping[str, object]) -> dict[str, object]:
    """Add stored values. A stored secret is not sent to an address that was only given."""
    catalog, entries = live.catalog, live.current.settings.accounts
    entry = next((each for each in entries if (each.platform, each.name) == (platform, account)), None)
    stored = {} if entry is None else dict(entry.settings)
    prefix = ("platforms", platform, *(("accounts", account) if account else ()), "settings")
    exposed = live.find_exposed_secrets({(*prefix, name): value for name, value in values.items()})
    secrets = sorted({name for name in stored if catalog.is_secret(platform, name)} - values.keys())
    if exposed:
        message = say(
            "settings.enter_secret_again",
            "Enter {names} again: a stored secret is not sent to another address.",
            names=", ".join(secrets),
        )
        raise InvalidInput(message, settings=secrets)
    if any(catalog.is_terminal_only(platform, name) and values[name] != stored.get(name) for name in values):
        raise InvalidInput.say(
            "settings.server_only", "This setting starts a program on the server, so it can be changed only there."
        )
    return {**stored, **values}
