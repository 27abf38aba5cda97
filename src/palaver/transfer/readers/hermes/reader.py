"""The reader of Hermes: accounts, home channels, conversations from the oldest to the newest, memories, jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from palaver.core.source import Platform
from palaver.transfer.imported import ImportedHomeChannel, ImportedItem, ImportReader, InvalidImport
from palaver.transfer.reader_kit.values import is_plain
from palaver.transfer.readers.hermes.conversations import ConversationReader
from palaver.transfer.readers.hermes.home import HermesHome, read_accounts, read_home_channels
from palaver.transfer.readers.hermes.jobs import JobContext, read_jobs, read_memories

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


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
            (
                (chain.started_at, number, chain)
                for number, home in enumerate(self._homes)
                for chain in home.list_chains()
            ),
            key=lambda found: (found[0], found[1], found[2].session_ids[0]),
        )

    def count_conversations(self) -> int:
        return len(self._chains)

    def read_items(self) -> Iterator[ImportedItem]:
        for home in self._homes:
            yield from home.problems
            chats = home.list_chats()
            names = {
                (str(chat.platform), chat.user_id): chat.user_name
                for chat in chats.values()
                if chat.user_id and chat.user_name
            }
            yield from read_accounts(home.folder, home.make_name, home.settings, names)
            yield from read_home_channels(home.settings, chats)
        for _, number, chain in self._chains:
            yield from ConversationReader(self._homes[number], chain).read()
        for home in self._homes:
            yield from read_memories(home.folder, home.make_name)
            yield from read_jobs(home.folder / "cron" / "jobs.json", home.make_name, _make_job_context(home))

    def close(self) -> None:
        for home in self._homes:
            if home.database is not None:
                home.database.close()


def _make_job_context(home: HermesHome) -> JobContext:
    chats = home.list_chats()
    channels = [found for found in read_home_channels(home.settings, chats) if isinstance(found, ImportedHomeChannel)]
    return JobContext(
        timezone=home.settings.timezone,
        zone=home.zone,
        home_platforms=[str(channel.source.platform) for channel in channels],
        chats=chats,
    )
