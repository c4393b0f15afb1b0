"""Report of masks: the planted figures, with escaped text."""

import base64
import io
import re
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from raterscope.algorithms.masks.data import OPEN, Settled
from raterscope.algorithms.masks.fusion import MaskPlan
from raterscope.algorithms.masks.grid import Grid
from raterscope.algorithms.progress import Cancelled, silent
from raterscope.app.errors import InputError
from raterscope.app.exports import Request
from raterscope.app.kinds.masks.exports import export_table
from raterscope.app.kinds.masks.methods import (
    compare_cases,
    load_methods,
    method_rows,
    methods_plans,
    store_methods,
)
from raterscope.app.kinds.masks.report.agreement import agreement_section
from raterscope.app.kinds.masks.report.sections import cases_table, read_figures
from raterscope.app.kinds.masks.runs import fuse_inputs, gather, keep
from raterscope.app.page.contents import units_of
from raterscope.app.report import write_report
from raterscope.app.review import Decision, RegionSubject
from raterscope.app.study.masks import PlacedMask, add_case, add_masks
from raterscope.resources.bibliography import bibliography
from tests.app.report.conftest import WICKED, a_block, fuse, make_study, write_page
from tests.app.tables import rows_of


def take(study, run, number=1, verb="take"):
    image = study.images()[0].id
    dispute = study.runs.result(run, image).reports[0].disputes[number - 1]
    subject = RegionSubject(
        structure="nodule", origin=dispute.origin, shape=dispute.shape, number=number, rater="Cem"
    )
    inside = np.where(dispute.voxels(), 1, OPEN).astype(np.int8)
    settled = None if verb == "skip" else Settled(dispute.origin, inside)
    return study.record(
        Decision(verb=verb, item=image, run=run, subject=subject, settled=settled, reason="<b>clear</b>")
    )


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """The report of the case, fused by a vote."""
    folder = tmp_path_factory.mktemp("report")
    with make_study(folder) as study:
        fuse(study)
        return write_page(study, folder)


def test_the_page_runs_nothing_and_fetches_nothing(report):
    assert {tag for tag, _ in report.tags} & {
        "script",
        "link",
        "iframe",
        "object",
        "base",
        "form",
        "a",
    } == set()
    assert "url(" not in report.styles
    assert "@import" not in report.styles
    pictures = [attributes["src"] for tag, attributes in report.tags if tag == "img"]
    assert pictures
    for source in pictures:
        kind, data = source.split(",", 1)
        with Image.open(io.BytesIO(base64.b64decode(data))) as image:
            assert kind == f"data:image/{image.format.lower()};base64"
    assert not [name for _, attributes in report.tags for name in attributes if name.startswith("on")]


def test_what_strangers_call_things_is_text(study, page):
    image = add_case(study, "<b>photo\u202e</b>", Grid.plain((1, 30, 30)))
    wound = '"><img src=x onerror=alert(1)>'
    add_masks(study, [a_block(image.id, WICKED, (0, 5, 5), (1, 15, 15), wound)], "made")
    study.record(Decision(verb="exclude", annotators=("Cem",), reason="<i>asleep</i>"))
    fuse(study)
    report = page(study)
    for name in (WICKED, wound, "<i>asleep</i>"):
        assert name in report.text
    assert "<b>photo" in report.text
    assert "\u202e" not in report.text
    assert not {"script", "i"} & {tag for tag, _ in report.tags}
    assert all(attributes["src"].startswith("data:") for tag, attributes in report.tags if tag == "img")


def test_the_raters_figures_are_those_that_were_planted(report):
    # Blocks of 5 x 10 x 10 and 5 x 10 x 18 voxels of 2 mm³. The larger's far face, 8 mm away, is 50 of the
    # 516 voxels of its surface: more than 5 %.
    same = report.row(WICKED, 10)
    assert same[1:7] == ["0.00", "0.00", "1.000", "0.00", "0.00", "1.000"]
    assert same[8:] == ["1.00 ml", "0.00 ml (0 %)"]
    farther = report.row("Cem", 10)
    assert farther[1].startswith("+")
    assert farther[1].endswith("beyond")
    assert farther[3] == f"{2 * 500 / (500 + 900):.3f}"
    assert farther[4:6] == ["8.0", "8.0"]
    assert farther[6] == "1.000"
    assert farther[8:] == ["1.80 ml", "+0.80 ml (+80 %)"]


