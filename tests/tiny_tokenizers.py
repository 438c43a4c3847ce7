"""Small real tokenizers of every kind, trained on the spot: no file, no network.

Each builder trains once a session and hands out the same object, so a test that changed its
tokenizer would be caught by the next one. `BUILDERS` names them all.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

import sentencepiece
from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import (
    BertTokenizer,
    ByT5Tokenizer,
    EsmTokenizer,
    GPT2Tokenizer,
    LlamaTokenizer,
    M2M100Tokenizer,
    MarianTokenizer,
    MBartTokenizer,
    PreTrainedTokenizerBase,
    RobertaTokenizer,
    T5Tokenizer,
    XLMRobertaTokenizer,
    XLNetTokenizer,
)
from transformers.models.bert.tokenization_bert_legacy import BertTokenizerLegacy

ENGLISH = [
    "The old ferry leaves at noon, and nobody is ever late.",
    "She mends clocks; her brother, oddly, breaks them.",
    "Rain fell on the tin roof all night long.",
    "Two crows argued over a crust of bread.",
    "Where did you put the blue ladder?",
    "He reads slowly, word by word, with a pencil.",
    "Our neighbours keep bees, geese and a very old goat.",
    'The sign said: "No bathing - deep water!"',
    "Nothing grows under the walnut tree...",
    "They sold the mill (and the pond) in 1902.",
]
GERMAN = [
    "Die alte Fähre legt mittags ab, und niemand kommt je zu spät.",
    "Sie repariert Uhren; ihr Bruder macht sie seltsamerweise kaputt.",
    "Die ganze Nacht fiel Regen auf das Blechdach.",
    "Zwei Krähen stritten sich um eine Brotkruste.",
    "Wohin hast du die blaue Leiter gestellt?",
    "Er liest langsam, Wort für Wort, mit einem Bleistift.",
    "Unsere Nachbarn halten Bienen, Gänse und eine sehr alte Ziege.",
    "Auf dem Schild stand: „Baden verboten - tiefes Wasser!“",
    "Unter dem Walnussbaum wächst nichts...",
    "Sie verkauften die Mühle (und den Teich) im Jahr 1902.",
]
PAIRS = list(zip(ENGLISH, GERMAN, strict=True))
CHAT_TEMPLATE = (
    "{% for message in messages %}{% if loop.first and message['role'] != 'system' %}"
    "<|im_start|>system\nBe kind.<|im_end|>\n{% endif %}"
    "<|im_start|>{{ message['role'] }}\n{{ message['content'] }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)


@cache
def wordpiece() -> PreTrainedTokenizerBase:
    """BERT's: fast WordPiece, [CLS] and [SEP], token types."""
    return BertTokenizer(vocab=_wordpiece_vocabulary())


@cache
def python_wordpiece() -> PreTrainedTokenizerBase:
    """BERT's older one, in Python."""
    path = _folder() / "vocab.txt"
    words = sorted(_wordpiece_vocabulary().items(), key=lambda item: item[1])
    path.write_text("".join(f"{word}\n" for word, _ in words), encoding="utf-8")
    return BertTokenizerLegacy(str(path))


@cache
def gpt2() -> PreTrainedTokenizerBase:
    """GPT-2's: fast byte-level BPE; nothing added, no padding token, BOS is EOS."""
    vocab, merges = _byte_bpe(["<|endoftext|>"])
    return GPT2Tokenizer(vocab=vocab, merges=merges)


