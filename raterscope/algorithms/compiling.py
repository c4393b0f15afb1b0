"""Compilation of inner loops with numba.

Import this module only in modules of kernels: it loads numba.

Compiled code is stored beside the modules, otherwise in the user's cache folder, or in the folder of the
environment variable NUMBA_CACHE_DIR. If none is writable, kernels are compiled at each start.
"""

from __future__ import annotations

import ast
import hashlib
import logging
import os
import re
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, ClassVar, Literal, TypeVar

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.core.caching import IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import cpu_target
from numba.extending import intrinsic, overload
from numba.np import arrayobj, linalg

Array = Any
"""Array argument of a kernel. Type checkers cannot see compiled types; docstrings state shapes and types."""

_Kernel = TypeVar("_Kernel", bound=Callable[..., Any])


CLAIMS = "RATERSCOPE_CLAIMED_KERNELS"
"""Environment variable with the folder where the processes of one command claim kernels to compile."""

_LONGEST_WAIT = 10.0
"""Maximum wait for a kernel that another process compiles, seconds."""


_SIGNATURE = 3
"""Index of the signature in stored code."""


class ClaimedError(Exception):
    """Error: another process is compiling the kernel."""


class _StoredCode(IndexDataCacheFile):  # type: ignore[misc]
    """Stored code of a kernel; unreadable files are ignored, and the kernel is compiled again.

    Code of an earlier version may refer to types that have another name now, and a crash may damage a file.
    Unpickling such files can raise any exception.

    Files of code are named after their types. numba only numbers them: if two processes compile a kernel for
    different types at the same time, they use the same number, and one later runs the code of the other.
    """

    waits = True  # whether this process waits for kernels that another one compiles, or raises `ClaimedError`
    claimed: ClassVar[list[str]] = []  # files of the kernels that this process is compiling

    def _load_index(self) -> dict[Any, str]:
        try:
            return super()._load_index()  # type: ignore[no-any-return]
        except Exception:
            return {}

    def load(self, key: Any) -> Any:
        """Return the code for these types; None if this process should compile it."""
        code = self._stored(key)
        claim = self._claim_of(key)
        if claim is None:
            return code
        end = time.monotonic() + _LONGEST_WAIT
        while code is None:
            try:
                os.close(os.open(claim, os.O_CREAT | os.O_EXCL))
            except FileExistsError:
                if not self.waits:
                    raise ClaimedError from None
                if time.monotonic() > end:
                    return None
            except OSError:  # the folder is gone
                return None
            else:
                self.claimed.append(claim)
                return None
            time.sleep(0.005)
            code = self._stored(key)
        return code

    def save(self, key: Any, data: Any) -> None:
        """Store code for all processes."""
        name, overloads = self._name_of(key), self._load_index()
        if not overloads:
            self._remove_outdated()
        self._save_index({**overloads, key: name})
        self._save_data(name, data)
        claim = self._claim_of(key)
        if claim in self.claimed:
            self.claimed.remove(claim)

    def _stored(self, key: Any) -> Any:
        try:
            code = self._load_data(self._name_of(key))
            return code if code[_SIGNATURE].args == key[0] else None
        except Exception:
            return None

    def _name_of(self, key: Any) -> str:
        """Return the name of a file of code: from the kernel, the version of its module, and the types."""
        return f"{self._prefix}{hashlib.sha256(repr(key).encode()).hexdigest()[:24]}.nbc"

    @property
    def _prefix(self) -> str:
        version = repr((self._version, self._source_stamp)).encode()
        return f"{self._index_name.removesuffix('nbi')}{hashlib.sha256(version).hexdigest()[:8]}."

    def _remove_outdated(self) -> None:
        kernel = self._index_name.removesuffix("nbi")
        for file in os.scandir(self._cache_path):
            outdated = file.name.startswith(kernel) and not file.name.startswith(self._prefix)
            if outdated and file.name.endswith(".nbc"):
                with suppress(OSError):
                    os.unlink(file)  # noqa: PTH108

    def _claim_of(self, key: Any) -> str | None:
        folder = os.environ.get(CLAIMS)
        if not folder:
            return None
        return f"{folder}/{hashlib.sha256(repr((self._index_name, key)).encode()).hexdigest()}"


