"""Campaigns: long seeded runs against the real program that look for lost work and uncaught errors.

Start one with ``python -m tests.campaigns.NAME``; each has a short form in the test suite. `harness` has what
they share.
"""
