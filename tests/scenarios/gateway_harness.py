"""Gateway processes that tests kill: starting them, the platform in front of them, and what must be true afterwards."""

from __future__ import annotations

import contextlib
import json
import os
import re
import select
import signal
import socket
import subprocess
import sys
import time
from collections import Counter, defaultdict
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from palaver.sessions.events import Compaction
from palaver.sessions.turn import MAX_TURN_CRASHES
from palaver.turns.answer_recorder import format_quote
from palaver.turns.compaction import format_compaction_notice
from scenarios.gateway_process import (
    CALLS_FILE,
    ESTIMATED_TOKENS,
    HELD_TOKENS,
    USAGE,
    GatewayOptions,
    format_plain_answer,
    format_text_after_action,
    format_text_before_action,
    split_text,
)
from scenarios.store_harness import (
    TIMEOUT_SECONDS,
    fetch_results,
    fetch_rows,
    find_inconsistencies,
    wait_for_disconnect,
)
from support.warm_process import TESTS_FOLDER

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

KILLED = -signal.SIGKILL


class GatewayLauncher:
    """Starts gateway processes; all of them are killed at the end."""

    def __init__(self) -> None:
        self._control, other_end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with other_end:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("gateway_process.py"))],
                stdin=other_end.fileno(),
                start_new_session=True,
                env=os.environ | {"PYTHONPATH": TESTS_FOLDER},
            )
        self._control.settimeout(TIMEOUT_SECONDS)
        self.running: list[GatewayProcess] = []

    def start(self, options: GatewayOptions) -> GatewayProcess:
        """Start a gateway and wait until it is ready."""
        gateway = self.launch(options)
        gateway.wait_for("ready")
        return gateway

    def launch(self, options: GatewayOptions) -> GatewayProcess:
        """Start a gateway without waiting: it may die before it is ready."""
        connection, other_end = socket.socketpair()
        request = json.dumps({"action": "launch", "options": asdict(options)}).encode()
        with other_end:
            socket.send_fds(self._control, [request], [other_end.fileno()])
        gateway = GatewayProcess(self, int(json.loads(self._control.recv(1 << 16))), connection)
        self.running.append(gateway)
        return gateway

    def wait_for_exit(self, pid: int) -> int:
        """Wait for the end of a process; return its exit code, or the signal that killed it as a negative number."""
        self._control.send(json.dumps({"action": "wait", "pid": pid}).encode())
        return int(json.loads(self._control.recv(1 << 16)))

    def kill_all(self) -> None:
        for gateway in list(self.running):
            os.kill(gateway.pid, signal.SIGKILL)
            gateway.wait_for_exit()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._control.close()


