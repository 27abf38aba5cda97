"""`palaver doctor`: checks an installation and says for everything that is wrong how to fix it.

Each module has the checks of one subject. They return findings as data, for the terminal and the page. `diagnosis`
runs them. Always true: nothing is changed or repaired, no secret is in a finding, and whatever is broken becomes a
finding instead of an error.
"""
