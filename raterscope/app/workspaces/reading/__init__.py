"""The reading mode: a reader of a study marks one case after the other, without any answer on screen."""
