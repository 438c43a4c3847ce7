"""The report: one HTML file that holds a run, opened from disk, and asks nothing of the network."""

from headcount.report.page import write_page

__all__ = ["write_page"]
