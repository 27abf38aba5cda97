"""Profiles and personalities that conversations can use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pydantic import Field

from palaver.agent.profiles import is_model_allowed
from palaver.people.model import can_use_command
from palaver.sessions.policy import ResetMode
from palaver.web.api_route import make_router
from palaver.web.auth import Caller
from palaver.web.errors import error_responses
from palaver.web.state import ResponseModel, State

if TYPE_CHECKING:
    from palaver.sessions.policy import ResetPolicy

router = make_router("models", "/api", responses=error_responses(401))


class ProfileResetOut(ResponseModel):
    """When conversations with a profile restart automatically."""

    mode: ResetMode
    idle_minutes: int = Field(description="With `idle` and `both`: restart after this long without a human message.")
    at_hour: int = Field(description="With `daily` and `both`: restart at this hour.")
    timezone: str = Field(description="The time zone of `at_hour`.")
    notify: bool = Field(description="Whether Palaver tells the person about a restart.")


class ProfileOut(ResponseModel):
    """A profile: the agent's instructions, model and tools for a kind of work."""

    name: str
    title: str = Field(description="For people to read; empty: its name.")
    picture: str | None = Field(description="A small picture as a data URL.")
    description: str
    model: str | None = Field(description="The model of its conversations; null for the default.")
    toolsets: list[str] | None = Field(description="It has only these of the allowed toolsets; null for all of them.")
    session_reset: ProfileResetOut | None = Field(
        description="When its conversations in chats restart; null: as those without a profile."
    )


class PersonalityOut(ResponseModel):
    """A personality: a style that is added to the agent's instructions."""

    name: str
    instructions: str


class ProfilesOut(ResponseModel):
    """What conversations can choose from."""

    profiles: list[ProfileOut]
    personalities: list[PersonalityOut]


@router.get("/profiles")
async def list_profiles(state: State, caller: Caller) -> ProfilesOut:
    """List the profiles and personalities that you can choose; none for guests."""
    if not can_use_command(caller.person.role, "profile"):
        return ProfilesOut(profiles=[], personalities=[])
    gateway, config = state.gateway, state.gateway.profile
    return ProfilesOut(
        profiles=[
            ProfileOut(
                name=name,
                title=profile.title or "",
                picture=profile.picture,
                description=profile.description or "",
                model=profile.model,
                toolsets=None if profile.toolsets is None else sorted(profile.toolsets),
                session_reset=_to_reset_out(gateway.store.config.reset_by_profile.get(name)),
            )
            for name, profile in config.profiles.items()
            if profile.model is None
            or is_model_allowed(gateway.agent, gateway.rules, caller.person.role, profile.model)
        ],
        personalities=[PersonalityOut(name=name, instructions=text) for name, text in config.personalities.items()],
    )


def _to_reset_out(policy: ResetPolicy | None) -> ProfileResetOut | None:
    return None if policy is None else ProfileResetOut.model_validate(policy.to_dict())
