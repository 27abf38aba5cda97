"""Storage: one schema and two engines. No other package contains SQL.

`engines/base.py` is the port: a unit of work is a plain synchronous function that takes a transaction, and the engine
decides on which thread and in which transaction to run it (`docs/engine-work.md`). `engines/sqlite.py` and
`engines/postgres.py` implement it. Every other module is one subject (`sessions`, `events`, `lanes`, `people`, …) with
the statements beside the functions that need them; they return domain values, not rows. Each statement is written
once for both engines, with `$1` parameters.
"""
