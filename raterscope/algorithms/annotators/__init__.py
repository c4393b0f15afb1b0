"""Comparison of annotators: agreement, similarity and communities."""
