"""What the commands have in common: options, items, questions, output in the terminal."""
