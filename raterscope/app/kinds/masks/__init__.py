"""What the program does with masks, without a window: who drew what, cases, fusing, results."""
