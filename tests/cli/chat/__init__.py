"""Tests of `palaver chat`."""
