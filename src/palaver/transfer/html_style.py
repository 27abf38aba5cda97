"""The stylesheet of exported HTML documents, and the policy that lets a browser use it and nothing else."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from typing import Final

STYLE: Final = """
:root { color-scheme: light dark; --ink: #1c1f24; --dim: #5d6470; --line: #d9dde3; --soft: #f4f5f7; --link: #1d5fbf; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e8eb; --dim: #a2a9b4; --line: #3a3f47; --soft: #22262c; --link: #84b4ff; }
  body { background: #16191d; }
}
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 46rem; padding: 1.5rem 1rem 3rem; color: var(--ink);
  font: 1rem/1.55 system-ui, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0 0 .5rem; }
header { border-bottom: 1px solid var(--line); margin-bottom: 1.5rem; padding-bottom: 1rem; }
header p, .note, .by { color: var(--dim); font-size: .875rem; margin: 0; }
article { margin: 0 0 1.5rem; }
article.user { background: var(--soft); border-radius: .75rem; padding: .75rem 1rem; }
.by { display: flex; flex-wrap: wrap; gap: .25rem .75rem; margin-bottom: .25rem; }
.by b { color: var(--ink); }
.note { margin: 0 0 1.5rem; text-align: center; }
.text { white-space: pre-wrap; margin: 0; }
.text + .text { margin-top: .5rem; }
.markdown > :first-child { margin-top: 0; }
.markdown > :last-child { margin-bottom: 0; }
.markdown h1, .markdown h2, .markdown h3, .markdown h4 { font-size: 1.1rem; margin: 1rem 0 .5rem; }
a { color: var(--link); }
pre { background: var(--soft); border-radius: .5rem; overflow-x: auto; padding: .75rem; font-size: .875rem;
  white-space: pre-wrap; }
article.user pre { background: none; }
code { font-family: ui-monospace, monospace; font-size: .9em; }
table { border-collapse: collapse; display: block; overflow-x: auto; }
th, td { border: 1px solid var(--line); padding: .25rem .5rem; text-align: left; }
blockquote { border-left: 3px solid var(--line); color: var(--dim); margin: .5rem 0; padding-left: .75rem; }
details { border: 1px solid var(--line); border-radius: .5rem; margin: .5rem 0; padding: .375rem .75rem; }
summary { color: var(--dim); cursor: pointer; font-size: .875rem; }
img { display: block; height: auto; margin: .5rem 0; max-width: 100%; border-radius: .5rem; }
ul.list { list-style: none; padding: 0; }
ul.list li { border-bottom: 1px solid var(--line); padding: .5rem 0; }
@media print {
  body { max-width: none; padding: 0; }
  article, .note { break-inside: avoid-page; }
  details:not([open]) { display: none; }
}
"""
_STYLE_HASH: Final = b64encode(sha256(STYLE.encode()).digest()).decode()
POLICY: Final = (
    f"default-src 'none'; img-src data:; style-src 'sha256-{_STYLE_HASH}'; base-uri 'none'; form-action 'none'"
)
