"""`palaver budget`: what everybody may spend and has spent."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING

import click

from palaver.cli import output
from palaver.cli.options import NounGroup, load_cli_settings, open_store
from palaver.cli.output import Column
from palaver.core.operation import BlockingRunner, iterate_pages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from palaver.config.budget_rules import BudgetKey, BudgetPeriod, BudgetStatus
    from palaver.money.service import BudgetOverview
    from palaver.people.model import Principal

_LIMIT_WORDS = """WHO is `all` (everybody together), `everyone` (each person), a person's name or id, `jobs` (each
    job), `job NAME` or `profile NAME`. PERIOD is `day` or `month`."""


@click.group(cls=NounGroup)
def budget() -> None:
    """Show and limit what the models may cost."""


@budget.command("show")
def show_budgets() -> None:
    """Show everybody's budgets.

    Lists those that have a limit or were used this month: used, held for running calls, limit, and when it resets.
    """
    from palaver.money.wire import status_to_json

    with _open_overview() as (overview, principal):
        statuses = list(iterate_pages(partial(overview.list_everything, principal)))
    document = {"budgets": [status_to_json(status) for status in statuses]}
    output.print_list(document, _make_columns(), statuses, empty="")


@budget.command(
    "set",
    help=f"""Set a limit.

    {_LIMIT_WORDS} AMOUNT is dollars such as 5usd or '$5' (in quotes), tokens such as 200k or 1.5M, or `none` for no
    limit. It wins over config.yaml.
    """,
)
@click.argument("words", nargs=-1, required=True, metavar="WHO PERIOD AMOUNT")
def set_limit(words: tuple[str, ...]) -> None:
    from palaver.money.texts import parse_set

    who, period, amounts = parse_set(" ".join(words))
    with _open_overview() as (overview, principal):
        status = overview.set_limits(principal, _find_key(overview, principal, who, period), amounts)
    _print_status("Limit set.", status)


@budget.command(
    "clear",
    help=f"""Remove a limit that was set, so that the server settings apply.

    {_LIMIT_WORDS}
    """,
)
@click.argument("words", nargs=-1, required=True, metavar="WHO PERIOD")
def clear_limit(words: tuple[str, ...]) -> None:
    from palaver.money.texts import parse_clear

    who, period = parse_clear(" ".join(words))
    with _open_overview() as (overview, principal):
        key = _find_key(overview, principal, who, period)
        has_changed = overview.clear_limits(principal, key)
        status = overview.get_status(principal, key)
    _print_status("Limit removed; the server settings apply." if has_changed else "No limit was set here.", status)


def _print_status(text: str, status: BudgetStatus) -> None:
    from palaver.money.texts import describe_named_status
    from palaver.money.wire import status_to_json

    output.print_result(
        {"budget": status_to_json(status)},
        f"{text} {describe_named_status(status, output.clean_line(status.subject_name))}",
    )


@contextmanager
def _open_overview() -> Iterator[tuple[BudgetOverview[BlockingRunner], Principal]]:
    from palaver.app import load_stored_settings
    from palaver.core.operation import BlockingRunner
    from palaver.money.service import BudgetOverview

    settings = load_cli_settings()
    with open_store(settings) as store:
        settings = load_stored_settings(store, settings).settings
        profiles = settings.agent.profiles.keys()
        runner = BlockingRunner(store.engine)
        yield BudgetOverview(runner, settings.turns.budgets, store.clock, profiles), store.get_owner().principal


def _find_key(
    overview: BudgetOverview[BlockingRunner], principal: Principal, who: str, period: BudgetPeriod
) -> BudgetKey:
    from palaver.config.budget_rules import BudgetKey
    from palaver.money.texts import parse_subject

    scope, name = parse_subject(who)
    return BudgetKey(scope, overview.find_subject(principal, scope, name), period)


def _make_columns() -> list[Column[BudgetStatus]]:
    from palaver.config.budget_rules import BudgetScope, format_dollars
    from palaver.money.texts import format_reset_time

    def of_own_use(get_cell: Callable[[BudgetStatus], str | None]) -> Callable[[BudgetStatus], str | None]:
        """Leave the cell of a limit for each person or job empty: it has no use of its own."""
        return lambda each: get_cell(each) if each.key.scope is BudgetScope.ALL or each.key.subject else None

    def format_name(status: BudgetStatus) -> str:
        key, name = status.key, output.clean_line(status.subject_name)
        return f"{key.scope.value} {name}" if key.subject else name.lower()

    return [
        Column("PERIOD", lambda each: each.key.period.value),
        Column("USED", of_own_use(lambda each: format_dollars(each.used_nanos + each.held_nanos)), align="right"),
        Column(
            "LIMIT", lambda each: None if each.limit_nanos is None else format_dollars(each.limit_nanos), align="right"
        ),
        Column("TOKENS", of_own_use(lambda each: f"{each.used_tokens + each.held_tokens:,}"), align="right"),
        Column("LIMIT", lambda each: None if each.limit_tokens is None else f"{each.limit_tokens:,}", align="right"),
        Column("SHARE", of_own_use(lambda each: None if each.percent is None else f"{each.percent}%"), align="right"),
        Column("RESETS", lambda each: format_reset_time(each.resets_at, each.timezone), min_terminal_width=100),
        Column("BUDGET", format_name, fills_width=True),
    ]
