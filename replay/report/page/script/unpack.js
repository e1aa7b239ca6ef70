// What the page holds: facts as JSON, and blobs, packed, that are opened when they are needed.
const facts = JSON.parse(document.getElementById("facts").textContent);

async function unpack(name) {
  const letters = atob(document.getElementById(`blob-${name}`).textContent);
  const bytes = new Uint8Array(letters.length);
  for (let place = 0; place < letters.length; place++) bytes[place] = letters.charCodeAt(place);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

async function unpackJson(name) {
  return JSON.parse(await unpack(name));
}

let libraryLoads = null;
function library() {
  // Plotly, once: a script element runs its text at once, and the page stays one file.
  libraryLoads ??= unpack("plotly").then((text) => {
    const script = document.createElement("script");
    script.textContent = text;
    document.head.append(script);
    return window.Plotly;
  });
  return libraryLoads;
}
