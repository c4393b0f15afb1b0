"""What the program does with clicks, without a window: joining files, fusing, results."""
