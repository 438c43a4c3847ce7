"""`hc.report`: a run or a table as one page on disk, which a notebook shows inline."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from headcount.report.packing import Fineness
from headcount.report.page import write_page

if TYPE_CHECKING:
    from headcount.run import Run
    from headcount.table import HeadTable

__all__ = ["Report", "report"]

#: Bytes of a page that a notebook may hold; above it, a notebook points to the file.
INLINE = 5_000_000
_HEIGHT = 900


@dataclass(frozen=True, repr=False)
class Report:
    """A page that was written; shown inline by a notebook, opened by a browser."""

    path: Path

    def __repr__(self) -> str:
        return f"Report('{self.path}', {self.bytes / 1e6:.2f} MB)"

    def __fspath__(self) -> str:
        return str(self.path)

    @property
    def bytes(self) -> int:
        """How large the file is."""
        return self.path.stat().st_size

    @property
    def html(self) -> str:
        """The whole page."""
        return self.path.read_text(encoding="utf-8")

    def open(self) -> bool:
        """Show it in the browser; False where there is none."""
        import webbrowser

        return webbrowser.open(self.path.resolve().as_uri())

    def _repr_html_(self) -> str:
        """The page in a frame that can reach nothing else; a large one as a path alone."""
        if self.bytes > INLINE:
            return _pointed(self)
        return _framed(self)


def report(
    run_or_table: Run | HeadTable | str | Path,
    path: str | Path = "report.html",
    exhibits: bool = True,
    maps: Fineness = "fine",
    compare: Run | HeadTable | str | Path | None = None,
) -> Report:
    """Write a run directory, or a table, as one HTML file that needs nothing else.

    What the run does not hold is shown as not measured. Without `exhibits` no text of the corpus
    is in the page; `maps` is "fine", "coarse" (smaller) or "none"; `compare` is a second run of
    the same architecture. The file is there whole, or not at all.

    >>> import tempfile
    >>> from headcount.heads import Head
    >>> from headcount.table import HeadTable
    >>> table = HeadTable.of([Head("enc", 0, 0), Head("enc", 0, 1)], {"confidence": [0.2, 0.9]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(report(table, Path(folder, "report.html")).path.name)
    report.html
    """
    return Report(write_page(run_or_table, path, maps=maps, exhibits=exhibits, compare=compare))


def _framed(page: Report) -> str:
    """Inline: srcdoc, since some notebooks show no file; sandboxed, so that styles stay inside."""
    told = f"This report is in {page.path}; trust the notebook to see it here."
    return (
        f'<iframe sandbox="allow-scripts allow-downloads" title="headcount report" width="100%" '
        f'height="{_HEIGHT}" style="border:1px solid rgba(128,128,128,.4)" '
        f'srcdoc="{escape(page.html, quote=True)}">{escape(told)}</iframe>'
        f"<noscript>{escape(told)}</noscript>"
    )


def _pointed(page: Report) -> str:
    return (
        f"<p><b>{escape(_title(page.html))}</b><br>This report has {page.bytes / 1e6:.1f} MB, too "
        f"much for a notebook; open <code>{escape(str(page.path))}</code> in a browser.</p>"
    )


def _title(html: str) -> str:
    """The page's title, which is escaped there."""
    from html import unescape

    return unescape(html.partition("<title>")[2].partition("</title>")[0])
