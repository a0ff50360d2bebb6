"""Pairs of patterns by feature, and whether some path matches both: `yes` or `no`, judged by hand."""

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
yes  a                        a
no   a                        b
no   a                        A1
no   a                        aa
no   a                        a/b
no   a/b                      a/c
yes  a/b                      a/b
no   a/b                      b/a
no   a/b/c                    a/b
no   ab                       a/b
yes  src/app.py               src/app.py
no   src/app.py               src/app.pyi
no   src/app.py               lib/app.py
no   src/app.py               app.py
no   .env                     env
yes  .env                     .env
no   a.b                      a-b
no   a                        a.
no   ...                      ....
yes  ...                      ...

# ways to write one file
yes  ./a                      a
yes  a//b                     a/b
yes  a/./b                    a/b
yes  ././a                    ./a
yes  a////b                   a/./b
yes  [a]                      a
yes  [a-a]                    a
yes  [.]/a                    a
no   ./a                      b
no   a//b                     ab
yes  [s]rc/app.py             src/app.py
yes  {a,a}                    a

# a folder
yes  src/                     src/app.py
yes  src/                     src/x/y/z
no   src/                     src
no   src/                     srcs/app.py
no   src/                     lib/src/app.py
yes  src/**                   src/app.py
yes  src/**                   src/**
no   src/**                   src
no   src/**                   lib/**
yes  src/**                   src/app/**
no   src/app/**               src/web/**
no   src/**                   srcs/**
yes  src/                     src/**
yes  .                        a
yes  ./                       a/b/c
yes  a/.                      a/b
no   a/.                      a
yes  .git/                    .git/config
no   git/                     .git/config

# one star in a part
yes  *                        a
yes  *                        .a
no   *                        a/b
yes  *.py                     a.py
yes  *.py                     .py
no   *.py                     a.pyc
no   *.py                     a/b.py
yes  a*                       a
yes  a*                       ab
no   a*                       ba
no   a*                       a/b
yes  *a                       a
yes  *a                       ba
no   *a                       ab
yes  a*b                      ab
yes  a*b                      axxb
no   a*b                      axxc
no   a*b                      a/b
yes  src/*.py                 src/app.py
no   src/*.py                 src/app/x.py
no   src/*.py                 lib/app.py
yes  */app.py                 src/app.py
no   */app.py                 app.py
no   */app.py                 src/x/app.py
yes  src/*/x.py               src/a/x.py
no   src/*/x.py               src/x.py
no   src/*/x.py               src/a/b/x.py
yes  */*                      a/b
no   */*                      a
no   */*                      a/b/c
yes  a*/b                     ac/b
yes  a*/b                     a/b

