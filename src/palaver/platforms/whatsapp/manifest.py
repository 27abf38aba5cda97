"""The settings, capabilities and manifest of WhatsApp business numbers."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import BeforeValidator, SecretStr, field_validator

from palaver.core.source import Platform
from palaver.core.texts import say
from palaver.delivery.model import Capabilities, Pace
from palaver.platforms.common.settings import check_api_url, check_text
from palaver.platforms.manifest import AccountSettings, FieldHelp, PlatformManifest

MAX_DOCUMENT_BYTES: Final = 100 * 1024 * 1024
SENDS_PER_SECOND: Final = 80

CAPABILITIES: Final = Capabilities(
    max_length=4096,
    can_react=True,
    typing_seconds=25.0,
    max_buttons=10,
    max_file_bytes=MAX_DOCUMENT_BYTES,
    receives_files=True,
    receives_voice=True,
    receives_edits=True,
    reply_window=timedelta(hours=24),
    pace_per_chat=Pace(6.0, burst=5),  # in the long run; a few may follow each other
    pace_per_account=Pace(1 / SENDS_PER_SECOND, burst=SENDS_PER_SECOND),
)

DEFAULT_API_URL = "https://graph.facebook.com"
DEFAULT_API_VERSION = "v24.0"
_API_VERSION = re.compile(r"v[0-9]{1,3}\.[0-9]{1,2}")
_CHECK_ACCESS_TOKEN = check_text(
    r"[A-Za-z0-9_.|-]{20,1024}",
    say(
        "whatsapp.not_access_token",
        "This is not an access token of Meta. In the Meta Business Suite open Settings, System users,"
        " choose yours, then Generate token with the permissions whatsapp_business_messaging and"
        " whatsapp_business_management.",
    ),
)
_CHECK_APP_SECRET = check_text(
    "[0-9a-f]{32}",
    say(
        "whatsapp.bad_app_secret",
        "This is not an app secret: it has 32 digits and letters from a to f. It is shown at"
        " developers.facebook.com: your app, App settings, Basic, App secret.",
    ),
    clean=lambda secret: secret.strip().lower(),
)
_CHECK_VERIFY_TOKEN = check_text(
    "[A-Za-z0-9_.~-]{16,128}",
    say(
        "whatsapp.bad_verify_token",
        "The verify token needs 16 to 128 letters, digits, '-', '_', '.' or '~'. Make one: openssl rand -hex 16",
    ),
)
_CHECK_ID = check_text(
    "[0-9]{5,25}",
    say(
        "whatsapp.not_id",
        "This id of Meta is a number with 5 to 25 digits. It is shown at developers.facebook.com:"
        " your app, WhatsApp, API Setup.",
    ),
)
MetaId = Annotated[str, BeforeValidator(str), _CHECK_ID]


class WhatsAppSettings(AccountSettings):
    """One business number of a WhatsApp Business Account."""

    access_token: Annotated[SecretStr, _CHECK_ACCESS_TOKEN]  # of a system user: it does not expire
    app_secret: Annotated[SecretStr, _CHECK_APP_SECRET]  # signs what Meta sends to the webhook
    verify_token: Annotated[SecretStr, _CHECK_VERIFY_TOKEN]  # chosen by you; Meta sends it once, to set up the webhook
    phone_number_id: MetaId  # of the number that answers: not the number itself
    business_account_id: MetaId | None = None  # of the WhatsApp Business Account; to check the webhook's subscription
    api_url: Annotated[str, check_api_url("a Graph API server", DEFAULT_API_URL)] = DEFAULT_API_URL
    api_version: str = DEFAULT_API_VERSION

    @field_validator("api_version")
    @classmethod
    def _check_api_version(cls, value: str) -> str:
        if not _API_VERSION.fullmatch(value):
            raise ValueError(
                say(
                    "whatsapp.bad_api_version",
                    "{value} is not a version of the Graph API; use one such as {example}.",
                    value=repr(value),
                    example=DEFAULT_API_VERSION,
                )
            )
        return value

    @property
    def api_host(self) -> str:
        return (urlsplit(self.api_url).hostname or "").lower()


MANIFEST = PlatformManifest(
    platform=Platform.WHATSAPP,
    settings=WhatsAppSettings,
    create="palaver.platforms.whatsapp.adapter:WhatsAppAdapter",
    capabilities=CAPABILITIES,
    extra="whatsapp",
    modules=("httpx2", "markdown_it"),
    environment={
        "WHATSAPP_ACCESS_TOKEN": "access_token",
        "WHATSAPP_APP_SECRET": "app_secret",
        "WHATSAPP_VERIFY_TOKEN": "verify_token",
        "WHATSAPP_PHONE_NUMBER_ID": "phone_number_id",
        "WHATSAPP_BUSINESS_ACCOUNT_ID": "business_account_id",
        "WHATSAPP_API_URL": "api_url",
    },
    addresses=("api_url",),
    summary="A WhatsApp business number through Meta's Cloud API: direct messages",
    steps=(
        "Create a business app with WhatsApp at developers.facebook.com.",
        "Create a system user with a permanent token for the app.",
        "Enter the token, the app secret, the id of the phone number, and a verify token of your choice.",
        "Save it, then enter the webhook address of this server and the verify token at Meta.",
    ),
    help={
        "access_token": FieldHelp(
            "The token of a system user: it does not expire.", "Meta Business settings, System users."
        ),
        "app_secret": FieldHelp(
            "Signs what Meta sends to the webhook.", "developers.facebook.com, your app, App settings."
        ),
        "verify_token": FieldHelp("Chosen by you; Meta sends it once, when the webhook is set up."),
        "phone_number_id": FieldHelp(
            "The id of the number that answers, not the number itself.",
            "developers.facebook.com, your app, WhatsApp, API Setup.",
        ),
        "business_account_id": FieldHelp("Of the WhatsApp Business Account; to check the webhook."),
        "api_url": FieldHelp.for_own_server("The address of the Graph API."),
        "api_version": FieldHelp("The version of the Graph API."),
    },
    needs_public_url=True,
    self_chosen=frozenset({"verify_token"}),
)
