"""Finds the `lanser` program that this package was installed with."""

from __future__ import annotations

import os
import sys
import sysconfig
from typing import List, Optional


class LanserNotFound(FileNotFoundError):
    """The program is in none of the folders into which installers put the scripts of a package."""


def find_lanser_bin() -> str:
    """The path of the `lanser` program. Does not search `PATH`: a program found there may be of another version."""
    name = "lanser" + (sysconfig.get_config_var("EXE") or "")
    searched: List[str] = []
    for folder in _folders():
        if folder and folder not in searched:
            searched.append(folder)
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                return path
    places = "".join(f"\n - {folder}" for folder in searched)
    raise LanserNotFound(f"there is no {name} in any of these folders; give its path as `program`:{places}")


def _folders() -> List[Optional[str]]:
    """Where installers put scripts: in the environment, in the one below it, in the user's, or beside the package."""
    package = os.path.dirname(os.path.abspath(__file__))
    site = os.path.dirname(package)
    above = os.path.join(site, os.pardir, os.pardir, os.pardir)
    is_prefix = os.path.basename(site) in ("site-packages", "dist-packages")
    return [
        sysconfig.get_path("scripts"),
        sysconfig.get_path("scripts", vars={"base": sys.base_prefix}),
        sysconfig.get_path("scripts", scheme=_user_scheme()),
        # `pip install --prefix`, and overlays such as those of uv.
        os.path.normpath(os.path.join(above, "bin")) if is_prefix else None,
        # `pip install --target`
        os.path.join(site, "bin"),
    ]


def _user_scheme() -> str:
    if sys.version_info >= (3, 10):
        return sysconfig.get_preferred_scheme("user")
    if sys.platform == "darwin" and getattr(sys, "_framework", ""):
        return "osx_framework_user"
    return "nt_user" if os.name == "nt" else "posix_user"
