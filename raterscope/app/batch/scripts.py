"""Scripts that run a cohort in shards under SLURM or Snakemake."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Callable
from pathlib import Path


def _command(manifest: Path, output: Path, index: str, count: int) -> str:
    words = [sys.executable, "-m", "raterscope", "batch", str(manifest), "-o", str(output), "--jobs", "1"]
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
        "# Submit the script again after exit status 75 (temporary fault) or scancel: what is done is skipped.",
        _command(manifest, output, '"$SLURM_ARRAY_TASK_ID"', count),
    )
    return "batch.sbatch", "\n".join(lines) + "\n"


def snakemake_script(manifest: Path, output: Path, count: int) -> tuple[str, str]:
    """Return the name and text of a Snakefile."""
    command = _command(manifest, output, "{wildcards.shard}", count)
    lines = (
        f"SHARDS = range(1, {count} + 1)",
        "",
        "rule all:",
        f"    input: expand({str(output / 'shards' / '{shard}.done')!r}, shard=SHARDS)",
        "",
        "rule shard:",
        f"    output: touch({str(output / 'shards' / '{shard}.done')!r})",
        f"    shell: {command!r}",
    )
    return "Snakefile", "\n".join(lines) + "\n"


SCRIPTS: dict[str, Callable[[Path, Path, int], tuple[str, str]]] = {
    "slurm": slurm_script,
    "snakemake": snakemake_script,
}
