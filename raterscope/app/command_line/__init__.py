"""Common parts of the commands: options, items, questions, output in the terminal."""
