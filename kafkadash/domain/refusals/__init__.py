"""Every refusal and failure that a person can meet: what is said, and what to do next, one module for each subject.

Who refuses takes an entry and its values; no sentence of that kind stands anywhere else. ``catalogue`` has all of them,
and docs/errors.md is made from it.
"""
