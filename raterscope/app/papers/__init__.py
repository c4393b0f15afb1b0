"""The papers' tables and figures, measured again: experiments, stored results, and their page.

`experiments` says what an experiment is, one module a paper lists its own, `measuring` runs them so that they
can be interrupted, and `page` writes the page.
"""
