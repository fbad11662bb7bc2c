// What a page that plays begins with: its style, its skeleton and its program are packed, and run from here.
(async () => {
  const packed = Uint8Array.from(atob(document.getElementById("packed").textContent), (c) => c.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const parts = JSON.parse(await new Response(stream).text());
  document.body.insertAdjacentHTML("afterbegin", parts.pop());
  for (const name of ["style", "script"]) document.body.append(Object.assign(document.createElement(name), { textContent: parts.shift() }));
})().catch(() => document.body.append("This page needs a browser of 2023 or later."));
