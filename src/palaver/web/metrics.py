"""Metrics for Prometheus.

Turns, deliveries, runs of jobs, tokens and cost are counted from the store, no matter which process did the work: every
scrape adds what has ended since the last one. If two servers share a store, scrape only one of them for these. HTTP
requests are counted per server, from its start. The library is loaded for the first scrape: few servers have one.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_left
from functools import cache, partial
from itertools import accumulate
from time import perf_counter
from typing import TYPE_CHECKING, Final

from palaver.config.budget_rules import BudgetScope, BudgetStatus, BudgetUnit
from palaver.delivery.health import load_account_health
from palaver.delivery.model import AccountHealth, AccountState
from palaver.sessions.usage import NANOS_PER_DOLLAR

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from fastapi import FastAPI
    from prometheus_client import Metric
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from palaver.operation.metrics import MetricsSnapshot
    from palaver.web.state import WebState

_TURN_BUCKETS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)
_REQUEST_BUCKETS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_KNOWN_METHODS: Final = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


class RequestTimes:
    """The times of the server's requests: for a method, a route and a status, how many took how long."""

    def __init__(self) -> None:
        self._counts: dict[tuple[str, str, str], list[int]] = {}  # in each bucket, and above all of them
        self._seconds: dict[tuple[str, str, str], float] = {}

    def record(self, method: str, route: str, status: int, seconds: float) -> None:
        labels = (method, route, str(status))
        counts = self._counts.setdefault(labels, [0] * (len(_REQUEST_BUCKETS) + 1))
        counts[bisect_left(_REQUEST_BUCKETS, seconds)] += 1
        self._seconds[labels] = self._seconds.get(labels, 0.0) + seconds

    def collect(self) -> Iterable[Metric]:
        """Return the metric, to the registry that a scrape asks."""
        from prometheus_client.core import HistogramMetricFamily

        name, text = "palaver_http_request_duration_seconds", "Time from a request to the start of its response."
        family = HistogramMetricFamily(name, text, labels=["method", "route", "status"])
        bounds = [*(str(float(bound)) for bound in _REQUEST_BUCKETS), "+Inf"]
        for labels, counts in self._counts.items():
            buckets = list(zip(bounds, accumulate(map(float, counts)), strict=True))
            family.add_metric(labels, buckets, self._seconds[labels])
        yield family


