// Python in a worker, for the playground and for the lessons: its runtime, what it runs, and the messages to it.
const PROGRAM = "/lib/program.zip", REST = "/lib/rest.zip", MORE = "/lib/more"; // where Python finds them

let python;

const beside = (name) => new URL(name, import.meta.url).href;

async function bytes(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address} was answered with ${answer.status}`);
  return new Uint8Array(await answer.arrayBuffer());
}

// All is asked for at once. Beside the program lies what it needs of Python's library, compiled; or it does not, and
// the runtime brings its library as a text, of which each module is compiled when it is imported. `more` is the address
// of another program, which comes as files. Gives Python, and what brings the rest of its library, where that is not
// there, for what nobody has thought of: Python says what it lacks if that fails.
export async function load(runtime, more = "") {
  const packed = bytes(beside("program.zip")), files = more && bytes(more), library = fetch(beside("library.zip"), { method: "HEAD" });
  for (const asked of [packed, files]) asked && asked.catch(() => {}); // it is told below
  import(`${runtime}pyodide.asm.mjs`).catch(() => {}); // which the next one asks for
  const { loadPyodide, version } = await import(`${runtime}pyodide.mjs`), isCompiled = (await library).ok;
  const isHere = new URL(runtime).origin === self.location.origin;
  python = await loadPyodide({
    indexURL: runtime,
    packageBaseUrl: isHere ? runtime : `https://cdn.jsdelivr.net/pyodide/v${version}/full/`, // npm has no NumPy
    env: { PYTHONPATH: PROGRAM },
    fsInit: async (system) => system.writeFile(PROGRAM, await packed),
    ...(isCompiled && { stdLibURL: beside("library.zip") }),
  });
  await packed;
  if (files) {
    python.unpackArchive(await files, "zip", { extractDir: MORE });
    python.pyimport("sys").path.append(MORE);
  }
  return { python, complete: isCompiled ? () => complete(`${runtime}python_stdlib.zip`).catch(() => {}) : null };
}

async function complete(address) {
  python.FS.writeFile(REST, await bytes(address));
  python.pyimport("sys").path.append(REST);
}

// What Python gives as JavaScript's own, and the other way round.
export function plain(x) {
  const copy = x?.toJs ? x.toJs() : x;
  x?.destroy?.();
  return copy;
}

export const given = (x) => (x && typeof x === "object" ? python.toPy(x) : x);

// The first message says where the runtime is, and begins with that; each other one names a method, and is answered.
export function serve(begin, methods) {
  let ready;
  self.onmessage = async ({ data: { id, call, args = [], runtime } }) => {
    if (runtime) ready = begin(runtime);
    try {
      await ready;
      postMessage({ id, result: call && (await methods(call)(...args)) });
    } catch (error) {
      postMessage({ id, error: String(error.message ?? error) });
    }
  };
}
