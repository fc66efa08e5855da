"""Adapters of `lanser.rl` for training frameworks. Each module needs the framework of its name, which lanser does not install."""
