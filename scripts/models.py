"""Fetch the real models that tests and docs read; `make models` runs this.

python scripts/models.py [minilm] [smollm2] [e5-small] [gemma3-270m] [qwen2.5-coder-1.5b]
    [whisper-tiny.en] [t5-titles]
"""

import sys

from headcount.errors import HeadcountError
from headcount.rooms.fetch import fetch_models

try:
    for line in fetch_models(sys.argv[1:]):
        print(line, flush=True)
except HeadcountError as problem:
    sys.exit(str(problem))
