"""Repeated reads of one annotator, by a column of tables or an entity of file names."""

from pathlib import Path

import numpy as np
import pytest

from raterscope.algorithms.labels import Labels
from raterscope.algorithms.labels.fusion import fuse
from raterscope.app.ambiguous_files import names_by
from raterscope.app.errors import InputError
from raterscope.app.formats.labels import read_labels
from raterscope.app.formats.masks.naming import NameParts
from raterscope.app.formats.pairs import read_pairs
from raterscope.app.formats.points.tables import read_clicks
from raterscope.app.formats.sources import open_source
from raterscope.app.formats.table_files import read_table


def _write(folder: Path, text: str) -> Path:
    path = folder / "marks.csv"
    path.write_text(text, encoding="utf-8")
    return path


def test_each_read_of_a_table_is_an_annotator(tmp_path):
    clicks = _write(tmp_path, "annotator,image,x,y,read\nanna,a,1,2,1\nanna,a,3,4,2\nben,a,5,6,\n")
    assert read_clicks(read_table(clicks)).annotators == ("anna", "anna (read 2)", "ben")
    labels = _write(tmp_path, "annotator,task,label,read\nanna,t,yes,1\nanna,t,no,2\nben,t,no,\n")
    table = read_labels(open_source(labels))[0]
    assert table.annotators == ("anna", "anna (read 2)", "ben")
    assert [table.annotators[at] for at in table.annotator] == ["anna", "anna (read 2)", "ben"]
    pairs = _write(tmp_path, "annotator,left,right,choice,read\nanna,p,q,left,2\nanna,p,q,right,1\n")
    assert read_pairs(open_source(pairs))[0].annotators == ("anna (read 2)", "anna")


@pytest.mark.parametrize("cell", ["0", "two", "1.5"])
def test_a_bad_number_of_a_read_is_named_with_its_line(tmp_path, cell):
    labels = _write(tmp_path, f"annotator,task,label,read\nanna,t,yes,1\nanna,t,no,{cell}\n")
    with pytest.raises(InputError, match=r"line 3.*read|read.*line 3"):
        read_labels(open_source(labels))
    clicks = _write(tmp_path, f"annotator,image,x,y,read\nanna,a,1,2,1\nanna,a,3,4,{cell}\n")
    with pytest.raises(InputError, match=r"line 3.*read|read.*line 3"):
        read_clicks(read_table(clicks))


def test_reads_of_masks_are_named_by_an_entity_of_the_file_or_folder():
    files = [Path("case07_rater-anna_read-1.nii.gz"), Path("case07_rater-anna_read-2_mask.nii.gz")]
    assert list(names_by(files, ()).values()) == [
        NameParts("case07", "anna", None), NameParts("case07", "anna (read 2)", None)
    ]  # fmt: skip
    folders = [Path("rater-anna/case07.nii.gz"), Path("rater-anna_read-2/case07.nii.gz")]
    assert [(name.item, name.annotator) for name in names_by(folders, ()).values()] == [
        ("case07", "anna"), ("case07", "anna (read 2)")
    ]  # fmt: skip
    bids = [Path("sub-01_rater-A_read-2_label-lesion_mask.nii.gz")]
    assert names_by(bids, ())[bids[0]] == NameParts("sub-01", "A (read 2)", "lesion")


def test_fusions_of_repeated_reads_note_that_each_counts():
    annotators = np.repeat(np.arange(4, dtype=np.int32), 12)
    tasks = np.tile(np.arange(12, dtype=np.int32), 4)
    names = ("kim", "kim (read 2)", "lee", "lee (read 2)")
    votes = Labels(
        tasks,
        annotators,
        (tasks % 2).astype(np.int16),
        tuple(map(str, range(12))),
        names,
        ("a", "b"),
        ("a", "b"),
    )
    assert any(words.startswith("2 annotators are later reads") for words in fuse(votes).fusion.notices)
    without = votes.without({"kim (read 2)", "lee (read 2)"})
    assert not any("later read" in words for words in fuse(without).fusion.notices)
