// The playground's Python, in a thread of its own. The first message says where the runtime is; each other one names a
// method, and is answered. While it plays it posts the losses and what there is to draw.
const FRAME = 33; // milliseconds for one picture
const PROGRAM = "/lib/program.zip", REST = "/lib/rest.zip"; // where Python finds them

let python, program, playground, step, rest;
let run = 0; // which of the calls of play() goes on
let start;
const ready = new Promise((resolve, reject) => {
  start = (runtime) => load(runtime).then(resolve, reject);
});

// All is asked for at once. Beside the program lies what it needs of Python's library, compiled; or it does not, and
// the runtime brings its library as a text, of which each module is compiled when it is imported.
async function load(runtime) {
  const packed = bytes(beside("program.zip")), library = fetch(beside("library.zip"), { method: "HEAD" });
  packed.catch(() => {}); // it is told below
  import(`${runtime}pyodide.asm.mjs`).catch(() => {}); // which the next one asks for
  const { loadPyodide } = await import(`${runtime}pyodide.mjs`), isCompiled = (await library).ok;
  python = await loadPyodide({
    indexURL: runtime,
    env: { PYTHONPATH: PROGRAM },
    fsInit: async (files) => files.writeFile(PROGRAM, await packed),
    ...(isCompiled && { stdLibURL: beside("library.zip") }),
  });
  await packed;
  program = python.pyimport("playground");
  if (isCompiled) rest = () => complete(`${runtime}python_stdlib.zip`).catch(() => {}); // Python says what it lacks
}

const beside = (name) => new URL(name, import.meta.url).href;

async function bytes(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address} was answered with ${answer.status}`);
  return new Uint8Array(await answer.arrayBuffer());
}

// The rest of Python's library, for what nobody has thought of, when the first step is on its way.
async function complete(address) {
  python.FS.writeFile(REST, await bytes(address));
  python.pyimport("sys").path.append(REST);
}

// What Python gives as JavaScript's own, and the other way round.
function plain(x) {
  const copy = x?.toJs ? x.toJs() : x;
  x?.destroy?.();
  return copy;
}

const given = (x) => (x && typeof x === "object" ? python.toPy(x) : x);

const numbers = () => plain(playground.numbers());

function tell(losses) {
  postMessage({ losses, numbers: numbers() });
  rest?.();
  rest = null;
}

const methods = {
  // The examples are so many of a kind, or X and Y; as many others of that kind are held out.
  make(examples, count, noise, ...setting) {
    run++;
    playground?.destroy();
    const drawn = (seed) => plain(program.examples(examples, count, noise, seed)), isKind = typeof examples === "string";
    const [X, Y] = isKind ? drawn(0) : examples, held = isKind ? drawn(1) : [[], []];
    playground = program.Playground(...[...setting, X, Y].map(given));
    step = playground.step;
    return { X, Y, held, names: plain(playground.names()), forward: playground.forward(), measure: playground.measure(), numbers: numbers() };
  },
  async play(pause) {
    const mine = ++run;
    while (mine === run) {
      const begun = performance.now(), losses = [];
      do losses.push(step());
      while (!pause && performance.now() - begun < FRAME && isFinite(losses.at(-1)));
      tell(losses);
      await new Promise((resume) => setTimeout(resume, Math.max(0, (pause || FRAME) - (performance.now() - begun))));
    }
  },
  stop: () => void run++,
  step() {
    run++;
    tell([step()]);
  },
};

onmessage = async ({ data: { id, call, args = [], runtime } }) => {
  if (runtime) start(runtime);
  try {
    await ready;
    const method = methods[call] ?? ((...xs) => plain(playground[call](...xs.map(given))));
    postMessage({ id, result: call && (await method(...args)) });
  } catch (error) {
    postMessage({ id, error: String(error.message ?? error) });
  }
};
