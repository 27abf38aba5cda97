"""Gateways that are killed: starting them, playing the platform before them, and what must be true afterwards."""

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

sys.path.insert(0, str(Path(__file__).parent))

from harness import PATIENCE, disorder, rows, wait_for_clients
from turn_child import Orders, answer_to, begins_to_act, has_acted

from palaver.services.turns.finish import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

KILLED = -signal.SIGKILL


class Nursery:
    """Starts gateways as processes; all of them are killed in the end."""

    def __init__(self) -> None:
        self._line, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("turn_child.py"))],
                stdin=theirs.fileno(),
                start_new_session=True,
            )
        self._line.settimeout(PATIENCE)
        self.alive: list[Worker] = []

    def start(self, orders: Orders) -> Worker:
        """A gateway that is at work."""
        worker = self.begin(orders)
        worker.wait_for("ready")
        return worker

    def begin(self, orders: Orders) -> Worker:
        """A gateway that is about to start, and may die before it has."""
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(
                self._line, [json.dumps({"do": "live", "orders": asdict(orders)}).encode()], [theirs.fileno()]
            )
        worker = Worker(self, int(json.loads(self._line.recv(1 << 16))), ours, orders)
        self.alive.append(worker)
        return worker

    def reap(self, pid: int) -> int:
        """Wait for the end of one; the signal that ended it as a negative number, or its exit code."""
        self._line.send(json.dumps({"do": "reap", "pid": pid}).encode())
        return int(json.loads(self._line.recv(1 << 16)))

    def clear(self) -> None:
        """Kill those that a test has left."""
        for worker in list(self.alive):
            os.kill(worker.pid, signal.SIGKILL)
            worker.end()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._line.close()


class Worker:
    """One gateway in a process of its own."""

    def __init__(self, nursery: Nursery, pid: int, line: socket.socket, orders: Orders) -> None:
        self.pid = pid
        self.orders = orders
        self.passed: set[str] = set()  # the fault points on its way, once it has told
        self._nursery = nursery
        self._line = line
        self._read = b""

    def tell(self, *orders: dict[str, Any]) -> None:
        """Give it orders; one that is dead does not hear them."""
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._line.sendall(b"".join(json.dumps(order).encode() + b"\n" for order in orders))

    def hear(self, patience: float = PATIENCE) -> dict[str, Any] | None:
        """What it says next; None when it has ended. TimeoutError when it is silent for too long."""
        until = time.monotonic() + patience
        while b"\n" not in self._read:
            ready, _, _ = select.select([self._line], [], [], max(0.0, until - time.monotonic()))
            if not ready:
                raise TimeoutError("the gateway says nothing")
            try:
                piece = self._line.recv(1 << 16)
            except ConnectionResetError:  # killed before it had read everything
                piece = b""
            if not piece:
                return None
            self._read += piece
        line, _, self._read = self._read.partition(b"\n")
        return dict(json.loads(line))

    def wait_for(self, what: str) -> dict[str, Any]:
        """What it says of that, passing over everything else."""
        while (said := self.hear()) is not None:
            if what in said:
                return said
        raise EOFError(f"the gateway has ended before it was {what}")

    def settle(self) -> None:
        """Wait until everything is answered and sent."""
        assert self.settles(), "the gateway has ended before"

    def settles(self) -> bool:
        """Whether everything is answered and sent before it ends."""
        self.tell({"do": "settle"})
        while (said := self.hear()) is not None:
            self.passed |= said.get("passed", {}).keys()
            if "settled" in said:
                return True
        return False

    def holds(self, table: str) -> str:
        """The statement that finds what it has claimed in a table."""
        return f"SELECT id FROM {table} WHERE lease_owner LIKE '%/{self.pid}/%'"

    def kill(self) -> None:
        """Without a warning."""
        os.kill(self.pid, signal.SIGKILL)
        assert self.end() == KILLED

    def stop(self) -> int:
        """With a warning; its exit code."""
        os.kill(self.pid, signal.SIGTERM)
        return self.end()

    def end(self) -> int:
        """Wait for its end: the signal as a negative number, or the exit code."""
        while (said := self.hear()) is not None:
            self.passed |= said.get("passed", {}).keys()
        status = self._nursery.reap(self.pid)
        self._line.close()
        self._nursery.alive.remove(self)
        return status


