"""The sample studies, one of each kind: simulated, but for the masks where the real ones are at hand."""
