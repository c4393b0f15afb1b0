"""Pairs in the program: runs, results, the command line."""