def wait_for_rows(url: str, sql: str) -> list[tuple[Any, ...]]:
    """Wait until the database has an answer."""
    until = time.monotonic() + PATIENCE
    while not (found := rows(url, sql)):
        assert time.monotonic() < until, f"nothing came of {sql}"
        time.sleep(0.002)
    return found


# -- the platform --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Said:
    """A message of a person."""

    id: str
    user: str
    text: str
    there: bool = False  # on the web, to be answered on the platform

    @property
    def stored(self) -> str:
        """Its words in the log."""
        return self.text.removeprefix("/steer ")

    @property
    def order(self) -> dict[str, Any]:
        return {"do": "write" if self.there else "say", "id": self.id, "user": self.user, "text": self.text}


@dataclass
class Platform:
    """Brings every message until it is acknowledged; what it was sent stands in a file."""

    url: str
    folder: Path
    knows_keys: bool = False
    said: list[Said] = field(default_factory=list)
    acknowledged: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))  # message → outcomes
    drafts: dict[tuple[str, int], str] = field(default_factory=dict)  # turn, attempt → what could be read at a death

    def orders(self, **others: Any) -> Orders:
        """How a gateway for this platform lives."""
        return Orders(
            url=self.url,
            sends=str(self.folder / "sends"),
            deeds=str(self.folder / "deeds"),
            knows_keys=self.knows_keys,
            **others,
        )

    def say(self, *texts: str, user: str = "ada", there: bool = False) -> list[Said]:
        """Somebody says something; it is brought by `bring`."""
        new = [Said(f"m{len(self.said) + number}", user, text, there) for number, text in enumerate(texts)]
        self.said += new
        return new

    @property
    def unacknowledged(self) -> list[Said]:
        return [said for said in self.said if said.id not in self.acknowledged]

    def bring(self, worker: Worker, *again: Said) -> None:
        """Hand over everything that is not acknowledged, and some of it again."""
        worker.tell(*(said.order for said in [*self.unacknowledged, *again]))

    def listen(self, worker: Worker) -> None:
        """Take in acknowledgements until everything is acknowledged, or the gateway has ended."""
        while self.unacknowledged and (heard := worker.hear()) is not None:
            self.note(heard)

    def note(self, heard: dict[str, Any]) -> None:
        assert "refused" not in heard, heard["error"]
        if "ack" in heard:
            self.acknowledged[heard["ack"]].append(heard["outcome"])

    def after_death(self) -> None:
        """Read what anybody could have read of unfinished answers, once all gateways are dead."""
        wait_for_clients(self.url)
        found: dict[tuple[str, int], str] = defaultdict(str)
        for turn, attempt, body in rows(self.url, _DRAFTS):
            found[turn, attempt] += "".join(piece.get("text", "") for piece in json.loads(body) if _is_text(piece))
        self.drafts |= found

    def sends(self) -> list[dict[str, Any]]:
        """What arrived at the platform."""
        return lines(self.folder / "sends")

    def deeds(self) -> Counter[str]:
        """How often the tool has acted, for each message."""
        return Counter(line["for"] for line in lines(self.folder / "deeds"))


_DRAFTS = "SELECT t.id, d.attempt, d.body FROM draft d JOIN turn t ON t.no = d.turn_no ORDER BY d.no"


def _is_text(piece: dict[str, Any]) -> bool:
    return bool(piece["kind"] == "text")


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


# -- what must be true ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Logged:
    """A message in the log."""

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
    acted: int
    steers: int


@dataclass(frozen=True)
class DeliveryRow:
    no: int
    id: str
    kind: str
    turn: str | None
    address: str
    content: str
    state: str
    receipt: str | None


_MESSAGES = """SELECT s.id, e.seq, e.role, e.content, e.platform_message_id, e.body FROM event e
    JOIN session s ON s.no = e.session_no WHERE e.kind = 'message' ORDER BY e.no"""
_ENDINGS = "SELECT kind, body FROM event WHERE kind IN ('interrupted', 'failed')"
_TURNS = """SELECT t.no, t.id, s.id, t.input_seq, t.state, t.attempt, t.acted, t.steers FROM turn t
    JOIN session s ON s.no = t.session_no ORDER BY t.no"""
