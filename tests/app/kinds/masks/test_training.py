"""Training sets of nnU-Net: label maps are the consensus, folds keep patients apart."""

import json

import nibabel
import numpy as np
import pytest

from raterscope.algorithms.masks.data import Settled
from raterscope.app.cli import main
from raterscope.app.errors import InputError
from raterscope.app.kinds.masks import training
from raterscope.app.review import Decision, RegionSubject
from raterscope.app.study import Study
from tests.app.kinds.masks.made import a_ball, a_volume, write

PATIENTS = {"p1a": "P1", "p1b": "P1", "p2": "P2", "p3": "P3"}
CENTRES = {"liver": (6, 8, 8), "spleen": (6, 16, 17)}


def make_study(folder, centres):
    for seed, case in enumerate(PATIENTS):
        files = [a_volume(folder / case / f"{case}.nii.gz", seed)]
        for structure, centre in centres.items():
            for rater, radius in {"anna": 4.0, "ben": 4.6, "carl": 5.2}.items():
                mask = a_ball(centre, radius if structure == "liver" else radius - 1)
                files.append(write(folder / case / f"{case}_{structure}_{rater}.nii.gz", mask))
        naming = ["--naming", "{item}_{structure}_{annotator}"]
        assert main(["import", str(folder / "s.rscope"), *map(str, files), *naming]) == 0
    assert main(["run", str(folder / "s.rscope"), "laplace"]) == 0
    (folder / "patients.csv").write_text(
        "image,patient\n" + "".join(f"{c},{p}\n" for c, p in PATIENTS.items())
    )
    return folder / "s.rscope"


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    path = make_study(tmp_path_factory.mktemp("training"), CENTRES)
    with Study.open(path) as opened:
        first = opened.images()[0]
        subject = RegionSubject(structure="liver", origin=(0, 0, 0), shape=(1, 3, 3))
        settled = Settled((0, 0, 0), np.ones((1, 3, 3), np.int8))
        opened.record(Decision(verb="paint", item=first.id, subject=subject, settled=settled))
    return path


def export(study, target, what, *options):
    return main(["export", str(study), "--kind", "masks", "--what", what, "-o", str(target), *options])


def read(path):
    return np.asarray(nibabel.load(path).dataobj)


def test_labels_are_the_consensus_with_decisions_on_the_grid_of_the_image(study, tmp_path):
    assert export(study, tmp_path / "Dataset777_Organs", "training") == 0
    assert export(study, tmp_path / "consensus", "consensus", "--format", "nifti") == 0
    folder = tmp_path / "Dataset777_Organs"
    described = json.loads((folder / "dataset.json").read_text())
    assert described == {
        "channel_names": {"0": "image"},
        "labels": {"background": 0, "liver": 1, "spleen": 2},
        "numTraining": 4,
        "file_ending": ".nii.gz",
        "name": "Organs",
    }
    assert sorted(p.name for p in (folder / "imagesTr").iterdir()) == [f"{c}_0000.nii.gz" for c in PATIENTS]
    assert sorted(p.name for p in (folder / "labelsTr").iterdir()) == [f"{c}.nii.gz" for c in PATIENTS]
    for case in PATIENTS:
        image = nibabel.load(folder / "imagesTr" / f"{case}_0000.nii.gz")
        labels = nibabel.load(folder / "labelsTr" / f"{case}.nii.gz")
        assert labels.shape == image.shape
        np.testing.assert_allclose(labels.affine, image.affine)
        np.testing.assert_array_equal(image.dataobj, read(study.with_name(case) / f"{case}.nii.gz"))
        consensus = read(tmp_path / "consensus" / f"{case}_consensus.nii.gz")
        np.testing.assert_array_equal(labels.dataobj, consensus)
        for label in (1, 2):
            probability = read(folder / "probabilityTr" / f"{case}_{label:04d}.nii.gz")
            assert probability.min() >= 0
            assert probability.max() <= 1
            np.testing.assert_array_equal(probability > 0.5, consensus == label)
            assert read(folder / "uncertaintyTr" / f"{case}_{label:04d}.nii.gz").max() > 0
    assert read(folder / "labelsTr" / "p1a.nii.gz")[:3, :3, 0].all()


