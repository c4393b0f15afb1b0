"""Cohorts: many cases fused one after the other or in parallel, each into its own study."""
