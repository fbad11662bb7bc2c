// Compiles what the playground reads, by the Python that will run it: node compiled.mjs RUNTIME PROGRAM LIBRARY, which
// are the folder of npm's package and two archives. PROGRAM is read and written anew, LIBRARY is written.
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [runtime, program, library] = process.argv.slice(2).map((path) => resolve(path));
const { loadPyodide } = await import(pathToFileURL(`${runtime}/pyodide.mjs`));
const written = (path) => (FS) => FS.writeFile(path, new Uint8Array(readFileSync(program)));
const env = { PYTHONPATH: "/lib/program.zip" }; // as in the worker: errors name the files that are there
try {
  const python = await loadPyodide({ indexURL: runtime, env, fsInit: written(env.PYTHONPATH) });
  python.runPython(readFileSync(new URL("compiled.py", import.meta.url), "utf8"));
  for (const [path, name] of [[program, "program"], [library, "library"]])
    writeFileSync(path, python.globals.get(name).toJs());
} catch (error) {
  console.error(String(error.message)); // Node itself would show the line that raised it, of a million characters
  process.exit(1);
}
