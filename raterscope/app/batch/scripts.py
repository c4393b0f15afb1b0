"""Scripts that run a cohort in shards under SLURM or Snakemake."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path


def _command(manifest: str, output: str, index: str, count: int) -> str:
    words = [sys.executable, "-m", "raterscope", "batch", manifest, "-o", output, "--jobs", "1"]
    return f"{shlex.join(words)} --shard {index}/{count}"


def slurm_script(manifest: Path, output: Path, count: int) -> tuple[str, str]:
    """Return the name and text of an array script for `sbatch`."""
    pattern = str(output).replace("%", "%%")  # a single one begins a placeholder
    lines = (
        "#!/bin/bash",
        "#SBATCH --job-name=raterscope",
        f"#SBATCH --array=1-{count}",
        "#SBATCH --cpus-per-task=1",
        "#SBATCH --requeue",  # after the failure of a node
        "#SBATCH --open-mode=append",
        f'#SBATCH --output="{pattern}/slurm-%a.log"',
        "# Submit the script again after exit status 75 (temporary fault) or scancel: it continues.",
        _command(str(manifest), str(output), '"$SLURM_ARRAY_TASK_ID"', count),
    )
    return "batch.sbatch", "\n".join(lines) + "\n"


def snakemake_script(manifest: Path, output: Path, count: int) -> tuple[str, str]:
    """Return the name and text of a Snakefile."""
    # In a shell command, braces of a path are doubled, or they would be wildcards.
    paths = [str(path).replace("{", "{{").replace("}", "}}") for path in (manifest, output)]
    command = _command(paths[0], paths[1], "{wildcards.shard}", count)
    lines = (
        "# snakemake -s Snakefile --cores 8 --keep-going --rerun-incomplete   (after a kill, first --unlock)",
        "# A shard with bad input fails after its other cases are done; status.csv lists them.",
        f"workdir: {str(output)!r}",
        "",
        "rule all:",
        f'    input: expand("shards/{{shard}}.done", shard=range(1, {count} + 1))',
        "",
        "rule shard:",
        '    output: touch("shards/{shard}.done")',
        f"    shell: {command!r}",
    )
    return "Snakefile", "\n".join(lines) + "\n"


SCRIPTS: dict[str, Callable[[Path, Path, int], tuple[str, str]]] = {
    "slurm": slurm_script,
    "snakemake": snakemake_script,
}
