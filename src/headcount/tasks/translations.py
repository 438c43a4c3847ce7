"""Translation: an encoder-decoder's own output judged by sacreBLEU, or its loss on references."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, ClassVar

import numpy as np
import torch
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.metrics.helpers import extract_all_char_ngrams
from torch import Tensor
from transformers import LogitsProcessor, LogitsProcessorList, StoppingCriteria

from headcount.errors import ModelError, StatsError, UsageError
from headcount.models import Subject, check_finite, quiet
from headcount.records import working
from headcount.stats import Floats, bleu, ratio
from headcount.tasks.comparison import Metric, called, choose_metric, function_name, more_is_better
from headcount.tasks.examples import Column, read_translations
from headcount.tasks.task import LOSS, Marks, TokenTask, refuse
from headcount.text import (
    Batch,
    Encoded,
    Pair,
    encode,
    intake_of,
    read_corpus,
    sentences_of,
    texts_of,
)

# --- Translations by batched beam search, the same in any batch ---------------------------------


def translate(
    subject: Subject,
    batch: Batch,
    *,
    beams: int,
    max_new_tokens: int | None = None,
    length_penalty: float | None = None,
) -> list[str]:
    """The best translation of each source of a batch, as text without special tokens.

    The decoder starts exactly as the reference does: start token, language code and all. Every
    source has its own longest output, so that a translation never depends on its neighbours.
    """
    batch = batch.to(subject.device)
    # Every decoder input of a batch begins with the same special tokens.
    target = batch.sides["target"]
    shared = (target.ids == target.ids[:1]) & target.special
    start = target.ids[:, : int(shared.all(dim=0).long().cumprod(dim=0).sum())]
    limit = intake_of(subject.model, subject.tokenizer).target_limit
    longest = longest_output(batch.sides["source"].real.sum(dim=1), max_new_tokens)
    if limit is not None:
        longest = longest.clamp(max=limit - start.shape[1])
    settings: Any = copy.deepcopy(subject.inner.generation_config)  # made deterministic
    settings.update(
        num_beams=beams,
        do_sample=False,
        num_return_sequences=1,
        # One more than any may have: some models force an end at the last place, which would cut
        # the longest translation of a batch short and no other.
        max_new_tokens=int(longest.max()) + 1,
        decoder_start_token_id=int(start[0, 0]),
        return_dict_in_generate=False,
        output_scores=False,
        output_attentions=False,
        output_hidden_states=False,
        use_cache=True,
    )
    if length_penalty is not None:
        settings.length_penalty = length_penalty
    watch = _Watch()
    with quiet():
        ids = subject.model.generate(
            input_ids=batch.inputs["input_ids"],
            attention_mask=batch.inputs["attention_mask"],
            decoder_input_ids=start,
            generation_config=settings,
            stopping_criteria=[_OwnLength(longest, start.shape[1])],
            logits_processor=LogitsProcessorList([watch]),
        )
    watch.check(subject)
    assert subject.tokenizer is not None  # or the sources could not have been encoded
    texts: list[str] = subject.tokenizer.batch_decode(
        ids, skip_special_tokens=True, clean_up_tokenization_spaces=False
    )
    return [text.strip() for text in texts]


def longest_output(source_tokens: Tensor, asked: int | None) -> Tensor:
    """How many tokens each translation may have: as asked, or twice its source and 16.

    >>> longest_output(torch.tensor([3, 20]), None).tolist()
    [22, 56]
    """
    if asked is not None:
        return torch.full_like(source_tokens, asked)
    return 2 * source_tokens + 16


class _OwnLength(StoppingCriteria):
    """Ends each sentence at its own longest length, whatever the batch is."""

    def __init__(self, longest: Tensor, start: int) -> None:
        self._longest = longest
        self._start = start

    def __call__(self, input_ids: Tensor, scores: Any, **kwargs: Any) -> Tensor:
        """Which rows (beams of one sentence lie side by side) are long enough."""
        per_sentence = input_ids.shape[0] // len(self._longest)
        longest = self._longest.repeat_interleave(per_sentence)
        return longest <= input_ids.shape[1] - self._start


class _Watch(LogitsProcessor):
    """Remembers whether any score was not a number, without stopping for it."""

    def __init__(self) -> None:
        self._broken: Tensor | None = None

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        """Look, and change nothing."""
        found = scores.isnan().any()
        self._broken = found if self._broken is None else self._broken | found
        return scores

    def check(self, subject: Subject) -> None:
        """Raise if there was one, naming the weights to blame where there are any."""
        if self._broken is None or not self._broken:
            return
        check_finite(subject)
        raise ModelError(
            f"{subject.name} scores next words with NaN, although all its weights are numbers; "
            f"{subject.dtype} may be too small: load it with dtype='float32'."
        )


# --- BLEU of translations -----------------------------------------------------------------------

COLUMNS = (
    "length",
    "reference length",
    *(f"{order}-gram matches" for order in range(1, 5)),
    *(f"{order}-grams" for order in range(1, 5)),
)


def bleu_metric(tokenize: str | None = None) -> Metric:
    """Corpus BLEU as sacreBLEU has it (Post 2018), with its signature.

    >>> bleu_metric().signature
    'nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:...'
    """
    judge = _judge(tokenize, effective_order=False)
    judge.corpus_score(["a"], [["a"]])  # the number of references is part of the signature
    return Metric(
        "bleu", COLUMNS, bleu, each=sentence_bleu, signature=judge.get_signature().format()
    )


def bleu_counts(hypothesis: str, reference: str, tokenize: str | None = None) -> list[float]:
    """What BLEU counts in one translation, in the order that `headcount.stats.bleu` takes.

    >>> bleu_counts("a b c", "a b d")
    [3, 3, 2, 1, 0, 0, 3, 2, 1, 0]
    """
    score = _judge(tokenize, effective_order=True).sentence_score(hypothesis, [reference])
    return [score.sys_len, score.ref_len, *score.counts, *score.totals]


def sentence_bleu(counts: Floats) -> Floats:
    """BLEU of each sentence alone, over the orders it is long enough for: ``[..., 10]``.

    What sacreBLEU's sentence_bleu gives: zero matches smoothed (Chen & Cherry 2014, method 3).

    >>> sentence_bleu(np.array([bleu_counts("a b c", "a b d")], dtype=float)).round(2)
    array([55.03])
    """
    return np.array(
        [
            BLEU.compute_bleu(
                *(matches.tolist(), totals.tolist(), int(lengths[0]), int(lengths[1])),
                smooth_method="exp",
                effective_order=True,
            ).score
            for lengths, matches, totals in (np.split(row, (2, 6)) for row in counts)
        ]
    )


@lru_cache
def _judge(tokenize: str | None, effective_order: bool) -> BLEU:
    known = [name for name in BLEU.TOKENIZERS if name != "none"]
    if tokenize is not None and tokenize not in BLEU.TOKENIZERS:
        raise UsageError(
            f"sacreBLEU has no tokenizer '{tokenize}'; choose one of {', '.join(known)}, or leave "
            "tokenize out for 13a."
        )
    return BLEU(tokenize=tokenize, effective_order=effective_order)


# --- chrF of translations from counts of character n-grams, sentence by sentence ----------------

#: Character n-grams of length 1 to 6.
ORDERS = 6
_RECALL = 2.0  # recall weighs twice as much as precision


def chrf_metric() -> Metric:
    """chrF2 as sacreBLEU has it, with its signature.

    >>> chrf_metric().signature
    'nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:...'
    """
    judge = CHRF()
    judge.corpus_score(["a"], [["a"]])
    names = ("{}-grams", "reference {}-grams", "{}-gram matches")
    columns = tuple(name.format(n) for n in range(1, ORDERS + 1) for name in names)
    return Metric("chrf", columns, chrf, signature=judge.get_signature().format())


def chrf_counts(hypothesis: str, reference: str) -> list[float]:
    """For each order: n-grams of the output, of the reference, and their matches; spaces left out.

    Popović 2015, section 2.

    >>> chrf_counts("abc", "ab d")[:6]
    [3, 3, 2, 2, 2, 1]
    """
    counts: list[float] = []
    both = (extract_all_char_ngrams(text, ORDERS) for text in (hypothesis, reference))
    for mine, yours in zip(*both, strict=True):
        # An order that the reference is too short for is no mistake of the output.
        counts += [mine.total() if yours else 0, yours.total(), (mine & yours).total()]
    return counts


def chrf(sums: Floats) -> Floats:
    """chrF2, 0 to 100, of summed counts ``[..., 18]``.

    The F-score of mean precision and mean recall, over the orders that both sides have.

    >>> chrf(np.array(chrf_counts("abc", "ab d"), dtype=float)).round(2)
    np.float64(38.89)
    """
    if sums.shape[-1] != 3 * ORDERS:
        raise StatsError(f"chrF is made of {3 * ORDERS} statistics, not of {sums.shape[-1]}.")
    ours, theirs, matches = (sums[..., place::3] for place in range(3))
    there = (ours > 0) & (theirs > 0)
    orders = np.maximum(there.sum(axis=-1), 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        precision = np.where(there, matches / ours, 0.0).sum(axis=-1) / orders
        recall = np.where(there, matches / theirs, 0.0).sum(axis=-1) / orders
        score = 100 * (1 + _RECALL**2) * precision * recall / (_RECALL**2 * precision + recall)
    return np.where(precision + recall > 0, score, 0.0)[()]


# --- Translation --------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Translation(TokenTask):
    """Sources with reference translations."""

    kind: ClassVar[str] = "translation"
    needs: ClassVar[str] = (
        "translation needs an encoder-decoder with a language-modelling head, such as "
        "MarianMTModel or T5ForConditionalGeneration"
    )

    beams: int = 4
    #: The longest output; None for twice the source and 16 tokens.
    max_new_tokens: int | None = None
    #: As the model has it where None.
    length_penalty: float | None = None
    #: sacreBLEU's tokenizer; None for 13a.
    tokenize: str | None = None
    #: A metric of the caller's own, called for each sentence.
    judge: Any = None

    @property
    def generates(self) -> bool:
        """BLEU and chrF are of translations; the loss is of the reference."""
        return self.judge is not None or self.metric.name != "loss"

    def check(self, subject: Subject) -> None:
        """Raise unless the model is an encoder-decoder that can generate."""
        if not subject.inner.config.is_encoder_decoder or not subject.inner.can_generate():
            raise refuse(subject, self.needs)

    def encode(self, subject: Subject, batch_size: int) -> Encoded:
        """Sources and targets, longest first; labels are in."""
        return self.encoded(self.examples, subject, batch_size)

    def answer(self, subject: Subject, batch: Batch) -> Any:
        """Translations by beam search; for the loss, logits on the reference."""
        if not self.generates:
            return super().answer(subject, batch)
        return translate(
            subject,
            batch,
            beams=self.beams,
            max_new_tokens=self.max_new_tokens,
            length_penalty=self.length_penalty,
        )

    def chance(self, subject: Subject) -> float | None:
        """What references reach as each other's translations; for the loss, as their tokens say."""
        if not self.generates:
            return super().chance(subject)
        targets = [pair.target for pair in self.examples]
        everything = Batch({}, {}, list(range(len(self))))
        return self.metric.value(self.mark([*targets[1:], targets[0]], everything).statistics)

    def mark(self, answer: Any, batch: Batch) -> Marks:
        """Loss and tokens, or what the metric counts in each translation."""
        if not self.generates:
            return super().mark(answer, batch)
        count = chrf_counts
        if self.metric.name == "bleu":
            count = partial(bleu_counts, tokenize=self.tokenize)
        references = [self.examples[number].target for number in batch.index]
        if self.judge is not None:
            both = zip(answer, references, strict=True)
            scores = [[called(self.judge, [one], [true]), 1.0] for one, true in both]
            return Marks(np.array(scores), answer)
        return Marks(np.array(list(map(count, answer, references)), dtype=np.float64), answer)


