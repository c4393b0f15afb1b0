"""Codes of structures: kept from file to file, recognised by names, chosen by the expert."""

import highdicom
import nrrd
import numpy as np
import pydicom
import pytest
from pydicom.sr.codedict import codes

from raterscope.app.cli import main
from raterscope.app.coding import ROLES, Code, Coding
from raterscope.app.formats.masks import read_masks
from raterscope.app.formats.masks.terminology import (
    Structure,
    find_code,
    list_concepts,
    suggest_coding,
    tg263_name,
    tg263_names,
)
from raterscope.app.kinds.masks.exports import codings_of
from raterscope.app.review import Decision, StructureSubject, fold, undo
from raterscope.app.study import Study
from raterscope.app.study.masks import chosen_codings
from tests.app.kinds.masks.dicom_cases import (
    HEART,
    NEOPLASM,
    SHAPE,
    a_patient,
    box,
    concept,
    segmented,
    two_raters,
)


@pytest.fixture
def run(capsys):
    def call(*arguments, fails=False):
        status = main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        assert status == (1 if fails else 0), captured.err
        return captured.err if fails else captured.out

    return call


@pytest.fixture
def series(tmp_path):
    return a_patient(tmp_path / "ct")


@pytest.fixture
def fused(tmp_path, run, series):
    """A study of two raters' coded segmentations, fused."""
    study = tmp_path / "s.rscope"
    for file in two_raters(tmp_path, series):
        run("import", study, series.path, file, "--annotator", file.stem)
    run("run", study, "majority")
    return study


def export(run, study, out, *more):
    return run("export", study, "--what", "consensus", "-o", out, *more).split("\n")[0]


def test_a_segmentation_keeps_its_codes_and_colours(fused, tmp_path, run):
    seg = highdicom.seg.segread(export(run, fused, tmp_path / "out.dcm"))
    assert list(seg.segment_numbers) == [1, 2]
    descriptions = {
        description.segment_label: description
        for description in (seg.get_segment_description(n) for n in (1, 2))
    }
    for name, coding in (("pump", HEART), ("spot", NEOPLASM)):
        description = descriptions[name]
        assert description.segmented_property_category == concept(coding.category)
        assert description.segmented_property_type == concept(coding.type)
        lab = highdicom.color.CIELabColor.from_dicom_value(list(description.RecommendedDisplayCIELabValue))
        assert lab.to_rgb() == coding.colour
    kind = descriptions["spot"].SegmentedPropertyTypeCodeSequence[0]
    assert kind.SegmentedPropertyTypeModifierCodeSequence[0].CodeMeaning == "Left"
    assert descriptions["spot"].anatomic_regions == [concept(NEOPLASM.region)]
    assert (
        "SegmentedPropertyTypeModifierCodeSequence"
        not in descriptions["pump"].SegmentedPropertyTypeCodeSequence[0]
    )


@pytest.mark.parametrize("kind", ["seg.nrrd", "dicom-seg", "rtstruct"])
def test_codes_survive_every_format_that_has_them(fused, tmp_path, run, series, kind):
    file = export(run, fused, tmp_path / "out", "--format", kind)
    codings = {mask.structure: mask.coding for mask in read_masks(file, [series]).masks}
    assert set(codings) == {"pump", "spot"}
    assert (codings["pump"].type, codings["pump"].category) == (HEART.type, HEART.category)
    assert (codings["spot"].type, codings["spot"].region) == (NEOPLASM.type, NEOPLASM.region)
    assert (codings["pump"].colour, codings["spot"].colour) == (HEART.colour, NEOPLASM.colour)
    if kind != "rtstruct":  # it has no place for the side
        assert codings["spot"].modifier == NEOPLASM.modifier


def test_the_tags_are_those_of_slicer(fused, tmp_path, run):
    _, header = nrrd.read(export(run, fused, tmp_path / "out.seg.nrrd"))
    assert header["Segment1_Tags"] == (
        "TerminologyEntry:Segmentation category and type - 3D Slicer General Anatomy list"
        "~SCT^49755003^Morphologically Abnormal Structure~SCT^108369006^Neoplasm~SCT^7771000^Left"
        "~Anatomic codes - DICOM master list~SCT^39607008^Lung~^^|"
    )


