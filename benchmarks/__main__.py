"""`python -m benchmarks`: measure every speed promise; results go to benchmarks/results."""

from __future__ import annotations

from benchmarks import gradient, survey

BENCHMARKS = {"survey": survey.main, "gradient": gradient.main}


def main() -> None:
    for name, measure in BENCHMARKS.items():
        print(f"{name} ...", flush=True)
        measure()


if __name__ == "__main__":
    main()
