"""How to connect each platform, in short steps, and what its settings mean: for the forms of a page.

The guides in docs/platforms/ say more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

STEPS: Final[Mapping[str, tuple[str, ...]]] = {
    "telegram": (
        "Open a chat with @BotFather on Telegram and send /newbot.",
        "Choose a name and a user name for your bot.",
        "Copy the token that BotFather sends, and paste it here.",
        "Test it, save it, then write to your bot.",
    ),
    "discord": (
        "Create an application at discord.com/developers/applications.",
        "On its page Bot, switch on Message Content Intent, then reset and copy the token.",
        "On its page OAuth2, make a link with the scope bot, and open it to add the bot to your server.",
        "Paste the token here, test it and save it.",
    ),
    "slack": (
        "Open api.slack.com/apps, press Create New App, then From a manifest, and choose your workspace.",
        "Choose the tab YAML, replace what is there with the app manifest below, and create the app.",
        "On its page Basic Information, generate an app-level token with the scope connections:write.",
        "On its page Install App, install it in your workspace, and copy the bot token.",
        "Paste both tokens here, test them and save them.",
    ),
    "matrix": (
        "Create an account for the agent on your homeserver.",
        "Enter the address of the homeserver, and the access token or the user id and password.",
        "Test it, save it, then invite the account to a room.",
    ),
    "whatsapp": (
        "Create a business app with WhatsApp at developers.facebook.com.",
        "Create a system user with a permanent token for the app.",
        "Enter the token, the app secret, the id of the phone number, and a verify token of your choice.",
        "Save it, then enter the webhook address of this server and the verify token at Meta.",
    ),
    "whatsapp-web": (
        "Save the account.",
        "On your phone, open WhatsApp, Settings, Linked devices, Link a device.",
        "Scan the QR code that appears here.",
    ),
    "signal": (
        "Install signal-cli on the machine of this server.",
        "Save the account.",
        "On your phone, open Signal, Settings, Linked devices, Link a new device.",
        "Scan the QR code that appears here.",
    ),
    "email": (
        "Create a mailbox for the agent.",
        "With most providers you need an app password: create one in the security settings of the mailbox.",
        "Enter the address, the password, and the names of the IMAP and SMTP servers.",
        "Test it, save it, then write a mail to the address.",
    ),
    "webhook": (
        "Choose a secret of at least 24 characters.",
        "Enter the address to which answers are sent, if the other side should get them.",
        "Save it, then let the other program send signed requests to the webhook address of this server.",
    ),
}

_BOT_FATHER: Final = "Send /mybots to @BotFather on Telegram, choose your bot, then API Token."
_OTHER_SERVER: Final = "Only if you run a server of your own with the same API."

# platform → setting → what it is, and where to get it.
FIELD_HELP: Final[Mapping[str, Mapping[str, tuple[str, str]]]] = {
    "telegram": {
        "bot_token": ("The token of the bot.", _BOT_FATHER),
        "api_url": ("The address of the Bot API.", _OTHER_SERVER),
        "mode": ("How messages arrive: the bot asks for them, or Telegram calls this server.", ""),
        "webhook_secret": ("Signs what Telegram sends to the webhook; without it one is made.", ""),
        "rich_messages": ("Send tables, headings and formulas as rich messages.", ""),
    },
    "discord": {
        "bot_token": ("The token of the bot.", "discord.com/developers/applications, your application, Bot."),
        "api_url": ("The address of Discord's API.", _OTHER_SERVER),
    },
    "slack": {
        "bot_token": ("The token that begins with xoxb-.", "api.slack.com/apps, your app, OAuth & Permissions."),
        "app_token": (
            "The token that begins with xapp-; for the mode socket.",
            "api.slack.com/apps, your app, Basic Information, App-Level Tokens.",
        ),
        "signing_secret": ("For the mode http.", "api.slack.com/apps, your app, Basic Information."),
        "mode": ("How messages arrive: over a socket, or Slack calls this server.", ""),
        "api_url": ("The address of Slack's API.", _OTHER_SERVER),
    },
    "matrix": {
        "homeserver": ("The address of the homeserver, such as https://matrix.org.", ""),
        "user_id": ("The account, such as @palaver:matrix.org; needed with a password.", ""),
        "access_token": ("The access token of the account.", "Element: Settings, Help & About, Access Token."),
        "password": ("Signs in once; the token is then kept.", ""),
        "device_name": ("How the session is called in the account's list of sessions.", ""),
        "encryption": ("Whether the agent takes part in encrypted rooms; empty: if it is installed.", ""),
        "send_as": ("Whether answers are notices, which other bots ignore, or texts.", ""),
    },
    "whatsapp": {
        "access_token": ("The token of a system user: it does not expire.", "Meta Business settings, System users."),
        "app_secret": ("Signs what Meta sends to the webhook.", "developers.facebook.com, your app, App settings."),
        "verify_token": ("Chosen by you; Meta sends it once, when the webhook is set up.", ""),
        "phone_number_id": (
            "The id of the number that answers, not the number itself.",
            "developers.facebook.com, your app, WhatsApp, API Setup.",
        ),
        "business_account_id": ("Of the WhatsApp Business Account; to check the webhook.", ""),
        "api_url": ("The address of the Graph API.", _OTHER_SERVER),
        "api_version": ("The version of the Graph API.", ""),
    },
    "whatsapp-web": {
        "chats": ("Answer only your messages to yourself, or everyone whom the rules allow.", ""),
        "phone_number": ("Of the account: then it is linked with a code to type instead of a QR code.", ""),
        "device_name": ("How Palaver is called in the list of linked devices.", ""),
        "proxy_url": ("A proxy to connect through: http, https or socks5.", ""),
        "child_command": ("A program to use instead of the built-in one.", ""),
    },
    "signal": {
        "program": ("The path of signal-cli, or its name on the PATH.", ""),
        "config_folder": ("Where signal-cli keeps the account; empty: a folder of Palaver.", ""),
        "account": ("The phone number, needed only if the folder has several accounts.", ""),
        "chats": ("Answer only your messages to yourself, or everyone whom the rules allow.", ""),
        "device_name": ("How Palaver is called in the list of linked devices.", ""),
    },
    "email": {
        "address": ("The address of the agent, such as palaver@example.org.", ""),
        "password": ("For both servers.", "With most providers: an app password from the security settings."),
        "username": ("To sign in with, if it is not the address.", ""),
        "name": ("The name of the sender, as people see it.", ""),
        "imap_host": ("The server that mails are read from, such as imap.example.org.", ""),
        "imap_port": ("Empty: the usual one.", ""),
        "imap_security": ("How the connection is encrypted.", ""),
        "smtp_host": ("The server that mails are sent with, such as smtp.example.org.", ""),
        "smtp_port": ("Empty: the usual one.", ""),
        "smtp_security": ("How the connection is encrypted.", ""),
        "allow_plaintext": ("With security none: let the password travel unencrypted to another machine.", ""),
        "ca_file": ("Certificates to trust instead of the system's, for a server with its own.", ""),
        "folder": ("The folder that mails are read from.", ""),
        "sent_folder": ("Empty: the one that the server says is for sent mails.", ""),
        "save_sent": ("Put a copy of each answer there; empty: unless the provider does it.", ""),
        "aliases": ("Further addresses of this mailbox.", ""),
        "authserv_id": ("Of your mail server, as it signs its Authentication-Results header.", ""),
        "allow_unverified_senders": ("Believe every sender: only where no stranger can send mail.", ""),
        "poll_seconds": ("How long to wait between two looks, if the server can't push.", ""),
    },
    "webhook": {
        "secret": ("Signs requests in both directions; at least 24 characters.", "Choose it yourself."),
        "url": ("Where answers are sent; without it they are only stored in the conversation.", ""),
        "user_name": ("The name of the caller, as people and the agent see it.", ""),
        "key_lifetime_hours": ("How long the receiver takes an id only once.", ""),
    },
}
