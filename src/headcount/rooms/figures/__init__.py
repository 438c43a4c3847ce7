"""Figures for papers: one function each, from a run, its path, a head table or a frame.

Each returns a matplotlib Figure and, with `path=`, saves it as .svg, .pdf or .png. They need
the extra `plot`: ``pip install 'headcount[plot]'``.
"""

#: What it adds; see `headcount.plugins`.
ADDS = {"names": {"plot": "gallery"}, "parts": {"plan figure": "gallery:draw_plan"}}