class GatewayProcess:
    """One gateway in a process of its own."""

    def __init__(self, launcher: GatewayLauncher, pid: int, connection: socket.socket) -> None:
        self.pid = pid
        self.passed_points: set[str] = set()  # crash points that it has passed, as far as it has reported
        self._launcher = launcher
        self._connection = connection
        self._buffer = b""

    def request(self, *requests: dict[str, Any]) -> None:
        """Send requests; a dead process ignores them."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._connection.sendall(b"".join(json.dumps(request).encode() + b"\n" for request in requests))

    def read_report(self, timeout_seconds: float = TIMEOUT_SECONDS) -> dict[str, Any] | None:
        """Read the next report; None when the process has ended. Raises TimeoutError when there is none in time."""
        deadline = time.monotonic() + timeout_seconds
        while b"\n" not in self._buffer:
            ready, _, _ = select.select([self._connection], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError("the gateway reports nothing")
            try:
                data = self._connection.recv(1 << 16)
            except ConnectionResetError:  # it was killed before it had read everything
                data = b""
            if not data:
                return None
            self._buffer += data
        line, _, self._buffer = self._buffer.partition(b"\n")
        return dict(json.loads(line))

    def wait_for(self, key: str) -> dict[str, Any]:
        """Wait for the next report with this key, and skip all others."""
        while (report := self.read_report()) is not None:
            if key in report:
                return report
        raise EOFError(f"the gateway has ended before it reported {key!r}")

    def wait_until_idle(self) -> None:
        """Wait until everything is answered and sent."""
        assert self.becomes_idle(), "the gateway has ended before it was idle"

    def becomes_idle(self) -> bool:
        """Wait until everything is answered and sent, or the gateway has ended; return whether it is idle."""
        self.request({"action": "wait_until_idle"})
        while (report := self.read_report()) is not None:
            self.passed_points |= report.get("passed_points", {}).keys()
            if "idle" in report:
                return True
        return False

    def query_claims(self, table: str) -> str:
        """Return the statement that finds the rows of a table that this process has claimed."""
        return f"SELECT id FROM {table} WHERE lease_owner LIKE '%/{self.pid}/%'"

    def kill(self) -> None:
        os.kill(self.pid, signal.SIGKILL)
        assert self.wait_for_exit() == KILLED

    def stop(self) -> int:
        """Ask it to stop, and return its exit code."""
        os.kill(self.pid, signal.SIGTERM)
        return self.wait_for_exit()

    def wait_for_exit(self) -> int:
        """Wait for its end; return its exit code, or the signal that killed it as a negative number."""
        while (report := self.read_report()) is not None:
            self.passed_points |= report.get("passed_points", {}).keys()
        exit_code = self._launcher.wait_for_exit(self.pid)
        self._connection.close()
        self._launcher.running.remove(self)
        return exit_code


def wait_for_rows(url: str, sql: str) -> list[tuple[Any, ...]]:
    """Wait until a query returns rows."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not (rows := fetch_rows(url, sql)):
        assert time.monotonic() < deadline, f"no rows for {sql}"
        time.sleep(0.002)
    return rows


# -- the platform --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class UserMessage:
    """A message of a person, or a slash command that only reads."""

    id: str
    user: str
    text: str
    is_from_web: bool = False  # and to be answered on the platform

    @property
    def is_command(self) -> bool:
        return self.text.startswith("/") and not self.text.startswith("/steer ")

    @property
    def stored_text(self) -> str:
        return self.text.removeprefix("/steer ")

    @property
    def request(self) -> dict[str, Any]:
        action = "send_from_web" if self.is_from_web else "send"
        return {"action": action, "id": self.id, "user": self.user, "text": self.text}


@dataclass
class FakePlatform:
    """Sends every message again until a gateway has acknowledged it; the messages it received are in a file."""

    url: str
    folder: Path
    has_idempotency_keys: bool = False
    streams: bool = False
    messages: list[UserMessage] = field(default_factory=list)
    outcomes: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # by message, as acknowledged
    # The text of each unfinished answer, by turn and attempt, that followers could read when its worker died.
    drafts: dict[tuple[str, int], str] = field(default_factory=dict)

    def build_options(self, **options: Any) -> GatewayOptions:
        """Build the options of a gateway that is connected to this platform."""
        return GatewayOptions(
            url=self.url,
            sends_path=str(self.folder / "sends"),
            actions_path=str(self.folder / "actions"),
            has_idempotency_keys=self.has_idempotency_keys,
            streams=self.streams,
            **options,
        )

    def add_messages(self, *texts: str, user: str = "ada", is_from_web: bool = False) -> list[UserMessage]:
        """Add messages of a person; `send_messages` hands them to a gateway."""
        new = [
            UserMessage(f"m{len(self.messages) + number}", user, text, is_from_web) for number, text in enumerate(texts)
        ]
        self.messages += new
        return new

    @property
    def unacknowledged(self) -> list[UserMessage]:
        return [message for message in self.messages if message.id not in self.outcomes]

    def send_messages(self, gateway: GatewayProcess, *duplicates: UserMessage) -> None:
        """Send everything that is not acknowledged, and some messages once more."""
        gateway.request(*(message.request for message in [*self.unacknowledged, *duplicates]))

    def wait_for_acknowledgements(self, gateway: GatewayProcess) -> None:
        """Wait until all messages are acknowledged, or the gateway has ended."""
        while self.unacknowledged and (report := gateway.read_report()) is not None:
            self.handle_report(report)

    def handle_report(self, report: dict[str, Any]) -> None:
        assert "rejected" not in report, report["error"]
        if "accepted" in report:
            self.outcomes[report["accepted"]].append(report["outcome"])

    def save_drafts(self) -> None:
        """Remember the drafts that are in the store, once all gateways are dead."""
        wait_for_disconnect(self.url)
        drafts: dict[tuple[str, int], str] = defaultdict(str)
        for turn, attempt, body in fetch_rows(self.url, _DRAFTS):
            drafts[turn, attempt] += "".join(
                piece.get("text", "") for piece in json.loads(body) if piece["kind"] == "text"
            )
        self.drafts |= drafts

    def load_sends(self) -> list[dict[str, Any]]:
        """Load what arrived at the platform."""
        return _load_lines(self.folder / "sends")

    def count_actions(self) -> Counter[str]:
        """Count how often the tool has acted for each message."""
        return Counter(line["question"] for line in _load_lines(self.folder / "actions"))


