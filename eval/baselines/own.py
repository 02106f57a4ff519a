"""A memory system from anywhere: `--system package.module:Class`, or whatever else makes one when it is called.

What it makes has `insert(trajectory)` and `query(question, image)` (`lme_v2_env.memory.api.Memory`). A `settings` dict
on it, if there is one, goes into the run's record: two runs share a folder only when it and the source file are equal.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import json
import sys
import traceback
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from eval.baselines import Kit
from lme_v2_env.memory.api import Memory
from lme_v2_env.trajectory import Question
from rewards.errors import UserError

RAISED = (Exception, SystemExit)
"""What anybody's code may raise. A `sys.exit()` in it must not end the run as if it were done."""


class Failed(Exception):
    """A user's own memory failed; the message is the reason, `trace` the traceback for the user to read."""

    def __init__(self, reason: str, trace: str | None = None) -> None:
        super().__init__(f"memory: {reason}")
        self.trace = trace

    @classmethod
    def of(cls, where: str, error: BaseException) -> Failed:
        return cls(f"{where}: {blamed(error)}", traced(error))


def blamed(error: BaseException) -> str:
    """One line: what was raised, and the last line of code that it went through."""
    text = " ".join(str(error).split())[:200]
    frames = traceback.extract_tb(error.__traceback__)
    told = isinstance(error, SyntaxError) or not frames  # a syntax error says itself where it is
    where = "" if told else f" ({Path(frames[-1].filename).name}, line {frames[-1].lineno})"
    return f"{type(error).__name__}{': ' if text else ''}{text}{where}"


def traced(error: BaseException) -> str:
    """The traceback as text."""
    return "".join(traceback.format_exception(error))


class Own:
    queries = inserts = True

    def __init__(self, spec: str, make: Callable[[], Memory]) -> None:
        self.spec, self._make = spec, make
        self.name = spec.rpartition(":")[2]

    @property
    def settings(self) -> dict[str, Any]:
        return _recorded(self.spec, self._make) | {"memory": self.spec, "sha256": source_hash(self._make)}

    def covers(self, question: Question) -> bool:
        return True

    def memory(self) -> Memory:
        try:
            memory = self._make()
        except RAISED as error:  # anybody's code
            raise UserError(f"system '{self.spec}' makes no memory: {blamed(error)}") from error
        for method in ("insert", "query"):
            found = getattr(memory, method, None)
            if not callable(found):
                raise UserError(f"system '{self.spec}' makes a {type(memory).__name__} without {method}()")
            if inspect.iscoroutinefunction(found):
                raise UserError(f"system '{self.spec}': {method}() is async, and nobody would await it")
        return memory


def _recorded(spec: str, make: Callable[..., Any]) -> dict[str, Any]:
    """The user's `settings`, as the run's record gives them back. Raises `UserError` where JSON cannot hold them."""
    settings = getattr(make, "settings", {})
    try:
        if not isinstance(settings, Mapping):
            raise TypeError("it is no dict")
        return json.loads(json.dumps(dict(settings), allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise UserError(f"system '{spec}': its settings cannot be recorded as JSON: {error}") from error


def build(name: str, kit: Kit) -> Own:
    return Own(name, find(name))


def find(spec: str, *given: str) -> Callable[..., Any]:
    """What `package.module:name` names, if it can be called with the positional arguments `given`.

    Raises `UserError` with one line for a wrong path, a module that does not load, or a wrong signature.
    """
    module, _, attribute = spec.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))  # a program that is installed does not look where it was started
    try:
        found = getattr(import_module(module), attribute)
    except (ImportError, AttributeError) as error:
        raise UserError(f"system '{spec}' cannot be had: {error}") from error
    except RAISED as error:  # anybody's module: whatever it raises while it loads
        raise UserError(f"system '{spec}' cannot be had: {blamed(error)}") from error
    if not callable(found):
        raise UserError(f"system '{spec}' is a {type(found).__name__}: give a class or a function")
    try:
        takes = inspect.signature(found)
    except ValueError:  # written in C, without a signature: the first call will show
        return found
    try:
        takes.bind(*given)
    except TypeError:
        raise UserError(f"system '{spec}' takes {takes}, but is called with ({', '.join(given)})") from None
    if inspect.iscoroutinefunction(found):
        raise UserError(f"system '{spec}' is async, and nobody would await it: give a plain function")
    return found


def source_hash(found: Callable[..., Any]) -> str | None:
    """First 12 hex digits of the sha256 of the file that it comes from; None for what comes from no file.

    Of a `partial` and of what a decorator wrapped it is the function inside, of an object its class.
    """
    while isinstance(found, functools.partial):
        found = found.func
    found = inspect.unwrap(found)
    plain = inspect.isroutine(found) or inspect.isclass(found)
    try:
        file = inspect.getsourcefile(found if plain else type(found))
    except TypeError:
        return None
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()[:12] if file else None
