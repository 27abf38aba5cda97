"""The settings of a Matrix account, and how mistakes are explained."""

from __future__ import annotations

import tomllib
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from pydantic import ValidationError

from palaver.core.source import Platform
from palaver.platforms.manifest import ENTRY_POINT_GROUP
from palaver.platforms.matrix.manifest import MANIFEST, MatrixSettings

VALID = {"homeserver": "https://matrix.org/", "access_token": "syt_YWRh_abcdef"}


def test_a_token_or_a_password_is_enough() -> None:
    assert MatrixSettings.model_validate(VALID).homeserver == "https://matrix.org"
    password = {"homeserver": "http://localhost:8008", "user_id": "@palaver:localhost", "password": "correct horse"}
    assert MatrixSettings.model_validate(password).encryption is None


def test_secrets_are_not_shown() -> None:
    assert "abcdef" not in repr(MatrixSettings.model_validate(VALID))


@pytest.mark.parametrize(
    ("changes", "explanation"),
    [
        ({"homeserver": "matrix.org"}, "write it like https://matrix.org"),
        ({"homeserver": "<your homeserver>"}, "write it like https://matrix.org"),
        ({"homeserver": "https://matrix.org:99999"}, "write it like https://matrix.org"),
        ({"homeserver": "https://[matrix.org"}, "write it like https://matrix.org"),
        ({"homeserver": "https://ada:secret@matrix.org"}, "has no user name"),
        ({"user_id": "palaver"}, "write it like @palaver:matrix.org"),
        ({"access_token": ""}, "one word"),
        ({"access_token": "syt_a b"}, "one word"),
        ({"access_token": None}, "set access_token"),
        ({"access_token": None, "password": "correct horse"}, "needs user_id"),
        ({"send_as": "image"}, "'notice' or 'text'"),
        ({"tokn": "x"}, "Extra inputs"),
    ],
)
def test_mistakes_are_explained(changes: dict[str, object], explanation: str) -> None:
    with pytest.raises(ValidationError, match=explanation):
        MatrixSettings.model_validate(VALID | changes)


def test_it_is_found_like_the_platforms_of_third_parties() -> None:
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text("utf-8"))["project"]
    declared = project["entry-points"][ENTRY_POINT_GROUP]["matrix"]
    assert EntryPoint("matrix", declared, ENTRY_POINT_GROUP).load() is MANIFEST
    assert MANIFEST.extra in project["optional-dependencies"]
    assert MANIFEST.platform == Platform.MATRIX
    assert set(MANIFEST.environment.values()) <= set(MatrixSettings.model_fields)
