#!/usr/bin/env node
// Runs the program of the package for this platform, which npm installed as an optional dependency.
"use strict";

const { spawn } = require("node:child_process");
const { constants } = require("node:os");

function platform() {
  const name = `${process.platform}-${process.arch}`;
  if (process.platform !== "linux") return name;
  const glibc = process.report.getReport().header.glibcVersionRuntime;
  return `${name}-${glibc ? "gnu" : "musl"}`;
}

function find() {
  const name = `@lanser/${platform()}`;
  try {
    return require.resolve(`${name}/bin/lanser`);
  } catch {
    console.error(`lanser: the package ${name} is not installed: this platform is not supported, or npm left out optional dependencies`);
    process.exit(66);
  }
}

const child = spawn(find(), process.argv.slice(2), { stdio: "inherit" });
child.on("error", (error) => {
  console.error(`lanser: ${error.message}`);
  process.exit(66);
});
// The terminal sends Ctrl-C to both; other senders only know this process.
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"]) process.on(signal, () => child.kill(signal));
child.on("exit", (code, signal) => process.exit(code ?? 128 + (constants.signals[signal] ?? 0)));
