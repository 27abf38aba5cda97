"""Commands that choose the profile, the personality and the workspace of one conversation."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from palaver.agent import profiles
from palaver.agent.models import check_model_choice, is_model_allowed
from palaver.commands.command import Command, CommandReply, read_action, write_action
from palaver.commands.context import read_settings
from palaver.commands.reply_text import escape_markdown, format_code
from palaver.commands.scopes import READ_AND_WRITE
from palaver.sessions import session_activity, settings_table as session_settings
from palaver.turns.commands.setting_commands import DEFAULT, describe_setting_undo, format_origin

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from palaver.commands.command import CommandCall
    from palaver.commands.context import CommandContext
    from palaver.sessions.settings_table import TextSetting

MAX_DESCRIPTION_CHARS = 200


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
    if not known:
        text = "No profiles are configured. Add them to the settings under `profiles`."
        return CommandReply(text=text + _describe_missing(chosen, context.profile.profiles), data=data)
    lines = [_format_line(name, profile.description) for name, profile in known.items()]
    return CommandReply(text=_format_list("profile", "profiles", chosen, lines, context.profile.profiles), data=data)


@write_action("profile")
def choose_profile(context: CommandContext, *, profile: str | None) -> CommandReply:
    """Set the profile of this session; None means the default."""
    if profile is not None:
        check_model = partial(check_model_choice, context.agent, context.rules, context.principal.role)
        profile = profiles.find_profile(context.profile, profile, check_model)
    return _choose(context, "profile", profile)


# ---- the personality ---------------------------------------------------------------------------------------


@read_action("personality")
def list_personalities(context: CommandContext) -> CommandReply:
    chosen, known = read_settings(context).personality, context.profile.personalities
    data = {"personality": chosen, "personalities": list(known)}
    if not known:
        text = "No personalities are configured. Add them to the settings under `personalities`."
        return CommandReply(text=text + _describe_missing(chosen, known), data=data)
    lines = [_format_line(name, text) for name, text in known.items()]
    return CommandReply(text=_format_list("personality", "personalities", chosen, lines, known), data=data)


@write_action("personality")
def choose_personality(context: CommandContext, *, personality: str | None) -> CommandReply:
    """Set the personality of this session; None means none."""
    if personality is not None:
        personality = profiles.find_personality(context.profile, personality)
    return _choose(context, "personality", personality)


# ---- the workspace -----------------------------------------------------------------------------------------


@read_action("workspace")
def show_workspace(context: CommandContext) -> CommandReply:
    workspace = read_settings(context).workspace
    text = f"Workspace: {format_code(workspace)}." if workspace else "This conversation has no workspace."
    text += " Use `/workspace` with a folder or a name to tell the agent what this conversation is about"
    text += ", or `/workspace default` to remove it." if workspace else "."
    return CommandReply(text=text, data={"workspace": workspace})


@write_action("workspace")
def choose_workspace(context: CommandContext, *, workspace: str | None) -> CommandReply:
    """Set the workspace of this session; None removes it."""
    return _choose(context, "workspace", None if workspace is None else profiles.clean_workspace(workspace))


# ---- shared by the above -----------------------------------------------------------------------------------


def _choose(context: CommandContext, setting: TextSetting, value: str | None) -> CommandReply:
    row = context.require_next_session()
    previous = getattr(session_settings.load(context.tx, row.no), setting)
    session_settings.change(context.tx, row.no, setting, value, context.now_micros, context.person_id)
    if setting == "profile":  # its reset policy counts from now, so that the next message finds it
        session_activity.mark_active(context.tx, row.no, context.now_micros)
    if value is not None:
        text = f"This conversation uses the {setting} {format_code(value)} from the next message."
    elif setting == "profile":
        text = "This conversation uses the default profile from the next message."
    else:
        text = f"This conversation has no {setting} from the next message."
    text += describe_setting_undo(setting, previous, value)
    return CommandReply(text=text, session_id=row.session.id, data={setting: value, "previous": previous})


def _format_list(setting: str, plural: str, chosen: str | None, lines: Iterable[str], known: Iterable[str]) -> str:
    current = format_code(chosen) if chosen else DEFAULT if setting == "profile" else "none"
    origin = f" ({format_origin(chosen)})" if chosen else ""
    listed = "\n".join(lines)
    return (
        f"{setting.capitalize()}: {current}{origin}.{_describe_missing(chosen, known)} Available {plural}:\n\n{listed}"
        f"\n\nUse `/{setting} name` to choose one, or `/{setting} default` for none of them."
    )


def _format_line(name: str, description: str) -> str:
    return f"- {format_code(name)}" + (
        f": {escape_markdown(description, MAX_DESCRIPTION_CHARS)}" if description else ""
    )


def _describe_missing(chosen: str | None, known: Iterable[str]) -> str:
    return "" if chosen is None or chosen in known else f" {format_code(chosen)} is no longer in the settings."


def _build_parser(
    show: Callable[[], CommandCall], choose: Callable[[str | None], CommandCall]
) -> Callable[[str], CommandCall]:
    """Build the parser of a command that shows a setting, resets it, or sets it to a text."""

    def parse(text: str) -> CommandCall:
        if not text:
            return show()
        return choose(None if text.lower() == DEFAULT else text)

    return parse


# ---- the commands ------------------------------------------------------------------------------------------


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
    parse=_build_parser(list_profiles.call, lambda name: choose_profile.call(profile=name)),
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
    parse=_build_parser(list_personalities.call, lambda name: choose_personality.call(personality=name)),
)
WORKSPACE = Command(
    name="workspace",
    scopes=READ_AND_WRITE,
    usage="[folder or name | default]",
    summary="Tell the agent which folder or topic this conversation is about",
    help="Without arguments, shows the current workspace. `/workspace default` removes it.",
    example="/workspace ~/projects/garden",
    parse=_build_parser(show_workspace.call, lambda text: choose_workspace.call(workspace=text)),
)
