"""Benchmarks: commands, not tests. One per module; `fanlight bench NAME` runs it.

A module's docstring says in its first line what is measured. Its `run(options)` takes the remaining arguments of the
shell and returns JSON-able figures; where targets are stated, `passed` among them says whether all were met.
"""