_DRAFTS = "SELECT t.id, d.attempt, d.body FROM draft d JOIN turn t ON t.no = d.turn_no ORDER BY d.no"


def _load_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# -- what must be true at the end ----------------------------------------------------------------------------


@dataclass(frozen=True)
class LoggedMessage:
    session: str
    seq: int
    role: str
    text: str
    message_id: str | None
    answers: int | None


@dataclass(frozen=True)
class TurnRow:
    no: int
    id: str
    session: str
    input_seq: int
    state: str
    attempt: int
    has_side_effects: int
    is_steering: int
    crash_count: int


@dataclass(frozen=True)
class DeliveryRow:
    no: int
    id: str
    kind: str
    turn: str | None
    address: str
    content: str
    state: str
    part_states: str  # such as "sent,sent"

    @property
    def parts(self) -> dict[str, str]:
        """The messages that it becomes, by key."""
        return {f"{self.id}.{number}": body for number, body in enumerate(split_text(self.content), 1)}


_MESSAGES = """SELECT s.id, e.seq, e.role, e.content, e.platform_message_id, e.body FROM event e
    JOIN session s ON s.no = e.session_no WHERE e.kind = 'message' ORDER BY e.no"""
_END_EVENTS = "SELECT kind, body FROM event WHERE kind IN ('turn_interrupted', 'turn_failed')"
_TURNS = """SELECT t.no, t.id, s.id, t.input_seq, t.state, t.attempt, t.has_side_effects, t.is_steering,
    t.crash_count FROM turn t
    JOIN session s ON s.no = t.session_no ORDER BY t.no"""
_DELIVERIES = """SELECT d.no, d.id, d.kind, t.id, d.address, d.content, d.state,
    (SELECT string_agg(p.state, ',') FROM delivery_part p WHERE p.delivery_no = d.no) FROM delivery d
    LEFT JOIN turn t ON t.no = d.turn_no ORDER BY d.no"""
_INBOUND = "SELECT message_id, receipt FROM inbound_message"
_COMPACTIONS = "SELECT body FROM event WHERE kind = 'compacted'"
_USAGE = "SELECT turn_id, COUNT(*), SUM(input_tokens) FROM usage GROUP BY turn_id"


