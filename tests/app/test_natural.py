"""Names in the order in which people count."""

from raterscope.text.numbers import natural


def test_numbers_within_names_are_counted_not_spelt() -> None:
    names = ["class 10", "class 9", "Class 1", "class 010b", "apple", "class", "9", "10", ""]
    expected = ["", "9", "10", "apple", "class", "Class 1", "class 9", "class 10", "class 010b"]
    assert sorted(names, key=natural) == expected


def test_a_name_of_ten_thousand_digits_has_its_place() -> None:
    assert sorted(["a" + "9" * 10_000, "a1"], key=natural) == ["a1", "a" + "9" * 10_000]


def test_names_that_differ_in_case_alone_have_one_order() -> None:
    assert sorted(["class 1", "class 01", "Class 1"], key=natural) == ["class 01", "Class 1", "class 1"]
