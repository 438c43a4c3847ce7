"""Which cross heads of a Whisper tell when a word began.

Whisper's word times come from a few heads of cross attention: their maps, text by sound, are
normalised, smoothed and averaged, and the cheapest monotone path through them (dynamic time
warping) says at which frame each token begins. OpenAI picked those heads by hand for its own
models; here they are found on clips whose word times are known.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.ndimage import median_filter

from headcount.errors import UsageError
from headcount.models import Subject, eval_mode, quiet, switched
from headcount.records import Head, working
from headcount.stats import Floats

#: Samples a second of a clip; seconds of a frame of the encoder; frames of the smoothing.
RATE, FRAME, SMOOTH = 16000, 0.02, 7
#: The most heads that a choice may have.
_MOST = 10


@dataclass(frozen=True)
class Clip:
    """Speech of at most 30 seconds, its words, and when each of them begins, in seconds.

    >>> Clip(np.zeros(16000), ("go", "on"), (0.1, 0.5)).words
    ('go', 'on')
    """

    #: One channel, 16,000 samples a second, from -1 to 1.
    sound: Floats
    words: tuple[str, ...]
    starts: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.words) != len(self.starts) or not self.words:
            raise UsageError(
                f"A clip has {len(self.words)} words and {len(self.starts)} starts; give one start "
                "(seconds) for each of one or more words."
            )
        if len(self.sound) > 30 * RATE:
            raise UsageError(
                f"A clip has {len(self.sound) / RATE:.0f} seconds; Whisper hears 30 at once, so "
                "cut it."
            )


@dataclass(frozen=True, repr=False)
class WordTimes:
    """How far word starts by each head, and by several together, are from those that are known."""

    subject: Subject
    #: A row a head, the best first: `error` (mean, in seconds) and `within` (share under 0.1 s).
    heads: pd.DataFrame
    #: A row for each number of best heads together: `count`, `error`, `within`.
    together: pd.DataFrame
    words: int

    @property
    def best(self) -> list[Head]:
        """As many of the best heads as have the smallest error together."""
        named = self.heads[["stack", "layer", "head"]].head(int(self._least["count"]))
        return [Head(*row) for row in named.itertuples(index=False)]

    @property
    def _least(self) -> dict[Any, Any]:
        """The row of `together` with the smallest error."""
        return min(self.together.to_dict("records"), key=lambda row: row["error"])

    def __repr__(self) -> str:
        at = self._least
        return (
            f"WordTimes({self.subject.name}: {len(self.best)} heads, {1000 * at['error']:.0f} ms "
            f"off on {self.words:,} words)"
        )

    def write(self, heads: Sequence[Head] | None = None) -> list[list[int]]:
        """Make the best heads, or others, the model's `generation_config.alignment_heads`.

        transformers and others then take them for word times, also after the model is saved.
        """
        places = _places(self.subject)
        chosen = sorted([*places[head]] for head in (heads or self.best))
        settings: Any = self.subject.inner.generation_config
        settings.alignment_heads = chosen
        settings._from_model_config = False  # else it is not read again
        return chosen


def word_times(subject: Subject, clips: Sequence[Clip]) -> WordTimes:
    """Try every cross head of a Whisper on clips, and the best of them together.

    `word_times(subject, clips).write()` puts the best into the generation config. Judge them on
    other clips: `errors_of(subject, clips, heads)`.
    """
    known = [*_places(subject)]
    if not clips:
        raise UsageError("No clip was given; word times are tried on speech (hc.Clip).")
    maps = _maps_of(subject, clips)
    alone = np.concatenate([_errors(one, one.maps) for one in maps], axis=1)  # [head, word]
    ranked = np.argsort(alone.mean(axis=1), kind="stable")
    table = pd.DataFrame([known[at] for at in ranked], columns=["stack", "layer", "head"])
    table = table.assign(error=alone.mean(1)[ranked], within=(alone < 0.1).mean(1)[ranked])
    counts = range(1, min(_MOST, len(known)) + 1)
    sets = [ranked[:count] for count in counts]
    both = np.concatenate(
        [_errors(one, np.stack([one.maps[chosen].mean(0) for chosen in sets])) for one in maps],
        axis=1,
    )
    together = pd.DataFrame(
        {"count": list(counts), "error": both.mean(1), "within": (both < 0.1).mean(1)}
    )
    return WordTimes(subject, table, together, both.shape[1])


def errors_of(subject: Subject, clips: Sequence[Clip], sets: Sequence[Sequence[Head]]) -> Floats:
    """How many seconds each word's start is off by each set of heads; `[set, word]`."""
    places = {head: at for at, head in enumerate(_places(subject))}
    chosen = [[places[head] for head in heads] for heads in sets]
    return np.concatenate(
        [
            _errors(one, np.stack([one.maps[heads].mean(0) for heads in chosen]))
            for one in _maps_of(subject, clips)
        ],
        axis=1,
    )


