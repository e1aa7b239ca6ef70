// An element of the page with its properties, its data and what is in it.
function element(name, properties = {}, ...children) {
  const { dataset, ...plain } = properties;
  const made = Object.assign(document.createElement(name), plain);
  Object.assign(made.dataset, dataset);
  made.append(...children);
  return made;
}
