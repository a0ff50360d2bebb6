"""The picture of a refusal in the README, from what a terminal really showed: `make picture` writes it anew.

No font is fetched by whoever looks at it: it uses the reader's own fixed-width one.
"""

import re
import tempfile
from io import StringIO
from pathlib import Path
from typing import Final

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from tests.interlock.replay import Shop

PICTURE: Final = Path(__file__).resolve().parent.parent / "docs" / "images" / "refusal.svg"
COLUMNS: Final = 78
SESSION: Final = (
    ("ann", 'interlock reserve src/login.py --reason "new token check"'),
    ("ann", 'echo "# checks the token" >> src/login.py'),
    ("bob", 'git commit -am "Cart: totals"'),
)
LABELS: Final = r"^  (expected|fix|to get it):|^interlock [A-Z]+\d+:"


def session() -> Text:
    """Play the session in a fresh checkout and return what both saw."""
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


if __name__ == "__main__":
    PICTURE.parent.mkdir(exist_ok=True)
    PICTURE.write_text(svg(session()), encoding="utf-8")
