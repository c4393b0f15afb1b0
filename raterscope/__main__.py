"""`python -m raterscope` is the command `raterscope`."""

import sys

from raterscope.app.cli import main

if __name__ == "__main__":
    sys.exit(main())
