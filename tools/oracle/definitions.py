"""Holds `lanser def` against calls that really happened.

    python tools/oracle/definitions.py --lanser target/release/lanser --project DIR --calls calls.json [--count 150] [--seed 1]

`calls.json` is what `lanser_calls.py` wrote while the project's own tests ran in DIR. A sample of executed call lines on which
the called function's name is written once is taken, and the definition of that token is asked for. It is *right* if the function
that ran is among the definitions; *related* if a definition of the same name is (a base class, an overload, a stub, one of
several branches); *another* if only other names are (a variable or parameter that holds the function); *nowhere* if there is none.
"""

import argparse
import collections
import pathlib
import random
import re

import compare


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--lanser", required=True)
    parser.add_argument("--project", required=True, type=pathlib.Path)
    parser.add_argument("--calls", required=True)
    parser.add_argument("--count", type=int, default=150)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--timeout", type=int, default=60)
    arguments, extra = parser.parse_known_args()
    root, files = arguments.project.resolve(), {}

    def cache(path):
        if path not in files:
            files[path] = compare.File(root / path) if (root / path).is_file() else None
        return files[path]

    asked = []
    for (path, line, qualname), callers in sorted(compare.read_calls(arguments.calls).items()):
        name = qualname.rsplit(".", 1)[-1]
        file = cache(path)
        node = file and file.functions.get((line, name))
        if not node or name.startswith("__"):
            continue
        ran = (path, *compare.name_token(file, node))
        for caller, number in sorted(callers):
            other = cache(caller)
            places = [place for place in other.names.get(name, ()) if place[0] == number] if other else []
            if len(places) == 1:
                asked.append((name, ran, f"{caller}:{number}:{places[0][1] + 1}"))
    random.Random(arguments.seed).shuffle(asked)
    asked = asked[: arguments.count]
    selectors = [at for _, _, at in asked]
    answers = compare.ask(arguments.lanser, root, selectors, extra, arguments.timeout, "definition")
    counts = collections.Counter()
    for number, (name, ran, at) in enumerate(asked):
        bundle = answers[number]
        found = bundle["facts"].get("definitions") if bundle.get("facts") else None
        named = []
        for item in found or ():
            place = re.match(r"(.*)@L(\d+):C(\d+)", item["at"])
            target = cache(place[1]) if place and "://" not in place[1] else None
            line, column = (int(place[2]), int(place[3])) if place else (0, 0)
            if not target or (line, column - 1) in target.names.get(name, ()):
                named.append(item["at"])
        if ran in compare.places_of(found):
            verdict = "right"
        else:
            verdict = "related" if named else "another" if found else "nowhere"
            error = (bundle.get("error") or {}).get("message", "")
            print(f"{verdict:8} {at} ran {ran[0]}:{ran[1]} found {[item['at'] for item in found or ()]} {error}")
        counts[verdict] += 1
    print(f"{arguments.project.name}: {len(asked)} calls, " + ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common()))


if __name__ == "__main__":
    main()
