"""The pictures of the README, from what was really shown: `make picture` writes them anew.

A refusal in a terminal, as SVG; no font is fetched by whoever looks at it. The pages of a run and of its evidence, over
the landing page of the demonstration.
"""

import os
import re
import tempfile
from io import StringIO
from pathlib import Path
from typing import Final

from playwright.sync_api import sync_playwright
from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from interlock.gates.collect import find_browser
from scripts.demo_ui import landing_page
from tests.interlock.replay import Shop
from tests.web.browsing import served, visit

PICTURE: Final = Path(__file__).resolve().parent.parent / "docs" / "images" / "refusal.svg"
COLUMNS: Final = 78
SESSION: Final = (
    ("ann", 'interlock reserve src/login.py --reason "new token check"'),
    ("ann", 'echo "# checks the token" >> src/login.py'),
    ("bob", 'git commit -am "Cart: totals"'),
)
LABELS: Final = r"^  (expected|fix|to get a file):|^interlock [A-Z]+\d+:"


def session() -> Text:
    """Run the session in a fresh checkout and return what both saw."""
    seen = Text()
    with tempfile.TemporaryDirectory() as folder:
        shop = Shop(Path(folder))
        shop.begin()
        for name, command in SESSION:
            seen.append(f"{name}$ ", style="bold green" if name == "ann" else "bold cyan")
            seen.append(f"{command}\n", style="bold")
            seen.append(shop.run(name, command))
    seen.rstrip()
    seen.highlight_regex(LABELS.replace("^", "(?m)^", 1), "bold red")
    return seen


def svg(text: Text) -> str:
    """Return a terminal window with a text, without anything that is fetched."""
    console = Console(record=True, width=COLUMNS, file=StringIO(), force_terminal=True, highlight=False)
    console.print(text)
    plain = re.sub(r"\s*@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    plain = plain.replace("Fira Code", "ui-monospace, SFMono-Regular, Menlo, Consolas, DejaVu Sans Mono")
    window = console.export_svg(title="two agents, one checkout", code_format=plain, unique_id="refusal")
    # Nothing is cut at a height that is too small for another font.
    return re.sub(r' clip-path="url\(#refusal-[\w-]+\)"', "", window)


def pages(folder: Path, out: Path) -> None:
    """Run the demonstration, open its pages in a browser, and take a picture of the run and of its evidence."""
    root = folder / "landing-page"
    landing_page(root)
    with served(root) as server, sync_playwright() as playwright:
        flags = ["--no-sandbox"] if os.geteuid() == 0 else []
        browser = playwright.chromium.launch(executable_path=find_browser(), args=flags)
        context, window = visit(browser, server, "decide", viewport={"width": 1280, "height": 900})
        for name, path in (("run", ""), ("evidence", "/evidence")):
            window.open(f"/landing-page/runs/LANDING-UI-001.1{path}")
            window.page.screenshot(path=str(out / f"{name}.png"))
        context.close()
        browser.close()


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(svg(session()), encoding="utf-8")
    with tempfile.TemporaryDirectory() as made:
        pages(Path(made), PICTURE.parent)
