"""`python -m headcount` is the `headcount` command."""

from headcount.cli.main import run

if __name__ == "__main__":
    run()
