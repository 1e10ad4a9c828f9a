"""The script of the report: numbers under the pointer, and tables that sort.

    mass = x_0 + (share of the width - left) / (right - left) (x_1 - x_0)

The nearest mass of the figure is shown, by pointer, touch or arrow keys. A click on the heading of
a column sorts: rising, falling, as it was; cells without a number stand last. Text is set as text,
never as markup. The page lets this script run by its hash, and no other.
"""

from __future__ import annotations

import base64
import hashlib

SCRIPT = r"""
"use strict";
function pointed(figure) {
  const data = JSON.parse(figure.dataset.readout), image = figure.querySelector("img");
  const box = document.createElement("div"), line = document.createElement("i");
  const out = document.createElement("output");
  const [left, right, top, bottom] = data.frame, [low, high] = data.x;
  let chosen = -1;
  box.className = "pointed";
  box.tabIndex = 0;
  box.setAttribute("role", "slider");
  box.setAttribute("aria-label", image.alt + ": mass in GeV");
  box.setAttribute("aria-valuemin", data.mass[0]);
  box.setAttribute("aria-valuemax", data.mass[data.mass.length - 1]);
  out.className = "readout";
  out.textContent = "Point at a mass, or use the arrow keys.";
  line.hidden = true;
  line.style.top = 100 * top + "%";
  line.style.height = 100 * (bottom - top) + "%";
  image.replaceWith(box);
  box.append(image, line);
  box.after(out);
  function piece(kind, text) {
    const element = document.createElement(kind);
    element.textContent = text;
    return element;
  }
  function show(index) {
    chosen = Math.max(0, Math.min(data.mass.length - 1, index));
    const mass = data.mass[chosen];
    const texts = data.heads.map((head, i) => head + ": " + data.rows[chosen][i]);
    const words = [piece("b", mass + " GeV"), ...texts.map(text => piece("span", text))];
    out.replaceChildren(...words.flatMap(word => [word, " "]));
    line.hidden = false;
    line.style.left = 100 * (left + (mass - low) / (high - low) * (right - left)) + "%";
    box.setAttribute("aria-valuenow", mass);
    box.setAttribute("aria-valuetext", mass + " GeV; " + texts.join("; "));
  }
  function point(event) {
    const at = box.getBoundingClientRect();
    const share = ((event.clientX - at.left) / at.width - left) / (right - left);
    const mass = low + share * (high - low);
    let best = 0;
    data.mass.forEach((m, i) => {
      if (Math.abs(m - mass) < Math.abs(data.mass[best] - mass)) best = i;
    });
    show(best);
  }
  box.addEventListener("pointermove", point);
  box.addEventListener("pointerdown", point);
  box.addEventListener("keydown", event => {
    const steps = {
      ArrowLeft: -1, ArrowDown: -1, PageDown: -10, ArrowRight: 1, ArrowUp: 1, PageUp: 10
    };
    if (event.key in steps) show(chosen < 0 ? 0 : chosen + steps[event.key]);
    else if (event.key === "Home") show(0);
    else if (event.key === "End") show(data.mass.length - 1);
    else return;
    event.preventDefault();
  });
}
function value(text) {
  const words = text.trim().replace(/,(?=\d{3})/g, "");
  if (/^[-−]?∞/.test(words)) return words.startsWith("∞") ? Infinity : -Infinity;
  return parseFloat(words.replace(/−/g, "-"));
}
function sortable(table) {
  const body = table.tBodies[0], original = [...body.rows], heads = [...table.tHead.rows[0].cells];
  const orders = ["none", "ascending", "descending"];
  function sort(column) {
    const head = heads[column];
    const order = orders[(orders.indexOf(head.getAttribute("aria-sort")) + 1) % 3];
    heads.forEach(other => other.setAttribute("aria-sort", "none"));
    head.setAttribute("aria-sort", order);
    const sign = order === "descending" ? -1 : 1;
    const texts = new Map(original.map(row => [row, row.cells[column].textContent.trim()]));
    const numbers = new Map(original.map(row => [row, value(texts.get(row))]));
    const numeric = original.some(row => !isNaN(numbers.get(row)));
    const compare = (a, b) => {
      if (!numeric) return sign * texts.get(a).localeCompare(texts.get(b), "en");
      const x = numbers.get(a), y = numbers.get(b);
      if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y);
      return x === y ? 0 : sign * (x < y ? -1 : 1);
    };
    body.append(...(order === "none" ? original : [...original].sort(compare)));
  }
  if (original.length < 2) return;
  heads.forEach((head, column) => {
    head.setAttribute("aria-sort", "none");
    head.tabIndex = 0;
    head.title = "sort";
    head.addEventListener("click", () => sort(column));
    head.addEventListener("keydown", event => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      sort(column);
    });
  });
}
document.querySelectorAll("figure[data-readout]").forEach(pointed);
document.querySelectorAll("table").forEach(sortable);
"""
SCRIPT_HASH = "sha256-" + base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