@cache
def chatty() -> PreTrainedTokenizerBase:
    """An instruct model's: byte-level BPE with a ChatML template."""
    vocab, merges = _byte_bpe(["<|endoftext|>", "<|im_start|>", "<|im_end|>"])
    tokenizer = GPT2Tokenizer(
        vocab=vocab,
        merges=merges,
        eos_token="<|im_end|>",
        additional_special_tokens=["<|im_start|>", "<|im_end|>"],
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


@cache
def roberta() -> PreTrainedTokenizerBase:
    """RoBERTa's and BART's: byte-level BPE with <s> and </s>."""
    vocab, merges = _byte_bpe(["<s>", "<pad>", "</s>", "<unk>", "<mask>"])
    return RobertaTokenizer(vocab=vocab, merges=merges)


@cache
def llama() -> PreTrainedTokenizerBase:
    """Llama 2's: BPE with ▁ and byte fallback; BOS in front, nothing behind."""
    trained = Tokenizer(models.BPE(byte_fallback=True))
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    bytes_ = [f"<0x{byte:02X}>" for byte in range(256)]
    specials = ["<unk>", "<s>", "</s>", *bytes_]
    trained.train_from_iterator(
        ENGLISH + GERMAN, trainers.BpeTrainer(vocab_size=500, special_tokens=specials)
    )
    model = json.loads(trained.to_str())["model"]
    merges = [tuple(merge) for merge in model["merges"]]
    return LlamaTokenizer(vocab=model["vocab"], merges=merges, add_bos_token=True)


@cache
def t5() -> PreTrainedTokenizerBase:
    """T5's: fast Unigram, </s> behind, no separator."""
    return T5Tokenizer(vocab=_unigram(["<pad>", "</s>", "<unk>"]), extra_ids=3)


@cache
def xlm_roberta() -> PreTrainedTokenizerBase:
    """XLM-R's: fast Unigram with <s> and </s>."""
    return XLMRobertaTokenizer(vocab=_unigram(["<s>", "<pad>", "</s>", "<unk>"]))


@cache
def xlnet() -> PreTrainedTokenizerBase:
    """XLNet's: fast Unigram; <sep> and <cls> behind."""
    names = ["<unk>", "<s>", "</s>", "<cls>", "<sep>", "<pad>", "<mask>"]
    return XLNetTokenizer(vocab=_unigram(names, unknown=0))


@cache
def mbart() -> PreTrainedTokenizerBase:
    """mBART's: fast Unigram; </s> and the language code behind, another code on the target side."""
    vocab = _unigram(["<s>", "<pad>", "</s>", "<unk>"])
    return MBartTokenizer(vocab=vocab, src_lang="en_XX", tgt_lang="de_DE")


@cache
def marian() -> PreTrainedTokenizerBase:
    """Marian's: Python SentencePiece, one model a side, one shared vocabulary."""
    folder = _folder()
    pieces = [_sentencepiece(folder / "source.spm", ENGLISH)]
    pieces.append(_sentencepiece(folder / "target.spm", GERMAN))
    shared = sorted({piece for side in pieces for piece in side} - {"<s>", "</s>", "<unk>"})
    _write(folder / "vocab.json", ["</s>", "<unk>", *shared, "<pad>"])
    files = [str(folder / name) for name in ("source.spm", "target.spm", "vocab.json")]
    return MarianTokenizer(*files)


@cache
def marian_two_vocabularies() -> PreTrainedTokenizerBase:
    """Marian's with a vocabulary a side: one id means two things."""
    folder = _folder()
    english = _sentencepiece(folder / "source.spm", ENGLISH)
    german = _sentencepiece(folder / "target.spm", GERMAN)
    for name, pieces in (("vocab.json", english), ("target_vocab.json", german)):
        own = sorted(set(pieces) - {"<s>", "</s>", "<unk>"}, reverse=name == "vocab.json")
        _write(folder / name, ["</s>", "<unk>", "<pad>", *own])
    names = ("source.spm", "target.spm", "vocab.json", "target_vocab.json")
    files = [str(folder / name) for name in names]
    return MarianTokenizer(*files, separate_vocabs=True)


@cache
def m2m100() -> PreTrainedTokenizerBase:
    """M2M100's: Python SentencePiece; the language code in front, </s> behind."""
    folder = _folder()
    pieces = _sentencepiece(folder / "both.spm", ENGLISH + GERMAN)
    own = [piece for piece in pieces if piece not in ("<s>", "</s>", "<unk>")]
    _write(folder / "vocab.json", ["<s>", "<pad>", "</s>", "<unk>", *own])
    vocab, model = str(folder / "vocab.json"), str(folder / "both.spm")
    return M2M100Tokenizer(vocab, model, src_lang="en", tgt_lang="de")


@cache
def esm() -> PreTrainedTokenizerBase:
    """ESM's: Python, a token a residue, found by the same switch that finds special tokens."""
    path = _folder() / "vocab.txt"
    residues = [*"LAGVSERTIDPKQNFYMHWCXBUZO.-"]
    path.write_text("\n".join(["<cls>", "<pad>", "<eos>", "<unk>", *residues, "<mask>"]))
    return EsmTokenizer(str(path))


@cache
def byt5() -> PreTrainedTokenizerBase:
    """ByT5's: Python, a token a byte."""
    return ByT5Tokenizer(extra_ids=3)


#: Every kind by name.
BUILDERS: dict[str, Callable[[], PreTrainedTokenizerBase]] = {
    builder.__name__: builder
    for builder in (
        wordpiece,
        python_wordpiece,
        gpt2,
        chatty,
        roberta,
        llama,
        t5,
        xlm_roberta,
        xlnet,
        mbart,
        marian,
        marian_two_vocabularies,
        m2m100,
        esm,
        byt5,
    )
}
#: Those that encode one text for an encoder.
ENCODERS = ("wordpiece", "python_wordpiece", "roberta", "t5", "xlm_roberta", "xlnet", "byt5")
#: Those that encode one text for a decoder-only model.
DECODERS = ("gpt2", "chatty", "llama")
#: Those that encode a source and a target.
TRANSLATORS = ("t5", "roberta", "mbart", "marian", "marian_two_vocabularies", "m2m100")


def _folder() -> Path:
    """A folder for the files that a tokenizer insists on; it lives as long as the session."""
    holder = tempfile.TemporaryDirectory()
    _KEPT.append(holder)
    return Path(holder.name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def _wordpiece_vocabulary() -> dict[str, int]:
    trained = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    trained.normalizer = normalizers.BertNormalizer(lowercase=True)
    trained.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    # Letters inside words are named beforehand: the trainer would number them by chance, and break
    # ties by their numbers.
    letters = sorted(set(trained.normalizer.normalize_str("".join(ENGLISH + GERMAN))))
    trainer = trainers.WordPieceTrainer(
        vocab_size=400,
        special_tokens=specials + [f"##{letter}" for letter in letters if letter.isalnum()],
        initial_alphabet=list("[]<>|/._-,;!?sepclmaknudofti"),
    )
    trained.train_from_iterator(ENGLISH + GERMAN, trainer)
    return dict(trained.get_vocab())


def _byte_bpe(specials: list[str]) -> tuple[dict[str, int], list[tuple[str, str]]]:
    trained = Tokenizer(models.BPE())
    trained.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=specials,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    )
    trained.train_from_iterator(ENGLISH + GERMAN, trainer)
    model = json.loads(trained.to_str())["model"]
    return model["vocab"], [tuple(merge) for merge in model["merges"]]


def _unigram(specials: list[str], unknown: int = 2) -> list[tuple[str, float]]:
    trained = Tokenizer(models.Unigram())
    trained.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=300,
        special_tokens=[AddedToken(name, special=True) for name in specials],
        unk_token="<unk>",
        initial_alphabet=list("<>/[]|_"),
    )
    trained.train_from_iterator(ENGLISH + GERMAN, trainer)
    pieces = json.loads(trained.to_str())["model"]["vocab"]
    # In one order, without the last digits: what the trainer leaves to chance.
    ordered = pieces[: len(specials)] + sorted(pieces[len(specials) :])
    return [(piece, round(score, 2)) for piece, score in ordered]


def _sentencepiece(path: Path, lines: list[str]) -> list[str]:
    """Train a SentencePiece model into a file; its pieces in order."""
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(lines * 3),
        model_prefix=str(path.with_suffix("")),
        vocab_size=200,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    path.with_suffix(".model").rename(path)
    model = sentencepiece.SentencePieceProcessor(model_file=str(path))
    return [model.id_to_piece(number) for number in range(model.get_piece_size())]


def _write(path: Path, pieces: list[str]) -> None:
    vocabulary = {piece: number for number, piece in enumerate(pieces)}
    path.write_text(json.dumps(vocabulary), encoding="utf-8")
