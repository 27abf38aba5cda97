"""Commands about places: home channels, continuing a conversation in another chat, and the accounts on platforms."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from palaver.commands.command import (
    ADMIN,
    READ,
    WRITE,
    BadArguments,
    Command,
    CommandCall,
    CommandReply,
    CommandScopes,
    parse_no_arguments,
    read_action,
    write_action,
)
from palaver.commands.context import CommandContext, describe_last_exchange, describe_open_turns
from palaver.commands.reply_text import count_messages, escape_markdown, format_age, format_code, format_session_name
from palaver.core.errors import ChatNotReachable, InvalidInput, NotAllowed
from palaver.core.source import PLATFORMS_WITHOUT_DELIVERY, ChatType, Platform, SessionSource
from palaver.core.texts import join_texts, say
from palaver.delivery.health import read_account_health
from palaver.delivery.model import STATE_LABELS, AccountHealth, AccountState
from palaver.delivery.notices import describe_continuation, send_notice
from palaver.delivery.wire import account_to_flat_json
from palaver.people import table as people
from palaver.sessions import home_channels, lanes_table as lanes
from palaver.sessions.home_channels import load_home_channels
from palaver.sessions.inbound import find_delivery_address
from palaver.sessions.targets import DeliveryTarget, format_target, parse_target

if TYPE_CHECKING:
    from collections.abc import Iterator


MAX_ERROR_CHARS = 300


# ---- home channels -----------------------------------------------------------------------------------------


@write_action("sethome")
def set_home(context: CommandContext) -> CommandReply:
    """Make this chat the home channel of its platform."""
    address = find_delivery_address(context.source)
    if address is None:
        raise InvalidInput.say(
            "home.no_chat", "There is no chat here that could be a home channel. Use /sethome on a chat platform."
        )
    platform = context.source.platform
    before = load_home_channels(context.tx, context.config).get(platform)
    home_channels.choose(context.tx, context.source, context.person_id, context.now_micros)
    text = say(
        "home.set",
        "This chat is now the home channel of {platform}: what has no other target goes here.",
        platform=platform.label,
    )
    if before is not None and (before.chat_id, before.thread_id) != (address.chat_id, address.thread_id):
        text += say("home.was_other", " It was another chat before.")
    if (hours := context.config.reply_hours.get(platform)) is not None:
        text += say(
            "home.reply_hours",
            " {platform} lets me write here only within {hours} hours after the last message from here.",
            platform=platform.label,
            hours=f"{hours:g}",
        )
    return CommandReply(
        text=text + say("home.undo", " Use `/sethome off` to undo this."),
        data={"platform": str(platform), "target": format_target(address)},
    )


@write_action("sethome")
def remove_home(context: CommandContext) -> CommandReply:
    """Remove the chosen home channel of this platform; the one of the server settings applies again."""
    platform = context.source.platform
    if platform in PLATFORMS_WITHOUT_DELIVERY:
        raise InvalidInput.say("home.not_here", "There is no home channel here. Use /sethome on a chat platform.")
    removed = home_channels.remove(context.tx, platform)
    configured = context.config.home_channels.get(platform)
    text = say("home.not_set", "No home channel of {platform} was set with /sethome.", platform=platform.label)
    if removed:
        text = say("home.removed", "Home channel removed.")
    if configured is not None and removed:
        text += say("home.configured_again", " The one from the server settings applies again.")
    elif configured is not None:
        text += say("home.configured", " The one from the server settings applies.")
    return CommandReply(text=text, data={"platform": str(platform), "target": None})


# ---- continuing elsewhere ----------------------------------------------------------------------------------


@write_action("handoff")
def hand_off_session(context: CommandContext, *, target: str) -> CommandReply:
    """Continue this conversation in another chat of the same person, and tell both chats."""
    row = context.require_session()
    if row.session.shared:
        raise NotAllowed.say(
            "handoff.shared",
            "Several people share this conversation, so it stays here. Use /branch for a copy of your own.",
        )
    source = _find_own_chat(context, parse_target(target))
    arrival = lanes.Arrival(source=source, config=context.config, now=context.now, busy_since=lambda _session_id: None)
    key = lanes.resolve_key(context.tx, arrival)
    current = lanes.find_current_session(context.tx, key)
    if key != context.lane_key or current is None or current.no != row.no:
        if current is None:
            lanes.get_or_create_entry(context.tx, arrival)
        lanes.switch_session(context.tx, key, row, context.now_micros, context.person_id)
    name = format_session_name(row.session)
    notice = say(
        "handoff.continues", "{name} continues here, from {origin}.", name=name, origin=_describe_origin(context.source)
    )
    notice += describe_last_exchange(context, row)
    send_notice(context.tx, source, notice, context.now_micros, session_no=row.no)
    return CommandReply(
        text=describe_continuation(source) + describe_open_turns(context, row),
        session_id=row.session.id,
        data={"platform": str(source.platform), "id": row.session.id},
    )


def _describe_origin(source: SessionSource) -> str:
    labels: dict[str, str] = {
        Platform.WEB: say("handoff.from_page", "the web page"),
        Platform.LOCAL: say("handoff.from_terminal", "the terminal"),
    }
    return labels.get(source.platform, source.platform.label)


def _find_own_chat(context: CommandContext, target: DeliveryTarget) -> SessionSource:
    """Return the person's chat that a target names: their direct messages or, for an owner, a home channel.

    The chat of another person and one that does not exist raise the same error.
    """
    if target.platform in PLATFORMS_WITHOUT_DELIVERY:
        raise BadArguments.say(
            "handoff.no_platform",
            "Name a chat platform, such as `/handoff telegram`. The web page has all your conversations.",
        )
    here = find_delivery_address(context.source)
    for source in _list_own_chats(context, target.platform):
        is_named = target.kind == "home" and target.account in {"", source.account}
        names = ("chat_id", "thread_id", "account")
        is_chat = all(getattr(source, name) == getattr(target, name) for name in names)
        if (is_named or is_chat) and find_delivery_address(source) != here:
            _check_connected(context, source.platform)
            return source
    if here is not None and target.platform == here.platform and target.kind == "home":
        raise InvalidInput.say("handoff.already", "You're already on {platform}.", platform=here.platform.label)
    name = target.platform.label if target.kind == "home" else format_code(f"{target.platform}:{target.chat_id}")
    problem = say(
        "handoff.no_chat",
        "You have no chat with me at {target}. Write to me there once, then use /handoff again.",
        target=name,
    )
    raise ChatNotReachable(problem, platform=str(target.platform))


def _list_own_chats(context: CommandContext, platform: Platform) -> list[SessionSource]:
    """List the chats on a platform that a person may continue in, their own direct messages first."""
    identities = [each for each in people.list_identities(context.tx, context.person_id) if each.platform == platform]
    chats = [each.dm_source for each in identities if each.dm_source is not None]
    home = home_channels.load_chosen(context.tx).get(platform)
    if context.is_owner and home is not None and home.chat_type is not ChatType.DM:
        chats += [replace(home, user_id=each.account, user_id_alt=None) for each in identities]
    return chats


def _check_connected(context: CommandContext, platform: Platform) -> None:
    if platform not in {*context.connected_platforms, *context.config.chat_platforms}:
        raise ChatNotReachable(
            say(
                "handoff.not_connected",
                "{platform} isn't connected to this server. Connect it, then use /handoff again.",
                platform=platform.label,
            ),
            platform=str(platform),
        )


def _parse_sethome(text: str) -> CommandCall:
    if text.lower() not in {"", "off"}:
        raise BadArguments.say("home.usage", "Use `/sethome` in the chat that you want, or `/sethome off`.")
    return remove_home.call() if text else set_home.call()


def _parse_handoff(text: str) -> CommandCall:
    if not text:
        raise BadArguments.say("handoff.where", "Where to? Use `/handoff telegram`, for example.")
    try:
        parse_target(text)
    except InvalidInput as error:
        raise BadArguments(error.text) from None
    return hand_off_session.call(target=text)


SETHOME = Command(
    name="sethome",
    scopes=CommandScopes(read=ADMIN, write=ADMIN),
    usage="[off]",
    summary="Make this chat the home channel of its platform",
    help="What the agent sends to a platform without naming a chat goes to its home channel. `off` removes it.",
    example="/sethome",
    parse=_parse_sethome,
)
HANDOFF = Command(
    name="handoff",
    scopes=CommandScopes(write=WRITE),
    usage="platform",
    summary="Continue this conversation on another platform",
    help=(
        "Puts this conversation into your direct messages with me there, and tells you so in both places. You need a"
        " linked account on that platform (/link), and must have written to me there once. Owners can also name a home"
        " channel, as in `telegram:-100123`. It stays one conversation: you can still write from here."
    ),
    example="/handoff telegram",
    parse=_parse_handoff,
)


@read_action("platforms")
def list_platforms(context: CommandContext) -> CommandReply:
    is_owner = context.is_owner
    accounts = read_account_health(context.tx, context.config, context.config.chat_accounts, context.now)
    if not is_owner:  # deliveries to a platform that is no longer set up are the owner's business
        accounts = [account for account in accounts if account.is_configured]
    data = {"accounts": [_account_to_data(account, is_owner=is_owner) for account in accounts]}
    if not accounts:
        return CommandReply(text=say("platforms.none", "No chat platforms are set up."), data=data)
    lines = [line for account in accounts for line in _describe_account(context, account, is_owner=is_owner)]
    if is_owner:
        lines += _describe_home_channels(context)
    return CommandReply(text=join_texts("\n", lines), data=data)


def _describe_home_channels(context: CommandContext) -> Iterator[str]:
    for home in load_home_channels(context.tx, context.config).values():
        target = format_code(home.target)
        name = f"{escape_markdown(home.name, 64)}, " if home.name else ""
        yield say(
            "platforms.home",
            "- **Home channel of {platform}**: {chat}",
            platform=escape_markdown(home.platform.label, 64),
            chat=name + target,
        )


def _describe_account(context: CommandContext, account: AccountHealth, *, is_owner: bool) -> Iterator[str]:
    state: str = STATE_LABELS[account.state]
    status = account.status
    if status is not None and account.state is AccountState.LIVE:
        state += " (" + format_age(status.since, context.now) + ")"
    if status and status.name and is_owner:
        state += say("platforms.as", ", as {name}", name=escape_markdown(status.name, 64))
    yield f"- **{escape_markdown(account.label, 64)}**: " + state
    if not is_owner:
        return
    if account.state is AccountState.LINKING:
        command = format_code(f"palaver platforms link {account.short_name}")
        yield say(
            "platforms.link",
            "  - Link it in a terminal with {command}, or open Platforms on the page.",
            command=command,
        )
    if status is not None:
        if status.last_message_at is not None:
            age = format_age(status.last_message_at, context.now)
            yield say("platforms.last_message", "  - Last message: {age}", age=age)
        for warning in status.warnings:
            yield "  - " + escape_markdown(warning, MAX_ERROR_CHARS)
        if status.error is not None and status.error_at is not None:
            yield say(
                "platforms.last_error",
                "  - Last error, {age}: {error}",
                age=format_age(status.error_at, context.now),
                error=escape_markdown(status.error, MAX_ERROR_CHARS),
            )
    if counts := list(_describe_undelivered(account)):
        yield "  - " + join_texts(", ", counts)


def _describe_undelivered(account: AccountHealth) -> Iterator[str]:
    if account.waiting:
        messages = count_messages(account.waiting)
        yield say("platforms.waiting", "{messages} waiting to be sent", messages=messages)
    if account.uncertain:
        messages = count_messages(account.uncertain)
        yield say("platforms.uncertain", "{messages} with unknown delivery status", messages=messages)
    if account.failed:
        yield say("platforms.failed", "{messages} not delivered", messages=count_messages(account.failed))


def _account_to_data(account: AccountHealth, *, is_owner: bool) -> dict[str, Any]:
    data = account_to_flat_json(account)
    return data if is_owner else {name: data[name] for name in ("platform", "account", "state")}


PLATFORMS = Command(
    name="platforms",
    scopes=CommandScopes(read=READ),
    summary="Show the chat platforms and whether they are connected",
    help="Owners also see the last error of each account, and which messages are waiting or were not delivered.",
    example="/platforms",
    parse=parse_no_arguments(list_platforms),
)
