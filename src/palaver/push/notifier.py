"""Sends notifications about answers to the browsers of people whose page is closed.

The end of a turn queues one notification for each subscribed browser of the person who asked, in the transaction of
the answer. A few seconds later it is sent, unless the person has read the answer meanwhile on any device.

    queued ──▶ sent, read, or too old: deleted
       │  └──▶ 404, 410: the subscription is deleted, and everything on its way to it
       └─────▶ 429, 5xx, no connection: tried again later, for a day

Always true: no turn waits for a notification. A push service that does not answer delays only its own notifications:
each person and each push service has a share of the places, and people take turns. If the process dies after sending,
it is sent again, and replaces the one that the browser shows: both have the same tag.
"""

from __future__ import annotations

import asyncio
import json
import logging
import secrets
from collections import Counter
from datetime import timedelta
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from palaver.core.background import PollLoop
from palaver.core.clock import to_micros
from palaver.core.crash_points import crash_point
from palaver.core.dataclass import dataclass
from palaver.core.engines.base import Read, Transaction, Write
from palaver.core.errors import ConnectionLost, InvalidInput, PushFailed, SessionNotFound, TooManyAttempts
from palaver.core.http_url import is_http_url
from palaver.core.texts import say
from palaver.push import table as push
from palaver.push.model import MAX_ENDPOINT_CHARS, PushSubscription
from palaver.sessions import table as sessions
from palaver.sessions.message import MAX_PREVIEW_CHARS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from palaver.config.agent_rules import PushRules
    from palaver.media.web.requests import GuardedRequests
    from palaver.push.encryption import ServerKey
    from palaver.push.table import DuePush
    from palaver.sessions.store import SessionStore

MAX_AGE: Final = timedelta(days=1)  # after that, an answer is no news
MAX_ATTEMPTS: Final = 12
MAX_SENDING: Final = 40  # at the same time
MAX_SENDING_PER_PERSON: Final = 4
MAX_SENDING_PER_SERVICE: Final = 20
CLAIM_TIME: Final = timedelta(minutes=2)  # longer than a request may take
SEND_SECONDS: Final = 10.0
BLOCKED_WAIT_SECONDS: Final = 1.0  # while all that is due has no place; a place that becomes free ends it
MAX_WAIT_SECONDS: Final = 60.0
MIN_WAIT_SECONDS: Final = 0.2
FIRST_RETRY: Final = timedelta(seconds=30)
MAX_RETRY: Final = timedelta(hours=2)
MAX_TITLE_CHARS: Final = 100
MAX_ERROR_BYTES: Final = 2000
_OK: Final = frozenset({200, 201, 202, 204})
_GONE: Final = frozenset({404, 410})
_TRY_AGAIN: Final = frozenset({408, 425, 429})

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class PushResponse:
    status: int
    text: str = ""
    retry_after_seconds: int | None = None

    @property
    def is_ok(self) -> bool:
        return self.status in _OK

    @property
    def is_gone(self) -> bool:
        return self.status in _GONE


