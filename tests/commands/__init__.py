"""Every slash command, as a person meets it."""
