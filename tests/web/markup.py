"""What a page is made of: its elements and attributes, and whether any of them could run or lead elsewhere."""

import re
from html.parser import HTMLParser
from typing import Final

ADDRESSES: Final = frozenset(
    [
        "href",
        "src",
        "action",
        "formaction",
        "data-events",
        "poster",
        "srcset",
        "cite",
        "ping",
        "xlink:href",
        "background",
        "data",
        "manifest",
        "content",
    ]
)
"""Attributes whose value a browser or a script of the pages takes for an address."""
_ELSEWHERE: Final = re.compile(r"[\x00-\x20]*([a-z][a-z0-9+.\x00-\x20-]*:|[/\\][\x00-\x20]*[/\\])", re.IGNORECASE)
_NEVER: Final = frozenset(
    [
        "script",
        "iframe",
        "object",
        "embed",
        "style",
        "base",
        "frame",
        "frameset",
        "applet",
        "math",
        "foreignobject",
        "template",
        "audio",
        "video",
        "link",
        "meta",
        "animate",
        "set",
        "use",
        "portal",
    ]
)
_OURS: Final = {"script": 3, "link": 2, "meta": 4}
"""How often the frame of every page has them."""

Part = tuple[str, ...]


class Markup(HTMLParser):
    """Reads one page; `parts` is its skeleton, without any text: tags, names of attributes, ends, comments."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.parts: list[Part] = []
        self.faults: list[str] = []
        self.feed(page)
        self.close()
        for tag in _NEVER:
            count = sum(part[0] == tag for part in self.parts)
            if count > _OURS.get(tag, 0):
                self.faults.append(f"{count} elements {tag}")

    @property
    def kinds(self) -> set[Part]:
        """The different parts, whatever their order and number."""
        return set(self.parts)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element, and judge its attributes."""
        self.parts.append((tag, *(name for name, _ in attrs)))
        for name, value in attrs:
            if name.startswith(("on", "x-", "v-", "sse-")) or name in ("style", "srcdoc", "nonce"):
                self.faults.append(f"{tag} {name}")
            if name in ADDRESSES and _ELSEWHERE.match(value or "") and not (name == "content" and tag == "meta"):
                self.faults.append(f"{tag} {name}={value!r}")

    def handle_endtag(self, tag: str) -> None:
        """Note the end of an element."""
        self.parts.append((f"/{tag}",))

    def handle_comment(self, data: str) -> None:
        """Note a comment: no page has one."""
        self.parts.append(("comment",))

    def handle_decl(self, decl: str) -> None:
        """Note a declaration."""
        self.parts.append(("declaration", decl))

    def unknown_decl(self, data: str) -> None:
        """Note a section that HTML does not have."""
        self.parts.append(("section",))

    def handle_pi(self, data: str) -> None:
        """Note a processing instruction."""
        self.parts.append(("instruction",))
