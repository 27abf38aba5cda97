"""Jobs: prompts that run on a schedule, each on behalf of one person.

Owns the tables `job` and `job_run`, the scheduler, what people and the agent may do with jobs, and `/jobs`. Always
true: a slot is passed in one transaction with its run, so of any number of processes one fires it, and none twice; a
job has at most one run that has not ended; what the agent proposes does nothing until its person confirms it; another
person's job looks like one that does not exist. `JobFields` and `JobDraft` in `model.py` declare the fields of a job:
columns, checks, the API, the terminal, the tools, `/jobs edit` and the export derive from them.
"""
