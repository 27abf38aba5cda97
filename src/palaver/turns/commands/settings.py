"""Commands that choose the model, the busy policy, the tools, the profile, the personality and the workspace here."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from palaver.agent import profiles, toolsets
from palaver.agent.profiles import check_chat_choices, check_model_choice, is_model_allowed, list_allowed_models
from palaver.commands.command import (
    ADMIN,
    READ_AND_WRITE,
    BadArguments,
    Command,
    CommandCall,
    CommandReply,
    CommandScopes,
    parse_choice,
    read_action,
    write_action,
)
from palaver.commands.context import CommandContext, read_settings
from palaver.commands.reply_text import describe_undo, escape_markdown, format_code
from palaver.config.agent_rules import NO_CHAT_CHOICES
from palaver.config.setting_templates import format_path, to_plain
from palaver.core.errors import InvalidInput
from palaver.core.texts import join_texts, say
from palaver.sessions import activity_table as session_activity, settings_table as session_settings
from palaver.sessions.inbound import SettingsRequest
from palaver.sessions.targets import format_source_target
from palaver.sessions.turn import BusyPolicy

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from palaver.config.agent_rules import ChatChoices
    from palaver.sessions.settings_table import SessionSettings, TextSetting
    from palaver.sessions.table import SessionRow


DEFAULT = "default"  # the word that resets a setting
_NO_TOOLS = "none"
BUSY_POLICY_EFFECTS = {  # what happens to new messages
    BusyPolicy.QUEUE: say("busy.queue", "wait in the queue"),
    BusyPolicy.STEER: say("busy.steer", "go to the agent after its next tool call"),
    BusyPolicy.INTERRUPT: say("busy.interrupt", "stop the current answer and are answered instead"),
    BusyPolicy.REJECT: say("busy.reject", "are rejected"),
}
_KINDS = {
    "profile": say("choice.profile", "the profile"),
    "personality": say("choice.personality", "the personality"),
    "workspace": say("choice.workspace", "the workspace"),
}
_REMOVED = {
    "profile": say("profile.removed", "This conversation uses the default profile from the next message."),
    "personality": say("personality.removed", "This conversation has no personality from the next message."),
    "workspace": say("workspace.removed", "This conversation has no workspace from the next message."),
}
MAX_DESCRIPTION_CHARS = 200


# ---- the model ---------------------------------------------------------------------------------------------


@read_action("model")
def list_models(context: CommandContext) -> CommandReply:
    settings = read_settings(context)
    chosen = settings.model
    model = chosen or profiles.find_default_model(context.profile, settings.profile, context.agent.model)
    models = list_allowed_models(context.agent, context.rules, context.principal.role)
    text = say(
        "model.list",
        "Model: {model} ({origin}). Available models:\n\n{list}\n\nUse `/model name` to choose one, or `/model default`"
        " for the default.",
        model=format_code(model),
        origin=format_origin(chosen),
        list="\n".join(f"- {format_code(name)}" for name in models),
    )
    return CommandReply(text=text, data={"model": model, "chosen": chosen, "models": models})


@write_action("model")
def choose_model(context: CommandContext, *, model: str | None) -> CommandReply:
    """Set the model of this session; None means the default."""
    check_chat_choices(find_chat_choices(context), ["model"])
    if model is not None:
        check_model_choice(context.agent, context.rules, context.principal.role, model)
    row, before = _change_setting(context, "model", model)
    used = model or profiles.find_default_model(context.profile, before.profile, context.agent.model)
    text = say("model.chosen", "This conversation uses {model} from the next message.", model=format_code(used))
    data = {"model": used, "chosen": model, "previous": before.model}
    return _reply(row, text, describe_setting_undo("model", before.model, model), data)


# ---- what happens while the agent is busy ------------------------------------------------------------------


@read_action("busy")
def show_busy_policy(context: CommandContext) -> CommandReply:
    chosen = read_settings(context).busy_policy
    policy = chosen or context.rules.get_busy_policy(context.source)
    choices = [
        say("busy.choice", "- {command}: they {effect}", command=format_code(f"/busy {name}"), effect=effect)
        for name, effect in BUSY_POLICY_EFFECTS.items()
    ]
    text = _describe_busy_policy(policy, format_origin(chosen)) + say(
        "busy.change",
        " To change this:\n\n{list}\n- `/busy default`: use the default",
        list=join_texts("\n", choices),
    )
    return CommandReply(text=text, data={"busy": policy, "chosen": chosen})


@write_action("busy")
def choose_busy_policy(context: CommandContext, *, policy: BusyPolicy | None) -> CommandReply:
    """Set the busy policy of this session; None means the default."""
    row, before = _change_setting(context, "busy_policy", policy)
    used = policy or context.rules.get_busy_policy(context.source)
    undo = describe_setting_undo("busy", before.busy_policy, policy)
    return _reply(row, _describe_busy_policy(used), undo, {"busy": used, "chosen": policy})


def _describe_busy_policy(policy: BusyPolicy, origin: str = "") -> str:
    return say(
        "busy.is",
        "Messages you send here while the agent is responding {effect} ({policy}).",
        effect=BUSY_POLICY_EFFECTS[policy],
        policy=format_code(policy) + ", " + origin if origin else format_code(policy),
    )


# ---- tools -------------------------------------------------------------------------------------------------


@read_action("tools")
def list_tools(context: CommandContext) -> CommandReply:
    names, off = _list_toolsets(context), read_settings(context).disabled_toolsets
    data = {"toolsets": list(names), "toolsets_off": list(off)}
    if not names:
        return CommandReply(text=say("tools.none", "The agent has no tools for you here."), data=data)
    is_on, is_off = say("tools.on", "on"), say("tools.off", "off")
    lines = [
        "- " + format_code(name) + " (" + (is_off if name in off else is_on) + "): " + toolsets.describe_toolset(name)
        for name in names
    ]
    text = say(
        "tools.list",
        "The agent's tools here:\n\n{list}\n\nUse `/tools off name` or `/tools on name` to change them for this"
        " conversation, or `/tools default` to turn them all on.",
        list=join_texts("\n", lines),
    )
    return CommandReply(text=text, data=data)


@write_action("tools")
def switch_tools(context: CommandContext, *, switches: Mapping[str, bool] | None) -> CommandReply:
    """Turn toolsets on or off in this session, by name; None turns all of them on."""
    check_chat_choices(find_chat_choices(context), ["toolsets"])
    names = _list_toolsets(context)
    if switches is not None:
        exact_names = {name.lower(): name for name in names}
        switches = {exact_names.get(name.lower(), name): is_on for name, is_on in switches.items()}
        toolsets.check_toolsets_exist(switches, names)
    row = context.require_next_session()
    previous = session_settings.load(context.tx, row.no).disabled_toolsets
    session_settings.switch_toolsets(context.tx, row.no, switches, context.now_micros, context.person_id)
    off = session_settings.load(context.tx, row.no).disabled_toolsets
    text = say("tools.all_on", "All tools are on in this conversation from the next message.")
    if off:
        listed = ", ".join(map(format_code, off))
        text = say("tools.turned_off", "Turned off in this conversation from the next message: {names}.", names=listed)
    data = {"toolsets": list(names), "toolsets_off": list(off)}
    return _reply(row, text, _describe_switch_undo(previous, off), data)


def _list_toolsets(context: CommandContext) -> tuple[str, ...]:
    rules, servers, role = context.rules, context.agent.list_tool_servers(), context.principal.role
    if context.session_row is None:
        return toolsets.list_allowed_toolsets(rules, servers, context.source.platform, role)
    names = toolsets.list_session_toolsets(context.session_row.session, rules, servers, role)
    return tuple(profiles.keep_profile_toolsets(context.profile, read_settings(context).profile, names))


def _describe_switch_undo(previous: Sequence[str], off: Sequence[str]) -> str:
    commands = [
        format_code(f"/tools {word} {' '.join(changed)}")
        for word, changed in (("on", sorted({*off} - {*previous})), ("off", sorted({*previous} - {*off})))
        if changed
    ]
    if not commands:
        return ""
    return say("undo.with", " To undo, use {command}.", command=join_texts(say("text.and", " and "), commands))


# ---- the profile -------------------------------------------------------------------------------------------


@read_action("profile")
def list_profiles(context: CommandContext) -> CommandReply:
    chosen, role = read_settings(context).profile, context.principal.role
    known = {
        name: profile
        for name, profile in context.profile.profiles.items()
        if profile.model is None or is_model_allowed(context.agent, context.rules, role, profile.model)
    }
    data = {"profile": chosen, "profiles": list(known)}
    missing = _describe_missing(chosen, context.profile.profiles)
    if not known:
        text = say("profile.none_configured", "No profiles are configured. Add them to the settings under `profiles`.")
        return CommandReply(text=text + missing, data=data)
    text = say(
        "profile.list",
        "Profile: {current}.{missing} Available profiles:\n\n{list}\n\nUse `/profile name` to choose one, or"
        " `/profile default` for none of them.",
        current=_format_current(chosen) or say("text.default", "default"),
        missing=missing,
        list=_format_list({name: profile.description for name, profile in known.items()}),
    )
    return CommandReply(text=text, data=data)


@write_action("profile")
def choose_profile(context: CommandContext, *, profile: str | None) -> CommandReply:
    check_chat_choices(find_chat_choices(context), ["profile"])
    if profile is not None:
        check_model = partial(check_model_choice, context.agent, context.rules, context.principal.role)
        profile = profiles.find_profile(context.profile, profile, check_model)
    return _choose(context, "profile", profile)


# ---- the personality ---------------------------------------------------------------------------------------


@read_action("personality")
def list_personalities(context: CommandContext) -> CommandReply:
    chosen, known = read_settings(context).personality, context.profile.personalities
    data = {"personality": chosen, "personalities": list(known)}
    missing = _describe_missing(chosen, known)
    if not known:
        text = say(
            "personality.none_configured",
            "No personalities are configured. Add them to the settings under `personalities`.",
        )
        return CommandReply(text=text + missing, data=data)
    text = say(
        "personality.list",
        "Personality: {current}.{missing} Available personalities:\n\n{list}\n\nUse `/personality name` to choose one,"
        " or `/personality default` for none of them.",
        current=_format_current(chosen) or say("text.none", "none"),
        missing=missing,
        list=_format_list(known),
    )
    return CommandReply(text=text, data=data)


@write_action("personality")
def choose_personality(context: CommandContext, *, personality: str | None) -> CommandReply:
    if personality is not None:
        personality = profiles.find_personality(context.profile, personality)
    return _choose(context, "personality", personality)


# ---- the workspace -----------------------------------------------------------------------------------------


@read_action("workspace")
def show_workspace(context: CommandContext) -> CommandReply:
    workspace = read_settings(context).workspace
    text = say(
        "workspace.none",
        "This conversation has no workspace. Use `/workspace` with a folder or a name to tell the agent what this"
        " conversation is about.",
    )
    if workspace:
        text = say(
            "workspace.is",
            "Workspace: {workspace}. Use `/workspace` with a folder or a name to tell the agent what this conversation"
            " is about, or `/workspace default` to remove it.",
            workspace=format_code(workspace),
        )
    return CommandReply(text=text, data={"workspace": workspace})


@write_action("workspace")
def choose_workspace(context: CommandContext, *, workspace: str | None) -> CommandReply:
    return _choose(context, "workspace", None if workspace is None else profiles.clean_workspace(workspace))


# ---- for a whole chat --------------------------------------------------------------------------------------


def find_chat_choices(context: CommandContext) -> ChatChoices:
    """Return what an owner has set for the chat that a command comes from or, on the page, of the conversation."""
    row = context.session_row
    source = context.source if context.source.has_chat or row is None else row.session.origin
    return context.rules.find_chat_choices(source)


def describe_chat_choices(choices: ChatChoices) -> Iterator[str]:
    """Describe what an owner has set for a chat, in lines; none if there is nothing."""
    if choices.profile is not None:
        yield say("chat.profile", "**Profile of this chat**: {name}", name=format_code(choices.profile))
    if choices.model is not None:
        yield say("chat.model", "**Model of this chat**: {name}", name=format_code(choices.model))
    if choices.toolsets is not None:
        names = ", ".join(map(format_code, choices.toolsets)) or say("text.none", "none")
        yield say("chat.toolsets", "**Tools of this chat**: {names}", names=names)


@read_action("sethere")
def show_chat_choices(context: CommandContext) -> CommandReply:
    _find_chat_target(context)
    choices = find_chat_choices(context)
    text = _list_chat_choices(choices) or say(
        "sethere.none",
        "Nothing is set for this chat: each conversation chooses for itself. To set something for all conversations"
        " here, use `/sethere profile name`, `/sethere model name` or `/sethere tools name …`.",
    )
    return CommandReply(text=text, data=_encode_chat_choices(choices))


@read_action("sethere")
def change_chat_choices(context: CommandContext, *, changes: Mapping[str, Any]) -> CommandReply:
    """Set profile, model and toolsets of the chat; None removes one. The inbox changes the settings, then replies."""
    target, role = _find_chat_target(context), context.principal.role
    if (profile := changes.get("profile")) is not None:
        check_model = partial(check_model_choice, context.agent, context.rules, role)
        changes = {**changes, "profile": profiles.find_profile(context.profile, profile, check_model)}
    if (model := changes.get("model")) is not None:
        check_model_choice(context.agent, context.rules, role, model)
    if (names := changes.get("toolsets")) is not None:
        servers = [f"{toolsets.SERVER_PREFIX}{each}" for each in context.agent.list_tool_servers()]
        toolsets.check_toolsets_exist(names, [*toolsets.BUILT_IN_TOOLSETS, *servers])
    keys = {name: format_path(("chats", target, name)) for name in changes}
    request = SettingsRequest(
        principal=context.principal,
        values={keys[name]: to_plain(value) for name, value in changes.items() if value is not None},
        unset=tuple(keys[name] for name, value in changes.items() if value is None),
    )
    choices = replace(context.rules.chats.get(target, NO_CHAT_CHOICES), **changes)
    text = _list_chat_choices(choices) or say(
        "sethere.cleared",
        "Nothing is set for this chat anymore. Its conversations keep what they have until people change it.",
    )
    return CommandReply(text=text, data=_encode_chat_choices(choices), settings=request)


def _list_chat_choices(choices: ChatChoices) -> str:
    lines = ["- " + line for line in describe_chat_choices(choices)]
    if not lines:
        return ""
    head = say("sethere.set", "Set for all conversations in this chat, from the next message:")
    return join_texts("\n", [head, "", *lines, "", say("sethere.clear", "Use `/sethere clear` to undo this.")])


def _find_chat_target(context: CommandContext) -> str:
    if not context.source.has_chat:
        raise InvalidInput.say(
            "sethere.no_chat", "There is no chat here to set something for. Use /sethere in a chat on a platform."
        )
    return format_source_target(context.source)


def _encode_chat_choices(choices: ChatChoices) -> dict[str, Any]:
    names = None if choices.toolsets is None else list(choices.toolsets)
    return {"profile": choices.profile, "model": choices.model, "toolsets": names}


# ---- shared by the above -----------------------------------------------------------------------------------


def format_origin(chosen: object) -> str:
    return say("text.chosen_here", "chosen for this conversation") if chosen else say("text.default", "default")


def describe_setting_undo(command: str, previous: str | None, chosen: str | None) -> str:
    return "" if previous == chosen else describe_undo(f"/{command} {previous or DEFAULT}")


def _change_setting(
    context: CommandContext, setting: TextSetting, value: str | None
) -> tuple[SessionRow, SessionSettings]:
    """Change a setting of the session of the next message; return that session, and its settings before."""
    row = context.require_next_session()
    before = session_settings.load(context.tx, row.no)
    session_settings.change(context.tx, row.no, setting, value, context.now_micros, context.person_id)
    return row, before


def _reply(row: SessionRow, text: str, undo: str, data: dict[str, Any]) -> CommandReply:
    return CommandReply(text=text + undo, session_id=row.session.id, data=data)


def _choose(context: CommandContext, setting: TextSetting, value: str | None) -> CommandReply:
    row, before = _change_setting(context, setting, value)
    if setting == "profile":  # its reset policy counts from now, so that the next message finds it
        session_activity.mark_active(context.tx, row.no, context.now_micros)
    text = _REMOVED[setting]
    if value is not None:
        text = say(
            "choice.made",
            "This conversation uses {kind} {name} from the next message.",
            kind=_KINDS[setting],
            name=format_code(value),
        )
    previous = getattr(before, setting)
    return _reply(row, text, describe_setting_undo(setting, previous, value), {setting: value, "previous": previous})


def _format_current(chosen: str | None) -> str:
    return format_code(chosen) + " (" + format_origin(chosen) + ")" if chosen else ""


def _format_list(descriptions: Mapping[str, str | None]) -> str:
    return "\n".join(
        f"- {format_code(name)}" + (f": {escape_markdown(text, MAX_DESCRIPTION_CHARS)}" if text else "")
        for name, text in descriptions.items()
    )


def _describe_missing(chosen: str | None, known: Iterable[str]) -> str:
    if chosen is None or chosen in known:
        return ""
    return say("profile.missing", " {name} is no longer in the settings.", name=format_code(chosen))


# ---- the commands ------------------------------------------------------------------------------------------


def _parse_busy(text: str) -> CommandCall:
    word = text.lower()
    if not word:
        return show_busy_policy.call()
    if word not in {DEFAULT, *BusyPolicy}:
        choices = ", ".join(format_code(name) for name in (*BusyPolicy, DEFAULT))
        raise BadArguments.say("busy.usage", "`/busy` takes one of {choices}.", choices=choices)
    return choose_busy_policy.call(policy=None if word == DEFAULT else BusyPolicy(word))


def _parse_tools(text: str) -> CommandCall:
    if not text:
        return list_tools.call()
    word, *names = text.split()
    if word.lower() in {"on", "off"} and names:
        return switch_tools.call(switches=dict.fromkeys(names, word.lower() == "on"))
    if word.lower() == DEFAULT and not names:
        return switch_tools.call(switches=None)
    raise BadArguments.say("tools.usage", "Use `/tools on name`, `/tools off name` or `/tools default`.")


def _parse_sethere(text: str) -> CommandCall:
    word, *names = text.split() or [""]
    match word.lower(), names:
        case "", []:
            return show_chat_choices.call()
        case "clear", []:
            return change_chat_choices.call(changes=dict.fromkeys(("profile", "model", "toolsets")))
        case "profile" | "model" as kind, [name]:
            return change_chat_choices.call(changes={kind: None if name.lower() == DEFAULT else name})
        case "tools", [name] if name.lower() in {DEFAULT, _NO_TOOLS}:
            return change_chat_choices.call(changes={"toolsets": None if name.lower() == DEFAULT else ()})
        case "tools", [_, *_]:
            return change_chat_choices.call(changes={"toolsets": tuple(names)})
    raise BadArguments.say(
        "sethere.usage",
        "Use `/sethere profile name`, `/sethere model name`, `/sethere tools name …`, or `/sethere clear`.",
    )


MODEL = Command(
    name="model",
    scopes=READ_AND_WRITE,
    usage="[name | default]",
    summary="Choose the model for this conversation",
    help="Without arguments, shows the current model and the ones you can choose.",
    example="/model default",
    parse=parse_choice(list_models, lambda name: choose_model.call(model=name), DEFAULT),
)
TOOLS = Command(
    name="tools",
    scopes=READ_AND_WRITE,
    usage="[on name | off name | default]",
    summary="Turn the agent's tools on or off in this conversation",
    help=(
        "Without arguments, lists the tools and whether they're on. You can't turn on what the server's settings"
        " don't allow."
    ),
    example="/tools off memory",
    parse=_parse_tools,
)
BUSY = Command(
    name="busy",
    scopes=READ_AND_WRITE,
    usage="[queue | steer | interrupt | reject | default]",
    summary="Choose what happens to messages while the agent is responding",
    help=(
        "`queue`: they wait. `steer`: the agent gets them while it works. `interrupt`: the agent stops and answers the"
        " new message. `reject`: they're rejected. Applies to this conversation only."
    ),
    example="/busy interrupt",
    parse=_parse_busy,
)
PROFILE = Command(
    name="profile",
    scopes=READ_AND_WRITE,
    usage="[name | default]",
    summary="Choose the profile for this conversation",
    help=(
        "A profile sets the agent's instructions, its model and its tools. Without arguments, shows the current one and"
        " the ones you can choose."
    ),
    example="/profile default",
    parse=parse_choice(list_profiles, lambda name: choose_profile.call(profile=name), DEFAULT),
)
PERSONALITY = Command(
    name="personality",
    scopes=READ_AND_WRITE,
    usage="[name | default]",
    summary="Choose how the agent talks in this conversation",
    help=(
        "A personality is a style that is added to the agent's instructions. Without arguments, shows the current one"
        " and the ones you can choose."
    ),
    example="/personality default",
    parse=parse_choice(list_personalities, lambda name: choose_personality.call(personality=name), DEFAULT),
)
SETHERE = Command(
    name="sethere",
    scopes=CommandScopes(read=ADMIN, write=ADMIN),
    usage="[profile name | model name | tools name … | clear]",
    summary="Set the profile, the model or the tools of this chat",
    help=(
        "For owners: applies to every conversation in this chat, or in this thread, and people here can't choose"
        " another one. `default` instead of a name lets them choose again; `/sethere tools none` leaves the agent no"
        " tools. Without arguments, shows what is set."
    ),
    example="/sethere profile work",
    parse=_parse_sethere,
)
WORKSPACE = Command(
    name="workspace",
    scopes=READ_AND_WRITE,
    usage="[folder or name | default]",
    summary="Tell the agent which folder or topic this conversation is about",
    help="Without arguments, shows the current workspace. `/workspace default` removes it.",
    example="/workspace ~/projects/garden",
    parse=parse_choice(show_workspace, lambda text: choose_workspace.call(workspace=text), DEFAULT),
)
