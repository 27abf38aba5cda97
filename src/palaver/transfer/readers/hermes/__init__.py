"""Reads the files of hermes-agent and hermes-webui, from one folder such as `~/.hermes`."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from palaver.core.foreign_sqlite import InvalidForeignDatabase
from palaver.core.source import Platform
from palaver.transfer.imported import ImportedItem, ImportedSetting, ImportReader, InvalidImport
from palaver.transfer.reader_kit.values import is_plain
from palaver.transfer.readers.hermes.conversations import ConversationReader
from palaver.transfer.readers.hermes.home import HermesHome, read_accounts
from palaver.transfer.readers.hermes.jobs import read_jobs, read_memories
from palaver.transfer.readers.hermes.settings import read_settings

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from palaver.core.source import SessionSource
    from palaver.transfer.imported import ImportedAccount


_EXPECTED: Final = ("state.db", "sessions", "webui", "cron", "memories")


def open_reader(path: Path) -> ImportReader:
    """Open the folder of Hermes, usually `~/.hermes`; also a single `state.db` in it."""
    folder = path.expanduser().absolute()
    folder = folder.parent if folder.name == "state.db" and folder.is_file() else folder
    folder = folder.resolve()
    if not folder.is_dir():
        raise InvalidImport(f"{folder}: there is no such folder. Name the folder of Hermes, usually ~/.hermes.")
    if not any((folder / name).exists() for name in _EXPECTED):
        raise InvalidImport(
            f"{folder}: this is not the folder of Hermes: it has none of {', '.join(_EXPECTED)}.", path=str(folder)
        )
    return HermesReader(folder)


class HermesReader:
    format = "hermes"
    platform = Platform("hermes")

    def __init__(self, folder: Path) -> None:
        self._homes = [HermesHome(folder, folder, "")]
        for profile in sorted((folder / "profiles").glob("*")):
            if is_plain(profile) and any((profile / name).exists() for name in _EXPECTED):
                self._homes.append(HermesHome(profile, folder, profile.name))
        self._chains = sorted(
            ((number, chain) for number, home in enumerate(self._homes) for chain in home.list_chains()),
            key=lambda found: (found[1].started_at, found[0], found[1].session_ids[0]),
        )

    def count_conversations(self) -> int:
        return len(self._chains)

    def read_settings(self) -> list[ImportedSetting]:
        """Read the settings of the main folder: here they apply to everyone. Those of a profile are only named."""
        home, *profiles = self._homes
        settings = list(read_settings(home))
        for profile in profiles:
            differing = [each.name for each in read_settings(profile) if each.key and each not in settings]
            if differing:
                meaning = "The settings of this profile differ. Here one rule applies to all; session_reset has one"
                meaning += " for conversations with a profile: profiles.NAME.session_reset."
                settings.append(
                    ImportedSetting(name=f"profile {profile.profile}", shown=", ".join(differing), meaning=meaning)
                )
        return settings

    def list_chats(self) -> Iterator[SessionSource | ImportedAccount]:
        for home in self._homes:
            yield from read_accounts(home)
        for number, chain in self._chains:
            with suppress(InvalidForeignDatabase):
                if source := ConversationReader(self._homes[number], chain).find_chat():
                    yield source

    def read_items(self) -> Iterator[ImportedItem]:
        for home in self._homes:
            yield from read_accounts(home)
            yield from home.home_channels
            yield from home.take_problems()
        for number, chain in self._chains:
            yield from ConversationReader(self._homes[number], chain).read()
        for home in self._homes:
            yield from read_memories(home)
            yield from read_jobs(home)
            yield from home.take_problems()

    def close(self) -> None:
        for home in self._homes:
            if home.database is not None:
                home.database.close()
