"""Telegram bots, through python-telegram-bot: by polling, or by a webhook."""
