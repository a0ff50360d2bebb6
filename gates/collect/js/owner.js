// Isolated world of the parent document: `this` is the element that holds a frame. Can anybody see it?
function () {
  return Element.prototype.checkVisibility.call(this, { visibilityProperty: true });
}
