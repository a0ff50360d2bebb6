# ruff: noqa: E501  # the regular expressions stand as lark joined them
"""The parser tables of `envelope.lark`, made by lark and kept in step by a test; not edited by hand."""

from typing import Any, Final

LARK_VERSION: Final = "1.3.1"
TABLES: Final[dict[str, Any]] = {
    "data": {
        "parser": {
            "lexer_conf": {
                "terminals": [{"@": 0}, {"@": 1}, {"@": 2}],
                "ignore": [],
                "g_regex_flags": 0,
                "use_bytes": False,
                "lexer_type": "basic",
                "__type__": "LexerConf",
            },
            "parser_conf": {"rules": [{"@": 3}], "start": ["start"], "parser_type": "lalr", "__type__": "ParserConf"},
            "parser": {
                "tokens": {0: "OUTPUT", 1: "$END", 2: "start", 3: "FIELDS", 4: "NEXT_ACTIONS"},
                "states": {0: {0: (0, 4)}, 1: {1: (1, {"@": 3})}, 2: {2: (0, 3), 3: (0, 0)}, 3: {}, 4: {4: (0, 1)}},
                "start_states": {"start": 2},
                "end_states": {"start": 3},
            },
            "__type__": "ParsingFrontend",
        },
        "rules": [{"@": 3}],
        "options": {
            "debug": False,
            "strict": False,
            "keep_all_tokens": False,
            "tree_class": None,
            "cache": False,
            "cache_grammar": False,
            "postlex": None,
            "parser": "lalr",
            "lexer": "basic",
            "transformer": None,
            "start": ["start"],
            "priority": "normal",
            "ambiguity": "auto",
            "regex": False,
            "propagate_positions": False,
            "lexer_callbacks": {},
            "maybe_placeholders": False,
            "edit_terminals": None,
            "g_regex_flags": 0,
            "use_bytes": False,
            "ordered_sets": True,
            "import_paths": [],
            "source_path": "envelope.lark",
            "_plugins": {},
        },
        "__type__": "Lark",
    },
    "memo": {
        0: {
            "name": "FIELDS",
            "pattern": {
                "value": "STATUS:[ \t]*+[^ \t\r\n][^\n]*+\n(?>(?:[ \t]*+\r?\n)*)TASK_ID:[ \t]*+[^ \t\r\n][^\n]*+\n(?>(?:[ \t]*+\r?\n)*)TASK:[ \t]*+[^ \t\r\n][^\n]*+\n(?>(?:[ \t]*+\r?\n)*)ASSIGNED_AGENT:[ \t]*+[^ \t\r\n][^\n]*+\n(?>(?:[ \t]*+\r?\n)*)REPORTS_TO:[ \t]*+[^ \t\r\n][^\n]*+\n(?>(?:[ \t]*+\r?\n)*)INPUTS_USED:(?:[ \t]*+\\[[ \t]*+(?:[^ \t\r\n,\\[\\]][^\r\n,\\[\\]]*+(?>(?:,[ \t]*+[^ \t\r\n,\\[\\]][^\r\n,\\[\\]]*+)*))?\\][ \t]*+\r?\n(?>(?:[ \t]*+\r?\n)*)|[ \t]*+\r?\n(?>(?:[ \t]*+\r?\n)*)(?>(?:[ \t]*+(?:-[ \t]++[^ \t\r\n][^\n]*+|\r?)\n)*))GATES_REQUIRED:(?:[ \t]*+\\[[ \t]*+(?:[^ \t\r\n,\\[\\]][^\r\n,\\[\\]]*+(?>(?:,[ \t]*+[^ \t\r\n,\\[\\]][^\r\n,\\[\\]]*+)*))?\\][ \t]*+\r?\n(?>(?:[ \t]*+\r?\n)*)|[ \t]*+\r?\n(?>(?:[ \t]*+\r?\n)*)(?>(?:[ \t]*+(?:-[ \t]++[^ \t\r\n][^\n]*+|\r?)\n)*))GATES_PASSED:(?:[ \t]*+\\[[ \t]*+(?:[^ \t\r\n,\\[\\]][^\r\n,\\[\\]]*+(?>(?:,[ \t]*+[^ \t\r\n,\\[\\]][^\r\n,\\[\\]]*+)*))?\\][ \t]*+\r?\n(?>(?:[ \t]*+\r?\n)*)|[ \t]*+\r?\n(?>(?:[ \t]*+\r?\n)*)(?>(?:[ \t]*+(?:-[ \t]++[^ \t\r\n][^\n]*+|\r?)\n)*))EVIDENCE:[ \t]*+\r?\n(?>(?:[ \t]*+\r?\n)*)[ \t]*+screenshots:(?:[ \t]*+\\[[ \t]*+(?:[^ \t\r\n,\\[\\]][^\r\n,\\[\\]]*+(?>(?:,[ \t]*+[^ \t\r\n,\\[\\]][^\r\n,\\[\\]]*+)*))?\\][ \t]*+\r?\n(?>(?:[ \t]*+\r?\n)*)|[ \t]*+\r?\n(?>(?:[ \t]*+\r?\n)*)(?>(?:[ \t]*+(?:-[ \t]++[^ \t\r\n][^\n]*+|\r?)\n)*))[ \t]*+a11y:(?:[ \t]*+\\[[ \t]*+(?:[^ \t\r\n,\\[\\]][^\r\n,\\[\\]]*+(?>(?:,[ \t]*+[^ \t\r\n,\\[\\]][^\r\n,\\[\\]]*+)*))?\\][ \t]*+\r?\n(?>(?:[ \t]*+\r?\n)*)|[ \t]*+\r?\n(?>(?:[ \t]*+\r?\n)*)(?>(?:[ \t]*+(?:-[ \t]++[^ \t\r\n][^\n]*+|\r?)\n)*))[ \t]*+console:(?:[ \t]*+\\[[ \t]*+(?:[^ \t\r\n,\\[\\]][^\r\n,\\[\\]]*+(?>(?:,[ \t]*+[^ \t\r\n,\\[\\]][^\r\n,\\[\\]]*+)*))?\\][ \t]*+\r?\n(?>(?:[ \t]*+\r?\n)*)|[ \t]*+\r?\n(?>(?:[ \t]*+\r?\n)*)(?>(?:[ \t]*+(?:-[ \t]++[^ \t\r\n][^\n]*+|\r?)\n)*))[ \t]*+reports:(?:[ \t]*+\\[[ \t]*+(?:[^ \t\r\n,\\[\\]][^\r\n,\\[\\]]*+(?>(?:,[ \t]*+[^ \t\r\n,\\[\\]][^\r\n,\\[\\]]*+)*))?\\][ \t]*+\r?\n(?>(?:[ \t]*+\r?\n)*)|[ \t]*+\r?\n(?>(?:[ \t]*+\r?\n)*)(?>(?:[ \t]*+(?:-[ \t]++[^ \t\r\n][^\n]*+|\r?)\n)*))FAIL_REASONS:(?:[ \t]*+\r?\n(?>(?:[ \t]*+\r?\n)*)[ \t]*+-[ \t]++[^ \t\r\n][^\n]*+\n(?>(?:[ \t]*+(?:-[ \t]++[^ \t\r\n][^\n]*+|\r?)\n)*)|[ \t]*+NONE[ \t]*+\r?\n(?>(?:[ \t]*+\r?\n)*))",
                "flags": [],
                "raw": None,
                "_width": [164, 18446744073709551616],
                "__type__": "PatternRE",
            },
            "priority": 0,
            "__type__": "TerminalDef",
        },
        1: {
            "name": "OUTPUT",
            "pattern": {
                "value": "OUTPUT:(?:[ \t]*+\r?\n(?>(?:[ \t]*+\r?\n)*)(?!(?:STATUS|TASK_ID|TASK|ASSIGNED_AGENT|REPORTS_TO|INPUTS_USED|GATES_REQUIRED|GATES_PASSED|EVIDENCE|FAIL_REASONS|OUTPUT|NEXT_ACTIONS)[ \t]*+:)[^\n]++\n|[ \t]*+[^ \t\r\n][^\n]*+\n(?>(?:[ \t]*+\r?\n)*))(?>(?:(?!(?:STATUS|TASK_ID|TASK|ASSIGNED_AGENT|REPORTS_TO|INPUTS_USED|GATES_REQUIRED|GATES_PASSED|EVIDENCE|FAIL_REASONS|OUTPUT|NEXT_ACTIONS)[ \t]*+:)[^\n]*+\n)*)",
                "flags": [],
                "raw": None,
                "_width": [9, 18446744073709551616],
                "__type__": "PatternRE",
            },
            "priority": 0,
            "__type__": "TerminalDef",
        },
        2: {
            "name": "NEXT_ACTIONS",
            "pattern": {
                "value": "NEXT_ACTIONS:(?:[ \t]*+\r?\n(?>(?:[ \t]*+\r?\n)*)[ \t]*+[0-9]++\\.[ \t]++[^ \t\r\n][^\n]*+\n(?>(?:[ \t]*+(?:[0-9]++\\.[ \t]++[^ \t\r\n][^\n]*+|\r?)\n)*)|[ \t]*+NONE[ \t]*+\r?\n(?>(?:[ \t]*+\r?\n)*))",
                "flags": [],
                "raw": None,
                "_width": [18, 18446744073709551616],
                "__type__": "PatternRE",
            },
            "priority": 0,
            "__type__": "TerminalDef",
        },
        3: {
            "origin": {"name": "start", "__type__": "NonTerminal"},
            "expansion": [
                {"name": "FIELDS", "filter_out": False, "__type__": "Terminal"},
                {"name": "OUTPUT", "filter_out": False, "__type__": "Terminal"},
                {"name": "NEXT_ACTIONS", "filter_out": False, "__type__": "Terminal"},
            ],
            "order": 0,
            "alias": None,
            "options": {
                "keep_all_tokens": False,
                "expand1": False,
                "priority": None,
                "template_source": None,
                "empty_indices": (),
                "__type__": "RuleOptions",
            },
            "__type__": "Rule",
        },
    },
}
