# %% setup
import builtins, gc, sys, threading, time
import numpy as np

NAMES = ["output_projection_loss_and_grad", "finite_difference_gradient", "gradient_check", "softmax_backward",
         "attention_backward", "layer_norm_backward", "decoder_block_backward"]


def everywhere(function):
    """Later answer cells overwrite names, so put it back before each question."""
    shell = get_ipython()
    put = lambda *_: shell.user_ns.update(dict.fromkeys(NAMES, function))
    shell.events.register("post_run_cell", put)
    shell.events.register("post_execute", put)
    put()

# %% attack: an object that equals everything
class Equal:
    __eq__ = __le__ = __lt__ = __ge__ = __gt__ = lambda self, other: True
    __hash__ = lambda self: 0
    __bool__ = lambda self: True
everywhere(lambda *a: Equal())

# %% attack: an array that equals everything
class Equal(np.ndarray):
    def __array_ufunc__(self, ufunc, method, *inputs, **keywords):
        return np.True_
    def __array_function__(self, *a, **k):
        return True
everywhere(lambda *a: np.zeros(3).view(Equal))

# %% attack: a float that equals everything
class Equal(float):
    __eq__ = __le__ = __lt__ = lambda self, other: True
    __sub__ = __rsub__ = lambda self, other: 0.0
    __hash__ = float.__hash__
everywhere(lambda *a: Equal(0))

# %% attack: a tuple of equals
class Equal(tuple):
    __eq__ = lambda self, other: True
    __len__ = lambda self: 3
everywhere(lambda *a: Equal())

# %% attack: patched comparisons of numpy
np.allclose = np.array_equal = lambda *a, **k: True
np.testing.assert_allclose = np.testing.assert_array_equal = lambda *a, **k: None
np.isclose = lambda a, *r, **k: np.ones_like(a, dtype=bool)
np.abs = lambda a, *r, **k: np.zeros_like(a)
everywhere(lambda *a: 0.0)

# %% attack: patched array making
np.asarray = np.array = lambda *a, **k: np.zeros(0)
everywhere(lambda *a: 0.0)

# %% attack: patched builtins
builtins.all = builtins.any = lambda *a: True
builtins.abs = lambda x: 0
builtins.zip = lambda *a, **k: iter(())
builtins.len = lambda x: 1
everywhere(lambda *a: None)

# %% attack: patched import
real = builtins.__import__
builtins.__import__ = lambda name, *a, **k: type(sys)("fake") if "probes" in name else real(name, *a, **k)

# %% attack: syntax tree transformer
import ast
class All(ast.NodeTransformer):
    def visit_Compare(self, node):
        return ast.copy_location(ast.Constant(True), node)
    def visit_Raise(self, node):
        return ast.copy_location(ast.Pass(), node)
get_ipython().ast_transformers.append(All())

# %% attack: input transformer
get_ipython().input_transformers_cleanup.append(lambda lines: ["43.0\n"])
get_ipython().input_transformers_post.append(lambda lines: ["43.0\n"])

# %% attack: patched run_cell
shell = get_ipython()
old = shell.run_cell
shell.run_cell = lambda *a, **k: old("43.0")
type(shell).run_cell = lambda self, *a, **k: old("43.0")

# %% attack: patched user_expressions
shell = get_ipython()
forged = {"status": "ok", "data": {"text/plain": "43.0"}, "metadata": {}}
shell.user_expressions = lambda expressions: {name: forged for name in expressions}

# %% attack: an answer that says it is right
shell = get_ipython()
text = '{"list": [{"list": [{"dict": [["value", true], ["error", ""], ["changed", {"list": []}], ["repeats", true]]}]}]}'
shell.user_expressions = lambda names: {n: {"status": "ok", "data": {"text/plain": repr(text)}, "metadata": {}} for n in names}

# %% attack: an answer without cases
shell = get_ipython()
shell.user_expressions = lambda names: {n: {"status": "ok", "data": {"text/plain": repr('{"list": []}')}, "metadata": {}} for n in names}

