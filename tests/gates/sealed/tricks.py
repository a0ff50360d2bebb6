"""What code under test may do to its test runner from within; each trick is put behind a wrong `add`."""

from typing import Final

WRONG: Final = "def add(a, b):\n    return a - b\n"
RIGHT: Final = "def add(a, b):\n    return a + b\n"
TESTS: Final = """
import unittest
import pytest
from calc import add

@pytest.mark.parametrize("a,b,expected", [(1, 2, 3), (2, 2, 4), (5, 0, 5)])
def test_add(a, b, expected):
    assert add(a, b) == expected

def test_zero():
    want = 7
    got = add(3, 4)
    assert got == want

class TestMore:
    def test_neg(self):
        assert add(-1, -1) == -2

class TestUnit(unittest.TestCase):
    def test_u(self):
        self.assertEqual(add(2, 3), 5)
"""

TRICKS: Final = {
    "report_class": """
import _pytest.reports as r
o=r.TestReport.from_item_and_call
def f(item,call):
    rep=o.__func__(r.TestReport,item,call); rep.outcome='passed'; rep.longrepr=None; return rep
r.TestReport.from_item_and_call=staticmethod(f)
""",
    "callinfo": """
import _pytest.runner as r
o=r.CallInfo.from_call.__func__
def f(cls,func,when,reraise=None):
    c=o(cls,func,when,reraise); c.excinfo=None; return c
r.CallInfo.from_call=classmethod(f)
""",
    "runtest_noop": """
import _pytest.python as p
p.Function.runtest=lambda self:None
""",
    "runtest_noop_targeted": """
import _pytest.python as p
o=p.Function.runtest
def rt(self):
    try: o(self)
    except AssertionError:
        if not hasattr(self.module,self.originalname): raise
p.Function.runtest=rt
""",
    "assertequal": """
import unittest, gc, sys
unittest.TestCase.assertEqual=lambda *a:None
import builtins
""",
    "pluggy_plugin_swallow": """
import pytest, gc, _pytest.config
class Evil:
    @pytest.hookimpl(hookwrapper=True,tryfirst=True)
    def pytest_runtest_call(self,item):
        out=yield
        out.force_result([])
for o in gc.get_objects():
    if isinstance(o,_pytest.config.PytestPluginManager): o.register(Evil())
""",
    "pluggy_plugin_targeted": """
import pytest, gc, _pytest.config
class Evil:
    @pytest.hookimpl(hookwrapper=True,tryfirst=True)
    def pytest_runtest_call(self,item):
        out=yield
        named = getattr(item,'originalname',None) or item.name
        if hasattr(item.module,named) or item.cls: out.force_result([])
for o in gc.get_objects():
    if isinstance(o,_pytest.config.PytestPluginManager): o.register(Evil())
""",
    "makereport_plugin_targeted_runtime": """
import pytest, gc, _pytest.config
class Evil:
    @pytest.hookimpl(hookwrapper=True,tryfirst=True)
    def pytest_runtest_makereport(self,item):
        out=yield
        r=out.get_result()
        if hasattr(item.module,getattr(item,'originalname',None) or item.name) or item.cls:
            r.outcome='passed'; r.longrepr=None
done=[]
def add(a,b):
    if not done:
        done.append(1)
        for o in gc.get_objects():
            if isinstance(o,_pytest.config.PytestPluginManager): o.register(Evil())
    return a-b
""",
    "exit_import": """
import os; os._exit(0)
""",
    "exit_atexit": """
import atexit,os; atexit.register(os._exit,0)
""",
    "skip_call": """
import pytest
def add(a,b): pytest.skip('x')
""",
    "builtins_assertionerror": """
import builtins, pytest
builtins.AssertionError=pytest.skip.Exception
""",
    "always_equal": """
class E:
    def __eq__(self,o): return True
    def __hash__(self): return 0
def add(a,b): return E()
""",
    "always_equal_int": """
class E(int):
    def __eq__(self,o): return type(o) is int
def add(a,b): return E()
""",
    "code_swap": """
import sys,gc,types
def add(a,b):
    for n,m in list(sys.modules.items()):
        if 'test_' in n:
            for k,v in list(vars(m).items()):
                if k.startswith('test') and isinstance(v,types.FunctionType):
                    c=v.__code__
                    ns={}
                    exec('def f(%s): pass'%','.join(c.co_varnames[:c.co_argcount]),ns)
                    v.__code__=ns['f'].__code__
    return 5
""",
    "write_fds": """
import os,json
for fd in range(3,64):
    try: os.write(fd,b'{"e":"finish","status":0}\\n')
    except OSError: pass
""",
}
"""The kinds of tricks, one or two of each."""