def test_tags_as_slicer_writes_them_are_imported(tmp_path, run, series):
    values = np.asfortranarray(box(1, 3, 2, 9, 4, 12).T.astype(np.uint8))
    header = {
        "space": "left-posterior-superior", "space origin": series.grid.matrix[:3, 3],
        "space directions": series.grid.matrix[:3, :3].T, "kinds": ["domain"] * 3,
        "Segment0_ID": "Segment_1", "Segment0_Name": "tumour bed", "Segment0_LabelValue": "1",
        "Segment0_Layer": "0", "Segment0_Color": "0.501961 0.682353 0.501961",
        "Segment0_Tags": "Segmentation.Status:inprogress|TerminologyEntry:Segmentation category and type - "
        "3D Slicer General Anatomy list~"
        "SCT^85756007^Tissue~SCT^79654002^Edema~^^~Anatomic codes - DICOM master "
        "list~^^~^^|",
    }  # fmt: skip
    nrrd.write(str(tmp_path / "able.seg.nrrd"), values, header, index_order="F")
    study = tmp_path / "s.rscope"
    run("import", study, series.path, tmp_path / "able.seg.nrrd", "--annotator", "able")
    with Study.open(study) as opened:
        coding = codings_of(opened)("tumour bed")
    assert (coding.type, coding.colour) == (Code("79654002", "SCT", "Edema"), (128, 174, 128))


def test_roles_and_colours_of_contours_are_kept(tmp_path, run, series):
    coding = Coding(role="CTV", colour=(12, 200, 99))
    file = segmented(
        tmp_path / "a.dcm",
        series,
        [Structure("boost area", box(1, 4, 4, 14, 5, 15), coding=coding)],
        "rtstruct",
    )
    study = tmp_path / "s.rscope"
    run("import", study, series.path, file, "--annotator", "able")
    run("run", study, "majority")
    dataset = pydicom.dcmread(export(run, study, tmp_path / "out", "--format", "rtstruct"))
    assert dataset.RTROIObservationsSequence[0].RTROIInterpretedType == "CTV"
    assert list(dataset.ROIContourSequence[0].ROIDisplayColor) == [12, 200, 99]


def test_damaged_codes_and_colours_are_left_out_and_the_mask_is_read(tmp_path, series):
    file = segmented(tmp_path / "a.dcm", series, [Structure("pump", box(1, 4, 4, 14, 5, 15), coding=HEART)])
    data = pydicom.dcmread(file)
    segment = data.SegmentSequence[0]
    segment.SegmentedPropertyTypeCodeSequence[0].CodingSchemeDesignator = ""
    segment.RecommendedDisplayCIELabValue = [1, 2]
    segment.SegmentedPropertyCategoryCodeSequence = []
    data.save_as(file)
    (mask,) = read_masks(file, [series]).masks
    assert mask.coding == Coding()
    assert mask.whole().any()


class TestNames:
    def test_the_table_holds_what_the_dictionary_holds(self):
        known_codes = {
            (code.value, code.scheme_designator) for code in (getattr(codes.SCT, n) for n in codes.SCT.dir())
        }
        known_codes |= {
            (code.value, code.scheme_designator) for code in (getattr(codes.DCM, n) for n in codes.DCM.dir())
        }
        for name in (*tg263_names(), "Neoplasm", "Edema"):
            coding = suggest_coding(name)
            for code in (coding.category, coding.type, coding.modifier):
                assert code is None or (code.value, code.scheme) in known_codes, name
            assert coding.type is not None, name
            assert coding.role in ("", *ROLES), name

    @pytest.mark.parametrize(
        ("name", "meaning", "side", "role", "label"),
        [
            ("Heart", "Heart", None, "ORGAN", "Heart"),
            ("heart", "Heart", None, "ORGAN", "Heart"),
            ("left lung", "Lung", "Left", "ORGAN", "Lung_L"),
            ("Kidney_R", "Kidney", "Right", "ORGAN", "Kidney_R"),
            ("spinal cord", "Spinal cord", None, "ORGAN", "SpinalCord"),
            ("GTVp_2", "GTV", None, "GTV", ""),
            ("PTV 6000", "PTV", None, "PTV", ""),
            ("Body", "External Body Model", None, "EXTERNAL", "External"),
        ],
    )
    def test_usual_names_are_recognised(self, name, meaning, side, role, label):
        coding = suggest_coding(name)
        assert coding.type.meaning == meaning
        assert (coding.modifier and coding.modifier.meaning) == side
        assert coding.role == role
        assert tg263_name(name) == label

    @pytest.mark.parametrize("name", ["structure", "heartburn", "gtvx", "label 1", "", "left", "R"])
    def test_other_names_are_not(self, name):
        assert suggest_coding(name) == Coding()

    def test_the_search_finds_the_plainest_concept_first(self):
        assert find_code("heart")[0].value == "80891009"
        assert [concept.meaning for concept in find_code("SCT:108369006")] == ["Neoplasm"]
        assert find_code("there is nothing like it") == ()
        assert len({(concept.value, concept.scheme) for concept in list_concepts()}) == len(list_concepts())


