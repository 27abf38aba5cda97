"""Chat platforms and their delivery status, for owners."""

from __future__ import annotations

from pydantic import Field

from palaver.services.delivery.health import load_platform_health
from palaver.web.api_route import make_router
from palaver.web.auth import OwnerCaller
from palaver.web.errors import error_responses
from palaver.web.schemas import ResponseModel, Time, to_utf8_text
from palaver.web.state import State

router = make_router("operation", "/api/platforms", responses=error_responses(401, 403))


class PlatformOut(ResponseModel):
    """A platform. Problems are those of the last 24 hours."""

    platform: str
    configured: bool = Field(description="It is set up in config.yaml or by environment variables.")
    connected: bool = Field(description="This server receives and sends messages there.")
    pending: int = Field(description="Deliveries that are pending or being sent.")
    uncertain: int = Field(description="Deliveries with unknown status: they may or may not have arrived.")
    failed: int = Field(description="Deliveries that failed and will not be retried.")
    last_error: str | None = Field(description="The error of the last failed or uncertain delivery.")
    last_error_at: Time | None


class PlatformsOut(ResponseModel):
    """Platforms, sorted by name."""

    platforms: list[PlatformOut]


@router.get("")
async def list_platforms(state: State, _owner: OwnerCaller) -> PlatformsOut:
    """List all platforms that are set up or connected, or have open or failed deliveries.

    A platform that is set up but not connected neither receives nor sends messages.
    """
    gateway = state.gateway
    return PlatformsOut(
        platforms=[
            PlatformOut(
                platform=str(health.platform),
                configured=health.configured,
                connected=health.connected,
                pending=health.pending,
                uncertain=health.uncertain,
                failed=health.failed,
                last_error=None if health.last_error is None else to_utf8_text(health.last_error),
                last_error_at=health.last_error_at,
            )
            for health in await load_platform_health(gateway.store, gateway.platforms)
        ]
    )
