"""`raterscope fuse`: the command of each kind."""
