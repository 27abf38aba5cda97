"""The settings, capabilities and manifest of Matrix accounts."""

from __future__ import annotations

from datetime import timedelta
from typing import Annotated, Final, Literal, Self
from urllib.parse import urlsplit

from pydantic import SecretStr, model_validator

from palaver.core.http_url import is_http_url
from palaver.core.source import Platform
from palaver.core.texts import say
from palaver.delivery.model import Capabilities, LengthUnit, Pace
from palaver.platforms.common.settings import check_text
from palaver.platforms.manifest import AccountSettings, FieldHelp, PlatformManifest

MAX_CONTENT_BYTES: Final = 44_000  # of a rendered message; splitting leaves a tenth of it free
TYPING_SECONDS: Final = 30.0
MAX_FILE_BYTES: Final = 50 * 1024 * 1024  # unless the homeserver says otherwise

CAPABILITIES: Final = Capabilities(
    max_length=MAX_CONTENT_BYTES,
    length_unit=LengthUnit.BYTES,
    can_edit=True,
    can_delete=True,
    can_react=True,
    typing_seconds=TYPING_SECONDS,
    max_file_bytes=MAX_FILE_BYTES,
    has_threads=True,
    has_groups=True,
    receives_files=True,
    receives_voice=True,
    receives_edits=True,
    edit_pace=Pace(5.0),  # each is an event, of which homeservers allow one in five seconds; sends wait when told to
    key_lifetime=timedelta(hours=12),  # Synapse remembers transaction ids for a day
)

_CHECK_USER_ID = check_text(
    r"@[^\s:@]+:[^\s@/]+",
    say("matrix.bad_user_id", "this is not a Matrix user id; write it like @palaver:matrix.org"),
)
_CHECK_TOKEN = check_text(r"\S+", say("matrix.bad_token", "an access token is one word without spaces; copy it again"))
_HOMESERVER_CHECKS = (
    check_text(
        is_http_url,
        say("matrix.bad_homeserver", "this is not the address of a homeserver; write it like https://matrix.org"),
        clean=lambda url: url.strip().rstrip("/"),
    ),
    check_text(
        lambda url: not (urlsplit(url).username or urlsplit(url).query or urlsplit(url).fragment),
        say(
            "matrix.homeserver_has_extras",
            "the address of a homeserver has no user name, query or fragment: https://matrix.org",
        ),
    ),
)


class MatrixSettings(AccountSettings):
    """One account on a homeserver. It signs in with an access token, or once with a password."""

    homeserver: Annotated[str, *_HOMESERVER_CHECKS, "The address of the homeserver, such as https://matrix.org."]
    user_id: Annotated[
        Annotated[str, _CHECK_USER_ID] | None, "The account, such as @palaver:matrix.org; needed with a password."
    ] = None
    access_token: Annotated[
        Annotated[SecretStr, _CHECK_TOKEN] | None,
        FieldHelp("The access token of the account.", "Element: Settings, Help & About, Access Token."),
    ] = None
    password: Annotated[SecretStr | None, "Signs in once; the token is then kept."] = None  # in the account's folder
    device_name: Annotated[str, "How the session is called in the account's list of sessions."] = "Palaver"
    encryption: Annotated[
        bool | None, "Whether the agent takes part in encrypted rooms; empty: if it is installed."
    ] = None
    send_as: Annotated[Literal["notice", "text"], "Whether answers are notices, which other bots ignore, or texts."] = (
        "notice"  # phones ignore notices, too
    )

    @model_validator(mode="after")
    def _check_sign_in(self) -> Self:
        if self.access_token is None and self.password is None:
            raise ValueError(
                say("matrix.credentials_missing", "set access_token (or MATRIX_ACCESS_TOKEN), or user_id and password")
            )
        if self.access_token is None and self.user_id is None:
            raise ValueError(
                say("matrix.user_id_missing", "signing in with a password needs user_id (or MATRIX_USER_ID) too")
            )
        return self


MANIFEST = PlatformManifest(
    platform=Platform.MATRIX,
    settings=MatrixSettings,
    create="palaver.platforms.matrix.adapter:MatrixAdapter",
    capabilities=CAPABILITIES,
    extra="matrix",
    modules=("httpx2", "markdown_it", "nh3"),
    environment={
        "MATRIX_HOMESERVER": "homeserver",
        "MATRIX_USER_ID": "user_id",
        "MATRIX_ACCESS_TOKEN": "access_token",
        "MATRIX_PASSWORD": "password",
    },
    addresses=("homeserver",),
    summary="An account on a Matrix homeserver: rooms, direct chats, threads, files, encrypted rooms.",
    steps=(
        "Create an account for the agent on your homeserver.",
        "Enter the address of the homeserver, and the access token or the user id and password.",
        "Test it, save it, then invite the account to a room.",
    ),
)
