"""The common parts of readers: opening files and zips, limits, walking JSON, building messages, naming problems.

`export_files` opens an export and reads the items of a large JSON file; `indexed_export` is the base of readers of such
files; `values` turns values of any type into ours: texts, times, messages, files, memories.
"""
