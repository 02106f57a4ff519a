"""`python -m generators timelines ...` and `python -m generators webworld ...`."""

from __future__ import annotations

import sys
from difflib import get_close_matches

COMMANDS = ("timelines", "webworld")


USAGE = """usage: python -m generators {timelines,webworld} ... (--help behind either shows more)

examples:
  python -m generators timelines --preset curriculum --seed 7 --show
  python -m generators webworld show --seed 7

Exit status: 0 done, 1 a check failed, 2 refused (one line says why), 130 interrupted."""


def main(argv: list[str]) -> int:
    if argv[:1] in (["-h"], ["--help"]):
        print(USAGE)
        return 0
    if not argv or argv[0] not in COMMANDS:
        near = get_close_matches(argv[0], COMMANDS, 1, 0.5) if argv else []
        hint = f"; did you mean '{near[0]}'?" if near else f": give one of {', '.join(COMMANDS)}"
        print(f"generators: {f'unknown command {argv[0]!r}' if argv else 'no command'}{hint}", file=sys.stderr)
        return 2
    if argv[0] == "timelines":
        from generators.cli import main as timelines

        return timelines(argv[1:])
    from generators.webworld.cli import main as webworld

    return webworld(argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
