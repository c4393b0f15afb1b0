"""What the program does with labels, without a window: joining files, fusing, comparing, results."""
