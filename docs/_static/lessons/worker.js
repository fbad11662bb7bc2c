// The Python of a lesson, in a thread of its own: it runs cells, and posts what comes of them.
import { load, serve } from "../playground/python.js";

let python, cells, rest, running;

async function begin(runtime) {
  let complete;
  ({ python, complete } = await load(runtime, new URL("course.zip", import.meta.url).href));
  rest = complete?.(); // while what comes next is on its way
  cells = python.pyimport("cells").Cells((what) => postMessage({ cell: running, ...JSON.parse(what) }));
}

const words = (text) => postMessage({ cell: running, kind: "loading", text });

// What a cell imports and Python has not: NumPy, matplotlib. What cannot be had, Python says by itself.
async function fetched(load, what) {
  try {
    await load(what, { messageCallback: words, errorCallback: words, checkIntegrity: true });
  } catch (error) {
    words(String(error.message ?? error));
  }
}

const methods = {
  // How it ended: "" where all went well.
  async run(cell, source, columns, mine) {
    running = cell;
    await rest;
    await fetched(python.loadPackagesFromImports, source);
    const once = () => (postMessage({ cell, kind: "begins" }), cells.run(cell, source, columns, mine));
    const lacks = once(), isHere = (name) => name in python.loadedPackages;
    if (lacks in python.lockfile.packages && !isHere(lacks)) {
      await fetched(python.loadPackage, lacks); // which something wants that the cell calls
      if (isHere(lacks)) return once() && "failed";
    }
    return lacks && "failed";
  },
};

serve(begin, (call) => methods[call]);