# star against star
yes  *                        *
yes  a*                       *b
yes  a*                       a*
no   a*                       b*
no   *a                       *b
yes  a*                       ab*
no   ab*                      ac*
yes  *ab                      *b
no   *ab                      *ac
yes  a*b                      *
yes  a*b                      a*c*b
yes  a*b*c                    a*c
no   a*b                      a*c
yes  *a*                      *b*
yes  *a*                      b*
yes  *.py                     test_*
no   *.py                     *.ts
yes  *.test.*                 *.ts
yes  *.test.*                 *.test
no   *.test.*                 a.test
yes  *.tar.gz                 *.gz
no   *.tar.gz                 *.tar
yes  src/*.py                 src/a*
no   src/*.py                 lib/*
yes  src/*                    */app.py
no   src/*                    */app/x
yes  */b                      a/*
no   */b                      a/*/c
yes  a*a                      aa
no   a*a                      a
yes  a*a                      *a
no   aa*aa                    aaa
yes  aa*aa                    aaaa
yes  aa*aa                    aaa*
no   aa*aa                    ab*
yes  *ab*ba*                  ab*
yes  x*y*z                    *x*y*z*
no   *x                       x*y

# question marks
yes  ?                        a
yes  ?                        .
no   ?                        ab
no   ?                        a/b
yes  ?                        ?
no   ?                        ??
yes  a?                       ab
no   a?                       a
no   a?                       abc
yes  a?                       ?b
no   a?c                      ?b?d
yes  a?c                      ab?
yes  ?                        *
yes  ??                       *
yes  ??*                      ab
no   ??*                      a
yes  ??*                      abc
no   ??*                      ?
yes  ?a                       a*
no   ?a                       b?*c
yes  a/?                      a/b
no   a/?                      a?b
no   a?b                      a/b
yes  ?.py                     a*
no   ?.py                     ab*
yes  ?/?                      a/b
no   ?/?                      a
no   ?/?                      ???
yes  ???                      a*b*c

# two stars at the end
yes  **                       a
yes  **                       a/b/c
yes  **                       **
yes  **                       .git/config
yes  **                       *
yes  **                       *.py
yes  a/**                     a/b
yes  a/**                     a/b/c
no   a/**                     a
no   a/**                     b/a
no   a/**                     ab/c
yes  a/**                     */b
yes  a/**                     */b/c
no   a/**                     b*/**
yes  a/**                     a*/**
yes  a/*/**                   a/b/c
no   a/*/**                   a/b
no   a/**                     *
yes  a/**                     **/a
yes  a/**                     *a/b
no   a/b/**                   a/*
yes  a/b/**                   a/*/c
yes  a/b/**                   a/**
no   a/b/**                   a/c/**
yes  */**                     a/b
no   */**                     a
yes  */*/**                   a/**
no   */*/**                   a/b

# two stars at the beginning
yes  **/a                     a
yes  **/a                     b/a
yes  **/a                     b/c/a
no   **/a                     b
no   **/a                     ba
no   **/a                     a/b
yes  **/a                     **/a
no   **/a                     **/b
yes  **/a                     *
yes  **/a                     *a
yes  **/a                     b/*
yes  **/*.py                  a.py
yes  **/*.py                  a/b.py
no   **/*.py                  a/b.ts
no   **/*.py                  **/*.ts
yes  **/*.py                  **/test_*
yes  **/*.py                  src/**
no   **/*.py                  src/*.ts
yes  **/a/b                   a/b
yes  **/a/b                   c/a/b
no   **/a/b                   b
no   **/a/b                   a/c/b
yes  **/a/b                   **/b
no   **/a/b                   **/c/b
yes  **/a/b                   a/a/b
yes  **/a/**                  a/b
yes  **/a/**                  c/a/b
no   **/a/**                  a
no   **/a/**                  b/a
yes  **/a/**                  **/b/**
yes  **/a/**                  **/a
yes  **/node_modules/**       packages/**
yes  **/node_modules/**       node_modules/x/index.js
no   **/node_modules/**       src/*.js

# two stars in the middle
yes  a/**/b                   a/b
yes  a/**/b                   a/x/b
yes  a/**/b                   a/x/y/b
no   a/**/b                   a
no   a/**/b                   b
no   a/**/b                   ab
no   a/**/b                   a/xb
no   a/**/b                   ax/b
yes  a/**/b                   a/**/b
yes  a/**/b                   a/**
yes  a/**/b                   **/b
no   a/**/b                   a/**/c
no   a/**/b                   c/**/b
yes  a/**/b                   a/*
yes  a/**/b                   */b
yes  a/**/b                   */*/b
yes  a/**/b                   a/x/**/b
yes  a/**/b                   a/**/x/b
yes  a/x/**/b                 a/**/y/b
no   a/x/**/b                 a/y/**/b
no   a/x/**/b                 a/b
yes  a/**/b/**/c              a/b/c
yes  a/**/b/**/c              a/x/b/y/c
no   a/**/b/**/c              a/c/b
no   a/**/b/**/c              a/c
yes  a/**/b/**/c              a/**/c
yes  a/**/*.py                a/b.py
yes  a/**/*.py                a/b/c.py
no   a/**/*.py                b/**/*.py
yes  a/**/*.py                **/test_*.py
no   a/**/*.py                a/**/*.ts
no   a/**/b                   a/b/c
yes  a/**/b                   a/b/**

# stars that fall together
yes  a/**/**/b                a/b
yes  **/**                    a
yes  ***                      a/b
yes  a/***/b                  a/x/b
yes  a**b                     ab
yes  a**b                     axb
no   a**b                     a/b
no   a**b                     a/x/b
no   **a                      x/a
yes  **a                      xa
no   a**                      a/b
yes  a**                      ab
yes  **/*                     a
yes  **/*                     a/b
yes  a/**/*                   a/b
no   a/**/*                   a
no   **/*/*                   a
yes  **/*/*                   a/b
yes  */**/x                   a/x
no   */**/x                   x
no   **/*/x                   x
yes  *?                       a
yes  ?*?                      ab
no   ?*?                      a

# classes
yes  [ab]                     a
yes  [ab]                     b
no   [ab]                     c
no   [ab]                     ab
yes  [a-c]                    b
no   [a-c]                    d
no   [a-c]                    A
yes  [ab]                     [bc]
no   [ab]                     [cd]
yes  [a-f]                    [f-z]
no   [a-f]                    [g-z]
yes  [a-z]*                   x1
no   [a-z]*                   1x
yes  [0-9][0-9]               42
no   [0-9][0-9]               4
no   [0-9][0-9]               4a
yes  file[0-9].py             file7.py
no   file[0-9].py             file.py
no   file[0-9].py             file10.py
yes  [a-z]                    ?
yes  [a-z]                    *
no   [ab]/c                   c/[ab]
yes  [a-c]*                   *[x-z]
no   x[a-c]                   x[d-f]*
yes  [A-Z]*                   README
no   [A-Z]*                   readme
yes  [abc-]                   -
yes  [-abc]                   -
no   [a-c]                    -
yes  []a]                     a
yes  []a]                     []]
yes  [a^]                     ^
yes  [.-0]                    .
no   a[.-0]b                  a/b
yes  [a!]                     !

# negated classes
yes  [!a]                     b
no   [!a]                     a
no   [!a]                     bc
yes  [^a]                     b
no   [^a]                     a
yes  [!a-z]                   A
no   [!a-z]                   q
yes  [!a]                     [!b]
yes  [!a]                     [ab]
no   [!a]                     [a]
no   [!ab]                    [ab]
yes  [!ab]                    [a-c]
no   [!a-z]*                  [a-z]*
no   x[!a]y                   x/y
yes  x[!a]y                   xby
yes  [!.]*                    a
no   [!.]*                    .a
yes  [!.]*                    *a
yes  [!a]*                    [!b]*
no   [!]]                     []]
yes  [!]]                     a
no   [!!]                     !
yes  [!a]                     é
yes  [!a]/b                   ?/b
no   [!a]/b                   a/b

# braces
yes  {a,b}                    a
yes  {a,b}                    b
no   {a,b}                    c
no   {a,b}                    ab
yes  {a,b}                    {b,c}
no   {a,b}                    {c,d}
yes  *.{py,ts}                a.py
yes  *.{py,ts}                a.ts
no   *.{py,ts}                a.js
yes  *.{py,ts}                *.{ts,js}
no   *.{py,ts}                *.{js,css}
yes  {src,lib}/**             src/a
yes  {src,lib}/**             lib/a/b
no   {src,lib}/**             bin/a
no   {src,lib}/**             src
yes  src/{a,b}.py             src/a.py
no   src/{a,b}.py             src/{c,d}.py
yes  {a/b,c}                  a/b
yes  {a/b,c}                  c
no   {a/b,c}                  a
no   {a/b,c}                  c/b
yes  {a/b,c}/d                c/d
yes  {a/b,c}/d                a/b/d
no   {a/b,c}/d                a/d
yes  a{,b}                    a
yes  a{,b}                    ab
no   a{,b}                    abb
yes  {,test_}a                test_a
yes  {a,b{c,d}}               bd
no   {a,b{c,d}}               b
yes  {a,b}{c,d}               bc
no   {a,b}{c,d}               ab
yes  {a*,b?}                  bx
no   {a*,b?}                  b
yes  {**/a,b}                 x/y/a
no   {**/a,b}                 x/b
yes  {src/,doc}               src/x
no   {src/,doc}               doc/x
yes  {[a-c],x}1               b1
no   {[a-c],x}1               d1
yes  {[,],x}                  ,
no   {[,],x}                  y
yes  a,b                      a,b
no   a,b                      {a,b}

