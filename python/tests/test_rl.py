"""Tests of `lanser.rl`: with the real program, and with one that misbehaves on demand."""

from __future__ import annotations

import asyncio
import json
import math
import pathlib
import subprocess
import sys
import threading
import unittest
from typing import Any, Dict, Iterator, List

import lanser
from lanser.rl import PARTS, NotScored, Scorer, State, StepReward, diff_in, episode_id, numbers, score, shared_scorer

from .support import PROGRAM, ProjectCase, logged, stand_in

EPISODE: Dict[str, Any] = {
    "schema": "lanser.episode.v1",
    "head": "diff",
    "reward": 0.5,
    "scored": True,
    "reward_components": {"diag": 0.5, "safety": 0.0, "confidence": 0.0, "tool_error": 0.0, "integrity": 0.0},
    "steps": [{"t": 1, "r": 0.5, "prev": 1.0, "cur": 0.0, "new": 0, "fixed": 1, "visible": True}],
    "gone": {"in_place": 1, "replaced": 0, "removed": 0, "declared": 0},
    "integrity_flags": [],
    "visible": True,
}

ANSWER = f"""\
episode = {EPISODE!r}
def reply(**members):
    print(json.dumps({{**episode, **members, "meta": {{"volatile": {{"id": line["id"]}}}}}}), flush=True)
def fail(symbol):
    error = {{"code": 1, "symbol": symbol, "message": "m", "hint": None, "data": None, "retryable": "never"}}
    reply(scored=False, reward=None, error=error)
"""


class Numbers(unittest.TestCase):
    def test_the_reward_is_the_sum_of_its_parts(self) -> None:
        found = numbers(EPISODE)
        self.assertEqual(found["reward"], sum(found[part] for part in PARTS))
        self.assertEqual(found["diagnostics_before"], 1.0)
        self.assertTrue(all(type(value) is float and math.isfinite(value) for value in found.values()), found)

    def test_what_is_not_known_is_absent(self) -> None:
        steps = [{**EPISODE["steps"][0], "prev": None, "cur": None}]
        found = numbers({**EPISODE, "steps": steps, "gone": None})
        self.assertNotIn("diagnostics_before", found)
        self.assertEqual(found["gone_removed"], 0.0)

    def test_no_number_is_invented(self) -> None:
        for wrong in (math.nan, math.inf):
            with self.assertRaises(NotScored):
                numbers({**EPISODE, "reward": wrong})

    def test_whose_fault_it_is(self) -> None:
        def fault(**members: Any) -> str:
            with self.assertRaises(NotScored) as caught:
                numbers({**EPISODE, "scored": False, "reward": None, **members})
            return caught.exception.fault

        def error(symbol: str) -> Dict[str, Any]:
            return {"symbol": symbol, "message": "m", "hint": "h"}

        self.assertEqual(fault(error=error("E/LS_TIMEOUT")), "machine")
        self.assertEqual(fault(error=error("E/NOT_FOUND")), "request")
        self.assertEqual(fault(reason="E/VERSION_SKEW: the head changes the server's configuration"), "head")

    def test_the_id_depends_on_the_content_alone(self) -> None:
        again = {**EPISODE, "head": "line 3", "meta": {"volatile": {"line": 3}}}
        self.assertEqual(episode_id("a", EPISODE), episode_id("a", again))
        self.assertNotEqual(episode_id("a", EPISODE), episode_id("b", EPISODE))
        self.assertNotEqual(episode_id("a", EPISODE), episode_id("a", {**EPISODE, "reward": 0.0}))

    def test_the_diff_in_an_answer(self) -> None:
        self.assertEqual(diff_in("First:\n```diff\na\n```\nno:\n```diff -u\nb\nc\n```\nDone."), "b\nc\n")
        self.assertEqual(diff_in("--- a/x\n+++ b/x\n"), "--- a/x\n+++ b/x\n")
        self.assertEqual(diff_in("```python\nx\n```\n"), "```python\nx\n```\n")