def translation(
    examples: Any,
    metric: Any = "bleu",
    *,
    beams: int = 4,
    max_new_tokens: int | None = None,
    length_penalty: float | None = None,
    tokenize: str | None = None,
    source: Column = None,
    target: Column = None,
    header: bool | None = None,
) -> Translation:
    """A translation task from (source, target) pairs, or a file of them.

    `metric` is "bleu" or "chrf" of the model's own translations (beam search, judged as
    sacreBLEU does), or "loss": nats a token of the references; or a function of a list of
    translations and one of references (or a metric of Hugging Face's evaluate), called for each
    sentence and averaged. A .tsv needs no header; name
    columns (`source`, `target`) in a file that has one.

    >>> translation([("Rain fell.", "Regen fiel.")], metric="chrf")
    Translation('examples in hand', 1 examples, chrf)
    """
    known: dict[str, Callable[[], Metric]] = {
        "bleu": partial(bleu_metric, tokenize),
        "chrf": chrf_metric,
        "loss": lambda: LOSS,
    }
    judge = None if isinstance(metric, str) else metric
    if judge is None:
        chosen = choose_metric("translation", metric, known)()
    else:
        name, columns = function_name(judge), ("score", "sentences")
        better = more_is_better(judge)
        chosen = Metric(name, columns, ratio, higher_is_better=better, test="sign-flip")
    for name, number in (("beams", beams), ("max_new_tokens", max_new_tokens)):
        if number is not None and number < 1:
            raise UsageError(f"{name} is {number}; it must be 1 or more.")
    found = read_translations(examples, columns=(source, target), header=header)
    return Translation(
        found.examples, chosen, found.name, beams, max_new_tokens, length_penalty, tokenize, judge
    )


