"""The task of the examples: a small repository with one defect that a type checker sees, and answers as models give them.

`Stock.items.get` may return `None`, and `reserve` does not expect it.
"""

from __future__ import annotations

import pathlib
import shutil
import subprocess

FIXTURE = pathlib.Path(__file__).resolve().parents[2] / "fixtures/inventory"

PROMPT = "Running `reserve` fails for an unknown item. Answer with a unified diff that repairs src/inventory/orders.py."

ANSWER = """\
An unknown item has nothing left.

```diff
--- a/src/inventory/orders.py
+++ b/src/inventory/orders.py
@@ -22,4 +22,4 @@
 def reserve(stock: Stock, order: Order) -> int:
     \"""What is left of an item. Wrong on purpose: the item may not be there.\"""
     known = stock.items.get(order.name)
-    return known.count - order.count
+    return {}
```
"""

REPAIR = ANSWER.format("known.count - order.count if known else 0")
"""A repair: +0.5."""

HIDING = ANSWER.format("known.count - order.count  # type: ignore")
"""The error is only hidden: 0."""

BREAKING = ANSWER.format("known.cuont - order.count")
"""One more error: -0.5."""

NO_DIFF = "I would check whether the item is there."
"""Nothing that applies: -0.5."""


def repository(folder: pathlib.Path) -> pathlib.Path:
    """A git repository with the task, in a new folder."""
    path = folder / "inventory"
    shutil.copytree(FIXTURE, path)
    git = ["git", "-C", str(path), "-c", "user.name=example", "-c", "user.email=example@example.org"]
    for arguments in (["init", "--quiet"], ["add", "--all"], ["commit", "--quiet", "--message", "task"]):
        subprocess.run([*git, *arguments], check=True)
    return path