class Metrics:
    def __init__(self, state: WebState, request_times: RequestTimes) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self._state = state
        self._counted_refusals = dict.fromkeys(BudgetScope, 0)
        self._render_lock = asyncio.Lock()
        self._registry = registry = CollectorRegistry()
        counter = partial(Counter, namespace="palaver", registry=registry)
        gauge = partial(Gauge, namespace="palaver", registry=registry)
        histogram = partial(Histogram, namespace="palaver", registry=registry)
        times = partial(histogram, buckets=_TURN_BUCKETS)
        of_account = ["platform", "account"]
        budget_text = " of everybody together that are used, held for running calls, or allowed in this period."

        self._turns = counter("turns", "Turns that have ended.", ["state"])
        self._open_turns = gauge("open_turns", "Turns that are queued or running.", ["state"])
        self._turn_wait = times("turn_wait_seconds", "Time from a message to the start of its turn.")
        self._turn_duration = times("turn_duration_seconds", "Time from the start of a turn to its end.")
        self._deliveries = counter("deliveries", "Deliveries that have ended.", ["state"])
        self._open_deliveries = gauge("open_deliveries", "Deliveries that are pending or being sent.", ["state"])
        self._delivery_duration = times("delivery_duration_seconds", "Time from an answer to its successful delivery.")
        self._job_runs = counter("job_runs", "Runs of jobs that have ended.", ["state"])
        self._open_job_runs = gauge("open_job_runs", "Runs of jobs that are queued or running.", ["state"])
        self._tokens = counter("tokens", "Tokens usage.", ["model", "kind"])
        self._cost = counter("cost_usd", "Known cost in US dollars.", ["model"])
        self._unpriced_turns = counter("unpriced_turns", "Turns whose cost is unknown.", ["model"])
        self._budget_usd = gauge("budget_usd", f"US dollars{budget_text}", ["period", "kind"])
        self._budget_tokens = gauge("budget_tokens", f"Tokens{budget_text}", ["period", "kind"])
        self._refused_calls = counter(
            "budget_refused_calls", "Calls to models that a limit has refused, by the scope of the limit.", ["scope"]
        )
        self._account_state = gauge(
            "platform_account_state", "1 for the state that an account on a platform is in.", [*of_account, "state"]
        )
        self._account_message_time = gauge(
            "platform_account_last_message_timestamp_seconds",
            "When an account on a platform last received a message.",
            of_account,
        )
        self._account_deliveries = gauge(
            "platform_account_deliveries",
            "Deliveries of an account: waiting, and those that failed or became uncertain in the last 24 hours.",
            [*of_account, "state"],
        )
        registry.register(request_times)

    async def render(self) -> bytes:
        """Add what has ended since the last call, and return all metrics in Prometheus' text format."""
        from prometheus_client import generate_latest

        gateway, reader = self._state.gateway, self._state.metrics
        async with self._render_lock:
            snapshot = await reader.read_new()
            self._add_ended(snapshot)
            self._set_open(snapshot)
            self._set_accounts(await load_account_health(gateway.store, gateway.configured_accounts))
            self._set_budgets(await reader.load_overall_budgets())
        return generate_latest(self._registry)

    def _add_ended(self, snapshot: MetricsSnapshot) -> None:
        for turn in snapshot.ended_turns:
            self._turns.labels(turn.state).inc()
            if turn.wait_seconds is not None:
                self._turn_wait.observe(turn.wait_seconds)
            if turn.run_seconds is not None:
                self._turn_duration.observe(turn.run_seconds)
        for delivery in snapshot.ended_deliveries:
            self._deliveries.labels(delivery.state).inc()
            if delivery.state == "sent":
                self._delivery_duration.observe(delivery.seconds)
        for state, number in snapshot.ended_job_runs.items():
            self._job_runs.labels(state).inc(number)
        for usage in snapshot.model_usage:
            for kind, tokens in usage.tokens.items():
                self._tokens.labels(usage.model, kind).inc(tokens)
            self._cost.labels(usage.model).inc(float(usage.cost_usd))
            self._unpriced_turns.labels(usage.model).inc(usage.unpriced_turns)

    def _set_open(self, snapshot: MetricsSnapshot) -> None:
        for gauge, count_by_state in (
            (self._open_turns, snapshot.open_turns),
            (self._open_deliveries, snapshot.open_deliveries),
            (self._open_job_runs, snapshot.open_job_runs),
        ):
            for state, count in count_by_state.items():
                gauge.labels(state).set(count)

    def _set_accounts(self, accounts: list[AccountHealth]) -> None:
        for gauge in (self._account_state, self._account_message_time, self._account_deliveries):
            gauge.clear()  # an account that was removed is no longer there
        for account in accounts:
            labels = (str(account.platform), account.account)
            for state in AccountState:
                self._account_state.labels(*labels, state).set(int(state is account.state))
            if account.status is not None and account.status.last_message_at is not None:
                self._account_message_time.labels(*labels).set(account.status.last_message_at.timestamp())
            for name in ("waiting", "uncertain", "failed"):
                self._account_deliveries.labels(*labels, name).set(getattr(account, name))

    def _set_budgets(self, statuses: Sequence[BudgetStatus]) -> None:
        for gauge in (self._budget_usd, self._budget_tokens):
            gauge.clear()  # a limit that was removed is no longer there
        for status in statuses:
            for unit, used, held, limit in status.amounts:
                gauge, divisor = (
                    (self._budget_usd, NANOS_PER_DOLLAR) if unit is BudgetUnit.USD else (self._budget_tokens, 1)
                )
                for kind, amount in (("used", used), ("held", held), ("limit", limit)):
                    if amount is not None:
                        gauge.labels(status.key.period, kind).set(amount / divisor)
        for scope, count in self._state.gateway.budgets.refused_calls.items():
            self._refused_calls.labels(scope).inc(count - self._counted_refusals[scope])
            self._counted_refusals[scope] = count


class _RequestTimer:
    """Middleware that times every request, labeled by route and never by text that a client sent."""

    def __init__(self, app: ASGIApp, times: RequestTimes) -> None:
        self._app = app
        self._times = times

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started_at = perf_counter()

        async def timed_send(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "name", "other")
                method = scope["method"] if scope["method"] in _KNOWN_METHODS else "other"
                self._times.record(method, route, message["status"], perf_counter() - started_at)
            await send(message)

        await self._app(scope, receive, timed_send)


def install_metrics(app: FastAPI, state: WebState) -> None:
    """Time every request, and make the metrics when they are asked for."""
    times = RequestTimes()
    app.state.get_metrics = cache(partial(Metrics, state, times))
    app.add_middleware(_RequestTimer, times=times)
