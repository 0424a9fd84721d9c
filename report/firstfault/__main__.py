"""`python -m firstfault`."""

from firstfault.cli import main

if __name__ == "__main__":
    main()
