// Compiles what the playground and the lessons read, by the Python that will run it: node compiled.mjs RUNTIME LIBRARY
// PROGRAM COURSE, which are the folder of npm's package and three archives. LIBRARY is written, the others are read and
// written anew.
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [runtime, library, program, course] = process.argv.slice(2).map((path) => resolve(path));
const { loadPyodide } = await import(pathToFileURL(`${runtime}/pyodide.mjs`));
const env = { PYTHONPATH: "/lib/program.zip" }; // as in the worker: errors name the files that are there
const read = (path) => new Uint8Array(readFileSync(path));
try {
  const python = await loadPyodide({ indexURL: runtime, env, fsInit: (FS) => FS.writeFile(env.PYTHONPATH, read(program)) });
  python.FS.writeFile("/lib/course.zip", read(course));
  python.runPython(readFileSync(new URL("compiled.py", import.meta.url), "utf8"));
  for (const [path, name] of [[library, "library"], [program, "program"], [course, "course"]])
    writeFileSync(path, python.globals.get(name).toJs());
} catch (error) {
  console.error(String(error.message)); // Node itself would show the line that raised it, of a million characters
  process.exit(1);
}
