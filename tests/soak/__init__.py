"""Tests that run for minutes: random faults at random moments, and what has become slower. Only a soak run has them."""
