"""What all commands share: the parser, and what a command answers when it cannot go on. On the ground floor.

Bad input gets one line, a misspelt option its nearest name; every --help ends with the exit statuses.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from rewards.errors import UserError, refuse_unknown

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""

STATUSES = "Exit status: 0 done, 2 refused (one line says why), 130 interrupted."
"""The last line of a --help whose command has no other statuses and so does not list them itself."""


class Parser(argparse.ArgumentParser):
    """Exits with status 2 and one line. Abbreviations are not taken: they would hide a misspelling.

    `strict=False` leaves unknown options to the caller of `parse_known_args`. Sub-commands are Parsers, too.
    """

    def __init__(self, prog: str, description: str = "", epilog: str = "", *, strict: bool = True, **more: Any) -> None:
        super().__init__(
            prog=prog,
            description=description,
            epilog=epilog if "Exit status" in epilog else f"{epilog}\n\n{STATUSES}".lstrip(),
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            **more,
        )
        self._strict = strict

    def read(self, args: Sequence[str] | None) -> argparse.Namespace:
        """`parse_args`, under the name that says that unknown options are answered with the nearest one."""
        return self.parse_args(args)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> tuple[argparse.Namespace, list[str]]:
        # before argparse, which would name the options that are missing because one is misspelt
        words = sys.argv[1:] if args is None else list(args)
        if self._strict and self._subparsers is None:  # the options behind a sub-command are that parser's
            words = words[: words.index("--")] if "--" in words else words
            names = [word.partition("=")[0] for word in words if word.startswith("--")]
            try:
                refuse_unknown(names, self._option_string_actions, "option")
            except UserError as error:
                self.error(str(error))
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (--help shows all options)\n")


def usage(text: str, args: Sequence[str]) -> int:
    """Print the help of a command that has others below it. 0, or 2 where no help was asked for."""

    def command() -> int:
        print(text)
        return 0 if args else 2

    return answered("usage", command)


def answered(name: str, command: Callable[[], int], resume: str = "the same command resumes") -> int:
    """The command's exit status; 2 with one line on standard error for what the user can mend, 130 for Ctrl-C.

    A reader that has seen enough (`| head`) ends the command with status 0. `resume` says what Ctrl-C leaves.
    """
    try:
        status = command()
        sys.stdout.flush()  # here, where a closed pipe is expected, and not at exit
    except BrokenPipeError:
        # the flush at exit would fail once more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except UserError as error:
        print(f"{name}: {error}", file=sys.stderr)
    except OSError as error:  # no right to write, a full disk, a folder where a file should be
        print(f"{name}: {error.filename or 'a file'}: {error.strerror or error}", file=sys.stderr)
    except KeyboardInterrupt:
        print(f"{name}: interrupted; {resume}", file=sys.stderr)
        return INTERRUPTED
    else:
        return status
    return 2


def leave(program: Callable[[], int]) -> NoReturn:
    """Run a whole program and end the process with its exit status.

    SIGTERM (`timeout`, a batch system, a container) ends it as Ctrl-C does. After either, threads are not waited for as
    an ordinary exit would: they may wait for a server, and all that counts is on disk already.
    """
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    status = program()
    if status == INTERRUPTED:
        sys.stdout.flush()
        os._exit(status)
    sys.exit(status)
