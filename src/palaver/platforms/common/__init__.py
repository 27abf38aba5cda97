"""Shared by the adapters: downloads with limits, Markdown, checks of settings, what is remembered while receiving."""
