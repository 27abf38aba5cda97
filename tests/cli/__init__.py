"""Tests of the command line on real stores."""