class Failures(unittest.TestCase):
    def scorer(self, body: str, **options: Any) -> Scorer:
        scorer = Scorer(program=stand_in(self, ANSWER + body), **options)
        self.addCleanup(scorer.close)
        return scorer

    def test_a_head_that_ends_the_process_is_sent_again(self) -> None:
        body = f"if line['head']['diff'] == 'x' and not os.path.exists({'once'!r}): open('once', 'w'); os._exit(7)\nreply()\n"
        scorer = self.scorer(f"os.chdir(os.path.dirname(os.path.abspath(__file__)))\n{body}")
        self.assertEqual([episode["scored"] for episode in scorer.episodes(["a", "x", "b"])], [True] * 3)

    def test_a_head_that_always_ends_the_process_costs_only_itself(self) -> None:
        scorer = self.scorer("if line['head']['diff'] == 'x': os._exit(7)\nreply()\n")
        heads = ["a", "x", "b", "c"]
        scored = [episode["scored"] for episode in scorer.episodes(heads, ahead=1)]
        self.assertEqual(scored, [True, False, True, True])
        with self.assertRaises(NotScored) as caught:
            scorer.score("x")
        self.assertEqual(caught.exception.fault, "machine")
        self.assertIn("exit code 7", caught.exception.reason)

    def test_faults_of_the_machine_are_tried_again_and_others_are_not(self) -> None:
        for symbol, tries in [("E/LS_TIMEOUT", 3), ("E/NOT_FOUND", 1)]:
            scorer = self.scorer(f"fail({symbol!r})\n", retries=2)
            self.assertFalse(scorer.episode("a")["scored"])
            self.assertEqual(len(logged(pathlib.Path(str(scorer._program))).splitlines()), tries, symbol)
            with self.assertRaises(NotScored):
                asyncio.run(scorer.score_async("a"))
            self.assertEqual(len(logged(pathlib.Path(str(scorer._program))).splitlines()), 2 * tries, symbol)

    def test_a_program_that_does_not_exist(self) -> None:
        with Scorer(program="/nonexistent/lanser") as scorer, self.assertRaises(NotScored) as caught:
            scorer.score("a")
        self.assertEqual(caught.exception.fault, "machine")

    def test_lines(self) -> None:
        scorer = self.scorer("reply()\n", base="rev:main", preset="pr-v1", analyzers=["ruff"], timeout=0.5)
        scorer.score({"a.py": "x", "b.py": None})
        scorer.score(State("WORKTREE"), base="HEAD~1")
        scorer.score(pathlib.Path("/tmp"))
        lines = [json.loads(line) for line in logged(pathlib.Path(str(scorer._program))).splitlines()]
        common = {"cmd": "score", "preset": "pr-v1", "with": ["ruff"], "timeout": 1}
        self.assertEqual(lines[0], {"id": 1, **common, "base": "rev:main", "head": {"files": {"a.py": "x", "b.py": None}}})
        self.assertEqual(lines[1], {"id": 2, **common, "base": "HEAD~1", "head": {"state": "WORKTREE"}})
        self.assertEqual(lines[2]["head"], {"state": "/tmp"})

    def test_episodes_come_in_order_and_heads_are_not_read_ahead_without_limit(self) -> None:
        # Answers in pairs, the second one first.
        body = """
        held = globals().setdefault("held", [])
        held.append(line)
        if len(held) == 2:
            for line in reversed(held):
                reply(head=line["head"]["diff"])
            held.clear()
        """
        taken: List[int] = []

        def heads() -> Iterator[str]:
            for number in range(20):
                taken.append(number)
                yield str(number)

        scorer = self.scorer("\n".join(text[8:] for text in body.splitlines()))
        for number, episode in enumerate(scorer.episodes(heads(), ahead=4)):
            self.assertEqual(episode["head"], str(number))
            self.assertLessEqual(len(taken), number + 4)

    def test_an_iteration_that_is_left_cancels_the_rest(self) -> None:
        scorer = self.scorer("reply() if line.get('id') == 1 else None\n")
        next(scorer.episodes(["a", "b", "c"], ahead=3))
        scorer.close()
        self.assertIn('{"cancel": 3}', logged(pathlib.Path(str(scorer._program))))

    def test_one_scorer_for_equal_options(self) -> None:
        self.assertIs(shared_scorer("/tmp", retries=3), shared_scorer("/tmp", retries=3))
        self.assertIsNot(shared_scorer("/tmp", retries=3), shared_scorer("/tmp", retries=4))
        first = shared_scorer("/tmp", retries=3)
        first.close()
        self.assertIsNot(shared_scorer("/tmp", retries=3), first)


class Import(unittest.TestCase):
    def test_the_package_does_not_import_it(self) -> None:
        code = "import sys, lanser; print(sorted(name for name in sys.modules if name.startswith('lanser.r')))"
        path = str(pathlib.Path(lanser.__file__).parents[1])
        done = subprocess.run([sys.executable, "-c", code], env={"PYTHONPATH": path}, capture_output=True, text=True)
        self.assertEqual(done.stdout, "[]\n", done.stderr)




