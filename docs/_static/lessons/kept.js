// What the browser keeps of the course, for this reader alone: of each lesson the cells that were changed, and how far
// its check has come; and the reader's own engine, which goes from lesson to lesson.
const name = (lesson) => `wengert-lesson-${lesson}`;

export function kept(lesson) {
  try {
    const found = JSON.parse(localStorage.getItem(name(lesson)));
    return { cells: {}, done: false, ...found };
  } catch {
    return { cells: {}, done: false }; // nothing may be kept here, or somebody else wrote it
  }
}

// Whether it could be kept.
export function keep(lesson, what) {
  try {
    localStorage.setItem(name(lesson), JSON.stringify(what));
    return true;
  } catch {
    return false;
  }
}

// A text under a name: what reads it, and what writes it.
function text(called) {
  const read = () => {
    try {
      return localStorage.getItem(called) ?? "";
    } catch {
      return "";
    }
  };
  const write = (what) => {
    try {
      localStorage.setItem(called, what);
      return true;
    } catch {
      return false;
    }
  };
  return [read, write];
}

export const [mine, keepMine] = text("wengert-mine.py");
export const [runtimeKept, keepRuntime] = text("wengert-runtime"); // which Python the browser has had
