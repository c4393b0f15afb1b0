"""What the program does with masks, without a window: cases, fusing, results, the command line."""
