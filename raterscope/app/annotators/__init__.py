"""The annotators of a study, or of several, whatever they marked."""
