"""Functions that are called by compiled code alone: compiled without entries of their own.

numba gives every function that it compiles an entry for Python and one for C, which unpack its
arguments and box what it returns. For a kernel of many small functions they are a third of the
compilation, for nothing: a kernel calls the function itself. Without its entry a call from Python
would crash; so such a function stands in an `Inner`, which makes an entry when Python calls it
(as tests do).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar, cast

from numba import njit

Function = TypeVar("Function", bound=Callable[..., Any])


@dataclass(frozen=True)
class Inner:
    """A function for kernels, which see the numba function in it."""

    function: Any  # of numba, without entries

    @property
    def _numba_type_(self) -> Any:  # what numba takes a value for that it finds in a kernel
        return self.function._numba_type_

    @cached_property
    def _entry(self) -> Callable[..., Any]:
        function = self.function
        return cast(Callable[..., Any], njit(lambda *arguments: function(*arguments)))

    def __call__(self, *arguments: Any) -> Any:
        return self._entry(*arguments)


def inner(**options: Any) -> Callable[[Function], Function]:
    """Decorator: a function that kernels call, with more options of numba."""
    entries = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}
    compiled = njit(cache=True, nogil=True, error_model="numpy", **entries, **options)

    def decorated(function: Function) -> Function:
        return cast(Function, Inner(compiled(function)))

    return decorated
