"""Models, profiles and personalities that conversations can use."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import Query

from palaver.agent.profiles import is_model_allowed, list_allowed_models
from palaver.agent.wire import ProfileJson, profile_to_json
from palaver.core.wire import Doc, TypedDict, build_json
from palaver.people.model import Role, can_use_command
from palaver.settings.model_providers import list_connected
from palaver.settings.wire import OfferedModelsJson
from palaver.web.api_route import make_router
from palaver.web.auth import Caller
from palaver.web.errors import error_responses
from palaver.web.state import State, WebState

if TYPE_CHECKING:
    from palaver.settings.model_providers import ProviderAccess

router = make_router("models", "/api", responses=error_responses(401))


class ModelJson(TypedDict):
    """A model."""

    name: str
    context_window: Annotated[int | None, Doc("The context window in tokens; null if unknown.")]


class ModelsJson(TypedDict):
    """The models that you can choose."""

    models: list[ModelJson]
    default: str
    compaction_percent: Annotated[
        int | None, Doc("How full a model's context may get before a summary of the conversation is made; null: never.")
    ]
    description: Annotated[str, Doc("Describes the agent that answers, and why it was chosen.")]
    are_more_offered: Annotated[bool, Doc("`GET /api/models/offered` may list more models.")]


class AllOfferedModelsJson(TypedDict):
    """The models of all connected providers."""

    providers: list[OfferedModelsJson]


class PersonalityJson(TypedDict):
    """A personality: a style that is added to the agent's instructions."""

    name: str
    instructions: str


class ProfilesJson(TypedDict):
    """The profiles and personalities that conversations can choose."""

    profiles: list[ProfileJson]
    personalities: list[PersonalityJson]


@router.get("/models")
async def list_models(
    state: State,
    caller: Caller,
    include: Annotated[str | None, Query(max_length=200, description="The name of another model to include.")] = None,
) -> ModelsJson:
    """List the models that you can choose for a conversation, and the default."""
    agent, rules, role = state.gateway.agent, state.gateway.rules, caller.person.role
    is_included = include is not None and is_model_allowed(agent, rules, role, include)
    names = dict.fromkeys([*list_allowed_models(agent, rules, role), *([include] if include and is_included else [])])
    models = [ModelJson(name=name, context_window=await agent.get_context_window(name)) for name in names]
    return {
        "models": models,
        "default": agent.model,
        "compaction_percent": rules.compaction.at_percent if rules.compaction.enabled else None,
        "description": agent.description,
        "are_more_offered": bool(_list_connected(state)),
    }


@router.get("/models/offered")
async def list_offered_models(state: State, caller: Caller) -> AllOfferedModelsJson:
    """List the models of all connected providers that you may choose, as the providers say. It takes up to 15 seconds.

    The lists are up to ten minutes old.
    """
    agent, rules, role = state.gateway.agent, state.gateway.rules, caller.person.role
    providers = []
    for each in await state.model_catalog.list_offered(_list_connected(state)):
        models = [name for name in each["models"] if is_model_allowed(agent, rules, role, name)]
        error = each["error"] if role is Role.OWNER else None
        providers.append(build_json(OfferedModelsJson, None, **{**each, "models": models, "error": error}))
    return {"providers": providers}


@router.get("/profiles")
async def list_profiles(state: State, caller: Caller) -> ProfilesJson:
    """List the profiles and personalities that you can choose; none for guests."""
    role = caller.person.role
    if not can_use_command(role, "profile"):
        return {"profiles": [], "personalities": []}
    gateway, config, policies = state.gateway, state.gateway.profile, state.gateway.store.config.reset_by_profile
    profiles = [
        profile_to_json(name, profile, policies.get(name))
        for name, profile in config.profiles.items()
        if profile.model is None or is_model_allowed(gateway.agent, gateway.rules, role, profile.model)
    ]
    personalities = [PersonalityJson(name=name, instructions=text) for name, text in config.personalities.items()]
    return {"profiles": profiles, "personalities": personalities}


def _list_connected(state: WebState) -> list[ProviderAccess]:
    settings = state.settings.current.settings
    return list_connected(settings.agent, settings.fixed_layers.environ, state.gateway.agent.model)
