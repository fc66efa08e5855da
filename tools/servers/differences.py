"""Compares the references that two servers find through lanser.

    python tools/servers/differences.py --lanser target/release/lanser --project DIR [--servers pyright ty] [--count 300] [--seed 1]

A sample of the project's functions and methods is taken. Each difference is printed with its place, what each server says about it
(a reference, unresolved, or another symbol), and whether either answer is called complete. Two answers that are both complete and
differ are the worst case: one of the labels is wrong.
"""

import argparse
import collections
import json
import pathlib
import random
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "oracle"))
import compare  # noqa: E402


def functions(lanser, root, server):
    """The selectors of all functions and methods outside of tests, sorted."""
    run = subprocess.run(
        [lanser, "-C", str(root), "--server", server, "symbols", "--json", "--limit", "100000"],
        capture_output=True,
        text=True,
        check=False,
    )
    found = {
        item["at"]
        for item in json.loads(run.stdout)["facts"]["symbols"]
        if item["symbol_kind"] in ("function", "method") and not item["name"].startswith("__")
    }
    tests = ("test", "docs", "example", "bench")
    return sorted(at for at in found if not any(part.startswith(tests) for part in pathlib.PurePosixPath(at).parts))


def places(bundle):
    """What the answer says about each place: `reference` or `unresolved`."""
    facts = bundle.get("facts") or {}
    said = {item["at"]: "reference" for item in facts.get("references") or ()}
    unresolved = (facts.get("completeness") or {}).get("unresolved", {}).get("items", ())
    said.update({item["at"]: "unresolved" for item in unresolved})
    said.update({item["at"]: "override" for item in facts.get("overrides") or ()})
    return said


def status(bundle):
    return ((bundle.get("facts") or {}).get("completeness") or {}).get("status", "error")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--lanser", required=True)
    parser.add_argument("--project", required=True, type=pathlib.Path)
    parser.add_argument("--servers", nargs=2, default=["pyright", "ty"])
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    arguments, extra = parser.parse_known_args()
    root = arguments.project.resolve()
    sample = functions(arguments.lanser, root, arguments.servers[-1])
    random.Random(arguments.seed).shuffle(sample)
    sample = sample[: arguments.count]
    one, two = (
        compare.ask(arguments.lanser, root, sample, ["--server", server, *extra], 120) for server in arguments.servers
    )
    counts, pairs = collections.Counter(), collections.Counter()
    for number, at in enumerate(sample):
        first, second = places(one[number]), places(two[number])
        both = (status(one[number]), status(two[number]))
        pairs[both] += 1
        differing = sorted(
            place
            for place in {*first, *second}
            if (first.get(place) == "reference") != (second.get(place) == "reference")
        )
        counts["equal" if not differing else "different"] += 1
        counts["references"] += sum(said == "reference" for said in first.values())
        for place in differing:
            said = (first.get(place, "-"), second.get(place, "-"))
            counts["missing" if said[0] == "reference" else "extra"] += 1
            is_worst = both == ("complete", "complete")
            counts["both complete"] += is_worst
            print(f"{'WORST ' if is_worst else ''}{at}  {place}  {said[0]} / {said[1]}  ({both[0]} / {both[1]})")
    name = root.name
    print(
        f"{name}: {len(sample)} functions, {counts['references']} references, equal {counts['equal']}, "
        f"missing {counts['missing']}, extra {counts['extra']}, different though both complete {counts['both complete']}; "
        + ", ".join(f"{a}/{b} {count}" for (a, b), count in sorted(pairs.items()))
    )


main()
