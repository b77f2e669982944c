"use strict";
(() => {
  const ROW = 28, AHEAD = 8;
  const WORDS = {F: "fails", W: "warns", i: "fails, only tracked", "-": "not judged", ".": "passes", " ": "not active"};
  const SIGNS = {F: "✗", W: "!", i: "i", "-": "?", ".": "✓", " ": ""};
  const CLASSES = {F: "F", W: "W", i: "i", "-": "o", ".": "p", " ": "n"};
  const FAILING = /[FWi]/;
  const count = (number) => number.toLocaleString("en");
  const find = (id) => document.getElementById(id);
  const createElement = (name, text, className) => {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    return element;
  };

  // -- light and dark

  const themes = ["automatic", "light", "dark"];
  const button = find("theme");
  const storeTheme = (word) => { try { localStorage.setItem("pytest-loop-theme", word); } catch { /* storage is disabled */ } };
  const loadTheme = () => { try { return localStorage.getItem("pytest-loop-theme"); } catch { return null; } };
  const applyTheme = (word) => {
    if (word === "automatic") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = word;
    button.textContent = `Theme: ${word}`;
  };
  let theme = themes.includes(loadTheme()) ? loadTheme() : "automatic";
  applyTheme(theme);
  button.hidden = false;
  button.addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    storeTheme(theme);
    applyTheme(theme);
  });

  // -- the grid: only visible rows are drawn

  const data = JSON.parse(find("data").textContent);
  const columns = data.rounds.length;
  const box = find("grid"), head = box.querySelector("thead"), body = box.querySelector("tbody");
  let shown = data.rules;
  let drawnRange = "";
  const position = {row: 0, column: Math.max(0, columns - 1)};

  const drawHead = () => {
    const row = createElement("tr");
    const corner = createElement("th");
    corner.append(createElement("bdi", "rule"));
    corner.scope = "col";
    row.append(corner);
    for (const round of data.rounds) {
      const cell = createElement("th", round.label + (round.void ? "*" : ""));
      cell.scope = "col";
      cell.title = `iteration ${round.iteration}, phase ${round.phase}${round.void ? ", void" : ""}`;
      row.append(cell);
    }
    head.replaceChildren(row);
  };

  const space = (rows) => {
    const row = createElement("tr");
    row.setAttribute("aria-hidden", "true");
    const cell = createElement("td");
    cell.colSpan = columns + 1;
    cell.style.height = `${rows * ROW}px`;
    row.append(cell);
    return row;
  };

  const drawRow = (rule, number) => {
    const row = createElement("tr");
    row.setAttribute("aria-rowindex", number + 2);
    const name = createElement("th"), text = createElement("bdi", rule.id);
    text.dir = "ltr";
    name.append(text); // long names are cut off at the start, because they differ at their ends
    name.scope = "row";
    name.title = rule.description ? `${rule.id}\n${rule.description}` : rule.id;
    row.append(name);
    for (let column = 0; column < columns; column += 1) {
      const letter = rule.cells[column];
      const cell = createElement("td");
      const cellButton = createElement("button", SIGNS[letter], `c ${CLASSES[letter]}`);
      cellButton.type = "button";
      cellButton.tabIndex = number === position.row && column === position.column ? 0 : -1;
      cellButton.dataset.row = number;
      cellButton.dataset.column = column;
      cellButton.setAttribute("aria-label", `${rule.id}, iteration ${data.rounds[column].label}: ${WORDS[letter]}`);
      cell.append(cellButton);
      row.append(cell);
    }
    return row;
  };

  const fitColumns = () => {
    const room = box.clientWidth;
    box.style.setProperty("--name", `${Math.max(Math.min(480, room * 0.5), room - columns * 31 - 4)}px`);
  };

  const draw = (force) => {
    const first = Math.max(0, Math.floor(box.scrollTop / ROW) - AHEAD);
    const last = Math.min(shown.length, Math.ceil((box.scrollTop + box.clientHeight) / ROW) + AHEAD);
    const range = `${first} ${last}`;
    if (!force && range === drawnRange) return;
    drawnRange = range;
    const hadFocus = body.contains(document.activeElement);
    const rows = [];
    if (first) rows.push(space(first));
    for (let number = first; number < last; number += 1) rows.push(drawRow(shown[number], number));
    if (last < shown.length) rows.push(space(shown.length - last));
    body.replaceChildren(...rows);
    if (hadFocus) focus();
  };

  const findCell = () => body.querySelector(`[data-row="${position.row}"][data-column="${position.column}"]`);
  const focus = () => { const cell = findCell(); if (cell) cell.focus({preventScroll: true}); };

  const moveTo = (row, column) => {
    const old = findCell();
    if (old) old.tabIndex = -1;
    position.row = Math.max(0, Math.min(shown.length - 1, row));
    position.column = Math.max(0, Math.min(columns - 1, column));
    const top = position.row * ROW;
    if (top < box.scrollTop) box.scrollTop = top;
    if (top + 2 * ROW > box.scrollTop + box.clientHeight) box.scrollTop = top + 2 * ROW - box.clientHeight;
    draw(false);
    const cell = findCell();
    if (!cell) return;
    cell.tabIndex = 0;
    cell.focus({preventScroll: true});
    const name = cell.closest("tr").firstChild.offsetWidth;
    const left = cell.parentNode.offsetLeft;
    if (left - name < box.scrollLeft) box.scrollLeft = left - name;
    if (left + 30 > box.scrollLeft + box.clientWidth) box.scrollLeft = left + 30 - box.clientWidth;
  };

  const applyFilter = () => {
    const words = find("filter").value.toLowerCase().split(/\s+/).filter(Boolean);
    const choice = find("which").value;
    const matches = {
      "": () => true,
      now: (rule) => FAILING.test(rule.cells.slice(-1)),
      ever: (rule) => FAILING.test(rule.cells),
      changed: (rule) => /F/.test(rule.cells) && /\./.test(rule.cells),
    }[choice];
    shown = data.rules.filter((rule) => {
      if (!matches(rule)) return false;
      const text = `${rule.id} ${rule.description || ""}`.toLowerCase();
      return words.every((word) => text.includes(word));
    });
    const earlier = data.earlier ? `, the last ${columns} of ${columns + data.earlier} evaluations` : "";
    find("count").textContent = `${count(shown.length)} of ${count(data.rules.length)} rules${earlier}`;
    box.querySelector("table").setAttribute("aria-rowcount", shown.length + 1);
    position.row = 0;
    box.scrollTop = 0;
    draw(true);
  };

  // -- details of a cell

  const dialog = find("detail");
  let open = null;

  const findFindings = (rule, column) => {
    // `says` holds pairs for the cells that do not pass: the index of a text, and how often it repeats.
    let place = 0;
    for (let before = 0; before < column; before += 1) if (!". ".includes(rule.cells[before])) place += 1;
    for (let index = 0; index < rule.says.length; index += 2) {
      place -= rule.says[index + 1];
      if (place < 0) return rule.says[index] < 0 ? null : data.says[rule.says[index]];
    }
    return null;
  };

  const list = (pairs) => {
    const element = createElement("dl");
    for (const [name, text, isCode] of pairs) {
      if (text === "" || text === undefined) continue;
      element.append(createElement("dt", name));
      const value = createElement("dd");
      value.append(isCode ? createElement("pre", text) : document.createTextNode(text));
      element.append(value);
    }
    return element;
  };

  const renderDetail = () => {
    const {rule, column} = open;
    const round = data.rounds[column], letter = rule.cells[column];
    find("detail-title").textContent = rule.id;
    const parts = [list([
      ["evaluation", `iteration ${round.iteration}, phase ${round.phase}: ${WORDS[letter]}${round.void ? " (void)" : ""}`],
      ["rule", rule.description],
      ["counts", `${rule.severity}, weight ${rule.weight}, phase ${rule.phase}`],
    ])];
    if (!". ".includes(letter)) {
      const findings = findFindings(rule, column);
      if (!findings) parts.push(createElement("p", "What it said is left out of this page for its size."));
      else {
        for (const [expected, text, where, detail] of findings[0])
          parts.push(list([["expected", expected], ["found", text], ["where", where], ["lines", detail, true]]));
        if (findings[1]) parts.push(createElement("p", `and ${findings[1]} more findings`));
      }
    }
    const issue = data.issues[round.issues[rule.id]];
    if (issue) {
      parts.push(createElement("h4", issue.rule === rule.id ? `Critique (${issue.novelty})` : "Critique of the same cause"));
      parts.push(list([
        ["rule", issue.rule === rule.id ? "" : issue.rule],
        ["problem", issue.problem], ["lines", issue.lines, true], ["fix", issue.fix], ["effect", issue.effect],
      ]));
    }
    find("detail-text").replaceChildren(...parts);
    find("before").disabled = column === 0;
    find("after").disabled = column === columns - 1;
  };

  const show = (rule, column) => {
    open = {rule, column};
    renderDetail();
    if (!dialog.open) dialog.showModal();
  };
  const move = (by) => {
    if (!open || open.column + by < 0 || open.column + by >= columns) return;
    open.column += by;
    renderDetail();
  };

  find("before").addEventListener("click", () => move(-1));
  find("after").addEventListener("click", () => move(1));
  find("close").addEventListener("click", () => dialog.close());
  dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
  dialog.addEventListener("keydown", (event) => {
    if (event.key === "ArrowLeft") move(-1);
    if (event.key === "ArrowRight") move(1);
  });

  body.addEventListener("click", (event) => {
    const cell = event.target.closest("button");
    if (!cell) return;
    moveTo(Number(cell.dataset.row), Number(cell.dataset.column));
    show(shown[position.row], position.column);
  });
  body.addEventListener("keydown", (event) => {
    const page = Math.max(1, Math.floor(box.clientHeight / ROW) - 2);
    const moves = {
      ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], PageUp: [-page, 0],
      PageDown: [page, 0], Home: [0, -columns], End: [0, columns],
    };
    const by = moves[event.key];
    if (!by) return;
    event.preventDefault();
    moveTo(position.row + by[0], position.column + by[1]);
  });

  const byId = new Map(data.rules.map((rule) => [rule.id, rule]));
  for (const link of document.querySelectorAll("[data-rule]"))
    link.addEventListener("click", () => {
      const rule = byId.get(link.dataset.rule);
      if (rule && columns) show(rule, columns - 1);
    });

  for (const chart of document.querySelectorAll(".scroll > .chart")) chart.parentElement.scrollLeft = chart.clientWidth;

  if (columns && data.rules.length) {
    box.hidden = false;
    find("tools").hidden = false;
    fitColumns();
    drawHead();
    applyFilter();
    box.scrollLeft = box.scrollWidth;
    box.addEventListener("scroll", () => draw(false), {passive: true});
    addEventListener("resize", () => { fitColumns(); draw(false); });
    find("filter").addEventListener("input", applyFilter);
    find("which").addEventListener("change", applyFilter);
  }
})();
