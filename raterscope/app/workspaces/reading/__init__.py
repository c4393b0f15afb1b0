"""Reading mode: a reader of a reader study marks one case after the other, without any answer on screen."""
