"""Discord: one bot, through discord.py."""
