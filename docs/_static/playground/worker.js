// The playground's Python, in a thread of its own. The first message says where the runtime, the wheel and the program
// are; each other one names a method, and is answered. While it plays it posts the losses and what there is to draw.
const FRAME = 33; // milliseconds for one picture

let python, playground, step;
let run = 0; // which of the calls of play() goes on
let start;
const ready = new Promise((resolve, reject) => {
  start = ({ runtime, wheel, program }) => load(runtime, wheel, program).then(resolve, reject);
});

async function load(runtime, wheel, program) {
  const fetched = Promise.all([get(wheel).then((answer) => answer.arrayBuffer()), get(program).then((answer) => answer.text())]);
  fetched.catch(() => {}); // it is told below, when it is waited for
  const { loadPyodide } = await import(`${runtime}pyodide.mjs`);
  const made = await loadPyodide({ indexURL: runtime });
  const [packed, text] = await fetched;
  made.unpackArchive(packed, "wheel");
  made.runPython(text);
  python = made;
}

async function get(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(`${address} was answered with ${answer.status}`);
  return answer;
}

// What Python gives as JavaScript's own, and the other way round.
function plain(x) {
  const copy = x?.toJs ? x.toJs() : x;
  x?.destroy?.();
  return copy;
}

const given = (x) => (x && typeof x === "object" ? python.toPy(x) : x);

const numbers = () => plain(playground.numbers());

const methods = {
  examples: (kind) => plain(python.globals.get("examples")(kind)),
  make(...setting) {
    run++;
    playground?.destroy();
    playground = python.globals.get("Playground")(...setting.map(given));
    step = playground.step;
    return { names: plain(playground.names()), forward: playground.forward(), numbers: numbers() };
  },
  async play(pause) {
    const mine = ++run;
    while (mine === run) {
      const begun = performance.now(), losses = [];
      do losses.push(step());
      while (!pause && performance.now() - begun < FRAME && isFinite(losses.at(-1)));
      postMessage({ losses, numbers: numbers() });
      await new Promise((resume) => setTimeout(resume, Math.max(0, (pause || FRAME) - (performance.now() - begun))));
    }
  },
  stop: () => void run++,
  step() {
    run++;
    postMessage({ losses: [step()], numbers: numbers() });
  },
};

onmessage = async ({ data: { id, call, args = [], ...places } }) => {
  if (places.runtime) start(places);
  try {
    await ready;
    const method = methods[call] ?? ((...xs) => plain(playground[call](...xs.map(given))));
    postMessage({ id, result: call && (await method(...args)) });
  } catch (error) {
    postMessage({ id, error: String(error.message ?? error) });
  }
};
