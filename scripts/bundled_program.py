"""Start of the bundled program, which is also the Python interpreter of the processes that it starts."""

import multiprocessing
import runpy
import sys

from raterscope.app.cli import main

if __name__ == "__main__":
    multiprocessing.freeze_support()
    match sys.argv[1:]:
        case ["-m", module, *_]:
            sys.argv = sys.argv[2:]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case ["-c", program, *_]:
            sys.argv = ["-c", *sys.argv[3:]]
            exec(program, {"__name__": "__main__"})
        case _:
            sys.exit(main())
