"""What the program does with pairs, without a window: joining files, fusing, comparing, results."""