def test_the_band_of_another_rater_is_that_of_the_result(study, page):
    run = fuse(study)
    text = str(page(study).text)
    assert "Band of another rater's outline" in text
    calibration = study.runs.result(run, study.images()[0].id).reports[0].calibration
    assert f"{calibration.multiplier(0.95):.2f}" in text
    assert "an assumption that masks cannot confirm" in text
    assert f"{100 * calibration.covered[2]:.0f} %" in text[text.index("Held for left-out raters") :]


def test_a_disputed_region_is_reported_with_its_slices_and_its_side(report):
    regions = [row for row in report.rows if len(row) == 6 and "Cem draws 8 mm beyond" in row[4]]
    assert regions
    for region in regions:
        slices, side = region[3].split(", ")
        first, last = (int(word) for word in slices.removeprefix("slices ").split("–"))
        assert 4 <= first <= last <= 8
        assert re.fullmatch(r"\d+ mm left of the centroid", side)
        assert region[5] == "undecided"
    assert re.search(r"regions? with [\d.]+ ml of doubt", report.text)
    assert re.search(r"[\d.]+ ml of doubt in the whole slice", report.text)


def test_the_experts_word_stands_in_table_volume_and_journal(study, page):
    run = fuse(study)
    skipped = take(study, run, verb="skip")
    study.record(Decision(verb="undo", undoes=skipped.id))
    regions = len(study.runs.result(run, 1).reports[0].disputes)
    for number in range(1, regions + 1):
        take(study, run, number)
    report = page(study)
    assert "undecided" not in {row[5] for row in report.rows if len(row) == 6}
    assert ["With the expert's later decisions", "1.80 ml"] in report.rows
    assert "are not included" in report.text
    verdicts = {row[0]: row[-1] for row in report.rows if len(row) == 8 and row[0].isdecimal()}
    assert verdicts == {"1": "undone", "2": ""} | {
        str(number + 2): "in effect" for number in range(1, regions + 1)
    }
    fuse(study)
    second = page(study)
    assert f"{regions} regions of chest" in second.text
    assert "are not included" not in second.text


def test_a_known_truth_is_compared_with(study, page):
    image = study.images()[0].id
    add_masks(study, [a_block(image, None, (3, 15, 15), (8, 25, 33))], "truth")
    fuse(study)
    report = page(study)
    dice = 2 * 500 / (500 + 900)
    assert ["Consensus against the known truth", f"Dice {dice:.3f}, HD95 8.0 mm"] in report.rows
    assert report.row("Cem", 12)[10:] == ["1.000", "0.00"]
    assert report.row("Ada", 12)[10:] == [f"{dice:.3f}", "8.0"]


def test_structures_of_a_case_are_reported_one_by_one(study, page):
    image = study.images()[0].id
    add_masks(study, [a_block(image, name, (0, 0, 0), (6, 5, 5), "node") for name in ("Ada", "Cem")], "made")
    fuse(study)
    report = page(study)
    headings = [tag for tag, _ in report.tags if tag in ("h2", "h3")]
    assert headings.count("h3") >= 2
    assert ["Structures", "nodule, node"] in report.rows
    assert [row[1:4] for row in report.rows if row[:1] == ["chest"] and len(row) == 8] == [
        ["nodule", "3", "1.00 ml"],
        ["node", "2", "0.300 ml"],
    ]
    assert "no region beyond the tolerance" in report.text


def test_excluded_annotators_are_compared_and_listed_with_the_reason(study, page, tmp_path):
    study.record(Decision(verb="exclude", annotators=("Cem",), reason="asleep"))
    fuse(study)
    report = page(study)
    bias, spread, dice, *_, volume, difference = report.row("Cem (excluded: asleep)", 10)[1:]
    assert "–" not in (bias, spread, dice, volume, difference)
    (file,) = export_table(study, Request("annotators", "csv", tmp_path / "annotators.csv"))
    (excluded,) = [row for row in rows_of(file) if row["annotator"] == "Cem" and row["structure"] == "nodule"]
    assert excluded["excluded"] == "1"
    assert float(dice) == pytest.approx(float(excluded["dice"]), abs=0.001)
    assert {row["excluded"] for row in rows_of(file) if row["annotator"] != "Cem"} == {"0"}


