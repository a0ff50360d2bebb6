"""What the body of a test says of itself: statements put into test functions while pytest rewrites their assertions.

The runner's word for a test is a report, which tested code can forge. These statements run only when the body does:
one at its beginning, one after each assertion and simple statement that it cannot end without passing, one before each
assertion that is nested. A comparison that held is asked whether it would have held for another value too, and so
are differences and absolute values that are compared.
Inserted statements have the line number of a neighbour, so that measured coverage stays as it is.
"""
# pyright: basic, reportAttributeAccessIssue=false, reportOptionalMemberAccess=false
# pyright: reportArgumentType=false

import ast
import fnmatch
import types

_PLACE = "\x00interlock\x00"
_STATE_NAME = "@interlock"
_SIMPLE = (ast.Expr, ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Delete, ast.Import, ast.ImportFrom, ast.Pass)
_KNOWN = ("pytest", "mark", "mock", "unittest", "patch", "given", "settings", "example", "parametrize", "staticmethod")
_INNER = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)


class _Callbacks:
    """The object that the inserted statements call; it replaces a constant of the code."""

    __slots__ = ("begin", "differ", "same", "size", "soft", "step")


def make_body(asked, differences, equal):
    """Return the recorder of bodies.

    `asked` and `differences` are those of `comparisons`; `equal` is called with words where they find something.
    """
    needed = []
    softly = []
    bodies = {}
    expected = {}
    running = {}

    def begin(index):
        token = [index, 0, 0]
        if needed[index] == 0 and not softly[index]:
            running[index] = "ended"
        else:
            running.setdefault(index, "reached" if needed[index] else "open")
        return token

    def step(token):
        token[1] += 1
        if token[1] == needed[token[0]]:
            running[token[0]] = "ended"

    def soft(token):
        if needed[token[0]] == 0:
            running[token[0]] = "ended"

    callbacks = _Callbacks()
    callbacks.begin, callbacks.step, callbacks.soft = begin, step, soft
    _add_checks(callbacks, asked, differences, equal)

    def instrument(tree, path, patterns):
        """Put the statements into a module, and remember its bodies by qualified name."""
        for name, node in _functions(tree):
            if any(node.name.startswith(each) or fnmatch.fnmatch(node.name, each) for each in patterns):
                name_of_expected = _expected(node)
                if name_of_expected:
                    expected[path, name] = name_of_expected
                index = len(needed)
                must, may = _into(node, index)
                needed.append(must)
                softly.append(may)
                bodies.setdefault((path, name), []).append(index)

    def forget(path, name):
        """Begin anew for one test."""
        for index in bodies.get((path, name), ()):
            running.pop(index, None)

    def proof(path, name):
        """Return what the body of a test recorded since `forget`."""
        found = bodies.get((path, name))
        if not found:
            return ""
        states = [running.get(index, "body") for index in found]
        return next(state for state in ("ended", "open", "reached", "body") if state in states)

    def fill(code):
        """Put the object into the code in the place of its constant."""
        constants = tuple(
            fill(each)
            if isinstance(each, types.CodeType)
            else callbacks
            if isinstance(each, str) and each == _PLACE
            else each
            for each in code.co_consts
        )
        return code.replace(co_consts=constants)

    return types.SimpleNamespace(instrument=instrument, forget=forget, proof=proof, fill=fill, expected=expected.get)


def _add_checks(callbacks, asked, differences, equal):
    """Add the callbacks that check comparisons, differences and absolute values in assertions."""
    same_difference, other_size = differences

    def same(name, held, left, right, line):
        try:
            found = bool(held) and asked(name, left, right)
        except BaseException:
            found = ""
        report(found, line)

    def differ(left, right, result, line):
        report(same_difference(left, right, result), line)

    def size(value, result, line):
        report(other_size(value, result), line)

    def report(found, line):
        if found:
            equal("line %d: %s" % (line, found))

    callbacks.same, callbacks.differ, callbacks.size = same, differ, size


