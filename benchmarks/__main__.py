"""`python -m benchmarks`: measure every speed promise; results go to benchmarks/results."""

from __future__ import annotations

from benchmarks import ablation, divergence, gradient, pruned, relations, relevance, report, survey

BENCHMARKS = {
    "survey": survey.main,
    "gradient": gradient.main,
    "relations": relations.main,
    "divergence": divergence.main,
    "ablation": ablation.main,
    "relevance": relevance.main,
    "pruned": lambda: pruned.main([]),
    "report": report.main,
}


def main() -> None:
    for name, measure in BENCHMARKS.items():
        print(f"{name} ...", flush=True)
        measure()


if __name__ == "__main__":
    main()
