"""Coverage of the intervals of reader studies and of kappa.

A study has 6 readers, 40 cases and 2 reads, with known bias, repeatability and variance. Nominal is .95. The
Monte Carlo standard error is .015 for 200 studies, and .007 for the coefficients of agreement, which have
five times as many.

Where two raters rarely disagree, coverage has steps: at a kappa of .92 and 40 units an interval that holds it
with up to three disagreements covers .93, with up to four .98, and none lies between.
"""

import argparse

from tests.algorithms.annotators.reader_studies import (
    coverage_of_kappa,
    coverage_of_studies,
    coverage_of_votes,
)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--studies", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    print(f"{'statistic':36s} coverage  mean error")
    for name, (share, error) in coverage_of_studies(options.studies, options.seed).items():
        print(f"{name:36s} {share:8.3f}  {error:+.3f}")
    of_votes = coverage_of_votes(5 * options.studies, options.seed)
    for name, share in (coverage_of_kappa(5 * options.studies, options.seed) | of_votes).items():
        print(f"{name:36s} {share:8.3f}")


if __name__ == "__main__":
    main()
