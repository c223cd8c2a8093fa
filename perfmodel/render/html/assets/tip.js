// One tooltip for everything: on hover, on focus, gone with Escape. Its lines are pairs of texts.
page.tip = {
  node: document.getElementById("tip"),

  show(target, title, lines) {
    const list = page.el(
      "dl",
      {},
      lines.map(([name, value]) => [page.el("dt", {}, name), page.el("dd", {}, value)]),
    );
    this.node.replaceChildren(page.el("strong", {}, title), list);
    this.node.hidden = false;
    target.setAttribute("aria-describedby", "tip");
    const at = target.getBoundingClientRect();
    const size = this.node.getBoundingClientRect();
    const right = document.documentElement.clientWidth - size.width - 8;
    const x = Math.max(8, Math.min(at.left + at.width / 2 - size.width / 2, right));
    const above = at.top - size.height - 10;
    const y = above > 4 ? above : at.bottom + 10;
    this.node.style.left = `${x + window.scrollX}px`;
    this.node.style.top = `${y + window.scrollY}px`;
  },

  hide(target) {
    this.node.hidden = true;
    target?.removeAttribute("aria-describedby");
  },

  // Shows what `describe` gives, [title, lines], for as long as the target is pointed at.
  on(target, describe) {
    const show = () => this.show(target, ...describe());
    const hide = () => this.hide(target);
    target.addEventListener("mouseenter", show);
    target.addEventListener("focus", show);
    target.addEventListener("mouseleave", hide);
    target.addEventListener("blur", hide);
  },
};

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") page.tip.hide();
});
