"""``python -m turnwise`` is ``turnwise``; ``torchrun … -m turnwise train RECIPE`` has it learn in several processes."""

from turnwise.cli import main

if __name__ == "__main__":
    main()
