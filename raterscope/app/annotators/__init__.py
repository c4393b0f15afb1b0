"""Annotators of one or several studies, over all kinds of annotation."""
