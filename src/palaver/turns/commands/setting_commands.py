"""Commands that change the settings of one conversation: its model, its tools, and what happens while it is busy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palaver.agent import profiles, toolsets
from palaver.agent.models import check_model_choice, list_allowed_models
from palaver.commands.command import BadArguments, Command, CommandReply, read_action, write_action
from palaver.commands.context import read_settings
from palaver.commands.reply_text import format_code
from palaver.commands.scopes import READ_AND_WRITE
from palaver.sessions import settings_table as session_settings
from palaver.sessions.turn import BusyPolicy

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from palaver.commands.command import CommandCall
    from palaver.commands.context import CommandContext

DEFAULT = "default"  # the word that resets a setting
BUSY_POLICY_EFFECTS = {  # what happens to new messages
    BusyPolicy.QUEUE: "wait in the queue",
    BusyPolicy.STEER: "go to the agent after its next tool call",
    BusyPolicy.INTERRUPT: "stop the current answer and are answered instead",
    BusyPolicy.REJECT: "are rejected",
}


# ---- the model ---------------------------------------------------------------------------------------------


@read_action("model")
def list_models(context: CommandContext) -> CommandReply:
    settings = read_settings(context)
    chosen, default = (
        settings.model,
        profiles.find_default_model(context.profile, settings.profile, context.agent.model),
    )
    model = chosen or default
    models = list_allowed_models(context.agent, context.rules, context.principal.role)
    lines = "\n".join(f"- {format_code(name)}" for name in models)
    text = f"Model: {format_code(model)} ({format_origin(chosen)}). Available models:\n\n{lines}\n\n"
    text += "Use `/model name` to choose one, or `/model default` for the default."
    return CommandReply(text=text, data={"model": model, "chosen": chosen, "models": models})


@write_action("model")
def choose_model(context: CommandContext, *, model: str | None) -> CommandReply:
    """Set the model of this session; None means the default."""
    if model is not None:
        check_model_choice(context.agent, context.rules, context.principal.role, model)
    row = context.require_next_session()
    settings = session_settings.load(context.tx, row.no)
    previous = settings.model
    session_settings.change(context.tx, row.no, "model", model, context.now_micros, context.person_id)
    used = model or profiles.find_default_model(context.profile, settings.profile, context.agent.model)
    text = f"This conversation uses {format_code(used)} from the next message."
    text += describe_setting_undo("model", previous, model)
    data = {"model": used, "chosen": model, "previous": previous}
    return CommandReply(text=text, session_id=row.session.id, data=data)


# ---- what happens while the agent is busy ------------------------------------------------------------------


@read_action("busy")
def show_busy_policy(context: CommandContext) -> CommandReply:
    chosen = read_settings(context).busy_policy
    policy = chosen or context.rules.get_busy_policy(context.source)
    lines = "\n".join(
        f"- {format_code(f'/busy {name}')}: they {effect}" for name, effect in BUSY_POLICY_EFFECTS.items()
    )
    text = f"{_describe_busy_policy(policy, format_origin(chosen))} To change this:\n\n{lines}"
    text += "\n- `/busy default`: use the default"
    return CommandReply(text=text, data={"busy": policy, "chosen": chosen})


@write_action("busy")
def choose_busy_policy(context: CommandContext, *, policy: BusyPolicy | None) -> CommandReply:
    """Set the busy policy of this session; None means the default."""
    row = context.require_next_session()
    previous = session_settings.load(context.tx, row.no).busy_policy
    session_settings.change(context.tx, row.no, "busy_policy", policy, context.now_micros, context.person_id)
    used = policy or context.rules.get_busy_policy(context.source)
    text = _describe_busy_policy(used) + describe_setting_undo("busy", previous, policy)
    return CommandReply(text=text, session_id=row.session.id, data={"busy": used, "chosen": policy})


def _describe_busy_policy(policy: BusyPolicy, origin: str = "") -> str:
    origin = f", {origin}" if origin else ""
    effect = BUSY_POLICY_EFFECTS[policy]
    return f"Messages you send here while the agent is responding {effect} ({format_code(policy)}{origin})."


# ---- tools -------------------------------------------------------------------------------------------------


@read_action("tools")
def list_tools(context: CommandContext) -> CommandReply:
    names, off = _list_toolsets(context), read_settings(context).disabled_toolsets
    if not names:
        return CommandReply(text="The agent has no tools for you here.", data=_build_tool_data(names, off))
    lines = "\n".join(
        f"- {format_code(name)} ({'off' if name in off else 'on'}): {toolsets.describe_toolset(name)}" for name in names
    )
    text = (
        f"The agent's tools here:\n\n{lines}\n\nUse `/tools off name` or `/tools on name` to change them for this"
        " conversation, or `/tools default` to turn them all on."
    )
    return CommandReply(text=text, data=_build_tool_data(names, off))


@write_action("tools")
def switch_tools(context: CommandContext, *, switches: Mapping[str, bool] | None) -> CommandReply:
    """Turn toolsets on or off in this session, by name; None turns all of them on."""
    names = _list_toolsets(context)
    if switches is not None:
        exact_names = {name.lower(): name for name in names}
        switches = {exact_names.get(name.lower(), name): is_on for name, is_on in switches.items()}
        toolsets.check_toolsets_exist(switches, names)
    row = context.require_next_session()
    previous = session_settings.load(context.tx, row.no).disabled_toolsets
    session_settings.switch_toolsets(context.tx, row.no, switches, context.now_micros, context.person_id)
    off = session_settings.load(context.tx, row.no).disabled_toolsets
    if off:
        text = f"Turned off in this conversation from the next message: {', '.join(map(format_code, off))}."
    else:
        text = "All tools are on in this conversation from the next message."
    return CommandReply(
        text=text + _describe_switch_undo(previous, off), session_id=row.session.id, data=_build_tool_data(names, off)
    )


def _list_toolsets(context: CommandContext) -> tuple[str, ...]:
    """List the toolsets that the agent has for this person here."""
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
    return f" To undo, use {' and '.join(commands)}." if commands else ""


def _build_tool_data(names: Sequence[str], off: Sequence[str]) -> dict[str, Any]:
    return {"toolsets": list(names), "toolsets_off": list(off)}


# ---- shared by the above -----------------------------------------------------------------------------------


def format_origin(chosen: object) -> str:
    return "chosen for this conversation" if chosen else "default"


def describe_setting_undo(command: str, previous: str | None, chosen: str | None) -> str:
    return "" if previous == chosen else f" To undo, use {format_code(f'/{command} {previous or DEFAULT}')}."


# ---- the commands ------------------------------------------------------------------------------------------


def _parse_model(text: str) -> CommandCall:
    if not text:
        return list_models.call()
    return choose_model.call(model=None if text.lower() == DEFAULT else text)


def _parse_busy(text: str) -> CommandCall:
    word = text.lower()
    if not word:
        return show_busy_policy.call()
    if word not in {DEFAULT, *BusyPolicy}:
        choices = ", ".join(format_code(name) for name in (*BusyPolicy, DEFAULT))
        raise BadArguments(f"`/busy` takes one of {choices}.")
    return choose_busy_policy.call(policy=None if word == DEFAULT else BusyPolicy(word))


def _parse_tools(text: str) -> CommandCall:
    if not text:
        return list_tools.call()
    word, *names = text.split()
    if word.lower() in {"on", "off"} and names:
        return switch_tools.call(switches=dict.fromkeys(names, word.lower() == "on"))
    if word.lower() == DEFAULT and not names:
        return switch_tools.call(switches=None)
    raise BadArguments("Use `/tools on name`, `/tools off name` or `/tools default`.")


MODEL = Command(
    name="model",
    scopes=READ_AND_WRITE,
    usage="[name | default]",
    summary="Choose the model for this conversation",
    help="Without arguments, shows the current model and the ones you can choose.",
    example="/model default",
    parse=_parse_model,
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
