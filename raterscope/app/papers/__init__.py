"""The papers' tables and figures, measured again: experiments, stored results, and their page.

`experiments` defines an experiment and runs it so that it can be interrupted, one module a paper lists its
own, and `page` writes the page.
"""
