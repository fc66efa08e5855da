// Makes the npm packages from a built program:
//
//     node npm/pack.mjs BINARY TARGET OUT
//
// writes the tarballs of `@lanser/TARGET`, which holds the program, and of `lanser`, whose optional dependencies are the packages
// of all targets, into the folder OUT. The version is that of Cargo.toml.
import { execFileSync } from "node:child_process";
import { chmodSync, copyFileSync, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

const TARGETS = {
  "darwin-arm64": { os: ["darwin"], cpu: ["arm64"] },
  "darwin-x64": { os: ["darwin"], cpu: ["x64"] },
  "linux-arm64-gnu": { os: ["linux"], cpu: ["arm64"], libc: ["glibc"] },
  "linux-x64-gnu": { os: ["linux"], cpu: ["x64"], libc: ["glibc"] },
  "linux-x64-musl": { os: ["linux"], cpu: ["x64"], libc: ["musl"] },
};

const here = dirname(fileURLToPath(import.meta.url));
const root = dirname(here);
const [binary, target, out] = process.argv.slice(2);
if (!out || !(target in TARGETS)) {
  console.error(`usage: node npm/pack.mjs BINARY TARGET OUT\ntargets: ${Object.keys(TARGETS).join(", ")}`);
  process.exit(2);
}
const cargo = readFileSync(join(root, "Cargo.toml"), "utf8");
const version = /^version = "(.+)"$/m.exec(cargo)[1];
const description = /^description = "(.+)"$/m.exec(cargo)[1];
const common = { version, description, license: "Apache-2.0", engines: { node: ">=14" } };

const staging = mkdtempSync(join(tmpdir(), "lanser-npm-"));
function pack(name, manifest, fill) {
  const folder = join(staging, name);
  mkdirSync(join(folder, "bin"), { recursive: true });
  fill(folder);
  copyFileSync(join(root, "LICENSE"), join(folder, "LICENSE"));
  writeFileSync(join(folder, "package.json"), JSON.stringify({ name, ...common, ...manifest }, null, 2) + "\n");
  mkdirSync(out, { recursive: true });
  execFileSync("npm", ["pack", "--silent", "--pack-destination", resolve(out)], { cwd: folder, stdio: "inherit" });
}

try {
  pack(`@lanser/${target}`, { ...TARGETS[target], preferUnplugged: true }, (folder) => {
    copyFileSync(binary, join(folder, "bin/lanser"));
    chmodSync(join(folder, "bin/lanser"), 0o755);
  });
  const optionalDependencies = Object.fromEntries(Object.keys(TARGETS).map((name) => [`@lanser/${name}`, version]));
  pack("lanser", { bin: { lanser: "bin/lanser.js" }, optionalDependencies }, (folder) => {
    cpSync(join(here, "lanser"), folder, { recursive: true });
    copyFileSync(join(root, "README.md"), join(folder, "README.md"));
  });
} finally {
  rmSync(staging, { recursive: true, force: true });
}
