"""`python -m lanser`: runs the program with the same arguments."""

import os
import sys

from lanser import find_lanser_bin


def main() -> None:
    program = find_lanser_bin()
    os.execv(program, [program, *sys.argv[1:]])


if __name__ == "__main__":
    main()
