"""The settings of a Matrix account."""

from __future__ import annotations

import re
from typing import Literal, Self
from urllib.parse import urlsplit

from pydantic import SecretStr, field_validator, model_validator

from palaver.core.http_url import is_http_url
from palaver.platforms.manifest import AccountSettings

_USER_ID = re.compile(r"@[^\s:@]+:[^\s@/]+")


class MatrixSettings(AccountSettings):
    """One account on a homeserver. It signs in with an access token, or once with a password."""

    homeserver: str  # such as https://matrix.org
    user_id: str | None = None  # such as @palaver:matrix.org; required with a password
    access_token: SecretStr | None = None
    password: SecretStr | None = None  # signs in once; the token is then kept in the account's folder
    device_name: str = "Palaver"  # as people see it in the account's list of sessions
    encryption: bool | None = None  # of encrypted rooms; None: on if the extra `matrix-encryption` is installed
    send_as: Literal["notice", "text"] = "notice"  # answers; other bots ignore notices, and so do phones

    @field_validator("homeserver")
    @classmethod
    def _check_homeserver(cls, value: str) -> str:
        value = value.strip().rstrip("/")
        if not is_http_url(value):
            raise ValueError("this is not the address of a homeserver; write it like https://matrix.org")
        parts = urlsplit(value)
        if parts.username or parts.query or parts.fragment:
            raise ValueError("the address of a homeserver has no user name, query or fragment: https://matrix.org")
        return value

    @field_validator("user_id")
    @classmethod
    def _check_user_id(cls, value: str | None) -> str | None:
        if value is None:
            return None
        value = value.strip()
        if not _USER_ID.fullmatch(value):
            raise ValueError("this is not a Matrix user id; write it like @palaver:matrix.org")
        return value

    @field_validator("access_token")
    @classmethod
    def _check_token(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None:
            return None
        token = value.get_secret_value().strip()
        if not token or re.search(r"\s", token):
            raise ValueError("an access token is one word without spaces; copy it again")
        return SecretStr(token)

    @model_validator(mode="after")
    def _check_sign_in(self) -> Self:
        if self.access_token is None and self.password is None:
            raise ValueError("set access_token (or MATRIX_ACCESS_TOKEN), or user_id and password")
        if self.access_token is None and self.user_id is None:
            raise ValueError("signing in with a password needs user_id (or MATRIX_USER_ID) too")
        return self