def install(rewrite, body, patterns, read_text):
    """Let pytest's `rewrite` module put the statements in; return whether it can be done with this version.

    `read_text` is called with the path and the text of each module that is rewritten.
    """
    names = ("rewrite_asserts", "_rewrite_test", "_read_pyc", "_write_pyc", "AssertionRewriter")
    visits = ("visit_Compare", "visit_BinOp", "visit_Call")
    if not all(hasattr(rewrite, name) for name in names):
        return False
    if not all(hasattr(rewrite.AssertionRewriter, name) for name in visits):
        return False
    asserts, test, read = rewrite.rewrite_asserts, rewrite._rewrite_test, rewrite._read_pyc
    rewriter = rewrite.AssertionRewriter
    compare, binop, call = rewriter.visit_Compare, rewriter.visit_BinOp, rewriter.visit_Call

    def ours(path):
        return "site-packages" not in str(path) and "dist-packages" not in str(path)

    def rewrite_asserts(mod, source, module_path=None, config=None):
        if module_path is not None and ours(module_path):
            read_text(str(module_path), source)
            body.instrument(mod, str(module_path), patterns)
        asserts(mod, source, module_path, config)

    def rewrite_test(fn, config):
        status, code = test(fn, config)
        return status, body.fill(code)

    def visit_compare(self, comp):
        first = len(self.statements)
        result = compare(self, comp)
        if not _mentions_any(comp):
            self.statements[first:] = _asked(self.statements[first:], comp.lineno)
        return result

    def visit_binop(self, node):
        result = binop(self, node)
        self.statements += _after(self.statements, ast.Sub, node.lineno)
        return result

    def visit_call(self, node):
        result = call(self, node)
        self.statements += _after(self.statements, "abs", node.lineno)
        return result

    rewrite.rewrite_asserts, rewrite._rewrite_test = rewrite_asserts, rewrite_test
    rewriter.visit_Compare, rewriter.visit_BinOp, rewriter.visit_Call = visit_compare, visit_binop, visit_call
    rewrite._read_pyc = lambda source, pyc, *rest: None if ours(source) else read(source, pyc, *rest)
    rewrite._write_pyc = lambda *args: False
    return True


def _asked(statements, line):
    """Return the statements with a question after each `name = left == right`, whatever the comparison is."""
    result = []
    for statement in statements:
        result.append(statement)
        value = getattr(statement, "value", None)
        if not (isinstance(statement, ast.Assign) and isinstance(value, ast.Compare)):
            continue
        sides = value.left, value.comparators[0]
        if all(isinstance(side, (ast.Name, ast.Constant)) for side in sides):
            held = ast.Name(statement.targets[0].id, ast.Load())
            name = ast.Constant(type(value.ops[0]).__name__)
            result.append(ast.Expr(_call("same", name, held, *sides, ast.Constant(line))))
    return result


def _after(statements, wanted, line):
    """Return a question about the difference or the absolute value that the last statement computes; else nothing."""
    last = statements[-1] if statements else None
    value = getattr(last, "value", None)
    if not isinstance(last, ast.Assign) or not isinstance(last.targets[0], ast.Name):
        return []
    if wanted == "abs":
        if not isinstance(value, ast.Call) or getattr(value.func, "id", "") != "abs" or value.keywords:
            return []
        name, sides = "size", value.args
    elif isinstance(value, ast.BinOp) and isinstance(value.op, wanted):
        name, sides = "differ", [value.left, value.right]
    else:
        return []
    if not all(isinstance(side, (ast.Name, ast.Constant)) for side in sides) or len(sides) > 2:
        return []
    return [ast.Expr(_call(name, *sides, ast.Name(last.targets[0].id, ast.Load()), ast.Constant(line)))]