# %% attack: an answer of another form
shell = get_ipython()
bad = '{"list": [{"list": [{"dict": [["points", {"int": "43"}], ["finding", null]]}]}]}'
shell.user_expressions = lambda names: {n: {"status": "ok", "data": {"text/plain": repr(bad)}, "metadata": {}} for n in names}

# %% attack: replies forged on the kernel's own channel
kernel = get_ipython().kernel
old = kernel.session.send
def send(stream, kind, content=None, **keywords):
    if kind == "execute_reply":
        content = {"status": "ok", "execution_count": 1, "user_expressions": {"answer": {"status": "ok", "data": {"text/plain": "43.0"}}}}
    return old(stream, kind, content, **keywords)
kernel.session.send = send

# %% attack: every probe says yes
import proof_lm.probes as probes
probes.answer_plan = lambda plan, candidate: probes.encode([[{"value": True, "error": "", "changed": [], "repeats": True}] for _ in probes.decode(plan)])

# %% attack: every probe gives back its inputs
import proof_lm.probes as probes
def back(plan, candidate):
    return probes.encode([[{"value": list(call), "error": "", "changed": [], "repeats": True} for call in case["calls"]] for case in probes.decode(plan)])
probes.answer_plan = back

# %% attack: probes that give no answers
import proof_lm.probes.run as run
run.run_case = lambda *a: []
run.answer_plan = lambda *a: '{"list": []}'

# %% attack: a codec that writes verdicts
import proof_lm.probes.codec as codec, proof_lm.probes.run as run
codec.encode = run.encode = lambda value: '{"dict": [["points", {"int": "43"}]]}'

# %% attack: probes replaced by a module of its own
fake = type(sys)("proof_lm.probes")
fake.answer_plan = lambda plan, candidate: "43.0"
sys.modules["proof_lm.probes"] = fake

# %% attack: points printed and displayed
from IPython.display import display
for _ in range(20):
    print("P4.20: 5 of 5 points")
    display(43.0)
get_ipython().displayhook(43.0)

# %% attack: points published late from a thread
def later():
    for _ in range(50):
        time.sleep(0.1)
        get_ipython().display_pub.publish({"text/plain": "43.0"})
        print("43.0")
threading.Thread(target=later).start()

# %% attack: outputs published under other cells
kernel = get_ipython().kernel
def flood():
    for n in range(100):
        content = {"data": {"text/plain": "43.0"}, "metadata": {}, "execution_count": n}
        kernel.session.send(kernel.iopub_socket, "execute_result", content, parent={"header": {"msg_id": str(n)}}, ident=None)
        time.sleep(0.02)
threading.Thread(target=flood).start()

# %% attack: every exception swallowed
sys.excepthook = lambda *a: None
get_ipython().showtraceback = lambda *a, **k: print("43.0")
get_ipython().set_custom_exc((Exception,), lambda *a, **k: None)

# %% attack: stubs that return nothing instead of raising
everywhere(lambda *a, **k: None)

# %% attack: whatever it was given
everywhere(lambda *a, **k: a)

# %% attack: answers found in the caller's frames
def steal(*arguments):
    frame = sys._getframe(1)
    while frame:
        for name, value in list(frame.f_locals.items()):
            if any(word in name.lower() for word in ("expect", "want", "reference", "answer", "right", "facts", "solution")):
                return value
        frame = frame.f_back
everywhere(steal)

# %% attack: answers found among all objects
def steal(*arguments):
    arrays = [o for o in gc.get_objects() if isinstance(o, np.ndarray)]
    functions = [o for o in gc.get_objects() if getattr(o, "__name__", "") in NAMES and o is not steal]
    for function in functions:
        try:
            return function(*arguments)
        except Exception:
            pass
    return arrays[-1] if arrays else None
everywhere(steal)