def compiled(
    *, error_model: Literal["python", "numpy"] = "python", fastmath: bool | set[str] = False
) -> Callable[[_Kernel], _Kernel]:
    """Compile a kernel at its first call, cached for the next start, without the interpreter's lock.

    A kernel whose name begins with an underscore can be called only by kernels, not from Python.

    `error_model`: whether a division by zero raises, or returns an infinity without a check. `fastmath`:
    permitted changes of the order and rounding of sums; see numba.
    """
    options: dict[str, Any] = {
        "nogil": True, "error_model": error_model, "fastmath": fastmath, "no_cfunc_wrapper": True,
    }  # fmt: skip

    def decorate(kernel: _Kernel) -> _Kernel:
        options["no_cpython_wrapper"] = kernel.__name__.startswith("_")  # wrappers are compiled code too
        # A called kernel is compiled into its own object file and into those of its callers. If the order of
        # sums is free, copies may differ in their last bits, and the cache decides which copy is linked.
        if fastmath and kernel.__name__.startswith("_"):
            options["forceinline"] = True
        try:
            dispatcher = njit(cache=True, **options)(kernel)
        except RuntimeError:  # no folder for the cache
            _warn_without_cache()
            return njit(cache=False, **options)(kernel)  # type: ignore[no-any-return]
        dispatcher._cache._cache_file.__class__ = _StoredCode
        return dispatcher  # type: ignore[no-any-return]

    return decorate


def load_compiler() -> None:
    """Load numba's compilers of NumPy and SciPy functions, which otherwise the first call loads."""
    # Created before numba's lock is taken: a kernel in another thread takes the locks in this order.
    contexts = cpu_target.typing_context, cpu_target.target_context
    with global_compiler_lock:
        for context in contexts:
            context.refresh()


@cache
def _warn_without_cache() -> None:
    logging.getLogger("raterscope").warning(
        "note: compiled code cannot be stored: the first fusion takes longer at each start. "
        "Set NUMBA_CACHE_DIR to a writable folder."
    )


AHEAD = 6
"""Number of votes between the vote that is processed and the vote whose row is prefetched."""

_LINE = 64
"""Size of a line of the processor's cache, bytes."""


@intrinsic  # type: ignore[untyped-decorator]
def prefetch(context: Any, array: Any, row: Any) -> Any:  # noqa: ARG001
    """Load a row of a C-contiguous table (2-D) into the processor's cache, without waiting for it.

    Without prefetching, rows of a large table in random order arrive too late. The row must exist.
    """

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        table = context.make_array(signature.args[0])(context, builder, arguments[0])
        bytes_of_row = cgutils.unpack_tuple(builder, table.strides)[0]
        offset = bytes_of_row.type
        byte, number = ir.IntType(8).as_pointer(), ir.IntType(32)
        begin = builder.gep(builder.bitcast(table.data, byte), [builder.mul(arguments[1], bytes_of_row)])
        kind = ir.FunctionType(ir.VoidType(), [byte, number, number, number])
        instruction = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)

        def load(at: Any) -> None:
            builder.call(instruction, [builder.gep(begin, [at]), number(1), number(3), number(1)])

        lines = cgutils.for_range_slice(builder, offset(0), bytes_of_row, offset(_LINE), inc=True)
        with lines as (at, _):
            load(at)
        load(builder.sub(bytes_of_row, offset(1)))  # a row may end in another line
        return context.get_dummy_value()

    return types.void(array, types.intp), generate


