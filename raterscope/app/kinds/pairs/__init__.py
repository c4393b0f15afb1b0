"""Pairs without a window: import, runs, evaluation, exports and report."""