def _mentions_any(node):
    """Return whether the text of a comparison names `ANY`, which is made to equal everything."""
    return any(getattr(each, "id", getattr(each, "attr", "")) == "ANY" for each in ast.walk(node))


def _call(name, *args):
    return ast.Call(ast.Attribute(ast.Constant(_PLACE), name, ast.Load()), list(args), [])


def _token():
    return ast.Name(_STATE_NAME, ast.Load())


def _functions(tree):
    """Yield the functions of a module and of its classes, with qualified names."""
    todo = [("", tree)]
    while todo:
        prefix, node = todo.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
                yield prefix + child.name, child
            elif isinstance(child, ast.ClassDef):
                todo.append((prefix + child.name + ".", child))
            elif not isinstance(child, ast.expr):
                todo.append((prefix, child))


def _own(node):
    """Yield a statement and what is below it, without inner functions and classes."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, _INNER):
            for each in _own(child):
                yield each


def _expected(function):
    """Return the parameter that a test compares a result with and uses for nothing else; empty where there is none."""
    names = [argument.arg for argument in function.args.args]
    used = [node.id for node in ast.walk(function) if isinstance(node, ast.Name)]
    for statement in function.body:
        test = getattr(statement, "test", None)
        if not (isinstance(statement, ast.Assert) and isinstance(test, ast.Compare) and len(test.ops) == 1):
            continue
        sides = [_approximated(side) for side in (test.left, test.comparators[0])]
        for side in sides if isinstance(test.ops[0], ast.Eq) else ():
            if isinstance(side, ast.Name) and side.id in names and used.count(side.id) == 1:
                return side.id
    return ""


def _approximated(side):
    """Return the value in `approx(value)`, or the side as it is."""
    named = isinstance(side, ast.Call) and getattr(side.func, "attr", getattr(side.func, "id", "")) == "approx"
    return side.args[0] if named and side.args else side


def _into(function, index):
    """Put the statements into a function; return how many it must pass, and whether an assertion is nested."""
    body = function.body
    start = 1 if isinstance(body[0], ast.Expr) and isinstance(getattr(body[0].value, "value", None), str) else 0
    if start == len(body):
        start = 0
    straight = all(_root(decorator) in _KNOWN for decorator in function.decorator_list)
    new, must, may = body[:start], 0, False
    begin = ast.Assign([ast.Name(_STATE_NAME, ast.Store())], _call("begin", ast.Constant(index)))
    new.append(_at(begin, body[start]))
    last = max((i for i, each in enumerate(body) if isinstance(each, _SIMPLE)), default=-1)
    for position, statement in enumerate(body[start:], start):
        if any(isinstance(each, ast.Return) for each in _own(statement)) and not isinstance(statement, _INNER):
            straight = False
        if not isinstance(statement, (*_INNER, ast.Assert)):
            may = _soften(statement) or may
        new.append(statement)
        if straight and (isinstance(statement, ast.Assert) or position == last):
            must += 1
            new.append(_at(ast.Expr(_call("step", _token())), statement))
    function.body = new
    return must, may


def _soften(statement):
    """Put a call before each assertion below a compound statement; return whether there is one."""
    found = False
    for node in list(_own(statement)):
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and any(isinstance(each, ast.Assert) for each in value):
                found = True
                new = []
                for each in value:
                    if isinstance(each, ast.Assert):
                        new.append(_at(ast.Expr(_call("soft", _token())), each))
                    new.append(each)
                setattr(node, name, new)
    return found


def _root(node):
    """Return the first name of a decorator."""
    while not isinstance(node, ast.Name):
        node = getattr(node, "func", getattr(node, "value", None))
        if node is None:
            return ""
    return node.id


def _at(node, neighbour):
    """Give a new statement the line number of a neighbour."""
    for each in ast.walk(node):
        each.lineno = each.end_lineno = neighbour.lineno
        each.col_offset = each.end_col_offset = neighbour.col_offset
    return node