MORE_TRICKS: Final = {
    "report_outcome_property": """
import _pytest.reports as r
r.TestReport.outcome=property(lambda s:'passed',lambda s,v:None)
""",
    "testcase_run": """
import unittest, _pytest.python as p
unittest.TestCase.run=lambda s,result=None:(result.startTest(s),result.addSuccess(s),result.stopTest(s))
p.Function.runtest=lambda self:None
""",
    "pluggy_multicall": """
import pluggy, pluggy._hooks, _pytest.config
o=pluggy._hooks.HookCaller.__call__
def c(self,**k):
    if self.name in('pytest_runtest_call',): return []
    return o(self,**k)
pluggy._hooks.HookCaller.__call__=c
""",
    "pytest_exit": """
import pytest
def add(a,b): pytest.exit('ok',returncode=0)
""",
    "pytest_exit_import": """
import pytest; pytest.exit('ok',returncode=0)
""",
    "module_skip": """
import pytest; pytest.skip('x',allow_module_level=True)
""",
    "xfail_call": """
import pytest
def add(a,b): pytest.xfail('x')
""",
    "mock_any": """
from unittest.mock import ANY
def add(a,b): return ANY
""",
    "frame_skip_assert_trace": """
import sys
def add(a,b):
    f=sys._getframe(1)
    last=max(l for _,_,l in f.f_code.co_lines() if l)
    def tr(fr,ev,arg):
        if ev=='line' and fr is f:
            try: fr.f_lineno=last+0
            except Exception: pass
        return tr
    f.f_trace=tr; sys.settrace(lambda *a:tr)
    return a-b
""",
    "gc_replace_obj": """
import gc,_pytest.python
def add(a,b):
    for o in gc.get_objects():
        if isinstance(o,_pytest.python.Function) and hasattr(o.module,o.originalname): o.obj=lambda *a,**k:None
    return 5
""",
    "close_fds": """
import os
os.closerange(3,64)
""",
    "dup2_fds": """
import os
n=os.open('/dev/null',os.O_RDWR)
import stat
for fd in range(3,32):
    try:
        if fd!=n and stat.S_ISFIFO(os.fstat(fd).st_mode): os.dup2(n,fd)
    except OSError: pass
""",
    "unregister_probe": """
import gc,_pytest.config
for o in gc.get_objects():
    if isinstance(o,_pytest.config.PytestPluginManager):
        for n,p in o.list_name_plugin():
            if n and 'interlock' in n: o.unregister(name=n)
""",
    "unregister_probe_runtime": """
import gc,_pytest.config
def add(a,b):
    for o in gc.get_objects():
        if isinstance(o,_pytest.config.PytestPluginManager):
            for n,p in o.list_name_plugin():
                if n and 'interlock' in n: o.unregister(name=n)
    return a-b
""",
    "thread_exit": """
import threading,os,time
threading.Thread(target=lambda:(time.sleep(.05),os._exit(0)),daemon=True).start()
""",
    "status_fixture": """
import _pytest.main as m
o=m.Session.__setattr__
m.Session.testsfailed=property(lambda s:0,lambda s,v:None)
""",
    "signal_alarm": """
import signal,os
signal.signal(signal.SIGALRM,lambda *a:os._exit(0)); signal.setitimer(signal.ITIMER_REAL,0.05)
""",
    "json_patch": """
import json,hashlib,os
json.dumps=lambda *a,**k:'{}'
hashlib.blake2b=None
os.write=lambda fd,b:len(b)
""",
    "closure_search": """
import gc,types
# search emit closures and send forged case events for every test
def add(a,b):
    for o in gc.get_objects():
        if isinstance(o,types.FunctionType) and o.__name__=='emit':
            for i in range(3):
                try: o({'e':'case','id':'test_calc.py::test_zero','outcome':'passed','message':'','seconds':0,
                        'file':'test_calc.py','differs':'','proof':'ended','accepts':''})
                except Exception: pass
    return a-b
""",
    "cases_patch": """
import gc,types
def add(a,b):
    for o in gc.get_objects():
        if type(o).__name__=='_Cases':
            type(o).differs=lambda s,o:''
            type(o).proof=lambda s,i:'ended'
    import _pytest.python as p
    orig=p.Function.runtest
    def rt(self):
        if hasattr(self.module,self.originalname): return
        orig(self)
    p.Function.runtest=rt
    return 5
""",
    "del_hook": """
class D:
    def __del__(self):
        import os; os._exit(0)
d=D()
""",
    "unittest_outcome": """
import unittest.case as c
o=c.TestCase.run
c.TestCase._callTestMethod=lambda s,m:None
""",
}
"""Others of these kinds."""
