"""Pairs of patterns by feature, and whether some path matches both, judged by hand: `yes` or `no`, one, the others."""

from typing import Final, NamedTuple


class Pair(NamedTuple):
    group: str
    a: str
    b: str
    overlap: bool

    def __str__(self) -> str:
        return f"{self.group}: {self.a} | {self.b}"


_TABLE: Final = r"""
# one file
yes  a                         a
no   a                         b  A1  aa  a/b  a.
yes  a/b                       a/b
no   src/app.py                src/app.pyi  lib/app.py  app.py
# ways to write one file
yes  a//b                      a/b
yes  a/./b                     a/b
no   ./a                       b
no   a//b                      ab
# a folder
yes  src/                      src/app.py  src/x/y/z  src/**
no   src/                      src  srcs/app.py  lib/src/app.py
yes  .                         a
# one star in a part
no   *.py                      a.pyc  a/b.py
yes  a*                        a  ab
no   a*                        ba  a/b
yes  a*b                       ab  axxb
# star against star
no   ab*                       ac*
yes  *ab                       *b
no   src/*                     */app/x
yes  a*a                       aa  *a
# question marks
yes  ?                         a  .  ?  *
no   ?                         ab  a/b  ??
yes  ??*                       ab  abc
no   a/?                       a?b
# two stars at the end
yes  **                        a  a/b/c  **  .git/config  *  *.py
no   a/**                      a  b/a  ab/c  b*/**  *
no   a/*/**                    a/b
# two stars at the beginning
yes  **/a                      a  b/a  b/c/a  **/a  *  *a  b/*
no   **/a                      b  ba  a/b  **/b
no   **/a/b                    b  a/c/b  **/c/b
yes  **/node_modules/**        packages/**  node_modules/x/index.js
# two stars in the middle
yes  a/**/b                    a/b  a/x/b  a/x/y/b  a/**/b  a/**  **/b  a/*  */b  */*/b  a/x/**/b  a/**/x/b  a/b/**
no   a/**/b                    a  b  ab  a/xb  ax/b  a/**/c  c/**/b  a/b/c
no   a/x/**/b                  a/y/**/b  a/b
# stars that fall together
yes  a/**/**/b                 a/b
no   a**b                      a/b  a/x/b
no   **a                       x/a
yes  **/*                      a  a/b
no   **/*/x                    x
# classes
yes  [ab]                      a  b  [bc]
no   [ab]                      c  ab  [cd]
yes  [a-c]                     b
yes  [a-z]                     ?  *
yes  [A-Z]*                    README
yes  [abc-]                    -
yes  [a^]                      ^
no   a[.-0]b                   a/b
# negated classes
yes  [!a]                      b  [!b]  [ab]  é
no   [!a]                      a  bc  [a]
yes  [!.]*                     a  *a
no   [!]]                      []]
yes  [!]]                      a
# braces
no   *.{py,ts}                 a.js  *.{js,css}
yes  {a/b,c}/d                 c/d  a/b/d
yes  {[,],x}                   ,
no   {[,],x}                   y
# names that need brackets
no   a[b].py                   a[[]b[]].py
yes  a[*]                      a[*]  a*
no   [{]a,b[}]                 a
no   app/[slug]/**             app/[[]slug[]]/page.tsx
yes  app/*/page.tsx            app/[[]slug[]]/page.tsx
yes  [~]/a                     ?/a
# letters beyond ASCII
yes  é                         é  é  ?
no   é                         e  e*
no   😀                         ??
# together
yes  src/**/[a-m]*.{ts,tsx}    src/app/*/index.tsx
yes  **/*_test.go              pkg/**/a*.go
yes  {a,b}/**/x*               */c/*x
no   **/[!.]*/*                .git/config
no   {*a,bc/d}                 a*bc/d
"""


def _pairs() -> list[Pair]:
    pairs: list[Pair] = []
    group = ""
    for line in _TABLE.strip().splitlines():
        if line.startswith("#"):
            group = line[2:]
        elif line:
            verdict, a, *others = line.split()
            pairs += [Pair(group, a, b, {"yes": True, "no": False}[verdict]) for b in others]
    return pairs


PAIRS: Final = _pairs()
