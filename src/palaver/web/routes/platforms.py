"""Accounts on chat platforms, their connections and deliveries, for owners."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from pydantic import Field

from palaver.services.platforms.health import load_account_health
from palaver.web.api_route import make_router
from palaver.web.auth import OwnerCaller
from palaver.web.errors import error_responses
from palaver.web.schemas import ResponseModel, Time, to_utf8_text
from palaver.web.state import State

if TYPE_CHECKING:
    from palaver.domain.gateway_config import HomeChannel
    from palaver.domain.platform_health import AccountHealth

router = make_router("operation", "/api/platforms", responses=error_responses(401, 403))


class HomeChannelOut(ResponseModel):
    """The default chat of a platform, from config.yaml or chosen with `/sethome`."""

    name: str = Field(description="For people to read; empty if it is not known.")
    target: str = Field(description="Where deliveries to the platform go, such as `telegram:42`.")


class PlatformAccountOut(ResponseModel):
    """An account on a platform. Problems with deliveries are those of the last 24 hours."""

    platform: str
    account: str = Field(description="Its name in config.yaml; empty for the only one.")
    configured: bool = Field(description="It is set up in config.yaml or by environment variables.")
    state: Literal["off", "connecting", "live", "deaf", "refused"] = Field(
        description="`off`: no process runs it. `live`: it receives and sends. `deaf`: nothing was heard from the"
        " platform for too long, so it is connected again. `refused`: the platform refuses it, or its settings are not"
        " valid; `error` says why."
    )
    since: Time | None = Field(description="When it came into this state; null if it has never run.")
    name: str | None = Field(description="Its name on the platform, such as `@palaver_bot`.")
    warnings: list[str] = Field(description="What is missing for it to work fully, in words.")
    last_message_at: Time | None = Field(description="When it last received a message.")
    error: str | None = Field(description="The last problem with the connection, in words.")
    error_at: Time | None
    waiting: int = Field(description="Deliveries that are pending or being sent.")
    uncertain: int = Field(description="Deliveries with unknown status: they may or may not have arrived.")
    failed: int = Field(description="Deliveries that failed and will not be retried.")
    delivery_error: str | None = Field(description="The error of the last failed or uncertain delivery.")
    delivery_error_at: Time | None
    home_channel: HomeChannelOut | None = Field(description="The default chat of the platform, if it sends there.")


class PlatformsOut(ResponseModel):
    """Accounts, sorted by platform and name."""

    accounts: list[PlatformAccountOut]


@router.get("")
async def list_platforms(state: State, _owner: OwnerCaller) -> PlatformsOut:
    """List all accounts on chat platforms that are set up or connected, or have open or failed deliveries.

    An account that is not `live` neither receives nor sends messages. Any server on the same database gives the same
    answer, whichever of them runs the account.
    """
    gateway = state.gateway
    accounts = await load_account_health(gateway.store, gateway.configured_accounts)
    return PlatformsOut(accounts=[_to_account_out(account) for account in accounts])


def _to_account_out(account: AccountHealth) -> PlatformAccountOut:
    status = account.status
    return PlatformAccountOut(
        platform=str(account.platform),
        account=account.account,
        configured=account.is_configured,
        state=account.state.value,
        since=status.since if status else None,
        name=_to_text(status.name if status else None),
        warnings=[to_utf8_text(warning) for warning in status.warnings] if status else [],
        last_message_at=status.last_message_at if status else None,
        error=_to_text(status.error if status else None),
        error_at=status.error_at if status else None,
        waiting=account.waiting,
        uncertain=account.uncertain,
        failed=account.failed,
        delivery_error=_to_text(account.delivery_error),
        delivery_error_at=account.delivery_error_at,
        home_channel=_to_home_out(account.home_channel) if account.home_channel else None,
    )


def _to_home_out(home: HomeChannel) -> HomeChannelOut:
    return HomeChannelOut(name=to_utf8_text(home.name), target=to_utf8_text(home.target))


def _to_text(text: str | None) -> str | None:
    return None if text is None else to_utf8_text(text)
