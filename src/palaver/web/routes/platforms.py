"""Accounts on chat platforms, their connections and deliveries, for owners."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Literal

from fastapi import Query
from pydantic import Field

from palaver.core.errors import NotFound
from palaver.delivery.health import load_account_health
from palaver.gateway.connection_tests import run_connection_test
from palaver.operation.qr_code import make_qr_code
from palaver.web.api_route import make_router
from palaver.web.auth import OwnerCaller
from palaver.web.errors import error_responses
from palaver.web.state import ResponseModel, State, Time, to_utf8_text

if TYPE_CHECKING:
    from palaver.delivery.model import AccountHealth, ConnectionTest, LinkingPrompt
    from palaver.people.model import SignedInPerson
    from palaver.sessions.gateway_config import HomeChannel

TEST_SECONDS = 30.0  # until a request to test a connection is answered in any case

router = make_router("operation", "/api/platforms", responses=error_responses(401, 403))


class HomeChannelOut(ResponseModel):
    """The default chat of a platform, from config.yaml or chosen with `/sethome`."""

    name: str = Field(description="For people to read; empty if it is not known.")
    target: str = Field(description="Where deliveries to the platform go, such as `telegram:42`.")


class LinkingOut(ResponseModel):
    """What to do on a phone to link it with an account. Only owners see it, and only while the account waits for it."""

    instructions: str = Field(description="In words: which app, which menu.")
    qr_code: list[str] | None = Field(
        description="A QR code to scan: a row of `1` (dark) and `0` (light) for each line. Draw it dark on light, with"
        " a margin of four squares."
    )
    code: str | None = Field(description="A code to type on the phone.")
    expires_at: Time | None = Field(description="When it is replaced by a new one; null if that is not known.")


class ConnectionTestOut(ResponseModel):
    """How a test of the connection has ended."""

    finished_at: Time
    seconds: float = Field(description="How long it took.")
    error: str | None = Field(description="Why it failed, in words; null if it worked, or waits to be linked.")


class PlatformAccountOut(ResponseModel):
    """An account on a platform. Problems with deliveries are those of the last 24 hours."""

    platform: str
    account: str = Field(description="Its name in the settings; empty for the only one.")
    configured: bool = Field(description="It is set up in the settings.")
    state: Literal["off", "connecting", "linking", "live", "deaf", "refused"] = Field(
        description="`off`: no process runs it. `linking`: it waits until an owner links it with a phone, as `linking`"
        " says. `live`: it receives and sends. `deaf`: nothing was heard from the platform for too long, so it is"
        " connected again. `refused`: the platform refuses it, or its settings are not valid; `error` says why."
    )
    since: Time | None = Field(description="When it came into this state; null if it has never run.")
    name: str | None = Field(description="Its name on the platform, such as `@palaver_bot`.")
    warnings: list[str] = Field(description="What is missing for it to work fully, in words.")
    details: list[str] = Field(description="Versions, the age of a linked device and the like, in words.")
    linking: LinkingOut | None = Field(
        description="How to link it, while its state is `linking`. Tokens do not get it."
    )
    last_message_at: Time | None = Field(description="When it last received a message.")
    error: str | None = Field(description="The last problem with the connection, in words.")
    error_at: Time | None
    last_test: ConnectionTestOut | None = Field(description="How the latest test of the connection has ended.")
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
async def list_platforms(state: State, owner: OwnerCaller) -> PlatformsOut:
    """List all accounts on chat platforms that are set up or connected, or have open or failed deliveries.

    An account that is not `live` neither receives nor sends messages. Any server on the same database gives the same
    answer, whichever of them runs the account.
    """
    gateway = state.gateway
    accounts = await load_account_health(gateway.store, gateway.configured_accounts)
    return PlatformsOut(accounts=[_to_account_out(account, owner) for account in accounts])


@router.post("/{platform}/test", responses=error_responses(404, 409))
async def request_test(
    platform: str,
    state: State,
    owner: OwnerCaller,
    account: Annotated[str, Query(description="Its name in the settings; empty for the only one.")] = "",
) -> PlatformAccountOut:
    """Test the connection of an account, and return the account; `last_test` is the outcome.

    An account that is live signs in again; any other is connected now instead of after its pause. It works for accounts
    that another server on the same database runs. The answer comes after at most half a minute.
    """
    gateway = state.gateway
    accounts = await load_account_health(gateway.store, gateway.configured_accounts)
    health = next((each for each in accounts if each.key == (platform, account)), None)
    if health is None:
        raise NotFound
    status = await run_connection_test(gateway.store, health.key, wait_seconds=TEST_SECONDS)
    return _to_account_out(replace(health, status=status), owner)


def _to_account_out(account: AccountHealth, owner: SignedInPerson) -> PlatformAccountOut:
    status = account.status
    is_browser = owner.credential_type == "cookie"  # no token gets a code
    return PlatformAccountOut(
        platform=str(account.platform),
        account=account.account,
        configured=account.is_configured,
        state=account.state.value,
        since=status.since if status else None,
        name=_to_text(status.name if status else None),
        warnings=[to_utf8_text(warning) for warning in status.warnings] if status else [],
        details=[to_utf8_text(detail) for detail in status.details] if status else [],
        linking=_to_linking_out(status.linking) if status and status.linking and is_browser else None,
        last_message_at=status.last_message_at if status else None,
        error=_to_text(status.error if status else None),
        error_at=status.error_at if status else None,
        last_test=_to_test_out(status.last_test) if status and status.last_test else None,
        waiting=account.waiting,
        uncertain=account.uncertain,
        failed=account.failed,
        delivery_error=_to_text(account.delivery_error),
        delivery_error_at=account.delivery_error_at,
        home_channel=_to_home_out(account.home_channel) if account.home_channel else None,
    )


def _to_linking_out(prompt: LinkingPrompt) -> LinkingOut:
    return LinkingOut(
        instructions=to_utf8_text(prompt.instructions),
        qr_code=list(make_qr_code(to_utf8_text(prompt.qr_text))) or None if prompt.qr_text else None,
        code=_to_text(prompt.code),
        expires_at=prompt.expires_at,
    )


def _to_test_out(test: ConnectionTest) -> ConnectionTestOut:
    return ConnectionTestOut(finished_at=test.finished_at, seconds=test.seconds, error=_to_text(test.error))


def _to_home_out(home: HomeChannel) -> HomeChannelOut:
    return HomeChannelOut(name=to_utf8_text(home.name), target=to_utf8_text(home.target))


def _to_text(text: str | None) -> str | None:
    return None if text is None else to_utf8_text(text)