_DELIVERIES = """SELECT d.no, d.id, d.kind, t.id, d.address, d.content, d.state, d.receipt FROM delivery d
    LEFT JOIN turn t ON t.no = d.turn_no ORDER BY d.no"""
_INBOUND = "SELECT message_id, receipt FROM inbound"
_USAGE = "SELECT turn_id, COUNT(*), SUM(input_tokens) FROM usage GROUP BY turn_id"


class Aftermath:
    """Everything that a settled store and the world outside it say, and whether they agree."""

    def __init__(self, platform: Platform) -> None:
        url = platform.url
        self.platform = platform
        self.messages = [_logged(row) for row in rows(url, _MESSAGES)]
        self.turns = {row[1]: TurnRow(*row) for row in rows(url, _TURNS)}
        self.deliveries = [DeliveryRow(*row) for row in rows(url, _DELIVERIES)]
        self.receipts = {message_id: json.loads(receipt) for message_id, receipt in rows(url, _INBOUND)}
        self.endings: dict[str, list[str]] = defaultdict(list)
        for kind, body in rows(url, _ENDINGS):
            self.endings[json.loads(body)["turn"]].append(kind)
        self.used = {turn: (count, tokens) for turn, count, tokens in rows(url, _USAGE)}
        self.sends = platform.sends()
        self.deeds = platform.deeds()
        self._sent: dict[str, list[DeliveryRow]] = defaultdict(list)
        for delivery in self.deliveries:
            self._sent[delivery.turn or ""].append(delivery)
        self._asked: dict[str, list[int]] = defaultdict(list)
        for receipt in self.receipts.values():
            self._asked[receipt["turn_id"]].append(receipt["seq"])
        self.answers: dict[tuple[str, int | None], list[str]] = defaultdict(list)
        for message in self.messages:
            if message.role == "assistant" and message.text:
                self.answers[message.session, message.answers].append(message.text)

    def states(self) -> Counter[str]:
        """How turns ended."""
        return Counter(turn.state for turn in self.turns.values())

    def check(self) -> None:
        """All of it."""
        assert disorder(self.platform.url) == []
        assert rows(self.platform.url, "SELECT COUNT(*) FROM draft") == [(0,)]
        self._check_messages()
        for said in self.platform.said:
            self._check_answered(said)
        self._check_turns()
        self._check_sends()
        self._check_order()
        self._check_partial_answers()

    def _check_messages(self) -> None:
        stored = Counter((message.message_id, message.text) for message in self.messages if message.role == "user")
        assert stored == Counter((said.id, said.stored) for said in self.platform.said), "each message is there once"
        assert self.receipts.keys() == {said.id for said in self.platform.said}
        for said in self.platform.said:
            outcomes = Counter(self.platform.acknowledged[said.id])
            first = sum(count for outcome, count in outcomes.items() if outcome != "duplicate")
            assert first <= 1, f"{said} was taken for new {first} times"
        assert len(self.turns) == len({receipt["turn_id"] for receipt in self.receipts.values()}), "one turn each"

    def _check_answered(self, said: Said) -> None:
        """Answered once, or visibly not."""
        seq, turn = self.receipts[said.id]["seq"], self.turns[self.receipts[said.id]["turn_id"]]
        sent = self._sent[turn.id]
        if turn.state == "done" and turn.steers and not sent:
            self._check_steered(said, turn)
            return
        assert len(sent) == 1, f"{said} has {len(sent)} deliveries"
        deeds, said_aloud = self.deeds[said.stored], self._words_of(turn)
        quoted = [quote(said.user.title(), said.stored)] if said.there else []
        assert sent[0].content.startswith("\n\n".join(quoted)), "people there see what was asked elsewhere"
        if turn.state == "done":
            assert sent[0].content == "\n\n".join([*quoted, *said_aloud])
            if said.stored.startswith("act"):
                assert said_aloud[0] == begins_to_act(said.stored)
                assert said_aloud[1].endswith(has_acted(said.stored, []))
                assert deeds == 1
            elif turn.input_seq == seq:
                assert said_aloud == [answer_to(said.stored)]
        elif turn.state == "interrupted":
            assert turn.acted, "a turn whose tool had not acted is run again"
            assert deeds <= 1
            assert said_aloud[:1] == [begins_to_act(said.stored)]
            assert _begins(has_acted(said.stored, []), "".join(said_aloud[1:]))
        else:
            assert (turn.state, turn.attempt) == ("failed", 3), "only a turn that was killed three times is given up"

    def _check_steered(self, said: Said, turn: TurnRow) -> None:
        """It was given to the run before it, which has ended."""
        seq = self.receipts[said.id]["seq"]
        takers = [
            other
            for other in self.turns.values()
            if other.session == turn.session and other.no < turn.no and other.acted and other.input_seq >= seq
        ]
        assert len(takers) == 1
        if takers[0].state == "done":
            words = " ".join(self._words_of(takers[0]))
            assert words.count(f"Noted: {said.stored}.") == 1

    def _words_of(self, turn: TurnRow) -> list[str]:
        """What the log holds of a turn: answers to its message, or to those it was told meanwhile."""
        return [
            text for seq in sorted({*self._asked[turn.id], turn.input_seq}) for text in self.answers[turn.session, seq]
        ]

    def _check_turns(self) -> None:
        for turn in self.turns.values():
            assert turn.state in {"done", "interrupted", "failed"}
            assert self.endings[turn.id] == ([] if turn.state == "done" else [turn.state]), "and the log says so, once"
            if turn.state == "done" and self._sent[turn.id]:
                assert self.used[turn.id][0] == 1, "what was used is counted once"
        assert {turn_id.partition(".")[0] for turn_id in self.used} <= self.turns.keys(), (
            "a run that was left counts too"
        )

    def _sent_for(self, turn: TurnRow) -> bool:
        return any(delivery.turn == turn.id for delivery in self.deliveries)

    def _check_sends(self) -> None:
        count = Counter(send["id"] for send in self.sends)
        known = {delivery.id: delivery for delivery in self.deliveries}
        for send in self.sends:
            delivery = known[send["id"]]
            assert (delivery.address, delivery.content) == (send["address"], send["content"])
        for delivery in self.deliveries:
            assert delivery.state in ({"sent"} if self.platform.knows_keys else {"sent", "uncertain"})
            assert (delivery.receipt == f"got {delivery.id}") == (delivery.state == "sent")
            if not self.platform.knows_keys:
                assert count[delivery.id] <= 1, "sent twice to a platform that does not know it by its key"
            if delivery.state == "sent":
                assert count[delivery.id] >= 1

    def _check_order(self) -> None:
        """Answers at one address come in the order of their questions."""
        places: dict[str, list[int]] = defaultdict(list)
        numbers = {delivery.id: delivery for delivery in self.deliveries}
        for send in _first_of_each(self.sends):
            delivery = numbers[send["id"]]
            places[delivery.address].append(self.turns[delivery.turn or ""].no)
        for address, asked in places.items():
            assert asked == sorted(asked), f"answers at {address} are out of order"

    def _check_partial_answers(self) -> None:
        """What could be read of an answer when its worker died is what is kept of it, if it was not begun again."""
        for (turn_id, attempt), read in self.platform.drafts.items():
            turn = self.turns[turn_id]
            if turn.state == "done" or turn.attempt != attempt:
                continue
            assert "".join(self._words_of(turn)) == read


def _begins(whole: str, part: str) -> bool:
    """Whether this is how it begins, apart from what people had said meanwhile."""
    part = re.sub(r"^(Noted: [^.]+\.? ?)*", "", part)
    return whole.startswith(part) or "Noted:".startswith(part)


def _first_of_each(sends: Sequence[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    seen = set()
    for send in sends:
        if send["id"] not in seen:
            seen.add(send["id"])
            yield send


def _logged(row: tuple[Any, ...]) -> Logged:
    session, seq, role, content, message_id, body = row
    return Logged(session, seq, role, content or "", message_id, json.loads(body).get("answers") if body else None)


def settled(nursery: Nursery, platform: Platform, again: Iterable[Said] = ()) -> Aftermath:
    """Start a gateway that nobody kills, bring what is left, and look at everything when it is done."""
    worker = nursery.start(platform.orders(pause=0))
    platform.bring(worker, *again)
    platform.listen(worker)
    return aftermath(platform, worker)


def aftermath(platform: Platform, *workers: Worker) -> Aftermath:
    """Let them come to an end of their work; everything there is to see then."""
    for worker in workers:
        worker.settle()
    for worker in workers:
        worker.kill()
    wait_for_clients(platform.url)
    return Aftermath(platform)
