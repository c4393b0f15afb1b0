"""Sounds of tasks: read, outlined, found by folder, refused with a reason."""

import math
import shutil
import struct
import wave

import numpy as np
import pytest

from raterscope.app.errors import InputError
from raterscope.app.formats import sounds
from raterscope.app.formats.sounds import find_media, media_kind, outline, read_sound

pytest.importorskip("miniaudio")


def write_tone(path, seconds=0.5, rate=8000):
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        samples = (int(16000 * math.sin(2 * math.pi * 440 * at / rate)) for at in range(int(seconds * rate)))
        file.writeframes(b"".join(struct.pack("<h", sample) for sample in samples))
    return path


def test_a_tone_has_its_length_and_amplitude(tmp_path):
    sound = read_sound(write_tone(tmp_path / "tone.wav"))
    assert sound.seconds == pytest.approx(0.5, abs=0.01)
    levels = outline(sound, 50)
    assert levels.shape == (50, 2)
    assert np.allclose(levels[5:-5, 1], 16000 / 32768, atol=0.03)
    assert np.allclose(levels[5:-5, 0], -16000 / 32768, atol=0.03)


@pytest.mark.parametrize("content", [b"", b"RIFF" + bytes(40), b"no sound at all" * 20])
def test_a_damaged_sound_is_refused(tmp_path, content):
    path = tmp_path / "broken.wav"
    path.write_bytes(content)
    with pytest.raises(InputError):
        read_sound(path)
    with pytest.raises(InputError):
        read_sound(tmp_path / "missing.wav")


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("clips/0.WAV", "sound"),
        ("C:\\clips\\a.mp3", "sound"),
        ("film.mp4", "film"),
        ("https://example.org/a.mp3", ""),
        ("a sentence.", ""),
        ("a\nb.wav", ""),
    ],
)
def test_sounds_and_films_are_known_by_their_names(text, kind):
    assert media_kind(text) == kind


def test_files_are_found_beside_the_study_and_in_folders_below(tmp_path):
    path = write_tone(tmp_path / "audio" / "a.wav")
    assert find_media("a.wav", tmp_path) == path
    assert find_media("audio/a.wav", tmp_path) == path
    assert find_media("elsewhere/a.wav", tmp_path) == path
    assert find_media("b.wav", tmp_path) is None
    assert find_media("../a.wav", tmp_path / "audio") is None


def test_an_absolute_path_is_only_a_name(tmp_path):
    elsewhere, folder = write_tone(tmp_path / "elsewhere" / "a.wav"), tmp_path / "study"
    folder.mkdir()
    assert find_media(str(elsewhere), folder) is None
    assert find_media("\\\\server\\share\\a.wav", folder) is None
    near = shutil.copy(elsewhere, folder / "a.wav")
    assert find_media(str(elsewhere), folder) == near


def test_a_sound_is_decoded_up_to_a_length_whatever_its_header_claims(tmp_path, monkeypatch):
    path = write_tone(tmp_path / "a.wav", seconds=2)
    monkeypatch.setattr(sounds, "_LONGEST_SECONDS", 1)
    with pytest.raises(InputError, match="longer than an hour"):
        read_sound(path)


def test_a_sentence_that_ends_like_a_file_is_no_file(tmp_path):
    assert find_media("a" * 300 + ".wav", tmp_path) is None
    assert find_media("a.wav", tmp_path / "missing") is None
