"""Accounts on chat platforms, their connections and deliveries, for owners."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

from fastapi import Query

from palaver.core.errors import NotFound
from palaver.core.text import make_storable
from palaver.core.wire import TypedDict, build_json
from palaver.delivery.health import load_account_health
from palaver.delivery.wire import LinkingJson, PlatformAccountJson, account_to_json
from palaver.gateway.supervisor import run_connection_test
from palaver.operation.qr_code import make_qr_code
from palaver.web.api_route import make_router
from palaver.web.auth import OwnerCaller
from palaver.web.errors import error_responses
from palaver.web.state import State

if TYPE_CHECKING:
    from palaver.delivery.model import AccountHealth
    from palaver.people.model import SignedInPerson

TEST_SECONDS = 30.0  # until a request to test a connection is answered in any case

router = make_router("operation", "/api/platforms", responses=error_responses(401, 403))


class PlatformsJson(TypedDict):
    """Accounts, sorted by platform and name."""

    accounts: list[PlatformAccountJson]


@router.get("")
async def list_platforms(state: State, owner: OwnerCaller) -> PlatformsJson:
    """List all accounts on chat platforms that are set up or connected, or have open or failed deliveries.

    An account that is not `live` neither receives nor sends messages. Any server on the same database gives the same
    answer, whichever of them runs the account.
    """
    gateway = state.gateway
    accounts = await load_account_health(gateway.store, gateway.configured_accounts)
    return PlatformsJson(accounts=[_account_to_json(account, owner) for account in accounts])


@router.post("/{platform}/test", responses=error_responses(404, 409))
async def request_test(
    platform: str,
    state: State,
    owner: OwnerCaller,
    account: Annotated[str, Query(description="Its name in the settings; empty for the only one.")] = "",
) -> PlatformAccountJson:
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
    return _account_to_json(replace(health, status=status), owner)


def _account_to_json(account: AccountHealth, owner: SignedInPerson) -> PlatformAccountJson:
    prompt = account.status.linking if account.status else None
    if prompt is None or owner.credential_type != "cookie":  # no token gets a code
        return account_to_json(account)
    qr_code = make_qr_code(make_storable(prompt.qr_text)) if prompt.qr_text else None
    return account_to_json(account, build_json(LinkingJson, prompt, qr_code=qr_code or None))
