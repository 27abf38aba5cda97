"""Tests that run for minutes, with random faults at random moments. Only a soak run has them."""
