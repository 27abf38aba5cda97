"""The command about budgets: how they stand, and for owners, the limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from palaver.commands.command import (
    ADMIN,
    READ,
    BadArguments,
    Command,
    CommandCall,
    CommandReply,
    CommandScopes,
    read_action,
    write_action,
)
from palaver.commands.context import CommandContext, check_private_chat, read_settings
from palaver.commands.reply_text import escape_markdown, quote_command
from palaver.config.budget_rules import AMOUNT_EXAMPLES, BudgetKey, BudgetPeriod, BudgetScope, BudgetStatus, BudgetUnit
from palaver.core.errors import InvalidInput
from palaver.core.operation import TransactionRunner
from palaver.core.texts import join_texts, say
from palaver.money.service import BudgetOverview
from palaver.money.texts import (
    ALL_SUBJECT,
    PERIOD_NAMES,
    describe_named_status,
    describe_status,
    format_reset_time,
    name_budget,
    parse_clear,
    parse_set,
    parse_subject,
)
from palaver.money.wire import status_to_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from palaver.money.service import OwnBudgets

_EXAMPLES = join_texts(
    ", ", map(quote_command, ("budget set all month $50", "budget set Ada day 200k tokens", "budget clear Ada day"))
)
_WHO = say(
    "budget.who",
    "`all` (everybody together), `everyone` (each person), a person, `job` with a name, or `profile` with a name",
)


# ---- how they stand ----------------------------------------------------------------------------------------


@read_action("budget")
def show_budgets(context: CommandContext) -> CommandReply:
    budgets = _open_overview(context).list_own(context.principal, profile=read_settings(context).profile)
    lines: list[str] = [
        "**" + heading + "**\n" + join_texts("\n", each) for heading, each in _group_by_subject(budgets.statuses)
    ]
    lines += _describe_used_up(budgets)
    data: dict[str, Any] = {
        "budgets": [status_to_json(status) for status in budgets.statuses],
        "used_up": [{"scope": each.key.scope, "period": each.key.period} for each in budgets.used_up],
    }
    return CommandReply(text=join_texts("\n\n", lines), data=data)


def _group_by_subject(statuses: Sequence[BudgetStatus]) -> Iterator[tuple[str, list[str]]]:
    subjects = dict.fromkeys((status.key.scope, status.key.subject, status.subject_name) for status in statuses)
    for scope, subject, name in subjects:
        lines: list[str] = [
            "- " + PERIOD_NAMES[status.key.period] + ": " + describe_status(status)
            for status in statuses
            if (status.key.scope, status.key.subject) == (scope, subject)
        ]
        yield _format_heading(scope, name), lines


def _format_heading(scope: BudgetScope, name: str) -> str:
    return {
        BudgetScope.ALL: ALL_SUBJECT,
        BudgetScope.PERSON: say("budget.you", "You"),
        BudgetScope.JOB: say("budget.job", "Job {name}", name=escape_markdown(name)),
        BudgetScope.PROFILE: say("budget.profile", "Profile {name}", name=escape_markdown(name)),
    }[scope]


def _describe_used_up(budgets: OwnBudgets) -> Iterator[str]:
    """Say which budgets of several people are used up, without their amounts."""
    for status in budgets.used_up:
        name = name_budget(status.key.scope, status.key.period, escape_markdown(status.subject_name))
        reset = format_reset_time(status.resets_at, status.timezone)
        yield say(
            "budget.used_up_until", "{budget} is used up until {time}. An owner can raise it.", budget=name, time=reset
        )


# ---- the limits --------------------------------------------------------------------------------------------


@write_action("budget")
def set_limit(
    context: CommandContext, *, who: str, period: BudgetPeriod, amounts: Mapping[BudgetUnit, int | None]
) -> CommandReply:
    """Set the limits of a window in these units; None means no limit."""
    overview = _open_overview(context)
    status = overview.set_limits(context.principal, _find_key(overview, context, who, period), amounts)
    text = say("budget.limit_set", "Limit set.") + " " + _format_line(status)
    return CommandReply(text=text, data={"budget": status_to_json(status)})


@write_action("budget")
def clear_limit(context: CommandContext, *, who: str, period: BudgetPeriod) -> CommandReply:
    """Remove what owners have set for a window, so that the server settings apply again."""
    overview = _open_overview(context)
    key = _find_key(overview, context, who, period)
    has_changed = overview.clear_limits(context.principal, key)
    status = overview.get_status(context.principal, key)
    text = say("budget.no_limit_set", "No limit was set here.")
    if has_changed:
        text = say("budget.limit_removed", "Limit removed; the server settings apply.")
    return CommandReply(text=text + " " + _format_line(status), data={"budget": status_to_json(status)})


def _format_line(status: BudgetStatus) -> str:
    return describe_named_status(status, escape_markdown(status.subject_name))


def _open_overview(context: CommandContext) -> BudgetOverview[TransactionRunner]:
    check_private_chat(context, "budget")
    profiles = context.profile.profiles.keys()
    return BudgetOverview(TransactionRunner(context.tx), context.rules.budgets, context.scope.clock, profiles)


def _find_key(
    overview: BudgetOverview[TransactionRunner], context: CommandContext, who: str, period: BudgetPeriod
) -> BudgetKey:
    scope, name = parse_subject(who)
    return BudgetKey(scope, overview.find_subject(context.principal, scope, name), period)


# ---- the command -------------------------------------------------------------------------------------------


def _parse_budget(text: str) -> CommandCall:
    if not text:
        return show_budgets.call()
    verb, _, words = text.partition(" ")
    try:
        if verb.lower() == "set":
            who, period, amounts = parse_set(words)
            return set_limit.call(who=who, period=period, amounts=amounts)
        if verb.lower() == "clear":
            who, period = parse_clear(words)
            return clear_limit.call(who=who, period=period)
    except InvalidInput as error:
        raise BadArguments(error.text) from None
    raise BadArguments.say(
        "budget.usage",
        "Use /budget alone to see your budget. Owners can change limits: {examples}.",
        examples=_EXAMPLES,
    )


BUDGET = Command(
    name="budget",
    scopes=CommandScopes(read=READ, write=ADMIN),
    usage="[set | clear] [who] [day | month] [amount]",
    summary="Show what you may spend, and what you have spent",
    help=say(
        "command.budget.help",
        "Without arguments, shows your budget for today and this month, and when it resets. Owners can set and clear"
        " limits for {who}. Amounts: {amounts}. `clear` removes what was set here, so that the server settings apply.",
        who=_WHO,
        amounts=AMOUNT_EXAMPLES,
    ),
    example="/budget set everyone day $2.50",
    parse=_parse_budget,
)
