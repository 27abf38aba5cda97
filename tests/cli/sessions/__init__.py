"""Tests of `palaver sessions`."""
