// The playground's Python, in a thread of its own. While it plays it posts the losses and what there is to draw.
import { given, load, plain, serve } from "./python.js";

const FRAME = 33; // milliseconds for one picture

let program, playground, step, rest;
let run = 0; // which of the calls of play() goes on

async function begin(runtime) {
  const { python, complete } = await load(runtime);
  program = python.pyimport("playground");
  rest = complete;
}

const numbers = () => plain(playground.numbers());

// The rest of Python's library is asked for when the first step is on its way.
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

serve(begin, (call) => methods[call] ?? ((...xs) => plain(playground[call](...xs.map(given)))));
