"""The platforms and how they are doing, for the owner."""

from __future__ import annotations

from fastapi import APIRouter
from pydantic import Field

from palaver.services.delivery.health import platform_health
from palaver.web.auth import Owner
from palaver.web.errors import answers
from palaver.web.schemas import Out, Time, shown
from palaver.web.state import State

router = APIRouter(prefix="/platforms", tags=["operation"], responses=answers(401, 403))


class PlatformOut(Out):
    """One platform; what went wrong is of the last day."""

    platform: str
    connected: bool = Field(description="This process receives and sends there.")
    waiting: int = Field(description="Deliveries that are on their way.")
    uncertain: int = Field(description="Deliveries of which nobody knows whether they arrived.")
    failed: int = Field(description="Deliveries that did not arrive and are not tried again.")
    trouble: str | None = Field(description="The last of these, in words.")
    trouble_at: Time | None


class PlatformsOut(Out):
    """The platforms by name."""

    platforms: list[PlatformOut]


@router.get("")
async def list_platforms(state: State, _owner: Owner) -> PlatformsOut:
    """Every platform that is connected or has something to tell."""
    gateway = state.gateway
    return PlatformsOut(
        platforms=[
            PlatformOut(
                platform=str(health.platform),
                connected=health.connected,
                waiting=health.waiting,
                uncertain=health.uncertain,
                failed=health.failed,
                trouble=None if health.trouble is None else shown(health.trouble),
                trouble_at=health.trouble_at,
            )
            for health in await platform_health(gateway.store, gateway.adapters)
        ]
    )
