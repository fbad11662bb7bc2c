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

const MINE = "wengert-mine.py";

export function mine() {
  try {
    return localStorage.getItem(MINE) ?? "";
  } catch {
    return "";
  }
}

export function keepMine(text) {
  try {
    localStorage.setItem(MINE, text);
    return true;
  } catch {
    return false;
  }
}