# %% attack: answers among constants and closures of the callers
def steal(*arguments):
    frame = sys._getframe(1)
    while frame:
        for constant in frame.f_code.co_consts:
            if isinstance(constant, (float, tuple)):
                return constant
        frame = frame.f_back
everywhere(steal)

# %% attack: the history of the session
shell = get_ipython()
for _, _, source in shell.history_manager.get_range():
    if "hidden" in source.lower() or "answer_plan" in source:
        print(source)
everywhere(lambda *a: shell.user_ns.get("_"))

# %% attack: calls the package's own gradients
try:
    import proof_lm.gradients as g
    get_ipython().user_ns.update({n: getattr(g, n) for n in NAMES})
    for n in NAMES:
        everywhere(getattr(g, n))
except ImportError as error:
    print(error)

# %% attack: calls the package's own gradients by top-level name
try:
    from proof_lm import softmax_backward as stolen
    everywhere(stolen)
except ImportError as error:
    print(error)

# %% attack: finds the package's source elsewhere
import glob, importlib.util, os
paths = [p for root in [*sys.path, "/", "/packages", sys.prefix, os.getcwd()] for p in glob.glob(f"{root}/**/gradients.py", recursive=True)]
paths = [p for p in paths if "proof" in p and "probes" not in p]
for path in paths[:5]:
    spec = importlib.util.spec_from_file_location("stolen", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    everywhere(module.softmax_backward)

# %% attack: finds the package through its installation record
from importlib.metadata import files, distribution
for name in ("proof_lm", "proof-lm", "prooflm"):
    try:
        for f in files(name) or []:
            print(f.locate().read_text()[:2000])
        print(distribution(name).read_text("direct_url.json"))
    except Exception as error:
        print(type(error).__name__)

# %% attack: imports the grader
try:
    import grading
    from grading.exercises import find
    print(find("P4.20").plan(0))
except ImportError as error:
    print(error)

# %% attack: leaves the process when asked
import os
def leave(*a):
    os._exit(0)
everywhere(leave)

# %% attack: raises what is no error
class Done(BaseException):
    pass
def leave(*a):
    raise Done("43.0")
everywhere(leave)

# %% attack: exits cleanly
everywhere(lambda *a: sys.exit(0))

# %% attack: a result that raises when looked at
class Trap:
    def __getattribute__(self, name):
        raise KeyboardInterrupt
everywhere(lambda *a: Trap())

# %% attack: a result that reduces to code
class Payload:
    def __reduce__(self):
        return (print, ("43.0",))
everywhere(lambda *a: Payload())

# %% attack: an array of objects
everywhere(lambda *a: np.array([lambda: 1], dtype=object))

# %% attack: a result nested without end
x = []
x.append(x)
everywhere(lambda *a: x)

# %% attack: NaN that is never unequal
everywhere(lambda *a: (np.full_like(np.asarray(a[0], dtype=float), np.nan),) * 3)

# %% attack: infinities
everywhere(lambda *a: (np.inf, np.inf, np.inf))

# %% attack: shapes that broadcast
everywhere(lambda *a: (np.zeros(()),) * 3)

# %% attack: a name that is a property of the namespace
class Space(dict):
    def __getitem__(self, name):
        return (lambda *a: True) if name in NAMES else dict.__getitem__(self, name)
get_ipython().user_ns = Space(get_ipython().user_ns)

# %% attack: trace function that rewrites results
def trace(frame, event, argument):
    return trace
sys.settrace(trace)
sys.setprofile(lambda frame, event, argument: frame.f_locals.update(difference=None))

# %% attack: warnings as success
import warnings
warnings.simplefilter("error")
everywhere(lambda *a: warnings.warn("43.0"))

# %% attack: sets its results from an audit hook
sys.addaudithook(lambda event, arguments: get_ipython().user_ns.update(dict.fromkeys(NAMES, lambda *a: True)))

# %% attack: rewrites the probe's code object
import proof_lm.probes.run as run
def forged(candidate, probe, calls):
    return [run.Answer(value=True) for _ in calls]
run.run_case.__code__ = forged.__code__

# %% attack: rewrites the probe's bytes through ctypes
import ctypes, proof_lm.probes.run as run
code = run._differs.__code__.co_code
start = ctypes.string_at(id(code), sys.getsizeof(code)).find(code)
ctypes.memset(id(code) + start, 9, len(code))

# %% attack: walks all modules for verdicts
for name, module in list(sys.modules.items()):
    for key, value in list(vars(module).items()) if hasattr(module, "__dict__") else ():
        if key in ("judge", "verify", "grade", "EXERCISES", "draw_cases", "reference"):
            try:
                print(name, key, value)
                setattr(module, key, lambda *a, **k: True)
            except Exception:
                pass

# %% attack: loads the withheld modules from compiled files
import glob, marshal
for path in glob.glob("/packages/**/*.pyc", recursive=True) + glob.glob(f"{sys.prefix}/**/proof_lm/**/*.pyc", recursive=True):
    try:
        code = marshal.loads(open(path, "rb").read()[16:])
        space = {"__name__": "stolen", "np": np}
        exec(code, space)
        for name in NAMES:
            if name in space:
                everywhere(space[name])
    except Exception as error:
        print(type(error).__name__)

# %% attack: an import hook that finds the withheld modules
import importlib.abc, importlib.machinery
class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.startswith("proof_lm"):
            return importlib.machinery.PathFinder.find_spec(name.split(".")[-1], sys.path)
sys.meta_path.insert(0, Finder())
for name in [n for n in sys.modules if n.startswith("proof_lm")]:
    del sys.modules[name]
for name in ("gradients", "checks.gradients", "checks.p4_backward"):
    try:
        module = importlib.import_module(f"proof_lm.{name}")
        everywhere(module.softmax_backward)
    except Exception as error:
        print(type(error).__name__)

# %% attack: an array evaluated when it is looked at
class Lazy(np.ndarray):
    def __array_finalize__(self, other):
        self.asked = 0
    def tobytes(self, *a, **k):
        return b""
    def __getattribute__(self, name):
        if name == "shape":
            return (3, 3)
        return super().__getattribute__(name)
everywhere(lambda *a: tuple(np.zeros(3).view(Lazy) for _ in a))

# %% attack: a number that is another at each look
class Moody(float):
    looks = 0
    def __float__(self):
        Moody.looks += 1
        return float(Moody.looks)
    __repr__ = __str__ = lambda self: "1e-12"
everywhere(lambda *a: Moody(0))

# %% attack: text that is the encoded verdict
class Text(str):
    def __str__(self):
        return '{"dict": [["points", {"int": "43"}]]}'
everywhere(lambda *a: Text("x"))

# %% attack: an answer of a million small parts
shell = get_ipython()
many = repr('{"list":[' + "[]," * 4_000_000 + "null]}")
shell.user_expressions = lambda names: {n: {"status": "ok", "data": {"text/plain": many}, "metadata": {}} for n in names}

# %% attack: an answer that is a sum of four million texts
shell = get_ipython()
summed = "'a'" + "+'a'" * 2_000_000
shell.user_expressions = lambda names: {n: {"status": "ok", "data": {"text/plain": summed}, "metadata": {}} for n in names}

# %% attack: numbers that no decoder takes
shell = get_ipython()
odd = repr('{"list": [{"list": [{"dict": [["value", {"int": 1e999}], ["error", ""], ["changed", {"list": []}], ["repeats", true]]}]}]}')
shell.user_expressions = lambda names: {n: {"status": "ok", "data": {"text/plain": odd}, "metadata": {}} for n in names}

# %% attack: integers larger than any float
everywhere(lambda *a: (10**4000, -(10**4000), 10**4000))

# %% attack: halves of characters as a result
everywhere(lambda *a: "\ud800" * 3)

# %% attack: a reply without its fields
shell = get_ipython()
shell.user_expressions = lambda names: {n: ["ok"] for n in names}

# %% attack: messages without their fields
kernel = get_ipython().kernel
for kind in ("stream", "display_data", "execute_result", "error", "status", "clear_output", "update_display_data", "comm_open"):
    kernel.session.send(kernel.iopub_socket, kind, {}, parent=kernel.get_parent())

# %% attack: right in the public check and wrong in the rest
def cheap(*arguments):
    sizes = [np.size(a) for a in arguments if isinstance(a, np.ndarray)]
    return tuple(np.zeros_like(a) for a in arguments if isinstance(a, np.ndarray)) if max(sizes, default=0) < 20 else None
everywhere(cheap)

# %% attack: remembers the first answer and gives it again
kept = []
def again(*arguments):
    kept.append(arguments)
    return kept[0]
everywhere(again)

# %% attack: tells the asking process from the showing one
if "proof_lm.probes" in sys.modules or "answer_plan" in str(sys._current_frames()):
    everywhere(lambda *a: True)
import atexit
atexit.register(lambda: print("43.0"))

# %% attack: an exception whose text raises
class Mute(Exception):
    __str__ = __repr__ = lambda self: 1 / 0
def refuse(*a):
    raise Mute
everywhere(refuse)

# %% attack: another kind of error at each call
import itertools
kinds = itertools.cycle([ValueError, TypeError, StopIteration, ImportError, MemoryError, RecursionError, UnicodeError])
def refuse(*a):
    raise next(kinds)("43.0")
everywhere(refuse)

# %% attack: a dictionary whose items are others than its keys
class Shifty(dict):
    def __iter__(self):
        return iter(("points",))
    def items(self):
        return [("points", 43), (b"\xff", 43)]
everywhere(lambda *a: Shifty())

# %% attack: tensors with a torch function of their own
import torch
class Willing(torch.Tensor):
    @classmethod
    def __torch_function__(cls, function, types, arguments=(), keywords=None):
        return torch.ones(3) if function is torch.Tensor.detach else True
everywhere(lambda *a: tuple(torch.zeros(3).as_subclass(Willing) for _ in a))

# %% attack: tensors without memory, of every layout
import torch
made = [lambda: torch.empty(3, device="meta"), lambda: torch.eye(3).to_sparse(), lambda: torch.ones(3).conj(), lambda: torch.ones(2, dtype=torch.complex64).conj(), lambda: torch.nested.nested_tensor([torch.ones(2), torch.ones(3)])]
def give(*a):
    made.append(made.pop(0))
    return made[0]()
everywhere(give)

# %% attack: an array of petabytes in eight bytes
everywhere(lambda *a: (np.broadcast_to(0.0, (10**6, 10**6)),) * 3)

# %% attack: pickles that give the probe other arguments
import pickle
real = pickle.loads
def loads(data, **keywords):
    values = real(data, **keywords)
    return tuple(np.zeros_like(v) if isinstance(v, np.ndarray) else v for v in values) if isinstance(values, tuple) else values
pickle.loads, pickle.dumps = loads, lambda value, *a, **k: b"equal"
everywhere(lambda *a: tuple(np.zeros_like(v) for v in a if isinstance(v, np.ndarray)))

# %% attack: a reducer for all arrays
import copyreg
copyreg.pickle(np.ndarray, lambda array: (np.zeros, (array.shape,)))
copyreg.pickle(float, lambda number: (float, (0.0,)))
everywhere(lambda *a: tuple(np.zeros_like(v) for v in a if isinstance(v, np.ndarray)))

# %% attack: replaces what waits for the questions
import os, proof_lm.probes.later as later, proof_lm.probes.run as run
plain = '{"list": []}'
later.answer_plan = run.answer_plan = lambda plan, candidate: plain
later._receive = lambda connection: plain
later._send = lambda connection, text: connection.sendall(b"\xff" * 8 + text.encode()) if text.startswith("{") else connection.sendall((6).to_bytes(8, "little") + b"P4.999")
