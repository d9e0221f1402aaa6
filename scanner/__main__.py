"""`python -m scanner` and the `opscan` script."""

import sys


def main() -> int:
    """Run opscan on the process's arguments and return its exit code."""
    if sys.argv[1:] in (["--version"], ["-V"]):
        # Asked by scripts and editors on every start: nothing else may be imported.
        from scanner import __version__

        sys.stdout.write(f"opscan {__version__}\n")
        return 0
    from scanner.cli.main import run

    return run(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