# --- A translator's own translations in place of the references ---------------------------------


def own_output(
    subject: Subject,
    corpus: Any,
    *,
    beams: int = 4,
    batch_size: int = 16,
) -> list[Pair]:
    """Each source with what the model makes of it, in the corpus' order.

    Sources of which nothing came, or that have no token, are left out: compare the lengths.

    Targets that the corpus has are not looked at; words of the sources are kept. A survey of these
    pairs shows the decoder's and the cross heads as they are at work, not on somebody else's words.
    """
    if "cross" not in subject.anatomy.stacks or not subject.inner.can_generate():
        raise UsageError(
            f"{subject.name} is a {type(subject.inner).__name__}, which translates nothing; "
            "its own output can be had of encoder-decoders with a language-modelling head."
        )
    items = list(read_corpus(corpus))
    sources = [texts_of(item)[0] for item in items]
    # Targets only say how the decoder starts, so the sources themselves will do.
    batches = encode(
        [Pair(source, source) for source in sources],
        subject.tokenizer,
        stacks=subject.anatomy.stacks,
        intake=intake_of(subject.model, subject.tokenizer),
        batch_size=batch_size,
    )
    told: dict[int, str] = {}
    with working("Translating", len(sources)) as shown, torch.no_grad():
        for batch in batches:
            told.update(zip(batch.index, translate(subject, batch, beams=beams), strict=True))
            shown.to(len(told))
    return [
        Pair(source, told[place], annotated=(sentences_of(items[place])[0], None))
        for place, source in enumerate(sources)
        if told.get(place)
    ]
