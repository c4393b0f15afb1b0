"""Reproduction of the papers' tables and figures: experiments, stored results, and their page.

`experiments` defines experiments and runs them interruptibly, a module for each paper lists its experiments,
and `page` writes the page.
"""