def test_folds_keep_patients_apart(study, tmp_path):
    folder, patients = tmp_path / "Dataset502", str(study.with_name("patients.csv"))
    assert export(study, folder, "training", "--groups", patients) == 0
    splits = json.loads((folder / "splits_final.json").read_text())
    assert len(splits) == 3
    assert sorted(case for split in splits for case in split["val"]) == sorted(PATIENTS)
    for split in splits:
        assert sorted(split["train"] + split["val"]) == sorted(PATIENTS)
        assert not {PATIENTS[c] for c in split["train"]} & {PATIENTS[c] for c in split["val"]}


def test_a_case_without_image_is_refused(study, tmp_path, capsys):
    path = tmp_path / "s.rscope"
    mask = write(tmp_path / "alone_liver_anna.nii.gz", a_ball())
    assert main(["import", str(path), str(mask), "--naming", "{item}_{structure}_{annotator}"]) == 0
    assert main(["run", str(path), "majority"]) == 0
    assert export(path, tmp_path / "set", "training") == 1
    assert "1 case without image (alone)" in capsys.readouterr().err
    assert not (tmp_path / "set").exists()


def test_a_failed_export_leaves_nothing_that_hinders_the_next(study, tmp_path, monkeypatch, capsys):
    def fail(*_args, **_more):
        raise InputError("is in colour", file=tmp_path)

    with monkeypatch.context() as patched:
        patched.setattr(training, "write_nifti_image", fail)
        assert export(study, tmp_path / "set", "training") == 1
    assert export(study, tmp_path / "set", "training") == 0
    assert export(study, tmp_path / "set", "training") == 1
    assert "is not empty; choose a new folder" in capsys.readouterr().err
    assert (tmp_path / "set" / "Dataset501_set" / "dataset.json").exists()


def test_a_structure_within_another_keeps_its_label(tmp_path, capsys):
    path = make_study(tmp_path, {"liver": (6, 12, 12), "tumour": (6, 12, 12)})
    assert export(path, tmp_path / "set", "training", "--deidentify") == 0
    assert "labelled as the smaller one" in capsys.readouterr().err
    folder = tmp_path / "set" / "Dataset501_set"
    labels = read(folder / "labelsTr" / "case-001.nii.gz")
    names = json.loads((folder / "dataset.json").read_text())["labels"]
    assert labels[12, 12, 6] == names["tumour"]
    assert {names["liver"], names["tumour"]} <= set(np.unique(labels))


def test_colour_images_have_a_file_for_each_channel(tmp_path):
    from PIL import Image

    picture = np.random.default_rng(0).integers(0, 255, (40, 50, 3), dtype=np.uint8)
    Image.fromarray(picture).save(tmp_path / "photo.png")
    for rater in ("anna", "ben"):
        mask = np.zeros((40, 50), dtype=np.uint8)
        mask[10:20, 10:25] = 255
        Image.fromarray(mask).save(tmp_path / f"photo_{rater}.png")
    path = tmp_path / "s.rscope"
    masks = [str(tmp_path / f"photo_{rater}.png") for rater in ("anna", "ben")]
    naming = ["--kind", "masks", "--structure", "lesion", "--naming", "{item}_{annotator}"]
    assert main(["import", str(path), str(tmp_path / "photo.png")]) == 0
    assert main(["import", str(path), *masks, *naming]) == 0
    assert main(["run", str(path), "majority"]) == 0
    assert export(path, tmp_path / "set", "training", "--kind", "masks") == 0
    folder = tmp_path / "set" / "Dataset501_set"
    described = json.loads((folder / "dataset.json").read_text())
    assert described["channel_names"] == {"0": "red", "1": "green", "2": "blue"}
    for channel in range(3):
        stored = read(folder / "imagesTr" / f"photo_{channel:04d}.nii.gz")
        np.testing.assert_array_equal(np.squeeze(stored).T, picture[:, :, channel])
