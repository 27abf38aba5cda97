"""Profiles, personalities and workspaces: what a conversation can choose, and what its choices mean for an answer.

A profile is a way of working: instructions, a model and tools. A personality is a style that is added to it. Both come
from config.yaml and are chosen by name. A workspace is a text that the agent is told.

Always true: a choice that config.yaml no longer has, or that can no longer be used, never keeps a conversation from
being answered. The default applies instead, and the person is told. A profile can leave out toolsets, but never add
one. A person may choose the models that the operator allows for their role; everyone may use the default.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

from palaver.agent.base import AgentInfo, ModelPrices, Notice
from palaver.agent.toolsets import BUILT_IN_TOOLSETS, SERVER_PREFIX
from palaver.config.agent_rules import AgentProfile, ChatChoices, Profile, TurnRules
from palaver.core.dataclass import dataclass
from palaver.core.errors import InvalidInput, NotAllowed
from palaver.core.texts import chat_language, say
from palaver.sessions import settings_table as session_settings
from palaver.sessions.context import MAX_QUOTE_CHARS, clean_chat_text
from palaver.sessions.turn import NoticeCode

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from palaver.core.engines.base import Transaction
    from palaver.people.model import Role
    from palaver.sessions.settings_table import SessionSettings


DEFAULT_PROFILE = Profile()
_CHAT_CHOICES: Final = {
    "profile": say("choice.profile", "the profile"),
    "model": say("choice.model", "the model"),
    "toolsets": say("choice.toolsets", "the tools"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnChoices:
    """The choices of a conversation that apply to its next answer."""

    model: str | None  # None: the default of the agent
    instructions: str  # empty: the default
    personality: str  # more instructions; empty: none
    toolsets: Collection[str] | None  # only these of the allowed ones; None: all of them
    notices: tuple[Notice, ...] = ()  # what the person is told about choices that do not apply


def apply_choices(
    agent_profile: AgentProfile,
    settings: SessionSettings,
    check_model: Callable[[str], object],
    is_model_allowed: Callable[[str], bool],
) -> TurnChoices:
    """Return what the settings of a conversation mean for the person who asks.

    `check_model` raises for a model that can't be used; `is_model_allowed` says whether the person may use one.
    """
    notices = []
    profile = agent_profile.profiles.get(settings.profile or "", DEFAULT_PROFILE)
    if settings.profile is not None and settings.profile not in agent_profile.profiles:
        notices.append(_describe_missing("profile", settings.profile))
    if settings.personality is not None and settings.personality not in agent_profile.personalities:
        notices.append(_describe_missing("personality", settings.personality))
    model = settings.model
    if model is not None and not is_model_allowed(model):
        model = None
        notices.append(_describe_not_allowed(settings.model))
    if model is None and profile.model is not None:
        try:
            check_model(profile.model)
        except InvalidInput as error:
            text = say(
                "choice.no_profile_model",
                "The model of the profile “{profile}” can't be used, so the default is used. {error}",
                profile=settings.profile,
                error=error,
            )
            notices.append(Notice(text))
        else:
            model = profile.model if is_model_allowed(profile.model) else None
            notices += [_describe_not_allowed(profile.model)] if model is None else []
    return TurnChoices(
        model=model,
        instructions=profile.instructions or agent_profile.instructions or "",
        personality=agent_profile.personalities.get(settings.personality or "", ""),
        toolsets=profile.toolsets,
        notices=tuple(notices),
    )


def list_left_out_toolsets(toolsets: Collection[str] | None, available: Iterable[str]) -> set[str]:
    """List those of the available toolsets that a profile with these toolsets (None: all) does not have."""
    return set() if toolsets is None else {name for name in available if name and name not in toolsets}


def keep_profile_toolsets(agent_profile: AgentProfile, profile_name: str | None, names: Iterable[str]) -> list[str]:
    """Return those of the toolsets that conversations with this profile have."""
    toolsets = agent_profile.profiles.get(profile_name or "", DEFAULT_PROFILE).toolsets
    return [name for name in names if name not in list_left_out_toolsets(toolsets, [name])]


def find_default_model(agent_profile: AgentProfile, profile_name: str | None, agent_model: str) -> str:
    return agent_profile.profiles.get(profile_name or "", DEFAULT_PROFILE).model or agent_model


def find_profile(agent_profile: AgentProfile, name: str, check_model: Callable[[str], object]) -> str:
    """Return the name of a profile as config.yaml has it; raises `InvalidInput` if there is none.

    `check_model` raises for a model that the person may not choose, be it by the name of a profile.
    """
    found = _find_name("profile", agent_profile.profiles, name)
    if (model := agent_profile.profiles[found].model) is not None:
        check_model(model)
    return found


def store_chat_choices(
    tx: Transaction, session_no: int, choices: ChatChoices, servers: Iterable[str], now: int
) -> None:
    """Give a conversation what an owner has set for the chat that it continues in. Its log tells of every change."""
    if choices.profile is not None:
        session_settings.change(tx, session_no, "profile", choices.profile, now)
    if choices.model is not None:
        session_settings.change(tx, session_no, "model", choices.model, now)
    if choices.toolsets is not None:
        names = (*BUILT_IN_TOOLSETS, *(f"{SERVER_PREFIX}{server}" for server in servers))
        session_settings.switch_toolsets(tx, session_no, {name: name in choices.toolsets for name in names}, now)


def check_chat_choices(choices: ChatChoices, changes: Collection[str]) -> None:
    """Raise `NotAllowed` if an owner has set one of these (profile, model, toolsets) for the chat."""
    for name in changes:
        if name in _CHAT_CHOICES and getattr(choices, name) is not None:
            text = say(
                "choice.set_for_chat",
                "An owner has chosen {kind} for this whole chat, so it can't be changed in one conversation.",
                kind=_CHAT_CHOICES[name],
            )
            raise NotAllowed(text, setting=name)


def find_personality(agent_profile: AgentProfile, name: str) -> str:
    """Return the name of a personality as config.yaml has it; raises `InvalidInput` if there is none."""
    return _find_name("personality", agent_profile.personalities, name)


def _find_name(kind: str, known: Mapping[str, object], name: str) -> str:
    lowered = name.strip().lower()
    if lowered in known:
        return lowered
    names = ", ".join(known)
    section = {"profile": "profiles", "personality": "personalities"}[kind]
    advice = (
        say("choice.valid", "Valid values: {names}.", names=names)
        if names
        else say("choice.none_yet", "There are none yet: add them in the settings under {section}.", section=section)
    )
    raise InvalidInput(
        say("choice.unknown", "{kind}: there is no {name} here. {advice}", kind=kind, name=repr(name), advice=advice),
        **{kind: name},
    )


def clean_workspace(text: str) -> str:
    """Return a workspace as it is stored; raises `InvalidInput` for one that the agent could not be told as it is."""
    text = text.strip()
    if not text or "\n" in text or len(text) > MAX_QUOTE_CHARS:
        message = say(
            "workspace.one_line",
            "workspace: use one line of up to {limit} characters, such as /srv/site or garden project",
            limit=str(MAX_QUOTE_CHARS),
        )
        raise InvalidInput(message, key="workspace")
    if clean_chat_text(text) != text:
        message = say(
            "workspace.bad_characters",
            "workspace: control characters, repeated spaces and the characters < > [ ] | ` aren't allowed",
        )
        raise InvalidInput(message, key="workspace")
    return text


def _describe_not_allowed(model: str | None) -> Notice:
    text = say(
        "model.not_available",
        "The model {model} is not available to you, so the default is used. Use /model to choose another one.",
        model=model,
    )
    return Notice(text, NoticeCode.MODEL_NOT_ALLOWED, {"model": model})


def _describe_missing(kind: Literal["profile", "personality"], name: str) -> Notice:
    text = say(
        "choice.gone",
        "The {kind} “{name}” is no longer in the settings, so the default is used. Use /{kind} to choose another one.",
        kind=kind,
        name=name,
    )
    code = NoticeCode.PROFILE_MISSING if kind == "profile" else NoticeCode.PERSONALITY_MISSING
    return Notice(text, code, {"name": name})


def list_allowed_models(agent: AgentInfo, rules: TurnRules, role: Role) -> list[str]:
    """List the models that a person with this role may choose; the default is the first."""
    named = [name for name in rules.list_named_models(role) if _can_use(agent, name)]
    offered = [name for name in agent.list_models() if is_model_allowed(agent, rules, role, name)]
    return list(dict.fromkeys([*offered, *named]))


def check_model_choice(agent: AgentInfo, rules: TurnRules, role: Role, name: str) -> None:
    """Raise `InvalidInput` for a model that can't be used, and `NotAllowed` for one that is not for this role."""
    agent.check_model(name)
    if not is_model_allowed(agent, rules, role, name):
        allowed = ", ".join(list_allowed_models(agent, rules, role))
        text = say(
            "model.not_allowed",
            "model: {name} is not available to you. Choose one of these: {allowed}.",
            name=name,
            allowed=allowed,
        )
        raise NotAllowed(text, model=name)


def is_model_allowed(agent: AgentInfo, rules: TurnRules, role: Role, name: str) -> bool:
    return name == agent.model or rules.allows_model(role, name)


def _can_use(agent: AgentInfo, name: str) -> bool:
    try:
        agent.check_model(name)
    except InvalidInput:
        return False
    return True


# The settings that are in force now. Services share one `CurrentSettings`, and read it where a unit of work starts.
#
# Always true: what has started keeps what it has read; a change replaces all of it at once, and needs to tell nobody.


class CurrentSettings:
    """The agent, the rules of its turns and its profile, as they are now."""

    def __init__(self, agent: AgentInfo, rules: TurnRules, profile: AgentProfile | None = None) -> None:
        self.replace(agent, rules, profile or AgentProfile())

    def replace(self, agent: AgentInfo, rules: TurnRules, profile: AgentProfile) -> None:
        """Let other settings be in force for everything that starts from now on."""
        self.agent, self.rules, self.profile, self.prices = agent, rules, profile, ModelPrices(agent)
        chat_language.name = rules.language
