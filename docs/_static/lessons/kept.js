// What the browser keeps of the course, for this reader alone: of each lesson the cells that were changed, and how far
// its check has come.
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
