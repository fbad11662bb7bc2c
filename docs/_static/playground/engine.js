// A worker with Python in it, as the page sees it: it is asked, answers, and tells things of its own accord.

// Where Python comes from. An address may only name a place on this site: no link decides whose program runs here.
export function place(usual) {
  const wish = new URLSearchParams(location.search).get("runtime"), own = new URL(wish ?? ".", location.href);
  return wish && own.origin === location.origin ? own : new URL(usual, location.href);
}

export class Engine {
  waiting = new Map();
  asked = 0;

  // `told` is called with what the worker says unasked, `failed` with an error where it cannot even be started.
  constructor(address, runtime, told, failed) {
    this.worker = new Worker(address, { type: "module" });
    this.worker.onmessage = ({ data }) => ("id" in data ? this.answered(data) : told(data));
    this.worker.onerror = (event) => failed(new Error(event.message || "the worker could not be started"));
    this.ready = this.post({ runtime: runtime.href });
  }

  post(message) {
    return new Promise((resolve, reject) => {
      this.waiting.set(++this.asked, { resolve, reject });
      this.worker.postMessage({ id: this.asked, ...message });
    });
  }

  ask = (call, ...args) => this.post({ call, args });

  answered({ id, result, error }) {
    const { resolve, reject } = this.waiting.get(id);
    this.waiting.delete(id);
    if (error !== undefined) reject(new Error(error));
    else resolve(result);
  }

  // Whatever it is at: what was asked of it is never answered.
  end() {
    this.worker.terminate();
  }
}