class WithTheProgram(ProjectCase):
    scorer: Scorer

    @classmethod
    def setUpClass(cls) -> None:
        super().setUpClass()
        cls.scorer = Scorer(cls.project, program=PROGRAM)
        cls.addClassCleanup(cls.scorer.close)

    def diff(self, old: str, new: str) -> str:
        """The diff of one replacement in orders.py, made by git."""
        path = self.project / "src/inventory/orders.py"
        text = path.read_text()
        self.assertIn(old, text)
        path.write_text(text.replace(old, new))
        try:
            return subprocess.run(["git", "diff"], cwd=self.project, capture_output=True, text=True, check=True).stdout
        finally:
            path.write_text(text)

    def heads(self) -> Dict[str, str]:
        line = "return known.count - order.count"
        return {
            "repair": self.diff(line, "return known.count - order.count if known else 0"),
            "hide": self.diff(line, f"{line}  # type: ignore"),
            "break": self.diff(line, "return known.cuont - order.count"),
            "garbage": "I would change the line.",
        }

    def test_as_the_command_line(self) -> None:
        heads = self.heads()
        out = self.project.parent / "rewards.json"
        for name, episode in zip(heads, self.scorer.episodes(heads.values())):
            file = self.project.parent / "head.diff"
            file.write_text(heads[name])
            printed = self.lanser("score", "--json", "--head", str(file), "--rewards-json", str(out))
            expected = json.loads(printed.stdout)
            for volatile in ("meta", "head"):
                expected.pop(volatile, None)
            self.assertEqual({key: value for key, value in episode.items() if key not in ("meta", "head")}, expected, name)
            self.assertEqual(json.loads(out.read_text()), numbers(episode), name)

    def test_rewards(self) -> None:
        heads = self.heads()
        found = {name: self.scorer.score(head)["reward"] for name, head in heads.items()}
        self.assertEqual(found, {"repair": 0.5, "hide": 0.0, "break": found["break"], "garbage": -0.5})
        self.assertLessEqual(found["break"], 0.0)

    def test_files_threads_and_coroutines(self) -> None:
        text = (self.project / "src/inventory/orders.py").read_text()
        files = {"src/inventory/orders.py": text.replace("- order.count", "- order.count if known else 0")}
        found: List[float] = []
        threads = [threading.Thread(target=lambda: found.append(self.scorer.score(files)["reward"])) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [0.5] * 3)

        async def both() -> List[Dict[str, float]]:
            return list(await asyncio.gather(self.scorer.score_async(files), self.scorer.score_async(State("rev:HEAD"))))

        self.assertEqual([one["reward"] for one in asyncio.run(both())], [0.5, 0.0])

    def test_an_unknown_base_is_not_a_reward(self) -> None:
        with self.assertRaises(NotScored) as caught:
            score("rev:nonexistent", self.heads()["repair"], self.project, program=PROGRAM)
        self.assertEqual(caught.exception.fault, "request")

    def test_the_steps_of_a_run(self) -> None:
        heads = self.heads()
        bundles: List[Any] = [self.workspace.diag(), self.workspace.check(heads["break"]), self.workspace.check(heads["repair"])]
        with self.assertRaises(lanser.NotFoundError) as caught:
            self.workspace.hover("Stock.ad")
        bundles.append(caught.exception)
        run = self.project.parent / "run.jsonl"
        run.write_text("".join(json.dumps(bundle.json) + "\n" for bundle in bundles))
        for preset in ("rl-csf-v1", "rl-csf-guarded-v1"):
            printed = self.lanser("reward", "--run", str(run), "--reward", preset).stdout.splitlines()
            expected = [json.loads(line)["r"] for line in printed[:-1]]
            self.assertEqual(len(expected), len(bundles))
            with StepReward(preset, program=PROGRAM) as reward:
                for bundle, r in zip(bundles, expected):
                    if r is None:
                        self.assertRaises(NotScored, reward.step, bundle)
                    else:
                        self.assertEqual(reward.step(bundle)["reward"], r)
        self.assertLessEqual(expected[-1], -0.5, "an error of the caller")

    def test_what_is_not_a_bundle(self) -> None:
        with StepReward(program=PROGRAM) as reward:
            self.assertRaises(NotScored, reward.step, {})
            self.assertRaises(ValueError, reward.step, "{}\n{}")
            self.assertIn("reward", reward.step(self.workspace.diag()))


if __name__ == "__main__":
    unittest.main()
