"""What adapters share: downloads with limits, Markdown, checks of settings, what is remembered while receiving."""
