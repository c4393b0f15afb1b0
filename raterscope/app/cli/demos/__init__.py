"""What `raterscope demo` does with the sample of each kind."""
