"""Home channels: the default chat of each platform. What an owner chose with /sethome wins over config.yaml."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Read, Transaction
from palaver.core.source import ChatType, Platform, SessionSource, decode_source, encode_source
from palaver.people.person_data import EraseAt, ExportedTable, FieldKind, Moved, PersonColumn, make_fields
from palaver.sessions.gateway_config import GatewayConfig, HomeChannel

if TYPE_CHECKING:
    from collections.abc import Mapping

    from palaver.core.ids import PersonId
    from palaver.sessions.store import SessionStore


def load_chosen(tx: Transaction) -> dict[Platform, SessionSource]:
    """Return the chosen chat of each platform, as the owner wrote there."""
    rows = tx.fetch_all("SELECT platform, source FROM home_channel ORDER BY platform")
    return {Platform(platform): decode_source(source) for platform, source in rows}


def choose(tx: Transaction, source: SessionSource, person_id: PersonId, now: int) -> None:
    sql = """INSERT INTO home_channel (platform, source, set_by, set_at) VALUES ($1, $2, $3, $4) ON CONFLICT (platform)
        DO UPDATE SET source = excluded.source, set_by = excluded.set_by, set_at = excluded.set_at"""
    tx.execute(sql, str(source.platform), encode_source(source), person_id, now)


def remove(tx: Transaction, platform: Platform, set_by: PersonId | None = None) -> bool:
    """Remove the chosen home channel of a platform, or only one that this person has set; False if there was none."""
    return bool(
        tx.execute(
            "DELETE FROM home_channel WHERE platform = $1 AND ($2 = '' OR set_by = $2)", str(platform), set_by or ""
        )
    )


@dataclass(frozen=True, slots=True)
class HomeChannelStatus:
    """A home channel, and whether an owner chose it with /sethome; otherwise it is from config.yaml."""

    channel: HomeChannel
    is_chosen: bool


def load_home_channels(tx: Transaction, config: GatewayConfig) -> dict[Platform, HomeChannel]:
    return {platform: status.channel for platform, status in _load_statuses(tx, config).items()}


async def list_home_channels(store: SessionStore) -> Mapping[Platform, HomeChannelStatus]:
    return await store.engine.arun(Read(lambda tx: _load_statuses(tx, store.config), is_quick=True))


def make_home_channel(source: SessionSource) -> HomeChannel:
    is_dm = source.chat_type is ChatType.DM
    name = (source.user_name if is_dm else source.chat_name) or source.chat_name or ""
    return HomeChannel(source.platform, source.chat_id, name, source.thread_id, source.account)


def _load_statuses(tx: Transaction, config: GatewayConfig) -> dict[Platform, HomeChannelStatus]:
    configured = {platform: HomeChannelStatus(home, False) for platform, home in config.home_channels.items()}
    chosen = {
        platform: HomeChannelStatus(make_home_channel(source), True) for platform, source in load_chosen(tx).items()
    }
    return dict(sorted({**configured, **chosen}.items()))


PERSON_DATA: Final = (
    PersonColumn(
        "home_channel", "set_by", merge=Moved("platform || ':' || set_at"), erase=EraseAt.START, count="home_channels"
    ),
)
EXPORT: Final = ExportedTable(
    table="home_channel",
    fields=(
        *make_fields("platform!"),
        *make_fields("source!", FieldKind.JSON),
        *make_fields("set_by"),
        *make_fields("set_at!", FieldKind.TIME),
    ),
    order=("platform",),
    key="platform",
    report_kind="home_channels",
)
