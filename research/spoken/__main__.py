"""`python -m research.spoken`: which heads of Whisper tiny.en tell when a word began.

Heads are chosen on sentences of the bundled sample, spoken by espeak-ng (the package
`espeakng-loader`), which says when each word begins. They are judged on other sentences in
another voice, and, with `--clips DIR` (the folder test/data/librivox of the source package
`pocketsphinx`), on five clips of read speech with the word starts that pocketsphinx's aligner
found. OpenAI's list and all heads stand beside them.
"""

from __future__ import annotations

import argparse
import ctypes
import json
import re
import wave
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.signal import resample_poly

import headcount as hc
from headcount.bundle import sample
from headcount.records import Head, provenance
from headcount.rooms.spoken import Clip, word_times
from headcount.rooms.spoken.timing import errors_of
from research import RESULTS

COMMAND = "python -m research.spoken --clips DIR"
#: Of an event of espeak-ng: a word begins.
_WORD = 1


class _Event(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("number", ctypes.c_int),
        ("padding", ctypes.c_int),
    )


@cache
def _engine() -> tuple[Any, int]:
    """espeak-ng, begun once: a second time its sound is cut short."""
    import espeakng_loader

    engine = ctypes.CDLL(espeakng_loader.get_library_path())
    return engine, engine.espeak_Initialize(2, 0, espeakng_loader.get_data_path().encode(), 0)


def spoken(sentences: list[str], voice: str) -> list[Clip]:
    """Sentences as espeak-ng speaks them, with the times that it tells."""
    engine, rate = _engine()
    sounds: list[np.ndarray] = []
    begins: list[tuple[int, int]] = []

    def heard(wav: Any, count: int, events: Any) -> int:
        if wav and count > 0:
            sounds.append(np.ctypeslib.as_array(wav, (count,)).copy())
        at = 0
        while events[at].type:
            if events[at].type == _WORD:
                begins.append((events[at].text_position - 1, events[at].audio_position))
            at += 1
        return 0

    kind = ctypes.CFUNCTYPE(
        ctypes.c_int, ctypes.POINTER(ctypes.c_short), ctypes.c_int, ctypes.POINTER(_Event)
    )
    callback = kind(heard)
    engine.espeak_SetSynthCallback(callback)
    engine.espeak_SetVoiceByName(voice.encode())
    clips = []
    for text in sentences:
        sounds.clear()
        begins.clear()
        data = text.encode()
        engine.espeak_Synth(data, len(data) + 1, 0, 1, 0, 1, None, None)
        engine.espeak_Synchronize()
        sound = resample_poly(np.concatenate(sounds) / 32768, 16000, rate)
        at = {place: seconds / 1000 for place, seconds in begins}
        words = [(one.group(), at.get(one.start())) for one in re.finditer(r"\S+", text)]
        if all(start is not None for _, start in words) and len(sound) < 30 * 16000:
            clips.append(Clip(sound, *zip(*words, strict=True)))
    return clips


def read_clips(folder: Path) -> list[Clip]:
    """Clips of read speech, with the word starts of pocketsphinx's aligner that lie beside them."""
    clips = []
    for file in sorted(folder.glob("*.wav")):
        with wave.open(str(file)) as opened:
            sound = np.frombuffer(opened.readframes(opened.getnframes()), dtype=np.int16) / 32768
        told = json.loads(file.with_suffix(".json").read_text(encoding="utf8"))
        found = [one for one in told["w"] if not one["t"].startswith(("<", "[", "+"))]
        words = tuple(re.sub(r"\(\d+\)$", "", one["t"]) for one in found)
        clips.append(Clip(sound, words, tuple(float(one["b"]) for one in found)))
    return clips


def main() -> None:
    parser = argparse.ArgumentParser(prog="research.spoken", description=__doc__)
    parser.add_argument("--model", default="whisper-tiny.en")
    parser.add_argument("--clips", type=Path, help="test/data/librivox of pocketsphinx")
    parser.add_argument("--count", type=int, default=60, help="sentences to choose on, and others")
    parser.add_argument("--out", type=Path, default=RESULTS / "spoken.json")
    given = parser.parse_args()
    subject = hc.load(given.model, device="cpu", dtype="float32")
    plain = [one for one in sample.sentences() if re.fullmatch(r"[A-Za-z',;: -]+[.!?]", one)]
    plain = [one for one in plain if 5 <= len(one.split()) <= 25]
    half = min(given.count, len(plain) // 2)
    choose, others = spoken(plain[:half], "en-us"), spoken(plain[half : 2 * half], "en-gb-scotland")
    chosen = word_times(subject, choose)
    published = [Head("cross", *at) for at in subject.inner.generation_config.alignment_heads]
    cross = [head for head in subject.heads if head.stack == "cross"]
    last = [head for head in cross if head.layer >= max(one.layer for one in cross) // 2 + 1]
    sets = {
        "published": published,
        "best one": chosen.best[:1],
        "found": chosen.best,
        "last half of layers": last,
        "all": cross,
    }
    judged = {"espeak-ng, other voice and sentences": others}
    if given.clips:
        judged["LibriVox, 5 clips, pocketsphinx's aligner"] = read_clips(given.clips)
    rows = []
    dice = np.random.default_rng(0)
    for name, clips in judged.items():
        errors = errors_of(subject, clips, list(sets.values()))
        owner = np.repeat(np.arange(len(clips)), [len(clip.words) for clip in clips])
        sums = np.stack([errors[:, owner == at].sum(1) for at in range(len(clips))])
        counts = np.bincount(owner)
        drawn = dice.integers(len(clips), size=(2000, len(clips)))
        means = sums[drawn].sum(1) / counts[drawn].sum(1)[:, None]  # clips are drawn, not words
        base = [*sets].index("published")
        for at, (label, heads) in enumerate(sets.items()):
            low, high = np.quantile(means[:, at], [0.025, 0.975])
            apart = np.quantile(means[:, at] - means[:, base], [0.025, 0.975])
            rows.append(
                {
                    "judged on": name,
                    "clips": len(clips),
                    "words": errors.shape[1],
                    "heads": label,
                    "count": len(heads),
                    "mean": float(errors[at].mean()),
                    "interval": [float(low), float(high)],
                    "median": float(np.median(errors[at])),
                    "within": float((errors[at] < 0.1).mean()),
                    "beside published": [float(one) for one in apart],
                }
            )
            print(json.dumps(rows[-1]), flush=True)
    told = {"command": COMMAND, "model": given.model, "chosen on": len(choose)}
    told |= {"found": [str(head) for head in chosen.best], "words chosen on": chosen.words}
    told |= {"heads": chosen.heads.to_dict("records")}
    told |= {"together": chosen.together.to_dict("records")}
    told |= {"rows": rows, "provenance": provenance.collect() | {"command": COMMAND}}
    given.out.write_text(json.dumps(told, indent=1) + "\n", encoding="utf8")


if __name__ == "__main__":
    main()
