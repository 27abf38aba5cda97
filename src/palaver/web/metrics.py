"""What is counted, for Prometheus.

Turns, deliveries, tokens and cost are counted from the store, whoever did the work, when somebody asks: what has ended
since the last time is added. So a store with two servers is asked at one of them. Requests are counted here.
"""

from __future__ import annotations

import asyncio
from time import perf_counter
from typing import TYPE_CHECKING, Final

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

from palaver.services.metrics import Counting

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from palaver.services.metrics import Counted
    from palaver.services.store import SessionStore

_SECONDS: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800)
_QUICK: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)


class Metrics:
    """The numbers of one server."""

    def __init__(self, store: SessionStore) -> None:
        self._counting = Counting(store)
        self._asking = asyncio.Lock()
        self._registry = registry = CollectorRegistry()
        self._turns = Counter("palaver_turns", "Turns that have ended.", ["state"], registry=registry)
        self._open = Gauge("palaver_turns_open", "Turns that have not ended.", ["state"], registry=registry)
        self._waited = Histogram(
            "palaver_turn_wait_seconds", "From a message to its turn.", buckets=_SECONDS, registry=registry
        )
        self._ran = Histogram(
            "palaver_turn_run_seconds", "From the begin of a turn to its end.", buckets=_SECONDS, registry=registry
        )
        self._deliveries = Counter("palaver_deliveries", "Deliveries that have ended.", ["state"], registry=registry)
        self._sending = Gauge(
            "palaver_deliveries_open", "Deliveries that have not ended.", ["state"], registry=registry
        )
        self._delivered = Histogram(
            "palaver_delivery_seconds", "From an answer to its arrival.", buckets=_SECONDS, registry=registry
        )
        self._tokens = Counter("palaver_tokens", "Tokens used.", ["model", "kind"], registry=registry)
        self._cost = Counter("palaver_cost_usd", "US dollars spent, where known.", ["model"], registry=registry)
        self._unpriced = Counter("palaver_unpriced_turns", "Turns of unknown cost.", ["model"], registry=registry)
        self._requests = Histogram(
            "palaver_http_request_seconds",
            "Requests, until their answer begins.",
            ["method", "route", "status"],
            buckets=_QUICK,
            registry=registry,
        )

    async def text(self) -> bytes:
        """Everything, as Prometheus reads it."""
        async with self._asking:
            self._add(await self._counting.since_last())
        return generate_latest(self._registry)

    def _add(self, counted: Counted) -> None:
        for turn in counted.turns:
            self._turns.labels(turn.state).inc()
            if turn.waited is not None:
                self._waited.observe(turn.waited)
            if turn.ran is not None:
                self._ran.observe(turn.ran)
        for delivery in counted.deliveries:
            self._deliveries.labels(delivery.state).inc()
            if delivery.state == "sent":
                self._delivered.observe(delivery.took)
        for state, number in counted.open_turns.items():
            self._open.labels(state).set(number)
        for state, number in counted.open_deliveries.items():
            self._sending.labels(state).set(number)
        for used in counted.used:
            for kind, tokens in used.tokens.items():
                self._tokens.labels(used.model, kind).inc(tokens)
            self._cost.labels(used.model).inc(float(used.cost))
            self._unpriced.labels(used.model).inc(used.unpriced)

    def requested(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request has been answered."""
        self._requests.labels(method, route, str(status)).observe(seconds)


class _Watched:
    """Counts every request by its route, never by what a client wrote."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began = perf_counter()

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                route = getattr(scope.get("route"), "name", "other")
                method = scope["method"] if scope["method"] in _METHODS else "other"
                self._metrics.requested(method, route, message["status"], perf_counter() - began)
            await send(message)

        await self._app(scope, receive, watched)


_METHODS = frozenset({"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"})


def install_metrics(app: FastAPI) -> None:
    """Count from now on."""
    app.state.metrics = Metrics(app.state.palaver.gateway.store)
    app.add_middleware(_Watched, metrics=app.state.metrics)
