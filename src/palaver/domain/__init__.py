"""Values and rules. Pure: standard library only, no I/O, no clock of its own, nothing to mock."""
