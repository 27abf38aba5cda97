"""Where everything is kept: one schema, two engines, and nobody else speaks SQL.

`engine.py` is the port: a unit of work is a plain synchronous function over a transaction, and the engine
decides on which thread and in which transaction it runs. `sqlite.py` and `postgres.py` implement it. Every
other module is one subject (`sessions`, `events`, `lanes`, `people`, …): its statements beside the functions
that need them, returning domain values, never rows. Statements are written once, with `$1` parameters.
"""
