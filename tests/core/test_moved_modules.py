"""What the guides said before the modules moved is still true."""

from __future__ import annotations

import importlib

import pytest

from palaver import PalaverError
from palaver.core import errors
from palaver.core.moved_modules import MOVED_MODULES
from palaver.core.source import Platform, SessionSource
from palaver.delivery.adapter import AccountInfo, Adapter
from palaver.delivery.model import Capabilities
from palaver.gateway.intake import Intake
from palaver.sessions.inbound import Cursor, Inbound

# The imports of the guides, as they were.
DOCUMENTED: dict[str, dict[str, object]] = {
    "palaver.domain.errors": {"PalaverError": PalaverError, "SessionNotFound": errors.SessionNotFound},
    "palaver.domain.capabilities": {"Capabilities": Capabilities},
    "palaver.domain.inbound": {"Inbound": Inbound},
    "palaver.domain.platform_updates": {"Cursor": Cursor},
    "palaver.domain.source": {"Platform": Platform, "SessionSource": SessionSource},
    "palaver.services.platforms.adapter": {"AccountInfo": AccountInfo, "Adapter": Adapter},
    "palaver.services.platforms.intake": {"Intake": Intake},
}


@pytest.mark.parametrize("module", DOCUMENTED)
def test_a_documented_module_has_the_same_classes_under_its_old_name(module: str) -> None:
    loaded = importlib.import_module(module)
    assert {name: getattr(loaded, name) for name in DOCUMENTED[module]} == DOCUMENTED[module]


def test_every_old_name_can_be_imported() -> None:
    for name in MOVED_MODULES:
        importlib.import_module(name)


def test_names_that_were_never_documented_are_not_found() -> None:
    for name in ("palaver.domain.titles", "palaver.services.store", "palaver.storage"):
        with pytest.raises(ModuleNotFoundError):
            importlib.import_module(name)