@intrinsic  # type: ignore[untyped-decorator]
def small_code(typing_context: Any) -> Any:  # noqa: ARG001
    """Compile the calling kernel into small code, without copies of loops for vector instructions.

    Compilation then takes a third of the time. Use it for kernels whose loops are short, branch, or access
    scattered values.
    """

    def mark(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ARG001
        builder.function.attributes.add("optsize")
        return context.get_dummy_value()

    return types.void(), mark


_TUPLE = "Tuple"
_TYPE = re.compile(
    r"(readonly )?array\((\w+), (\d)d, ([ACF])\)|omitted\(default=([^)]*)\)|(\w+)<(.*)>"
    r"|UniTuple\((\w+) x (\d+)\)|Literal\[(?:int|bool)\]\(([^)]*)\)|(\w+)"
)


def signature_text(kernel: Any, arguments: tuple[Any, ...]) -> str | None:
    """Convert the types of a call to text for `compile_signature`; None for types that it cannot parse."""
    text = "; ".join(map(_type_text, arguments))
    try:
        return text if parse_types(kernel, text) == arguments else None
    except (AttributeError, KeyError, ValueError):
        return None


def _type_text(kind: Any) -> str:
    if isinstance(kind, types.BaseNamedTuple):
        return f"{kind.instance_class.__name__}<{'|'.join(map(_type_text, kind.types))}>"
    if isinstance(kind, types.UniTuple) and isinstance(kind.dtype, types.Array):
        kind = (kind.dtype,) * kind.count
    elif isinstance(kind, types.Tuple):
        kind = kind.types
    if isinstance(kind, tuple):
        return f"{_TUPLE}<{'|'.join(map(_type_text, kind))}>"
    return str(kind)


def compile_signature(kernel: Any, signature: str, *, waits: bool = True) -> None:
    """Compile a kernel for the types of a call, or load it from the cache.

    `waits`: wait for another process that compiles it; otherwise raise `ClaimedError`.
    """
    _StoredCode.waits = waits
    try:
        kernel.compile(parse_types(kernel, signature))
    except BaseException:
        while _StoredCode.claimed:
            with suppress(OSError):
                os.unlink(_StoredCode.claimed.pop())  # noqa: PTH108
        raise
    finally:
        _StoredCode.waits = True


def parse_types(kernel: Any, signature: str) -> tuple[Any, ...]:
    """Parse the types of a call from the result of `signature_text`."""
    return tuple(_parse_type(kernel, text) for text in signature.split("; "))


def _parse_type(kernel: Any, text: str) -> Any:
    match = _TYPE.fullmatch(text)
    if match is None:
        raise ValueError(f"{text} is not a type of a kernel's argument.")
    readonly, dtype, axes, layout, default, record, fields, member, length, literal, scalar = match.groups()
    if dtype is not None:
        return types.Array(_scalar(dtype), int(axes), layout, readonly=readonly is not None)
    if default is not None:
        return types.Omitted(ast.literal_eval(default))
    if record is not None:
        members = [_parse_type(kernel, field) for field in fields.split("|")]
        if record == _TUPLE:
            return types.Tuple(members)
        same = len(set(members)) == 1
        kind = kernel.py_func.__globals__[record]
        if len(members) != len(kind._fields):
            raise ValueError(f"{record} does not have {len(members)} fields.")
        return (
            types.NamedUniTuple(members[0], len(members), kind) if same else types.NamedTuple(members, kind)
        )
    if member is not None:
        return types.UniTuple(_scalar(member), int(length))
    if literal is not None:
        return types.literal(ast.literal_eval(literal))
    return _scalar(scalar)


def _scalar(name: str) -> Any:
    return types.boolean if name == "bool" else getattr(types, name)


def _raise_with_shapes(source: object, target: object) -> None:
    """Stub of the error for a slice that is assigned from an array of another shape."""
    raise NotImplementedError


@overload(_raise_with_shapes)  # type: ignore[untyped-decorator]
def _raise_without_shapes(source: object, target: object) -> Callable[[object, object], None]:  # noqa: ARG001
    def raise_error(source: object, target: object) -> None:  # noqa: ARG001
        raise ValueError("cannot assign a slice from an array of another shape")

    return raise_error


# numba's own message names the shapes: formatting them takes a quarter of the compilation of a kernel that
# assigns to a slice. Versions of numba that find the stub by another name are only slower.
arrayobj.raise_with_shape_context = _raise_with_shapes


def _without_blas() -> None:
    raise ImportError


# No kernel multiplies matrices: numba need not load `scipy.linalg` to find out whether it could.
linalg.ensure_blas = _without_blas
