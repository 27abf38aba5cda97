"""Lease owners: which processes are certainly dead."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from palaver.core import background as process_identity

if TYPE_CHECKING:
    import pytest


def test_a_process_hidden_by_proc_is_not_considered_dead(monkeypatch: pytest.MonkeyPatch) -> None:
    owner = process_identity.create_lease_owner()
    assert not process_identity.is_owner_dead(owner)
    host_id = process_identity._read_host_id()
    monkeypatch.setattr(process_identity, "_read_host_id", lambda: host_id)
    monkeypatch.setattr(process_identity, "_PROC_PATH", Path("/nowhere"))
    assert not process_identity.is_owner_dead(owner)
    parts = owner.split("/")
    parts[1] = str(2**22 + 1)  # higher than any process id
    assert process_identity.is_owner_dead("/".join(parts))
