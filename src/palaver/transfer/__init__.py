"""Moving in and out: import from other programs, Palaver's own format, exports for people."""
