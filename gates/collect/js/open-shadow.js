// Isolated world: `this` is the host of a closed shadow root, which is handed in. An own property of this world's
// wrapper is enough; the page's world has other wrappers and sees nothing of it. The list keeps the wrapper alive.
function (root) {
  Object.defineProperty(this, "shadowRoot", { value: root });
  (globalThis.interlockHosts ??= []).push(this);
}