class FinalState:
    """Everything in an idle store and in the world outside of it, and the check that they agree."""

    def __init__(self, platform: FakePlatform) -> None:
        self.platform = platform
        messages, turns, deliveries, receipts, ends, compactions, usage = fetch_results(
            platform.url, _MESSAGES, _TURNS, _DELIVERIES, _INBOUND, _END_EVENTS, _COMPACTIONS, _USAGE
        )
        self.messages = [_build_logged_message(row) for row in messages]
        self.turns = {row[1]: TurnRow(*row) for row in turns}
        self.deliveries = [DeliveryRow(*row) for row in deliveries]
        self.receipts = {message_id: json.loads(receipt) for message_id, receipt in receipts}
        self.end_events: dict[str, list[str]] = defaultdict(list)  # by turn
        for kind, body in ends:
            self.end_events[json.loads(body)["turn"]].append(kind)
        self.compaction_notices = [
            format_compaction_notice(
                Compaction(seq=0, summary=facts["summary"], first_kept_seq=0, message_count=facts["message_count"])
            )
            for (body,) in compactions
            if (facts := json.loads(body))
        ]
        self.usage = {turn: (count, tokens) for turn, count, tokens in usage}
        lines = platform.load_sends()
        self.sends = [line for line in lines if line["action"] != "delete" and not line["is_preview"]]
        visible_messages = _find_visible_messages(lines)
        self.visible_previews = [line["id"] for line in visible_messages if line["is_preview"]]
        self.visible_keys = {line["key"] for line in visible_messages}
        self.action_counts = platform.count_actions()
        self._deliveries_by_turn: dict[str, list[DeliveryRow]] = defaultdict(list)
        for delivery in self.deliveries:
            self._deliveries_by_turn[delivery.turn or ""].append(delivery)
        self._input_seqs: dict[str, list[int]] = defaultdict(list)  # by turn
        for receipt in self.receipts.values():
            if "turn_id" in receipt:
                self._input_seqs[receipt["turn_id"]].append(receipt["seq"])
        self.answers: dict[tuple[str, int | None], list[str]] = defaultdict(list)  # by session and message
        for message in self.messages:
            if message.role == "assistant" and message.text:
                self.answers[message.session, message.answers].append(message.text)

    def count_turn_states(self) -> Counter[str]:
        return Counter(turn.state for turn in self.turns.values())

    def check(self) -> None:
        assert find_inconsistencies(self.platform.url) == []
        assert fetch_rows(self.platform.url, "SELECT COUNT(*) FROM draft") == [(0,)]
        self._check_messages()
        for message in self.platform.messages:
            if not message.is_command:
                self._check_answer(message)
        self._check_command_replies()
        self._check_turns()
        self._check_sends()
        self._check_previews()
        self._check_order()
        self._check_partial_answers()
        self._check_calls()

    def _check_calls(self) -> None:
        """Check that every call to the model is counted and recorded once, and nothing is held any more."""
        calls, held, windows, recorded = fetch_results(
            self.platform.url,
            "SELECT id FROM model_call",
            "SELECT subject FROM budget_window WHERE held_nanos <> 0 OR held_tokens <> 0",
            "SELECT SUM(used_nanos), SUM(used_tokens) FROM budget_window WHERE scope = 'all' AND period = 'day'",
            "SELECT SUM(cost_nanos), SUM(input_tokens + output_tokens) FROM usage",
        )
        assert calls == []
        assert held == []
        assert windows == recorded
        tokens = int(windows[0][1] or 0)
        lost, rest = divmod(tokens, HELD_TOKENS)
        stopped, rest = divmod(rest, ESTIMATED_TOKENS)
        counted = lost + stopped + rest // (USAGE.input_tokens + USAGE.output_tokens)
        made = len(_load_lines(self.platform.folder / CALLS_FILE))
        assert made <= counted <= made + lost, "a process may die after a call is held, and before it is made"

    def _check_messages(self) -> None:
        stored = Counter((message.message_id, message.text) for message in self.messages if message.role == "user")
        sent = Counter(
            (message.id, message.stored_text) for message in self.platform.messages if not message.is_command
        )
        assert stored == sent, "each message is stored once"
        assert self.receipts.keys() == {message.id for message in self.platform.messages}
        for message in self.platform.messages:
            outcomes = Counter(self.platform.outcomes[message.id])
            accepted = sum(count for outcome, count in outcomes.items() if outcome != "duplicate")
            assert accepted <= 1, f"{message} was accepted as new {accepted} times"
        files = [message for message in self.platform.messages if message.text.startswith("file")]
        assert fetch_rows(self.platform.url, "SELECT COUNT(*) FROM attachment_use") == [(len(files),)]
        turn_ids = {receipt["turn_id"] for receipt in self.receipts.values() if "turn_id" in receipt}
        assert len(self.turns) == len(turn_ids), "each message has one turn"

    def _check_answer(self, message: UserMessage) -> None:
        """Check that a message was answered once, or that its failure is visible."""
        seq, turn = self.receipts[message.id]["seq"], self.turns[self.receipts[message.id]["turn_id"]]
        deliveries = self._deliveries_by_turn[turn.id]
        question = message.stored_text
        if turn.state == "done" and turn.is_steering and not deliveries:
            self._check_steering(message, turn)
            return
        assert len(deliveries) == 1, f"{message} has {len(deliveries)} deliveries"
        action_count, texts = self.action_counts[question], self._list_answer_texts(turn)
        quotes = [format_quote(message.user.title(), question)] if message.is_from_web else []
        assert deliveries[0].content.startswith("\n\n".join(quotes)), "people in the chat see the question"
        if turn.state == "done":
            assert deliveries[0].content == "\n\n".join([*quotes, *texts])
            if question.startswith("act"):
                assert texts[0] == format_text_before_action(question)
                assert texts[1].endswith(format_text_after_action(question, []))
                assert action_count == 1
            elif turn.input_seq == seq:
                assert texts == [format_plain_answer(question)]
        elif turn.state == "interrupted":
            assert turn.has_side_effects, "a turn without side effects runs again"
            assert action_count <= 1
            assert texts[:1] == [format_text_before_action(question)]
            assert _is_prefix(format_text_after_action(question, []), "".join(texts[1:]))
        else:
            assert (turn.state, turn.crash_count) == ("failed", MAX_TURN_CRASHES - 1), (
                "a turn fails only at its last crash"
            )

    def _check_command_replies(self) -> None:
        commands = [message for message in self.platform.messages if message.is_command]
        notices = Counter(delivery.content for delivery in self._deliveries_by_turn[""])
        replies = Counter(self.receipts[command.id]["reply"] for command in commands)
        assert notices == replies + Counter(self.compaction_notices), "one for each command and each summary"

    def _check_steering(self, message: UserMessage, turn: TurnRow) -> None:
        """Check that a message which steered another run was taken by exactly one."""
        seq = self.receipts[message.id]["seq"]
        steered = [
            other
            for other in self.turns.values()
            if other.session == turn.session
            and other.no < turn.no
            and other.has_side_effects
            and other.input_seq >= seq
        ]
        assert len(steered) == 1
        if steered[0].state == "done":
            text = " ".join(self._list_answer_texts(steered[0]))
            assert text.count(f"Noted: {message.stored_text}.") == 1

    def _list_answer_texts(self, turn: TurnRow) -> list[str]:
        """List what the log holds of a turn: answers to its own message, and to those that steered it."""
        seqs = sorted({*self._input_seqs[turn.id], turn.input_seq})
        return [text for seq in seqs for text in self.answers[turn.session, seq]]

    def _check_turns(self) -> None:
        for turn in self.turns.values():
            assert turn.state in {"done", "interrupted", "failed"}
            expected = [] if turn.state == "done" else [f"turn_{turn.state}"]
            assert self.end_events[turn.id] == expected, "the log shows once how the turn ended"
            if turn.state == "done" and self._deliveries_by_turn[turn.id]:
                assert self.usage[turn.id][0] == 1, "usage is recorded once"
        turn_ids = {turn_id.partition(".")[0] for turn_id in self.usage}  # "t_1.2" is the usage of an abandoned run
        assert turn_ids <= self.turns.keys()

    def _check_sends(self) -> None:
        sent_keys = {send["key"] for send in self.sends}
        send_counts = Counter(send["key"] for send in self.sends if send["action"] == "send")
        deliveries = {delivery.id: delivery for delivery in self.deliveries}
        for send in self.sends:
            delivery = deliveries[_get_delivery_id(send)]
            assert (delivery.address, delivery.parts[send["key"]]) == (send["address"], send["body"])
        has_keys = self.platform.has_idempotency_keys
        for delivery in self.deliveries:
            assert delivery.state in ({"sent"} if has_keys else {"sent", "uncertain"})
            states = set(delivery.part_states.split(","))
            assert states <= {"sent", "uncertain"}, f"{delivery} has ended with a part that has not"
            assert ("uncertain" in states) == (delivery.state == "uncertain")
            if not has_keys:
                assert all(send_counts[key] <= 1 for key in delivery.parts), "sent twice to a platform without keys"
            if delivery.state == "sent":
                assert delivery.parts.keys() <= sent_keys

    def _check_previews(self) -> None:
        """Check that no growing message is left beside its answer, or in its place."""
        if self.platform.has_idempotency_keys:
            assert self.visible_previews == []
            assert all(delivery.parts.keys() <= self.visible_keys for delivery in self.deliveries)

    def _check_order(self) -> None:
        """Check that the answers at each address arrived in the order of their questions."""
        turn_numbers: dict[str, list[int]] = defaultdict(list)  # by address
        deliveries = {delivery.id: delivery for delivery in self.deliveries}
        for send in _skip_duplicates(self.sends):
            delivery = deliveries[_get_delivery_id(send)]
            if delivery.turn is not None:
                turn_numbers[delivery.address].append(self.turns[delivery.turn].no)
        for address, numbers in turn_numbers.items():
            assert numbers == sorted(numbers), f"answers at {address} are out of order"

    def _check_partial_answers(self) -> None:
        """Check that an answer which was not started again is stored as followers saw it when its worker died."""
        for (turn_id, attempt), text in self.platform.drafts.items():
            turn = self.turns[turn_id]
            if turn.state == "done" or turn.attempt != attempt:
                continue
            assert "".join(self._list_answer_texts(turn)) == text


