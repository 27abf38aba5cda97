"""`palaver deliveries`: messages to chat platforms that failed or may not have arrived, and what to do about them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

import click

from palaver.cli import output
from palaver.cli.options import (
    NounGroup,
    after_option,
    before_option,
    confirm_or_exit,
    json_option,
    mine_option,
    open_view,
    platform_option,
    yes_option,
)
from palaver.cli.output import Column
from palaver.core.errors import NotFound, NothingToDo
from palaver.core.invocation import format_command
from palaver.core.operation import iterate_pages
from palaver.core.wire import build_json
from palaver.delivery.view import DeliveryOperations
from palaver.delivery.wire import UndeliveredJson
from palaver.sessions.delivery import DeliveryState, Resolution, UndeliveredMessage

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from palaver.sessions.view import SessionView

MAX_LISTED = 10_000
_STATE_LABELS = {DeliveryState.UNCERTAIN: "unknown", DeliveryState.FAILED: "not delivered"}
_COLUMNS: tuple[Column[UndeliveredMessage], ...] = (
    Column("ID", lambda each: each.id, style="dim"),
    Column("WHEN", lambda each: each.ended_at, min_terminal_width=52),
    Column("STATUS", lambda each: _STATE_LABELS[each.state]),
    Column("TO", lambda each: each.target, width_divisor=4),
    Column("CONVERSATION", lambda each: each.title or each.session_id, width_divisor=4, min_terminal_width=90),
    Column("REASON", lambda each: each.error, fills_width=True, min_terminal_width=70),
)
_FILTERS: tuple[Callable[[Any], Any], ...] = (
    click.option(
        "--state", type=click.Choice(["uncertain", "failed"]), help="Only with an unknown status, or only failed ones."
    ),
    platform_option,
    click.option("--to", "target", metavar="CHAT", help="Only to this chat, such as telegram:42."),
    after_option,
    before_option,
    mine_option,
)


def _filter_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in reversed(_FILTERS):
        command = option(command)
    return command


@click.group(cls=NounGroup, invoke_without_command=True)
@json_option
@click.pass_context
def deliveries(ctx: click.Context) -> None:
    """List and settle messages to chat platforms that were not delivered.

    Without a command, lists those of the last 30 days that failed or whose status is unknown: the connection broke or
    Palaver was stopped while they were being sent, so they may or may not have arrived.
    """
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_deliveries)


@deliveries.command("list")
@_filter_options
def list_deliveries(**filters: Any) -> None:
    """List messages that failed or whose status is unknown, newest first.

    --after and --before are about when that happened; without --after, the last 30 days.
    """
    with open_view() as view:
        found = _find(view, filters)
    empty = "No undelivered messages match." if any(filters.values()) else "No undelivered messages."
    output.print_list({"deliveries": [_to_json(each) for each in found]}, _COLUMNS, found, empty)
    if found and not output.wants_json():
        output.print_hint(f"To settle them: {format_command('deliveries --help')}")


@deliveries.command()
@click.argument("delivery")
def show(delivery: str) -> None:
    """Show why a message was not delivered.

    DELIVERY is its id.
    """
    with open_view() as view:
        found = view.part(DeliveryOperations).get_undelivered(delivery)
    lines = [
        ("Message", found.id),
        ("Status", _STATE_LABELS[found.state]),
        ("To", found.target),
        ("Conversation", f"{found.title or 'untitled'} ({found.session_id})" if found.session_id else "none: a notice"),
        ("Written", output.format_timestamp(found.created_at)),
        ("Ended", output.format_timestamp(found.ended_at)),
        ("Reason", found.error or "unknown"),
    ]
    text = "\n".join(f"{name:13}  {output.clean_line(value)}" for name, value in lines)
    output.print_result(_to_json(found), text)


def _add_action(name: str, resolution: Resolution, help_text: str, question: str, done: str) -> None:
    @deliveries.command(name, help=help_text)
    @click.argument("ids", metavar="[DELIVERY]...", nargs=-1)
    @click.option("--all", "every", is_flag=True, help="All messages on the list.")
    @_filter_options
    @yes_option
    def settle(ids: tuple[str, ...], every: bool, yes: bool, **filters: Any) -> None:
        if bool(ids) == (every or any(filters.values())):
            raise click.UsageError(
                "Name messages by their ids, or choose them with --all or a filter such as --platform."
            )
        if resolution in {Resolution.SENT, Resolution.NOT_SENT}:
            filters["state"] = filters["state"] or "uncertain"
        with open_view() as view:
            chosen = ids or [each.id for each in _find(view, filters)]
            if chosen:
                count = output.format_count(len(chosen), "message")
                confirm_or_exit(question.format(count=count), skip=yes, canceled="Canceled. Nothing was changed.")
            resolved, problems = _resolve(view, chosen, resolution)
        if ids and not resolved:
            raise next(iter(problems.values()))
        unchanged = list(problems)
        text = f"{done} {output.format_count(len(resolved), 'message')}."
        if unchanged:
            text += f" {output.format_count(len(unchanged), 'message')} had been settled before, or was not found."
        output.print_result({"resolved": resolved, "unchanged": unchanged}, text)


_add_action(
    "resend",
    Resolution.RESEND,
    "Send messages again.\n\nA running server sends them. One whose status is unknown may arrive twice.",
    "Send {count} again? Those with an unknown status may arrive twice.",
    "Queued again:",
)
_add_action(
    "mark-sent",
    Resolution.SENT,
    "Mark messages with an unknown status as delivered.",
    "Mark {count} as delivered?",
    "Marked as delivered:",
)
_add_action(
    "mark-not-sent",
    Resolution.NOT_SENT,
    "Mark messages with an unknown status as not delivered.",
    "Mark {count} as not delivered?",
    "Marked as not delivered:",
)
_add_action(
    "dismiss",
    Resolution.DISMISS,
    "Take messages off this list.\n\nTheir conversations still show that they were not delivered.",
    "Take {count} off the list?",
    "Dismissed:",
)


def _resolve(
    view: SessionView, ids: Sequence[str], resolution: Resolution
) -> tuple[list[str], dict[str, NothingToDo | NotFound]]:
    """Settle messages; return the ids of those that were changed, and why the others were not."""
    resolved: list[str] = []
    problems: dict[str, NothingToDo | NotFound] = {}
    for each in dict.fromkeys(ids):
        try:
            view.part(DeliveryOperations).resolve(each, resolution)
        except (NothingToDo, NotFound) as error:
            problems[each] = error
        else:
            resolved.append(each)
    return resolved, problems


def _find(view: SessionView, filters: dict[str, Any]) -> list[UndeliveredMessage]:
    found: list[UndeliveredMessage] = []
    for each in iterate_pages(partial(view.part(DeliveryOperations).list_undelivered, **filters)):
        found.append(each)
        if len(found) == MAX_LISTED:
            break
    return found


def _to_json(each: UndeliveredMessage) -> UndeliveredJson:
    return build_json(UndeliveredJson, each)