def _places(subject: Subject) -> dict[Head, tuple[int, int]]:
    """Every cross head with the layer and the place in it that a generation config calls it by."""
    config: Any = subject.inner.config
    if config.model_type != "whisper" or not subject.inner.can_generate():
        raise UsageError(
            f"{subject.name} is of type '{config.model_type}'; word times are those of a Whisper "
            "(WhisperForConditionalGeneration)."
        )
    return {
        name: (site.layer, at)
        for site in subject.anatomy.sites
        if site.stack == "cross"
        for at, name in enumerate(site.names)
    }


@dataclass(frozen=True)
class _Maps:
    """One clip: smoothed maps `[head, token, frame]`, and the first token of each word."""

    maps: Floats
    firsts: list[int]
    starts: Floats


def _maps_of(subject: Subject, clips: Sequence[Clip]) -> list[_Maps]:
    """The maps of all cross heads, by the rows at which each token is predicted."""
    from transformers import WhisperFeatureExtractor

    model: Any = subject.inner
    tokenizer: Any = subject.tokenizer
    if tokenizer is None:
        raise UsageError(f"{subject.name} has no tokenizer, so its words have no tokens.")
    hears = WhisperFeatureExtractor(feature_size=model.config.num_mel_bins)
    found = []
    shown = working("Listening", len(clips))
    with quiet(), eval_mode(model), torch.no_grad(), shown as step:
        for clip in clips:
            pieces = [
                tokenizer(f" {word}", add_special_tokens=False)["input_ids"] for word in clip.words
            ]
            text = [token for piece in pieces for token in piece]
            begin = [model.config.decoder_start_token_id]
            begin += [*_languages(model), model.generation_config.no_timestamps_token_id]
            ids = torch.tensor([[*begin, *text, model.config.eos_token_id]], device=model.device)
            heard = hears(clip.sound, sampling_rate=RATE, return_tensors="pt").input_features
            states = model.get_encoder()(heard.to(model.device, model.dtype)).last_hidden_state
            with switched(model, lambda _: "eager"):
                given = model.get_decoder()(
                    input_ids=ids,
                    encoder_hidden_states=states,
                    output_attentions=True,
                    use_cache=False,
                )
            frames = max(1, int(len(clip.sound) / RATE / FRAME))
            rows = slice(len(begin) - 1, len(begin) + len(text))
            maps = torch.cat([one[0, :, rows, :frames] for one in given.cross_attentions]).float()
            maps = (maps - maps.mean(1, keepdim=True)) / maps.std(1, keepdim=True).clamp_min(1e-9)
            firsts = np.cumsum([0, *(len(piece) for piece in pieces[:-1])]).tolist()
            smooth = median_filter(maps.cpu().numpy(), (1, 1, SMOOTH))
            found.append(_Maps(smooth, firsts, np.array(clip.starts)))
            step()
    return found


def _languages(model: Any) -> list[int]:
    """The tokens of English and of writing down, where a model knows more languages."""
    known = model.generation_config
    if not getattr(known, "is_multilingual", False):
        return []
    return [known.lang_to_id["<|en|>"], known.task_to_id["transcribe"]]


def _errors(one: _Maps, maps: Floats) -> Floats:
    """How many seconds the start of each word is off, by each map; `[map, word]`."""
    starts = token_starts(-maps)[:, one.firsts] * FRAME
    return np.abs(starts - one.starts)


def token_starts(costs: Floats) -> Floats:
    """The frame at which each token begins, on the cheapest monotone path of each map.

    `costs` is `[map, token, frame]`; all maps go through the table of sums at once.

    >>> token_starts(-np.array([[[1.0, 1, 0, 0], [0, 0, 1, 1]]]))
    array([[0, 2]])
    """
    maps, tokens, frames = costs.shape
    total = np.full((maps, tokens + 1, frames + 1), np.inf)
    total[:, 0, 0] = 0
    came = np.zeros((maps, tokens + 1, frames + 1), dtype=np.int8)
    for token in range(1, tokens + 1):
        for frame in range(1, frames + 1):
            ways = np.stack(
                [
                    total[:, token - 1, frame - 1],
                    total[:, token - 1, frame],
                    total[:, token, frame - 1],
                ]
            )
            came[:, token, frame] = ways.argmin(0)
            total[:, token, frame] = costs[:, token - 1, frame - 1] + ways.min(0)
    starts = np.zeros((maps, tokens), dtype=int)
    for number in range(maps):
        token, frame = tokens, frames
        while token > 0:
            starts[number, token - 1] = frame - 1
            way = came[number, token, frame]
            token, frame = token - (way != 2), frame - (way != 1)
    return starts
