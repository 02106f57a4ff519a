"""`python -m generators timelines ...` and `python -m generators webworld ...`."""

from __future__ import annotations

import sys

COMMANDS = ("timelines", "webworld")


def main(argv: list[str]) -> int:
    if not argv or argv[0] not in COMMANDS:
        print(
            f"usage: python -m generators {{{','.join(COMMANDS)}}} ... (--help behind it shows more)", file=sys.stderr
        )
        return 0 if argv[:1] in (["-h"], ["--help"]) else 2
    if argv[0] == "timelines":
        from generators.cli import main as timelines

        return timelines(argv[1:])
    from generators.webworld.cli import main as webworld

    return webworld(argv[1:])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