def _is_prefix(text: str, prefix: str) -> bool:
    """Whether `text` starts with `prefix`, not counting the steering messages that the agent has noted."""
    prefix = re.sub(r"^(Noted: [^.]+\.? ?)*", "", prefix)
    return text.startswith(prefix) or "Noted:".startswith(prefix)


def _find_visible_messages(lines: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the messages that people see at the end, each as it was last changed, on a platform with keys.

    Such a platform ignores a message whose key it has seen, even if the message was deleted, and no platform edits a
    message that was deleted. A process that was paused may try both when it continues.
    """
    messages: dict[str, dict[str, Any]] = {}  # by id; one that was deleted stays
    for line in lines:
        last = messages.get(line["id"])
        is_deleted = last is not None and last["action"] == "delete"
        if not is_deleted and (last is None or line["action"] != "send"):
            messages[line["id"]] = line
    return [line for line in messages.values() if line["action"] != "delete"]


def _get_delivery_id(send: dict[str, Any]) -> str:
    """Return the id of the delivery that a message is a part of."""
    return str(send["key"]).partition(".")[0]


def _skip_duplicates(sends: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    seen = set()
    for send in sends:
        if send["key"] not in seen:
            seen.add(send["key"])
            yield send


def _build_logged_message(row: tuple[Any, ...]) -> LoggedMessage:
    session, seq, role, content, message_id, body = row
    answers = json.loads(body).get("answers") if body else None
    return LoggedMessage(session, seq, role, content or "", message_id, answers)


def finish_all_work(
    launcher: GatewayLauncher, platform: FakePlatform, duplicates: Iterable[UserMessage] = ()
) -> FinalState:
    """Start a gateway that is not killed, send it what is left, and load the final state when it is idle."""
    gateway = launcher.start(platform.build_options(word_seconds=0))
    platform.send_messages(gateway, *duplicates)
    platform.wait_for_acknowledgements(gateway)
    return load_final_state(platform, gateway)


def load_final_state(platform: FakePlatform, *gateways: GatewayProcess) -> FinalState:
    """Wait until all gateways are idle, kill them, and load the final state."""
    for gateway in gateways:
        gateway.wait_until_idle()
    for gateway in gateways:
        gateway.kill()
    wait_for_disconnect(platform.url)
    return FinalState(platform)
