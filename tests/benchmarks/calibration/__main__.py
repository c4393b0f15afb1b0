"""Print one table of all kinds: what is claimed, and what was measured."""

from __future__ import annotations

import argparse
import math
import pkgutil
from importlib import import_module

from tests.benchmarks import calibration


def main() -> None:
    kinds = [one.name for one in pkgutil.iter_modules(calibration.__path__) if not one.name.startswith("_")]
    parser = argparse.ArgumentParser(description=calibration.__doc__)
    parser.add_argument("--kind", choices=kinds)
    chosen = parser.parse_args().kind
    print(f"{'kind':8s}{'number':44s}{'data':32s}{'nominal':>9s}{'measured':>10s}{'s.e.':>8s}{'count':>9s}")
    for kind in kinds if chosen is None else [chosen]:
        for row in import_module(f"{calibration.__name__}.{kind}").rows():
            error = "" if math.isnan(row.error) else f"{row.error:.3f}"
            print(
                f"{row.kind:8s}{row.number:44s}{row.data:32s}{row.nominal:9.3f}{row.measured:10.3f}"
                f"{error:>8s}{row.count or '':>9}",
                flush=True,
            )


if __name__ == "__main__":
    main()
