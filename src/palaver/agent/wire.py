"""The JSON of profiles, toolsets and reset policies: for the API and `--json`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from palaver.core.wire import Doc, TypedDict, build_json
from palaver.sessions.policy import ResetMode, ResetPolicy

if TYPE_CHECKING:
    from collections.abc import Collection

    from palaver.agent.toolsets import Toolset
    from palaver.config.agent_rules import Profile


class ResetPolicyJson(TypedDict):
    """The times when conversations restart automatically."""

    mode: ResetMode
    idle_minutes: Annotated[int, Doc("With `idle` and `both`: restart after this long without a human message.")]
    at_hour: Annotated[int, Doc("With `daily` and `both`: restart at this hour.")]
    timezone: Annotated[str, Doc("The time zone of `at_hour`.")]
    notify: Annotated[bool, Doc("Whether Palaver tells the person about a restart.")]


class ProfileJson(TypedDict):
    """A profile: the agent's instructions, model and tools for a kind of work."""

    name: str
    title: Annotated[str, Doc("For people to read; empty: its name.")]
    picture: Annotated[str | None, Doc("A small picture as a data URL.")]
    description: str
    model: Annotated[str | None, Doc("The model of its conversations; null for the default.")]
    toolsets: Annotated[list[str] | None, Doc("It has only these of the allowed toolsets; null for all of them.")]
    session_reset: Annotated[
        ResetPolicyJson | None, Doc("When its conversations in chats restart; null: as those without a profile.")
    ]


class ToolJson(TypedDict):
    """A tool."""

    name: str
    description: str
    problem: Annotated[str | None, Doc("Why the agent can't use it; null if it can.")]


class ToolsetJson(TypedDict):
    """A group of tools."""

    name: Annotated[str, Doc("`history`, `memory`, or `mcp:` with the name of a server.", "memory")]
    description: str
    enabled: Annotated[bool, Doc("False if the toolset is turned off in this conversation.")]
    tools: Annotated[list[ToolJson], Doc("Empty while the toolset's server cannot be reached.")]


def profile_to_json(name: str, profile: Profile, policy: ResetPolicy | None) -> ProfileJson:
    return build_json(
        ProfileJson,
        profile,
        name=name,
        title=profile.title or "",
        description=profile.description or "",
        toolsets=None if profile.toolsets is None else sorted(profile.toolsets),
        session_reset=None if policy is None else build_json(ResetPolicyJson, policy),
    )


def toolset_to_json(toolset: Toolset, disabled: Collection[str]) -> ToolsetJson:
    tools = [build_json(ToolJson, tool) for tool in toolset.tools]
    return build_json(ToolsetJson, toolset, enabled=toolset.name not in disabled, tools=tools)
