"""`python -m scanner` and the `opscan` script."""

import sys


def main() -> int:
    """Run opscan on the process's arguments and return its exit code."""
    arguments = sys.argv[1:]
    if arguments in (["--version"], ["-V"]):
        # Asked by scripts and editors on every start: nothing else may be imported.
        from scanner import __version__

        sys.stdout.write(f"opscan {__version__}\n")
        return 0
    if arguments[:2] == ["db", "op"]:
        from scanner.cli.quick import answer

        if (code := answer(arguments[2:])) is not None:
            return code
    from scanner.cli.main import run

    return run(arguments)


if __name__ == "__main__":
    sys.exit(main())
