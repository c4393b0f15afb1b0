"""Parquet tables: every column as text, as the readers of tables take it.

References
----------
Apache Software Foundation, "Apache Parquet", https://parquet.apache.org/docs/file-format/.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from raterscope.app.errors import InputError
from raterscope.app.formats.untrusted import most_unpacked, opened

__all__ = ["batches", "column_names"]

_MOST_CELLS = 2_000_000_000
_BATCH = 1 << 17


def column_names(path: Path, file: BinaryIO | None = None) -> list[str]:
    """Read the names of the columns, from `file` if it is open already.

    Raises
    ------
    InputError
        For a file that is damaged, or claims more than a file of its size may hold.
    """
    with _parsed(path, file) as parquet:
        names = list(parquet.schema_arrow.names)
    if len(names) < 2 or len(set(names)) < len(names):
        raise InputError("has one column, or two of one name; expected a table", file=path)
    return names


def batches(
    path: Path, columns: Sequence[str] | None = None, file: BinaryIO | None = None, rows: int = _BATCH
) -> Iterator[list[Any]]:
    """Read columns as Arrow arrays of text, some rows at a time; a cell without a value is empty.

    Raises
    ------
    InputError
        As `column_names`, and for a column of lists or records.
    """
    import pyarrow
    from pyarrow import compute

    with _parsed(path, file) as parquet:
        names = list(parquet.schema_arrow.names) if columns is None else list(columns)
        for batch in parquet.iter_batches(rows, columns=names):
            texts = []
            for name in names:
                try:
                    text = compute.cast(batch.column(name), pyarrow.string())
                except (pyarrow.ArrowInvalid, pyarrow.ArrowNotImplementedError):
                    raise InputError("holds no text, numbers or times", file=path, field=name) from None
                texts.append(compute.fill_null(text, ""))
            yield texts


@contextmanager
def _parsed(path: Path, file: BinaryIO | None) -> Iterator[Any]:
    import pyarrow
    from pyarrow.parquet import ParquetFile

    with opened(path, file) as stream:
        try:
            parquet = ParquetFile(stream)
            metadata = parquet.metadata
            size = sum(metadata.row_group(at).total_byte_size for at in range(metadata.num_row_groups))
            cells = metadata.num_rows * metadata.num_columns
            if size > most_unpacked(path.stat().st_size) or cells > _MOST_CELLS:
                raise InputError("unpacks to more than its size allows; expected a smaller table", file=path)
            yield parquet
        except (pyarrow.ArrowException, OSError) as error:
            raise InputError("is damaged or cut short; expected a Parquet table", file=path) from error
