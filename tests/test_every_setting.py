"""Every setting of the program has the same value and the same words wherever a user meets it."""

import json
import math
import re
from pathlib import Path
from random import Random

import pytest

import raterscope
from raterscope.algorithms.annotators.acceptance import AcceptanceSettings
from raterscope.algorithms.clicks.stopping import StoppingSettings
from raterscope.algorithms.clicks.stream import StreamSettings
from raterscope.algorithms.labels.vote_budget import CostSettings
from raterscope.algorithms.settings import SettingsError
from raterscope.app.cli import main
from raterscope.app.kinds.clicks.live_watching import StepSettings
from raterscope.app.kinds.registry import KINDS
from raterscope.app.simulation.setups import SETUPS
from raterscope.widgets.panels.settings_form import SettingsForm


def _classes():
    """Yield every class of settings with the arguments of a command that describes it, () for none."""
    for kind in KINDS.values():
        listing = ("fuse", kind.name, "--list-settings")
        for catalogue in kind.catalogues:
            for algorithm in catalogue.algorithms.values():
                yield algorithm.settings, listing
        for settings in kind.load_further_settings().values():
            yield settings, listing
    for settings in (StreamSettings, StoppingSettings, StepSettings):
        yield settings, ("watch", "--list-settings")
    for setup in SETUPS.values():
        yield setup.settings, ("simulate", setup.name, "--help")
    yield AcceptanceSettings, ("plan", "sample", "--help")
    yield CostSettings, ()


CLASSES = dict(_classes())
GUIDE = Path(raterscope.__file__).parent / "resources" / "guide"


@pytest.fixture(params=CLASSES, ids=lambda settings: f"{settings.__module__}.{settings.__name__}")
def settings_class(request):
    return request.param


def _values(spec):
    """Return a default, the limits and some values between them; a switch or choice has all."""
    if spec.kind == "switch":
        return [False, True]
    if spec.kind == "choice":
        return [key for key, _ in spec.choices]
    low = spec.minimum if math.isfinite(spec.minimum) else -1e6
    high = spec.maximum if math.isfinite(spec.maximum) else low + 1e6
    random = Random(spec.name)
    values = [low, high, *(random.uniform(low, high) for _ in range(5)), *[None] * spec.optional]
    values += [] if spec.default is None else [spec.default]
    return [int(value) if spec.kind == "integer" and value is not None else value for value in values]


def test_each_value_is_the_same_as_text_in_a_form_and_in_a_file(settings_class, qtbot):
    form = SettingsForm(settings_class)
    qtbot.addWidget(form)
    form.build()
    assert form.settings() == settings_class()
    for spec in settings_class.specs():
        for value in _values(spec):
            assert spec.check(spec.parse(spec.as_text(value))) == value
            try:
                settings = settings_class(**{spec.name: value})
            except SettingsError:
                continue  # another setting forbids it
            form.set_settings(settings)
            assert form.settings() == settings
            assert settings_class.from_dict(json.loads(json.dumps(settings.as_dict()))) == settings
            if spec.name not in settings.unused():
                assert f"{spec.label.lower()} {spec.in_words(value)}" in settings.in_words()


def test_what_is_out_of_bounds_is_refused_by_the_words_of_the_description(settings_class, qtbot):
    form = SettingsForm(settings_class)
    qtbot.addWidget(form)
    editors = form.editors()
    for spec in settings_class.specs():
        assert editors[spec.name].accessibleDescription() == spec.help
        assert editors[spec.name].accessibleName().startswith(spec.label)
        for limit, step in ((spec.minimum, -1), (spec.maximum, 1)):
            if not math.isfinite(limit):
                continue
            value = str(int(limit) + step)
            with pytest.raises(SettingsError) as caught:
                settings_class.from_text({spec.name: value})
            assert caught.value.problem.endswith(f"; expected {spec.range_in_words()}.")
            form.set_settings(settings_class(**{spec.name: limit}))
            editors[spec.name].selectAll()
            qtbot.keyClicks(editors[spec.name], value)
            assert form.error() == caught.value.about(spec.label)


def test_every_setting_is_described_alike_on_the_command_line(settings_class, capsys):
    command = CLASSES[settings_class]
    if not command:
        return
    assert main([*command]) == 0
    text = re.sub(r"\s+", "", capsys.readouterr().out)
    for spec in settings_class.specs():
        description = f"{spec.label}; {spec.values_in_words()}. {spec.help}"
        assert re.sub(r"\s+", "", description) in text
        default = spec.as_text(spec.default)
        assert f"{spec.name}={default}" in text or f"(default:{default})" in text
        assert spec.help.endswith(".")
        assert not spec.optional or re.search("Empty: |by default", spec.help)
        assert not spec.optional or spec.left_open != "estimated" or "Empty: estimated" in spec.help
        assert spec.label[0].isupper()


def test_a_default_in_the_guide_is_the_settings():
    """As in: *Minimum bias* (0.03)."""
    stated = 0
    for kind in KINDS.values():
        text = "".join(page.read_text("utf-8") for page in (GUIDE / kind.name).glob("*.md"))
        specs = [spec for settings, listing in CLASSES.items() if kind.name in listing
                 for spec in settings.specs()]  # fmt: skip
        for label, default in re.findall(r"\*([A-Z][\w +]+)\*+ \((\d[\d.]*)", text):
            assert default in {spec.as_text(spec.default) for spec in specs if spec.label == label}
            stated += 1
    assert stated >= 2
