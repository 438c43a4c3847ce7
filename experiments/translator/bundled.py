"""Score the bundled translator as users load it, and draw how it was trained.

`python -m experiments.translator.bundled --data DIR` writes `docs/results/translator.json` and the
figures beside it.
"""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

import headcount as hc
from headcount import provenance
from headcount.bundle import sample
from headcount.tasks import translation

HERE = Path(__file__).parent
DOCS = HERE.parent.parent / "docs" / "results"
COMMAND = "python -m experiments.translator.bundled"  # as run from the root, without paths
INK, BLUE, RUST = "#333333", "#12419b", "#a0572a"


def scored(subject: hc.Subject, examples: Any, shown: int = 0) -> dict[str, Any]:
    """BLEU with its interval and signature, and as many translations as shall be shown."""
    task = translation(examples, metric="bleu", beams=4)
    outcome = task.evaluate(subject, batch_size=64)
    _, low, high = outcome.interval()
    step = max(1, len(task.examples) // max(1, shown))
    return {
        "pairs": len(task.examples),
        "bleu": round(float(outcome.value), 2),
        "interval": [round(float(low), 2), round(float(high), 2)],
        "signature": outcome.signature,
        "examples": [
            {
                "source": task.examples[place].source,
                "reference": task.examples[place].target,
                "translation": outcome.outputs[place],
            }
            for place in range(0, step * shown, step)
        ],
    }


def draw_training(path: Path) -> None:
    """Dev loss and BLEU over the epochs of both translators."""
    figure, panels = plt.subplots(1, 2, figsize=(8.4, 3))
    for name, colour in (("en-de", BLUE), ("en-ru", RUST)):
        curve = json.loads((HERE / "results" / name / "curve.json").read_text())
        points = [point for point in curve if "dev_bleu" in point]
        epochs = [point["epoch"] for point in points]
        for panel, key in zip(panels, ("dev_loss", "dev_bleu"), strict=True):
            panel.plot(
                epochs, [point[key] for point in points], color=colour, marker=".", label=name
            )
    for panel, title in zip(panels, ("dev loss, nats a token", "dev BLEU, greedy"), strict=True):
        panel.set_title(title, loc="left", fontsize=9, color=INK)
        panel.set_xlabel("epoch", fontsize=8)
        panel.tick_params(labelsize=7)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].legend(frameon=False, fontsize=8)
    _save(figure, path)


def draw_dynamics(path: Path) -> None:
    """Share of the BLEU kept as heads are shut, least important first, at each snapshot."""
    figure, panel = plt.subplots(figsize=(5.6, 3.4))
    told = json.loads((HERE / "results" / "en-de" / "dynamics.json").read_text())
    grown = [shot for shot in told["snapshots"] if shot["curve"][0]["bleu"] > 5]
    for place, shot in enumerate(grown):
        whole = shot["curve"][0]["bleu"]
        shares = [point["bleu"] / whole for point in shot["curve"]]
        shade = plt.get_cmap("viridis")(0.9 - 0.8 * place / max(1, len(grown) - 1))
        label = f"step {shot['step']:,} (BLEU {whole:.1f})"
        panel.plot([p["shut"] / 144 for p in shot["curve"]], shares, color=shade, label=label)
    panel.set_xlabel("share of the 144 heads shut", fontsize=8)
    panel.set_title("share of BLEU kept", loc="left", fontsize=9, color=INK)
    panel.tick_params(labelsize=7)
    panel.legend(frameon=False, fontsize=7)
    panel.spines[["top", "right"]].set_visible(False)
    _save(figure, path)


def _save(figure: Any, path: Path) -> None:
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("HEADCOUNT_DATA"))
    parser.add_argument("--out", type=Path, default=DOCS)
    given = parser.parse_args()
    if given.data is None:
        parser.error("say where the corpora are: --data DIR, or set HEADCOUNT_DATA")
    draw_training(given.out / "translator-training.svg")
    draw_dynamics(given.out / "translator-dynamics.svg")
    subject = hc.load("translator", device="cpu")
    result = {
        "tatoeba test": scored(subject, Path(given.data) / "parallel" / "tatoeba.en-de.test.tsv"),
        "bundled sample": scored(subject, sample.pairs(), shown=8),
        "provenance": provenance.collect(subject=subject.describe()) | {"command": COMMAND},
    }
    (given.out / "translator.json").write_text(
        json.dumps(result, indent=1, ensure_ascii=False) + "\n", encoding="utf8"
    )


if __name__ == "__main__":
    main()