# names that need brackets
yes  a[[]b[]].py              a[[]b[]].py
yes  a[[]b].py                a[[]b[]].py
no   a[[]b[]].py              ab.py
no   a[b].py                  a[[]b[]].py
yes  a[b].py                  ab.py
yes  a[*]                     a[*]
no   a[*]                     ab
yes  a[*]                     a*
yes  a[?]                     a?
no   a[?]                     ab
yes  [{]a[}]                  ?a?
no   [{]a,b[}]                a
yes  app/[[]slug[]]/**        app/[[]slug[]]/page.tsx
no   app/[slug]/**            app/[[]slug[]]/page.tsx
yes  app/[slug]/**            app/s/page.tsx
yes  app/*/page.tsx           app/[[]slug[]]/page.tsx
yes  [~]/a                    ?/a
yes  a~                       a~
yes  ~a                       ~a
yes  #a#                      [#]a[#]
yes  !a                       [!b]a
yes  -a                       -*

# letters beyond ASCII
yes  é                        é
yes  é                        é
yes  é                        ?
no   é                        e
no   é                        e*
yes  [é-ü]                    ö
yes  ñ*                       *ñ
no   ß                        ss
yes  日本/**                    日本/語.md
no   日本/**                    日/本
yes  *.{md,日}                 a.日
yes  😀                        ?
no   😀                        ??
yes  [😀-😂]                    😁
no   [!😁]                     😁

# together
yes  src/**/[a-m]*.{ts,tsx}   src/app/*/index.tsx
no   src/**/[a-m]*.{ts,tsx}   src/app/*/page.tsx
yes  **/*_test.go             pkg/**/a*.go
no   **/*_test.go             pkg/**/*_bench.go
yes  {a,b}/**/x*              */c/*x
no   {a,b}/**/x*              c/**
yes  **/[!.]*/**              src/a
no   **/[!.]*/*               .git/config
yes  a/*/**/b/?               **/x/b/[y-z]
no   a/*/**/b/?               a/b/?
yes  *a*/**/*b*               **/*c*/**/*b
yes  **/a/**/b/**/c           a/**/c
no   **/a/**/b/**/c           a/b/**/d
yes  docs/**/*.{md,rst}       **/README*
no   docs/**/*.{md,rst}       **/README
no   docs/{a,b}/*             docs/{c,d}/**
no   {*a,bc/d}                a*bc/d
yes  {*a,bc/d}                *bc/d
"""


def _pairs() -> list[Pair]:
    pairs: list[Pair] = []
    group = ""
    for line in _TABLE.strip().splitlines():
        if line.startswith("#"):
            group = line[2:]
        elif line:
            verdict, a, b = line.split()
            pairs.append(Pair(group, a, b, {"yes": True, "no": False}[verdict]))
    return pairs


PAIRS: Final = _pairs()
