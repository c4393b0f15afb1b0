"""One description of a setting serves the form, the command line, the stored run and the report."""

import pickle
from dataclasses import dataclass

import pytest

from raterscope.algorithms.settings import (
    Settings,
    SettingsError,
    Spec,
    choice,
    format_number,
    integer,
    number,
    settings_from_texts,
    switch,
)


@dataclass(frozen=True)
class Example(Settings):
    scatter: float | None = number(
        None, "Click scatter", "Empty: estimated from the data.", unit="px", minimum=0.1
    )
    rounds: int = integer(500, "Rounds", "At most this many.", minimum=1, maximum=10_000)
    prior: str = choice("beta", "Prior", "On rates.", {"beta": "Beta priors", "none": "as published"})
    thorough: bool = switch(False, "Thorough", "Slower.")


def test_defaults_are_valid_and_survive_storage():
    settings = Example()
    assert Example.from_dict(settings.as_dict()) == settings


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        ({"scatter": "2"}, Example(scatter=2.0)),
        ({"scatter": "auto"}, Example(scatter=None)),
        ({"rounds": "7", "thorough": "yes"}, Example(rounds=7, thorough=True)),
        ({"prior": "none"}, Example(prior="none")),
    ],
)
def test_text_of_a_command_line_becomes_values(texts, expected):
    assert Example.from_text(texts) == expected


@pytest.mark.parametrize(
    ("texts", "sentence"),
    [
        ({"scatter": "wide"}, "scatter is 'wide'; expected a number."),
        ({"scatter": "nan"}, "scatter is nan; expected a number."),
        ({"scatter": "0"}, "scatter is 0; expected at least 0.1 px."),
        ({"rounds": "1.5"}, "rounds is '1.5'; expected a whole number."),
        ({"rounds": "0"}, "rounds is 0; expected 1 to 10000."),
        ({"prior": "flat"}, "prior is 'flat'; expected one of beta, none."),
        ({"thorough": "perhaps"}, "thorough is 'perhaps'; expected yes or no."),
        ({"speed": "1"}, "speed is not a setting here; expected one of scatter, rounds, prior, thorough."),
    ],
)
def test_what_is_invalid_is_reported_in_a_sentence(texts, sentence):
    with pytest.raises(SettingsError) as caught:
        Example.from_text(texts)
    assert str(caught.value) == sentence


def test_a_message_names_the_setting_as_its_reader_knows_it():
    with pytest.raises(SettingsError) as caught:
        Example(scatter=0.0)
    error = pickle.loads(pickle.dumps(caught.value))
    assert error.about(error.label) == "Click scatter is 0; expected at least 0.1 px."
    assert error.about("--scatter") == "--scatter is 0; expected at least 0.1 px."
    whole = SettingsError("a plan names its algorithm.")
    assert whole.about("anything") == str(whole) == "a plan names its algorithm."


def test_an_integer_too_large_for_a_float_is_refused():
    with pytest.raises(SettingsError, match="scatter is 1000"):
        Example(scatter=10**400)


def test_the_methods_section_lists_every_setting_with_its_unit():
    assert Example(scatter=2.5).in_words() == (
        "click scatter 2.5 px, rounds 500, prior Beta priors, thorough no"
    )


def test_a_field_without_a_description_is_a_programming_error():
    @dataclass(frozen=True)
    class Undescribed(Settings):
        bare: int = 3

    with pytest.raises(TypeError, match="bare is not described"):
        Undescribed()


def test_one_of_a_unit_has_no_s() -> None:
    @dataclass(frozen=True)
    class Counted(Settings):
        strength: float = number(1.0, "Strength", "Of the prior.", unit="tasks")
        wide: float = number(1.0, "Wide", "How wide.", unit="px")

    assert Counted().in_words() == "strength 1 task, wide 1 px"
    assert Counted(strength=2.0, wide=2.0).in_words() == "strength 2 tasks, wide 2 px"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "0"), (0.99, "0.99"), (0.001, "0.001"), (0.00001, "0.00001"), (2.5e-6, "0.0000025"),
        (1e-9, "1e-9"), (-3e-5, "-0.00003"), (1000, "1000"), (1e6, "1,000,000"),
    ],
)  # fmt: skip
def test_numbers_are_written_as_a_person_does_and_read_again(value, words):
    assert format_number(value) == words
    assert float(format_number(value).replace(",", "")) == value


def test_a_small_limit_keeps_a_number_above_0():
    least = Spec("beta", "Penalty", "number", 0.99, help="", minimum=1e-6, maximum=1.0)
    assert least.range_in_words() == "above 0, at most 1"
    with pytest.raises(SettingsError, match=r"beta is 0; expected above 0, at most 1\."):
        least.check(0)
    with pytest.raises(SettingsError, match=r"beta is 1e-8; expected at least 0\.000001\."):
        least.check(1e-8)


def test_stored_settings_load_under_their_former_names():
    from raterscope.algorithms.clicks.crowd_size import CrowdSizeSettings
    from raterscope.algorithms.clicks.oem import OEMSettings
    from raterscope.algorithms.masks.mixture import MixtureSettings

    stored = {"own_hands": False, "as_printed": True, "printed_form": "refreshed"}
    assert OEMSettings.from_dict(stored) == OEMSettings(
        per_annotator_scatter=False, as_published=True, published_form="refreshed"
    )
    assert OEMSettings.from_text({"own_hands": "no"}) == OEMSettings(per_annotator_scatter=False)
    assert CrowdSizeSettings.from_dict({"fewest": 3, "most": 9}) == CrowdSizeSettings(3, 9)
    assert MixtureSettings.from_dict({"most": 2}) == MixtureSettings(max_consensuses=2)


def test_a_setting_that_has_a_former_name_of_another_keeps_it():
    @dataclass(frozen=True)
    class OfPlugin(Settings):
        own_hands: bool = switch(False, "Own hands", "As a plugin names it.")

    assert OfPlugin.from_dict({"own_hands": True}) == OfPlugin(own_hands=True)


def test_settings_of_several_classes_are_read_together():
    @dataclass(frozen=True)
    class Other(Settings):
        radius: float = number(1.0, "Radius", "Of a match.", minimum=0.0)

    texts = {"radius": "2", "rounds": "7"}
    assert settings_from_texts(texts, Example, Other) == (Example(rounds=7), Other(radius=2.0))
    with pytest.raises(SettingsError, match="expected one of scatter, rounds, prior, thorough, radius"):
        settings_from_texts({"speed": "1"}, Example, Other)
