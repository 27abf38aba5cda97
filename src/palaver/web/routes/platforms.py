"""Chat platforms and their delivery status, for owners."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import Field

from palaver.services.delivery.health import load_platform_health
from palaver.web.auth import OwnerCaller
from palaver.web.errors import error_responses
from palaver.web.schemas import ResponseModel, Time, to_utf8_text
from palaver.web.state import State

router = APIRouter(prefix="/platforms", tags=["operation"], responses=error_responses(401, 403))


class PlatformOut(ResponseModel):
    """A platform. Problems are those of the last 24 hours."""

    platform: str
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
    """List all platforms that are connected or have open or failed deliveries."""
    gateway = state.gateway
    return PlatformsOut(
        platforms=[
            PlatformOut(
                platform=str(health.platform),
                connected=health.connected,
                pending=health.pending,
                uncertain=health.uncertain,
                failed=health.failed,
                last_error=None if health.last_error is None else to_utf8_text(health.last_error),
                last_error_at=health.last_error_at,
            )
            for health in await load_platform_health(gateway.store, gateway.adapters)
        ]
    )
