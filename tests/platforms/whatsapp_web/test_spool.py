"""What was received is on disk until it was stored, whatever dies."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from palaver.platforms.whatsapp_web.outbound import measure_seconds
from palaver.platforms.whatsapp_web.protocol import Spool

if TYPE_CHECKING:
    from pathlib import Path


def test_events_are_taken_in_order_and_again_after_a_restart(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "received")
    numbers = [spool.append({"n": n}) for n in range(3)]
    assert numbers == sorted(set(numbers))
    assert [spool.take() for _ in range(4)] == [*((number, {"n": n}) for n, number in enumerate(numbers)), None]
    spool.remove(numbers[1])
    spool.remove(numbers[1])  # acknowledged twice
    again = Spool(tmp_path / "received")
    assert len(again) == 2
    assert [again.take(), again.take(), again.take()] == [(numbers[0], {"n": 0}), (numbers[2], {"n": 2}), None]


def test_numbers_are_never_used_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.time_ns", lambda: 100)  # a clock that stands still, or was set back
    spool = Spool(tmp_path)
    assert [spool.append({}) for _ in range(3)] == [100, 101, 102]
    assert Spool(tmp_path).append({}) == 103


def test_an_event_that_was_never_told_of_does_not_exist(tmp_path: Path) -> None:
    (tmp_path / "5.new").write_text("{half")
    assert Spool(tmp_path).take() is None
    assert list(tmp_path.iterdir()) == []


def test_an_event_is_not_put_aside_because_the_disk_fails_for_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path)
    number = spool.append({"n": 1})

    def fail(_path: Path) -> bytes:
        raise OSError(24, "Too many open files")

    with monkeypatch.context() as patch:
        patch.setattr(type(tmp_path), "read_bytes", fail)
        with pytest.raises(OSError, match="Too many open files"):
            spool.take()
    assert Spool(tmp_path).take() == (number, {"n": 1})


def test_what_is_no_event_is_put_aside(tmp_path: Path) -> None:
    (tmp_path / "5.json").write_text("{half")
    (tmp_path / "6.json").write_text("[]")
    spool = Spool(tmp_path)
    assert (spool.take(), len(spool)) == (None, 0)
    assert {path.name for path in tmp_path.iterdir()} == {"5.unreadable", "6.unreadable"}


def test_a_full_spool_says_so(tmp_path: Path) -> None:
    spool = Spool(tmp_path, max_events=2)
    numbers = [spool.append({}), spool.append({})]
    assert spool.is_full is True
    numbers.append(spool.append({}))  # what was on its way is kept, too
    spool.remove(numbers[0])
    spool.remove(numbers[1])
    assert (spool.is_full, len(Spool(tmp_path))) == (False, 1)


def test_several_threads_lose_nothing(tmp_path: Path) -> None:
    spool = Spool(tmp_path)
    threads = [threading.Thread(target=lambda: [spool.append({}) for _ in range(20)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    taken = [spool.take() for _ in range(80)]
    assert len({each[0] for each in taken if each}) == 80


def test_the_length_of_a_voice_message() -> None:
    def make_page(position: int) -> bytes:
        return b"OggS\0\0" + position.to_bytes(8, "little") + bytes(13)

    sound = make_page(0) + b"OpusHead" + make_page(48_000 * 7) + b"sound"
    assert measure_seconds(sound) == 7
    assert measure_seconds(b"OggS") is None
    assert measure_seconds(b"RIFF" + sound) is None
    assert measure_seconds(sound[: sound.rfind(b"OggS") + 6]) is None
