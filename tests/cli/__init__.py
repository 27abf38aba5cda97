"""The terminal, tried out on real stores."""
