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
no   a/b                       a/c  b/a
yes  a/b                       a/b
no   a/b/c                     a/b
no   ab                        a/b
yes  src/app.py                src/app.py
no   src/app.py                src/app.pyi  lib/app.py  app.py
no   .env                      env
yes  .env                      .env
no   a.b                       a-b
no   ...                       ....
yes  ...                       ...
# ways to write one file
yes  ./a                       a
yes  a//b                      a/b
yes  a/./b                     a/b
yes  ././a                     ./a
yes  a////b                    a/./b
yes  [a]                       a
yes  [a-a]                     a
yes  [.]/a                     a
no   ./a                       b
no   a//b                      ab
yes  [s]rc/app.py              src/app.py
yes  {a,a}                     a
# a folder
yes  src/                      src/app.py  src/x/y/z  src/**
no   src/                      src  srcs/app.py  lib/src/app.py
yes  src/**                    src/app.py  src/**  src/app/**
no   src/**                    src  lib/**  srcs/**
no   src/app/**                src/web/**
yes  .                         a
yes  ./                        a/b/c
yes  a/.                       a/b
no   a/.                       a
yes  .git/                     .git/config
no   git/                      .git/config
# one star in a part
yes  *                         a  .a
no   *                         a/b
yes  *.py                      a.py  .py
no   *.py                      a.pyc  a/b.py
yes  a*                        a  ab
no   a*                        ba  a/b
yes  *a                        a  ba
no   *a                        ab
yes  a*b                       ab  axxb
no   a*b                       axxc  a/b
yes  src/*.py                  src/app.py
no   src/*.py                  src/app/x.py  lib/app.py
yes  */app.py                  src/app.py
no   */app.py                  app.py  src/x/app.py
yes  src/*/x.py                src/a/x.py
no   src/*/x.py                src/x.py  src/a/b/x.py
yes  */*                       a/b
no   */*                       a  a/b/c
yes  a*/b                      ac/b  a/b
# star against star
yes  *                         *
yes  a*                        *b  a*  ab*
no   a*                        b*
no   *a                        *b
no   ab*                       ac*
yes  *ab                       *b
no   *ab                       *ac
yes  a*b                       *  a*c*b
yes  a*b*c                     a*c
no   a*b                       a*c
yes  *a*                       *b*  b*
yes  *.py                      test_*
no   *.py                      *.ts
yes  *.test.*                  *.ts  *.test
no   *.test.*                  a.test
yes  *.tar.gz                  *.gz
no   *.tar.gz                  *.tar
yes  src/*.py                  src/a*
no   src/*.py                  lib/*
yes  src/*                     */app.py
no   src/*                     */app/x
yes  */b                       a/*
no   */b                       a/*/c
yes  a*a                       aa  *a
no   a*a                       a
no   aa*aa                     aaa  ab*
yes  aa*aa                     aaaa  aaa*
yes  *ab*ba*                   ab*
yes  x*y*z                     *x*y*z*
no   *x                        x*y
# question marks
yes  ?                         a  .  ?  *
no   ?                         ab  a/b  ??
yes  a?                        ab  ?b
no   a?                        a  abc
no   a?c                       ?b?d
yes  a?c                       ab?
yes  ??                        *
yes  ??*                       ab  abc
no   ??*                       a  ?
yes  ?a                        a*
no   ?a                        b?*c
yes  a/?                       a/b
no   a/?                       a?b
no   a?b                       a/b
yes  ?.py                      a*
no   ?.py                      ab*
yes  ?/?                       a/b
no   ?/?                       a  ???
yes  ???                       a*b*c
# two stars at the end
yes  **                        a  a/b/c  **  .git/config  *  *.py
yes  a/**                      a/b  a/b/c  */b  */b/c  a*/**  **/a  *a/b
no   a/**                      a  b/a  ab/c  b*/**  *
yes  a/*/**                    a/b/c
no   a/*/**                    a/b
no   a/b/**                    a/*  a/c/**
yes  a/b/**                    a/*/c  a/**
yes  */**                      a/b
no   */**                      a
yes  */*/**                    a/**
no   */*/**                    a/b
# two stars at the beginning
yes  **/a                      a  b/a  b/c/a  **/a  *  *a  b/*
no   **/a                      b  ba  a/b  **/b
yes  **/*.py                   a.py  a/b.py  **/test_*  src/**
no   **/*.py                   a/b.ts  **/*.ts  src/*.ts
yes  **/a/b                    a/b  c/a/b  **/b  a/a/b
no   **/a/b                    b  a/c/b  **/c/b
yes  **/a/**                   a/b  c/a/b  **/b/**  **/a
no   **/a/**                   a  b/a
yes  **/node_modules/**        packages/**  node_modules/x/index.js
no   **/node_modules/**        src/*.js
# two stars in the middle
yes  a/**/b                    a/b  a/x/b  a/x/y/b  a/**/b  a/**  **/b  a/*  */b  */*/b  a/x/**/b  a/**/x/b  a/b/**
no   a/**/b                    a  b  ab  a/xb  ax/b  a/**/c  c/**/b  a/b/c
yes  a/x/**/b                  a/**/y/b
no   a/x/**/b                  a/y/**/b  a/b
yes  a/**/b/**/c               a/b/c  a/x/b/y/c  a/**/c
no   a/**/b/**/c               a/c/b  a/c
yes  a/**/*.py                 a/b.py  a/b/c.py  **/test_*.py
no   a/**/*.py                 b/**/*.py  a/**/*.ts
# stars that fall together
yes  a/**/**/b                 a/b
yes  **/**                     a
yes  ***                       a/b
yes  a/***/b                   a/x/b
yes  a**b                      ab  axb
no   a**b                      a/b  a/x/b
no   **a                       x/a
yes  **a                       xa
no   a**                       a/b
yes  a**                       ab
yes  **/*                      a  a/b
yes  a/**/*                    a/b
no   a/**/*                    a
no   **/*/*                    a
yes  **/*/*                    a/b
yes  */**/x                    a/x
no   */**/x                    x
no   **/*/x                    x
yes  *?                        a
yes  ?*?                       ab
no   ?*?                       a
# classes
yes  [ab]                      a  b  [bc]
no   [ab]                      c  ab  [cd]
yes  [a-c]                     b
no   [a-c]                     d  A  -
yes  [a-f]                     [f-z]
no   [a-f]                     [g-z]
yes  [a-z]*                    x1
no   [a-z]*                    1x
yes  [0-9][0-9]                42
no   [0-9][0-9]                4  4a
yes  file[0-9].py              file7.py
no   file[0-9].py              file.py  file10.py
yes  [a-z]                     ?  *
no   [ab]/c                    c/[ab]
yes  [a-c]*                    *[x-z]
no   x[a-c]                    x[d-f]*
yes  [A-Z]*                    README
no   [A-Z]*                    readme
yes  [abc-]                    -
yes  [-abc]                    -
yes  []a]                      a  []]
yes  [a^]                      ^
yes  [.-0]                     .
no   a[.-0]b                   a/b
yes  [a!]                      !
# negated classes
yes  [!a]                      b  [!b]  [ab]  é
no   [!a]                      a  bc  [a]
yes  [^a]                      b
no   [^a]                      a
yes  [!a-z]                    A
no   [!a-z]                    q
no   [!ab]                     [ab]
yes  [!ab]                     [a-c]
no   [!a-z]*                   [a-z]*
no   x[!a]y                    x/y
yes  x[!a]y                    xby
yes  [!.]*                     a  *a
no   [!.]*                     .a
yes  [!a]*                     [!b]*
no   [!]]                      []]
yes  [!]]                      a
no   [!!]                      !
yes  [!a]/b                    ?/b
no   [!a]/b                    a/b
# braces
yes  {a,b}                     a  b  {b,c}
no   {a,b}                     c  ab  {c,d}
yes  *.{py,ts}                 a.py  a.ts  *.{ts,js}
no   *.{py,ts}                 a.js  *.{js,css}
yes  {src,lib}/**              src/a  lib/a/b
no   {src,lib}/**              bin/a  src
yes  src/{a,b}.py              src/a.py
no   src/{a,b}.py              src/{c,d}.py
yes  {a/b,c}                   a/b  c
no   {a/b,c}                   a  c/b
yes  {a/b,c}/d                 c/d  a/b/d
no   {a/b,c}/d                 a/d
yes  a{,b}                     a  ab
no   a{,b}                     abb
yes  {,test_}a                 test_a
yes  {a,b{c,d}}                bd
no   {a,b{c,d}}                b
yes  {a,b}{c,d}                bc
no   {a,b}{c,d}                ab
yes  {a*,b?}                   bx
no   {a*,b?}                   b
yes  {**/a,b}                  x/y/a
no   {**/a,b}                  x/b
yes  {src/,doc}                src/x
no   {src/,doc}                doc/x
yes  {[a-c],x}1                b1
no   {[a-c],x}1                d1
yes  {[,],x}                   ,
no   {[,],x}                   y
yes  a,b                       a,b
no   a,b                       {a,b}
# names that need brackets
yes  a[[]b[]].py               a[[]b[]].py
yes  a[[]b].py                 a[[]b[]].py
no   a[[]b[]].py               ab.py
no   a[b].py                   a[[]b[]].py
yes  a[b].py                   ab.py
yes  a[*]                      a[*]  a*
no   a[*]                      ab
yes  a[?]                      a?
no   a[?]                      ab
yes  [{]a[}]                   ?a?
no   [{]a,b[}]                 a
yes  app/[[]slug[]]/**         app/[[]slug[]]/page.tsx
no   app/[slug]/**             app/[[]slug[]]/page.tsx
yes  app/[slug]/**             app/s/page.tsx
yes  app/*/page.tsx            app/[[]slug[]]/page.tsx
yes  [~]/a                     ?/a
yes  a~                        a~
yes  ~a                        ~a
yes  #a#                       [#]a[#]
yes  !a                        [!b]a
yes  -a                        -*
# letters beyond ASCII
yes  é                         é  é  ?
no   é                         e  e*
yes  [é-ü]                     ö
yes  ñ*                        *ñ
no   ß                         ss
yes  日本/**                     日本/語.md
no   日本/**                     日/本
yes  *.{md,日}                  a.日
yes  😀                         ?
no   😀                         ??
yes  [😀-😂]                     😁
no   [!😁]                      😁
# together
yes  src/**/[a-m]*.{ts,tsx}    src/app/*/index.tsx
no   src/**/[a-m]*.{ts,tsx}    src/app/*/page.tsx
yes  **/*_test.go              pkg/**/a*.go
no   **/*_test.go              pkg/**/*_bench.go
yes  {a,b}/**/x*               */c/*x
no   {a,b}/**/x*               c/**
yes  **/[!.]*/**               src/a
no   **/[!.]*/*                .git/config
yes  a/*/**/b/?                **/x/b/[y-z]
no   a/*/**/b/?                a/b/?
yes  *a*/**/*b*                **/*c*/**/*b
yes  **/a/**/b/**/c            a/**/c
no   **/a/**/b/**/c            a/b/**/d
yes  docs/**/*.{md,rst}        **/README*
no   docs/**/*.{md,rst}        **/README
no   docs/{a,b}/*              docs/{c,d}/**
no   {*a,bc/d}                 a*bc/d
yes  {*a,bc/d}                 *bc/d
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
