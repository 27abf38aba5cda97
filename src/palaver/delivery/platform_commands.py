"""The command about the accounts on chat platforms: `/platforms`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palaver.commands.command import Command, CommandReply, parse_no_arguments, read_action
from palaver.commands.reply_text import escape_markdown, format_age, format_code, format_count
from palaver.commands.scopes import READ, CommandScopes
from palaver.delivery.health import read_account_health
from palaver.delivery.health_model import STATE_WORDS, AccountState
from palaver.sessions.services_home_channels import load_home_channels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from palaver.commands.context import CommandContext
    from palaver.delivery.health_model import AccountHealth

MAX_ERROR_CHARS = 300


@read_action("platforms")
def list_platforms(context: CommandContext) -> CommandReply:
    is_owner = context.is_owner
    accounts = read_account_health(context.tx, context.config, context.config.chat_accounts, context.now)
    if not is_owner:  # deliveries to a platform that is no longer set up are the owner's business
        accounts = [account for account in accounts if account.is_configured]
    data = {"accounts": [_account_to_data(account, is_owner=is_owner) for account in accounts]}
    if not accounts:
        return CommandReply(text="No chat platforms are set up.", data=data)
    lines = [line for account in accounts for line in _describe_account(context, account, is_owner=is_owner)]
    if is_owner:
        lines += _describe_home_channels(context)
    return CommandReply(text="\n".join(lines), data=data)


def _describe_home_channels(context: CommandContext) -> Iterator[str]:
    for home in load_home_channels(context.tx, context.config).values():
        target = format_code(home.target)
        name = f"{escape_markdown(home.name, 64)}, " if home.name else ""
        yield f"- **Home channel of {escape_markdown(home.platform.label, 64)}**: {name}{target}"


def _describe_account(context: CommandContext, account: AccountHealth, *, is_owner: bool) -> Iterator[str]:
    state = STATE_WORDS[account.state]
    status = account.status
    if status is not None and account.state is AccountState.LIVE:
        state += f" ({format_age(status.since, context.now)})"
    name = f", as {escape_markdown(status.name, 64)}" if status and status.name and is_owner else ""
    yield f"- **{escape_markdown(account.label, 64)}**: {state}{name}"
    if not is_owner:
        return
    if account.state is AccountState.LINKING:
        command = format_code(f"palaver platforms link {account.short_name}")
        yield f"  - Link it in a terminal with {command}, or open Platforms on the page."
    if status is not None:
        if status.last_message_at is not None:
            yield f"  - Last message: {format_age(status.last_message_at, context.now)}"
        for warning in status.warnings:
            yield f"  - {escape_markdown(warning, MAX_ERROR_CHARS)}"
        if status.error is not None and status.error_at is not None:
            age = format_age(status.error_at, context.now)
            yield f"  - Last error, {age}: {escape_markdown(status.error, MAX_ERROR_CHARS)}"
    counts = [
        *([f"{format_count(account.waiting, 'message')} waiting to be sent"] if account.waiting else []),
        *([f"{format_count(account.uncertain, 'message')} with unknown delivery status"] if account.uncertain else []),
        *([f"{format_count(account.failed, 'message')} not delivered"] if account.failed else []),
    ]
    if counts:
        yield f"  - {', '.join(counts)}"


def _account_to_data(account: AccountHealth, *, is_owner: bool) -> dict[str, Any]:
    data = account.to_dict()
    return data if is_owner else {name: data[name] for name in ("platform", "account", "state")}


PLATFORMS = Command(
    name="platforms",
    scopes=CommandScopes(read=READ),
    summary="Show the chat platforms and whether they are connected",
    help="Owners also see the last error of each account, and which messages are waiting or were not delivered.",
    example="/platforms",
    parse=parse_no_arguments(list_platforms),
)
