"""`python -m headcount` is the `headcount` command."""

from headcount.cli import run

if __name__ == "__main__":
    run()
