"""Labels in the program: runs, results, the command line, the sample."""
