"""Take a picture of a report, as docs and README show it.

python scripts/page_picture.py report.html out.png [--width 1440] [--height 1100] [--dark]
                               [--head enc.5.3] [--whole]
"""

from __future__ import annotations

import argparse
from pathlib import Path

from browser import chromium
from playwright.sync_api import sync_playwright

FLAGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]


def main() -> None:
    parser = argparse.ArgumentParser(description="Take a picture of a report.")
    parser.add_argument("page", help="a file, or the address that `headcount serve` prints")
    parser.add_argument("out", type=Path)
    parser.add_argument("--width", type=int, default=1440)
    parser.add_argument("--height", type=int, default=1100)
    parser.add_argument("--dark", action="store_true")
    parser.add_argument("--head", default="", help="what stands behind the # of the address")
    parser.add_argument("--whole", action="store_true", help="the whole length of the page")
    given = parser.parse_args()
    size = {"width": given.width, "height": given.height}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium(), args=FLAGS)
        scheme = "dark" if given.dark else "light"
        tab = browser.new_page(viewport=size, color_scheme=scheme, device_scale_factor=1)
        live = given.page.startswith("http://127.0.0.1:")
        place = given.page if live else Path(given.page).resolve().as_uri()
        tab.goto(place + (f"#{given.head}" if given.head else ""))
        tab.wait_for_selector("html[data-ready]")
        tab.screenshot(path=given.out, full_page=given.whole)
        browser.close()


if __name__ == "__main__":
    main()