def test_every_setting_is_in_the_methods(study, page):
    fuse(study, "laplace")
    report = page(study)
    plan = MaskPlan.make("laplace")
    for spec in plan.settings.specs():
        assert f"{spec.label.lower()} {spec.in_words(getattr(plan.settings, spec.name))}" in report.text
    assert "lower bound" in report.text


def test_the_methods_end_with_the_works_that_this_run_rests_on(study, page):
    fuse(study, "staple")
    report = page(study)
    cited = bibliography()
    assert "STAPLE (Warfield et al. 2004)" in report.text
    for key in ("warfield2004", "dice1945", "fleiss1971", "krippendorff2018"):
        assert cited[key].full in report.text
    for key in ("akhondi2013", "pages2019", "xu2016"):
        assert cited[key].full not in report.text
    assert "[@" not in report.text


def test_an_image_of_unknown_scale_has_no_millimetres(study, page):
    image = add_case(study, "photo", Grid.plain((1, 60, 60)))
    wide = a_block(image.id, "Cem", (0, 10, 10), (1, 30, 50), "wound")
    narrow = [a_block(image.id, name, (0, 10, 10), (1, 30, 30), "wound") for name in ("Ada", WICKED)]
    add_masks(study, [wide, *narrow], "made")
    fuse(study)
    text = page(study, item=image.id).text.split("Methods")[0]
    assert "Cem draws 20 px beyond" in text
    assert "800 px" in text
    assert " mm" not in text
    assert " ml" not in text


@pytest.mark.parametrize("cases", [5, 6])
def test_raters_are_tested_over_cases_where_there_are_enough(study, page, cases):
    for case in range(cases):
        image = add_case(study, f"plate {case}", Grid.plain((1, 60, 60)))
        spans = {"Ada": 20 + case, WICKED: 20, "Cem": 28 + 2 * case}
        blocks = [a_block(image.id, name, (0, 5, 5), (1, 25, 5 + n), "disc") for name, n in spans.items()]
        add_masks(study, blocks, "made")
    fuse(study)
    report = page(study)
    rows = [row for row in report.rows if row[0] == "Cem − consensus"]
    # All differences have one sign: the exact two-sided p of n pairs is 2 / 2^n.
    assert [row[4] for row in rows] == ([f"{2 / 2**6:.3f}"] if cases == 6 else [])


def test_what_cannot_be_written_is_reported_in_a_sentence(study, tmp_path):
    with pytest.raises(InputError, match="contains no results yet"):
        write_report(study, tmp_path / "report.html")
    with pytest.raises(InputError, match=r"ends in \.html or \.pdf"):
        write_report(study, tmp_path / "report.doc")
    fuse(study)
    with pytest.raises(InputError, match="cannot be written"):
        write_report(study, tmp_path / "nowhere" / "report.html")


def test_a_cancelled_report_leaves_what_was_there(study, tmp_path):
    fuse(study)
    path = tmp_path / "report.html"
    path.write_text("before")

    def stop(fraction, _words, **_more):
        if fraction > 0.5:
            raise Cancelled

    with pytest.raises(Cancelled):
        write_report(study, path, stop)
    assert path.read_text() == "before"
    assert sorted(path.name for path in tmp_path.glob("*report*")) == ["report.html"]


def test_of_one_region_one_decision_is_in_effect_and_one_region_held_fixed(study, page):
    run = fuse(study)
    for verb in ("take", "skip", *["accept"] * 6):
        take(study, run, verb=verb)
    fuse(study)
    report = page(study)
    standing = [row[-1] for row in report.rows if len(row) == 8 and row[0].isdecimal()]
    assert standing == ["superseded", "no effect", *["superseded"] * 5, "in effect"]
    assert "Status" in report.text
    assert "Decisions of the expert were held fixed: 1 region of chest." in report.text


