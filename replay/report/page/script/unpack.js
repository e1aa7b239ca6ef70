// What the page holds: facts as JSON, and blobs, packed, that are opened when they are needed. They stand below this
// script, so that tables answer before all of them are read.
const wholePage = new Promise((told) => document.addEventListener("DOMContentLoaded", told, { once: true }));
const facts = JSON.parse(document.getElementById("facts").textContent);

async function unpack(name) {
  await wholePage;
  const letters = atob(document.getElementById(`blob-${name}`).textContent);
  const bytes = new Uint8Array(letters.length);
  for (let place = 0; place < letters.length; place++) bytes[place] = letters.charCodeAt(place);
  return new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip")));
}

async function unpackJson(name) {
  return (await unpack(name)).json();
}

let libraryLoads = null;
function library() {
  // Plotly, once: as a file of its own within the page, which a browser reads beside its other work.
  libraryLoads ??= unpack("plotly").then((packed) => packed.text()).then((text) => new Promise((told, failed) => {
    const script = document.createElement("script");
    script.src = URL.createObjectURL(new Blob([text], { type: "text/javascript" }));
    script.onload = () => {
      URL.revokeObjectURL(script.src);
      told(window.Plotly);
    };
    script.onerror = () => failed(new Error("Plotly cannot be opened"));
    document.head.append(script);
  }));
  return libraryLoads;
}
