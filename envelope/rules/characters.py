"""Rows of what reading finds in the bytes and characters of a response (ENV101-ENV109, ENV111)."""

from typing import Final

from interlock.core.rule import Rule

_OURS: Final = "Interlock: a response must read the same to every reader"

CHARACTER_RULES: Final = (
    Rule(
        "ENV101",
        "error",
        "A response is at most as large as the limit.",
        "Interlock: reading costs what its size allows",
        "Shorten OUTPUT; name files in INPUTS_USED or EVIDENCE instead of quoting them.",
        "a response of 4 KiB",
        "a response of 100 MB",
    ),
    Rule(
        "ENV102",
        "error",
        "A response is not empty.",
        "Strict Envelope §1 Scope",
        "Answer with the complete envelope, from `STATUS:` to the last step of NEXT_ACTIONS.",
        "STATUS: IN_PROGRESS",
        "(no text at all)",
    ),
    Rule(
        "ENV103",
        "error",
        "A response is UTF-8.",
        _OURS,
        "Write the response in UTF-8.",
        "TASK: Build the café page",
        "TASK: Build the caf\\xE9 page (one byte of Latin-1)",
    ),
    Rule(
        "ENV104",
        "error",
        "A response is not UTF-16 or UTF-32.",
        _OURS,
        "Write the response in UTF-8 without a byte order mark.",
        "STATUS: IN_PROGRESS",
        "S\\0T\\0A\\0T\\0U\\0S\\0:\\0",
    ),
    Rule(
        "ENV105",
        "error",
        "A response does not begin with a byte order mark.",
        "Strict Envelope §2 Required Envelope: STATUS comes first",
        "Take the byte order mark (U+FEFF) out.",
        "STATUS: IN_PROGRESS",
        "\\u{FEFF}STATUS: IN_PROGRESS",
    ),
    Rule(
        "ENV106",
        "error",
        "A response holds no control character but tab and line ends.",
        _OURS,
        "Take the control characters out.",
        "TASK: Build the page",
        "TASK: Build\\u{0007} the page",
    ),
    Rule(
        "ENV107",
        "error",
        "Only LF and CRLF end a line.",
        _OURS,
        "End lines with LF or CRLF; take every other line-breaking character out.",
        "TASK: Build the page",
        "TASK: Build\\u{2028}the page",
    ),
    Rule(
        "ENV108",
        "error",
        "A response holds no bidirectional override, embedding or isolate.",
        _OURS,
        "Take the bidirectional controls out.",
        "TASK: Build the page",
        "TASK: Build \\u{202E}egap eht",
    ),
    Rule(
        "ENV109",
        "error",
        "A response holds no invisible character; joiners and variation selectors are allowed in free text.",
        _OURS,
        "Take the invisible characters out.",
        "TASK: Build the page",
        "TASK: Build\\u{200B} the page",
    ),
    Rule(
        "ENV111",
        "error",
        "A response holds whole characters.",
        _OURS,
        "Write the character that was meant.",
        "TASK: Build the page",
        "TASK: Build \\u{D83D} the page",
    ),
)