class PushNotifier:
    """The subscriptions and notifications of one store."""

    def __init__(
        self,
        store: SessionStore,
        load_key: Callable[[], int],
        get_rules: Callable[[], PushRules],
        *,
        default_contact: str,
        trusted_hosts: Collection[str] = (),  # hosts that need no HTTPS: those of tests
    ) -> None:
        self._store = store
        self._engine = store.engine
        self._load_key = load_key
        self._get_rules = get_rules
        self._default_contact = default_contact
        self._trusted_hosts = frozenset(trusted_hosts)
        self._tools: tuple[ServerKey, GuardedRequests] | None = None  # the means of sending, loaded on first use
        self._loop = PollLoop(self._start_due, "palaver-push", log=log, failure_event="push_failed")
        self._sending: dict[asyncio.Task[None], DuePush] = {}
        self._testing: set[str] = set()  # people whose test is being sent

    @property
    def is_enabled(self) -> bool:
        return self._get_rules().enabled

    async def start(self) -> None:
        self._loop.start()

    async def stop(self) -> None:
        """Finish sending what is being sent; the rest is left to the next process."""
        await self._loop.stop()
        await self._wait_for_sending()

    def wake(self) -> None:
        """Look now for notifications to send."""
        self._loop.wake()

    async def get_public_key(self) -> str:
        """Return the key that browsers subscribe to; it is created on first use."""
        key, _ = await self._get_tools()
        return key.public_text

    # -- subscriptions --------------------------------------------------------------------------------------

    async def subscribe(self, sign_in_id: str, endpoint: str, public_key: str, auth_secret: str) -> None:
        """Store the subscription of a signed-in browser. Raises InvalidInput."""
        if not self.is_enabled:
            raise InvalidInput.say("push.disabled", "Notifications are turned off here (push.enabled in the settings).")
        self._check_endpoint(endpoint)
        server_key = await self.get_public_key()
        from palaver.push.encryption import check_keys  # loaded with the key

        check_keys(public_key, auth_secret)
        subscription = PushSubscription(
            id=f"push_{secrets.token_hex(8)}",
            endpoint=endpoint,
            public_key=public_key,
            auth_secret=auth_secret,
            server_key=server_key,
        )
        now = to_micros(self._store.clock.now())
        is_saved = await self._engine.arun(Write(lambda tx: push.save_subscription(tx, sign_in_id, subscription, now)))
        if not is_saved:
            raise InvalidInput(
                "endpoint: this address belongs to another person's browser, and the keys are not its keys."
                " Turn notifications off and on again to get a new one.",
                key="endpoint",
            )

    async def unsubscribe(self, sign_in_id: str) -> None:
        await self._engine.arun(Write(lambda tx: push.delete_subscription_of_sign_in(tx, sign_in_id)))

    async def is_subscribed(self, sign_in_id: str) -> bool:
        return await self._find(sign_in_id) is not None

    async def send_test(self, sign_in_id: str, person_id: str) -> None:
        """Send a notification to a browser of a person now, if that person's last one has been sent.

        Raises PushFailed with what its push service says, and TooManyAttempts.
        """
        subscription = await self._find(sign_in_id)
        if subscription is None:
            raise InvalidInput.say(
                "push.not_subscribed", "This browser is not subscribed. Turn notifications on first."
            )
        if person_id in self._testing:
            message = say(
                "accounts.too_many_attempts",
                "Too many attempts. Try again in {seconds} seconds.",
                seconds=f"{SEND_SECONDS:.0f}",
            )
            raise TooManyAttempts(message, retry_after=SEND_SECONDS - 1)
        self._testing.add(person_id)
        try:
            await self._send_test(subscription)
        finally:
            self._testing.discard(person_id)

    async def _send_test(self, subscription: PushSubscription) -> None:
        try:
            response = await self._send(subscription, {"kind": "test"}, topic="test")
        except (InvalidInput, ConnectionLost, TimeoutError) as error:
            raise PushFailed.say(
                "push.service_unreachable", "The push service of this browser can't be reached: {reason}.", reason=error
            ) from error
        if response.is_gone:
            await self._engine.arun(Write(lambda tx: push.delete_subscription(tx, subscription.id)))
            raise PushFailed.say(
                "push.subscription_ended",
                "This browser has ended its subscription. Turn notifications off and on again.",
            )
        if not response.is_ok:
            text = say(
                "push.service_answered",
                "The push service of this browser answered {status}: {detail}",
                status=str(response.status),
                detail=response.text or "no details",
            )
            raise PushFailed(text, status=response.status)

    async def _find(self, sign_in_id: str) -> PushSubscription | None:
        return await self._engine.arun(Read(lambda tx: push.find_subscription(tx, sign_in_id), is_quick=True))

    def _check_endpoint(self, endpoint: str) -> None:
        is_valid = is_http_url(endpoint) and endpoint.isascii() and len(endpoint) <= MAX_ENDPOINT_CHARS
        parts = urlsplit(endpoint if is_valid else "")
        is_safe = parts.scheme == "https" or parts.hostname in self._trusted_hosts
        if not is_valid or parts.username is not None or not parts.path or not is_safe:
            raise InvalidInput("endpoint: this is not an https:// address of a push service.", key="endpoint")

    # -- sending --------------------------------------------------------------------------------------------

    async def run_once(self) -> None:
        """Send what is due, and wait until it is sent."""
        await self._start_due()
        await self._wait_for_sending()

    async def _wait_for_sending(self) -> None:
        await asyncio.gather(*self._sending, return_exceptions=True)

    async def _start_due(self) -> float:
        """Start to send what is due and has a place; return the seconds until the next time."""
        now = self._store.clock.now()
        oldest = to_micros(now - MAX_AGE)
        is_needed = self._tools is not None or await self._engine.arun(Read(push.has_messages))
        if not is_needed or len(self._sending) >= MAX_SENDING:
            return MAX_WAIT_SECONDS  # a place that becomes free wakes the loop
        key_text = await self.get_public_key()

        def claim(tx: Transaction) -> list[DuePush]:
            push.delete_created_before(tx, oldest)
            numbers = self._choose_due(tx, key_text, to_micros(now))
            return push.claim(tx, numbers, to_micros(now), to_micros(now + CLAIM_TIME))

        def find_none(tx: Transaction) -> list[DuePush] | None:
            due_at = push.find_next_due(tx, key_text)
            return [] if due_at is None or due_at > to_micros(now) else None

        due = await self._engine.arun(Write(claim, read_first=find_none))
        if due:
            crash_point("push.claimed")
        for each in due:
            task = asyncio.create_task(self._deliver(each), name=f"palaver-push-{each.no}")
            self._sending[task] = each
            task.add_done_callback(self._end_sending)
        next_due = await self._engine.arun(Read(lambda tx: push.find_next_due(tx, key_text)))
        if next_due is None:
            return MAX_WAIT_SECONDS
        seconds = (next_due - to_micros(self._store.clock.now())) / 1_000_000
        if seconds <= 0 and self._sending and not due:
            return BLOCKED_WAIT_SECONDS
        return min(max(seconds, MIN_WAIT_SECONDS), MAX_WAIT_SECONDS)

    def _end_sending(self, task: asyncio.Task[None]) -> None:
        del self._sending[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("push_failed", exc_info=error)
        self.wake()

    def _choose_due(self, tx: Transaction, key_text: str, now: int) -> list[int]:
        """Choose notifications that are due and for whose person and push service there is a place."""
        people = Counter(str(each.person_id) for each in self._sending.values())
        services = Counter(_get_service(each.subscription.endpoint) for each in self._sending.values())
        waiting = push.list_due(
            tx,
            key_text,
            now,
            MAX_SENDING,
            except_people=[person for person, count in people.items() if count >= MAX_SENDING_PER_PERSON],
            except_origins=[service for service, count in services.items() if count >= MAX_SENDING_PER_SERVICE],
        )
        chosen: list[int] = []
        for each in waiting:
            service = _get_service(each.endpoint)
            is_full = len(self._sending) + len(chosen) >= MAX_SENDING
            has_place = people[each.person_id] < MAX_SENDING_PER_PERSON and services[service] < MAX_SENDING_PER_SERVICE
            if has_place and not is_full:
                people[each.person_id] += 1
                services[service] += 1
                chosen.append(each.no)
        return chosen

    async def _deliver(self, due: DuePush) -> None:
        """Send one notification and store what became of it."""
        payload = await self._engine.arun(Read(lambda tx: self._build_payload(tx, due)))
        if payload is None:
            await self._engine.arun(Write(lambda tx: push.delete_message(tx, due.no, due.seq)))
            return
        response = PushResponse(503)
        try:
            response = await self._send(due.subscription, payload, topic=f"s{due.session_no}")
        except InvalidInput as error:  # an address that is not allowed (any more)
            response = PushResponse(410, str(error))
        except (ConnectionLost, TimeoutError) as error:
            log.info("push_not_sent", extra={"error": str(error) or "timeout"})
        crash_point("push.sent")
        if not response.is_ok:
            log.info("push_refused", extra={"status": response.status, "session": due.session_id})
        retry_at = self._compute_retry(due, response)

        def store(tx: Transaction) -> None:
            if response.is_gone:
                push.delete_subscription(tx, due.subscription.id)
            elif retry_at is None:
                push.delete_message(tx, due.no, due.seq)
            else:
                push.retry_message(tx, due.no, due.seq, retry_at)

        await self._engine.arun(Write(store))

    def _compute_retry(self, due: DuePush, response: PushResponse) -> int | None:
        """Return when to try again; None if it was sent, or another attempt would not help."""
        can_retry = response.status in _TRY_AGAIN or response.status >= 500
        if not can_retry or due.attempts >= MAX_ATTEMPTS:
            return None
        wait = min(FIRST_RETRY * 2 ** (due.attempts - 1), MAX_RETRY)
        if response.retry_after_seconds is not None:
            wait = min(max(timedelta(seconds=response.retry_after_seconds), FIRST_RETRY), MAX_AGE)
        return to_micros(self._store.clock.now() + wait)

    def _build_payload(self, tx: Transaction, due: DuePush) -> dict[str, str] | None:
        """Return what the browser shows; None if the person has read it, or may not see the conversation any more."""
        if not (due.is_needed and self.is_enabled):
            return None
        try:
            session = sessions.get_visible(tx, due.session_id, due.person_id).session
        except SessionNotFound:
            return None
        title = session.title or session.auto_title or ""
        payload = {"kind": "answer", "session": str(session.id), "title": title[:MAX_TITLE_CHARS]}
        if self._get_rules().show_preview:
            payload["body"] = (session.preview or "")[:MAX_PREVIEW_CHARS]
        return payload

    async def _send(self, subscription: PushSubscription, payload: dict[str, str], *, topic: str) -> PushResponse:
        self._check_endpoint(subscription.endpoint)
        key, requests = await self._get_tools()
        from palaver.push.encryption import encrypt  # loaded with the key

        parts = urlsplit(subscription.endpoint)
        now_seconds = int(self._store.clock.now().timestamp())
        contact = self._get_rules().contact or self._default_contact
        body = encrypt(json.dumps(payload, ensure_ascii=False).encode(), subscription)
        headers = {
            "Authorization": key.sign_token(f"{parts.scheme}://{parts.netloc}", contact, now_seconds),
            "Content-Encoding": "aes128gcm",
            "Content-Type": "application/octet-stream",
            "TTL": str(int(MAX_AGE.total_seconds())),
            "Urgency": "normal",
            "Topic": topic,
        }
        async with (
            asyncio.timeout(SEND_SECONDS),
            requests.send("POST", subscription.endpoint, headers, body) as response,
        ):
            text = b""
            async for chunk in response.aiter_raw():
                text += chunk
                if len(text) > MAX_ERROR_BYTES:
                    break
            retry_after = response.headers.get("retry-after", "")
            seconds = int(retry_after) if retry_after.isdigit() and len(retry_after) < 7 else None
            detail = " ".join(text[:MAX_ERROR_BYTES].decode(errors="replace").split())[:300]
            return PushResponse(response.status_code, detail, seconds)

    async def _get_tools(self) -> tuple[ServerKey, GuardedRequests]:
        if self._tools is None:
            self._tools = await asyncio.to_thread(self._load_tools)  # the cryptography alone takes nine megabytes
        return self._tools

    def _load_tools(self) -> tuple[ServerKey, GuardedRequests]:
        from palaver.media.web.requests import GuardedRequests
        from palaver.push.encryption import ServerKey

        return ServerKey.from_number(self._load_key()), GuardedRequests(self._trusted_hosts)


def _get_service(endpoint: str) -> str:
    """Return the beginning of an endpoint that all endpoints at the same push service have."""
    parts = urlsplit(endpoint)
    return f"{parts.scheme}://{parts.netloc}/"
