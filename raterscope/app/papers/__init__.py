"""The five papers' tables and figures, measured again: experiments, their results kept in a folder, one page.

`experiments` says what an experiment is, one module a paper lists its own, `measuring` runs them so that they
can be interrupted, and `page` writes the page.
"""
