"""Discord bots, through discord.py: the gateway receives, REST sends, and the history of channels fills gaps."""
