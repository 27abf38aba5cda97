"""`python -m palaver` is `palaver`."""

from palaver.cli import main

if __name__ == "__main__":
    main()
