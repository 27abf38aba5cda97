"""Telegram: a bot that people write to, in private chats, groups, topics and channels."""