def test_non_convergence_stands_above_the_figures_with_the_setting_to_change(study, page):
    inputs = gather([entry.id for entry in study.images()], study)
    keep(fuse_inputs(inputs, MaskPlan.make("laplace", {"max_iterations": "1"})), study)
    text = page(study).text
    assert "did not converge in 1 iteration:" in text
    assert "“Iterations”" in text
    assert text.index("did not converge") < text.index("Raters against the consensus")
    fuse(study, "majority")
    assert "did not converge" not in page(study).text


def test_a_rater_who_drew_nothing_of_a_structure_is_listed(study, page):
    case = study.images()[0].id
    low, high = (3, 15, 15), (8, 25, 25)
    blank = PlacedMask(case, "Cem", "node", low, np.zeros((5, 10, 10), dtype=bool))
    add_masks(study, [a_block(case, "Ada", low, high, "node"), blank], "made")
    fuse(study)
    text = page(study).text
    assert "Cem (drew nothing)" in text
    assert f"{WICKED} (drew nothing)" in text
    assert "Ada (drew nothing)" not in text


def test_the_report_gives_its_reliability_and_the_agreement_of_comparable_raters(report):
    text = report.text
    assert "How far to trust this" in text
    assert "That is too few to judge." in text
    assert "On the nearest crowd measured (" in text
    assert "The true outline cannot be confirmed by masks alone." in text


def test_methods_are_compared_where_it_is_requested_and_kept_comparisons_are_shown(study, page, tmp_path):
    fuse(study)
    assert "Methods compared" not in page(study).text
    out = tmp_path / "compared.html"
    write_report(study, out, options={"methods": ["laplace", "majority"]})
    words = re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", out.read_text()))
    assert "Methods compared" in words
    assert "1 Laplace" in words
    assert "2 majority vote" in words
    images = [entry.id for entry in study.images()]
    compared = compare_cases(gather(images, study), methods_plans(["laplace", "staple"]))
    store_methods(compared, study)
    assert "STAPLE" in page(study).text
    stored = load_methods(study)
    assert list(method_rows(stored)) == list(method_rows(compared))
    study.settings.compared_methods = {
        "methods": ["laplace"], "problems": [], "facts": "", "cases": [{"name": 1}]
    }  # fmt: skip
    assert load_methods(study) is None
    assert "Methods compared" not in page(study).text


def test_large_volumes_and_their_difference_agree_to_the_ml():
    units = units_of(Grid.plain((2, 2, 2), (1.0, 1.0, 1.0), calibrated=True))
    assert [units.amount(1382.2), units.amount(1397.9)] == ["1,382 ml", "1,398 ml"]
    assert units.difference(1382.2 - 1397.9, 1397.9) == "\N{MINUS SIGN}16 ml (\N{MINUS SIGN}1 %)"


def test_a_column_of_sizes_has_one_unit():
    units = units_of(Grid.plain((2, 2, 2), (1.0, 1.0, 1.0), calibrated=True))
    assert units.amounts([9.29, 0.0781]) == ["9.29 ml", "0.0781 ml"]
    assert units.amounts([0.0781, 0.005]) == ["78.1 mm³", "5.00 mm³"]


def test_of_more_cases_than_a_table_lists_the_doubtful_ones_come_first(study):
    fuse(study)
    (entry,) = study.images()
    (case,) = read_figures(study, entry, study.review_state().regions(entry.id), silent)
    agreed = np.ones_like(case.report.pair_dice)
    settled = replace(case, report=replace(case.report, disputes=(), pair_dice=agreed))
    late = replace(case, entry=replace(entry, name="late"))
    cases = [settled] * 500
    cases[450] = late
    table = cases_table([[figures] for figures in cases])
    assert case.report.doubt_ml > 0
    assert table.rows[0][0] == "late"
    assert table.rows[-1][0] == "… and 100 more"
    assert "The most disputed come first" in table.note
    section = agreement_section([[figures] for figures in cases], {}, volumes=False)
    blocks = [block for part in (section, *section.sections) for block in part.blocks]
    (table,) = [block for block in blocks if getattr(block, "title", "") == "Case by case"]
    assert [row[0] for row in table.rows[:2]] == ["mean of cases", "late"]
    assert table.rows[-1][0] == "… and 100 more"
