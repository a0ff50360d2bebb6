"""Rows of what reading finds in the bytes and characters of a response (ENV101-ENV109, ENV111, ENV112)."""

from typing import Final

from interlock.core.rule import Rule, error_rule

_OURS: Final = "Interlock: a response must read the same to every reader"

CHARACTER_RULES: Final = (
    error_rule(
        "ENV101",
        "A response is at most as large as the limit.",
        "Interlock: reading costs what its size allows",
        "Shorten OUTPUT; name files in INPUTS_USED or EVIDENCE instead of quoting them.",
        "a response of 4 KiB",
        "a response of 100 MB",
    ),
    error_rule(
        "ENV102",
        "A response is not empty.",
        "Strict Envelope §1 Scope",
        "Answer with the complete envelope, from `STATUS:` to the last step of NEXT_ACTIONS.",
        "STATUS: IN_PROGRESS",
        "(no text at all)",
    ),
    error_rule(
        "ENV103",
        "A response is UTF-8.",
        _OURS,
        "Write the response in UTF-8.",
        "TASK: Build the café page",
        "TASK: Build the caf\\xE9 page (one byte of Latin-1)",
    ),
    error_rule(
        "ENV104",
        "A response is not UTF-16 or UTF-32.",
        _OURS,
        "Write the response in UTF-8 without a byte order mark.",
        "STATUS: IN_PROGRESS",
        "S\\0T\\0A\\0T\\0U\\0S\\0:\\0",
    ),
    error_rule(
        "ENV105",
        "A response does not begin with a byte order mark.",
        "Strict Envelope §2 Required Envelope: STATUS comes first",
        "Take the byte order mark (U+FEFF) out.",
        "STATUS: IN_PROGRESS",
        "\\u{FEFF}STATUS: IN_PROGRESS",
    ),
    error_rule(
        "ENV106",
        "A response holds no control character but tab and line ends.",
        _OURS,
        "Take the control characters out.",
        "TASK: Build the page",
        "TASK: Build\\u{0007} the page",
    ),
    error_rule(
        "ENV107",
        "Only LF and CRLF end a line.",
        _OURS,
        "End lines with LF or CRLF; take every other line-breaking character out.",
        "TASK: Build the page",
        "TASK: Build\\u{2028}the page",
    ),
    error_rule(
        "ENV108",
        "A response holds no bidirectional override, embedding or isolate.",
        _OURS,
        "Take the bidirectional controls out.",
        "TASK: Build the page",
        "TASK: Build \\u{202E}egap eht",
    ),
    error_rule(
        "ENV109",
        "A response holds no invisible character; joiners and variation selectors are allowed in free text.",
        _OURS,
        "Take the invisible characters out.",
        "TASK: Build the page",
        "TASK: Build\\u{200B} the page",
    ),
    error_rule(
        "ENV111",
        "A response holds whole characters.",
        _OURS,
        "Write the character that was meant.",
        "TASK: Build the page",
        "TASK: Build \\u{D83D} the page",
    ),
    Rule(
        "ENV112",
        "warning",
        "Free text holds no character that nobody sees, but for those of emoji.",
        _OURS,
        "Take the characters out where the script of the text does not need them.",
        "TASK: Build the page \\u{2764}\\u{FE0F}",
        "TASK: Build the\\u{00AD}page",
    ),
)