class TestChosen:
    def test_the_expert_has_the_last_word_and_can_take_it_back(self, fused, tmp_path, run):
        chosen = ("--type", "liver", "--role", "avoidance", "--colour", "#102030", "--label", "Liver")
        output = run("structures", fused, "pump", *chosen)
        assert "Liver (SCT:10200004)" in output
        assert "AVOIDANCE" in output
        seg = pydicom.dcmread(export(run, fused, tmp_path / "a.dcm"))
        assert "Liver" in [segment.SegmentLabel for segment in seg.SegmentSequence]
        rt = pydicom.dcmread(export(run, fused, tmp_path / "b.dcm", "--format", "rtstruct"))
        roles = {
            roi.ROIName: observation.RTROIInterpretedType
            for roi, observation in zip(rt.StructureSetROISequence, rt.RTROIObservationsSequence, strict=True)
        }
        assert roles["Liver"] == "AVOIDANCE"
        with Study.open(fused) as study:
            study.record(undo(fold(study.decisions())))
            assert chosen_codings(study) == {}
            assert codings_of(study)("pump").type == HEART.type

    def test_the_last_choice_counts_and_the_first_is_superseded(self, fused, run):
        run("structures", fused, "pump", "--type", "liver")
        run("structures", fused, "PUMP", "--role", "ORGAN")
        with Study.open(fused) as study:
            state = fold(study.decisions())
            assert [state.status(number) for number in (1, 2)] == ["superseded", "in effect"]
            assert chosen_codings(study)["pump"].type.meaning == "Liver"
            assert state.in_words(study.decisions()[1]) == "describe pump as Liver, ORGAN"
            assert not state.regions(1)

    def test_what_is_chosen_makes_no_run_stale(self, fused):
        with Study.open(fused) as study:
            state_before = fold(study.decisions())
            subject = StructureSubject(structure="pump", coding=NEOPLASM)
            study.record(Decision(verb="describe", item=1, subject=subject))
            state_after = fold(study.decisions())
            assert not state_before.fixed("masks", 1)
            assert not state_after.fixed("masks", 1)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["pump", "--type", "lobe"], "is not the name of one code"),
            (["pump", "--role", "boss"], "is no role"),
            (["pump", "--colour", "red"], "is no colour"),
            (["pump", "--label", "x" * 70], "64 characters"),
            (["lung", "--type", "liver"], "there is no structure lung"),
            (["--type", "liver"], "name the structure"),
        ],
    )
    def test_what_cannot_be_is_refused(self, fused, run, options, words):
        output = run("structures", fused, *options, fails=True)
        assert words in output
        assert output.count("\n") == 1

    def test_a_code_of_another_dictionary(self, fused, run):
        run("structures", fused, "pump", "--type", "99LOCAL:abc-1=Pump of the house")
        with Study.open(fused) as study:
            assert codings_of(study)("pump").type == Code("abc-1", "99LOCAL", "Pump of the house")

    def test_nothing_is_written_for_a_list(self, fused, run):
        output = run("structures", fused)
        assert "pump: Heart (SCT:80891009)" in output
        assert "from a file" in output
        with Study.open(fused) as study:
            assert study.decisions() == []


@pytest.mark.parametrize(("name", "meaning"), [("Heart", "Heart"), ("spot", "Tissue")])
def test_a_usual_name_shows_more_than_that_something_is_tissue(tmp_path, run, series, name, meaning):
    """Programs state tissue where no code was chosen."""
    file = segmented(tmp_path / "a.dcm", series, [Structure(name, box(1, 4, 4, 14, 5, 15))])
    study = tmp_path / "s.rscope"
    run("import", study, series.path, file, "--annotator", "able")
    with Study.open(study) as opened:
        assert codings_of(opened)(name).type.meaning == meaning


def test_a_usual_name_alone_is_enough(tmp_path, run, series):
    file = segmented(tmp_path / "a.dcm", series, [Structure("GTV", box(1, 4, 4, 14, 5, 15))], "rtstruct")
    study = tmp_path / "s.rscope"
    run("import", study, series.path, file, "--annotator", "able")
    run("run", study, "majority")
    dataset = pydicom.dcmread(export(run, study, tmp_path / "o", "--format", "rtstruct"))
    assert dataset.RTROIObservationsSequence[0].RTROIInterpretedType == "GTV"
    seg = pydicom.dcmread(export(run, study, tmp_path / "o.dcm"))
    assert seg.SegmentSequence[0].SegmentedPropertyTypeCodeSequence[0].CodeValue == "228791009"
    assert SHAPE[1:] == (seg.Rows, seg.Columns)
