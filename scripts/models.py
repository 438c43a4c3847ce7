"""Fetch the real models that tests and docs read; `make models` runs this.

python scripts/models.py [minilm] [smollm2] [e5-small]
"""

import sys

from headcount.models.finding import fetch_models

sys.exit(fetch_models(sys.argv[1:]))
