"use strict";
(() => {
  const AHEAD = 8;
  const WORDS = {F: "fails", E: "cannot be judged", W: "warns", i: "fails, only tracked", "-": "not judged", ".": "passes", " ": "not active"};
  const SIGNS = {F: "✗", E: "E", W: "!", i: "i", "-": "?", ".": "✓", " ": ""};
  const CLASSES = {F: "F", E: "F", W: "W", i: "i", "-": "o", ".": "p", " ": "n"};
  const FAILING = /[FEWi]/;
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

  // -- copy buttons

  for (const copy of document.querySelectorAll(".copy")) {
    const source = copy.dataset.from ? find(copy.dataset.from) : copy.parentElement.querySelector("pre");
    const text = () => (source.content || source).textContent;
    copy.hidden = false;
    copy.addEventListener("click", async () => {
      const label = copy.textContent;
      try {
        await navigator.clipboard.writeText(text());
      } catch { // a page that was opened as a file may not use the clipboard
        const area = createElement("textarea", text());
        document.body.append(area);
        area.select();
        document.execCommand("copy");
        area.remove();
      }
      copy.textContent = "Copied";
      setTimeout(() => { copy.textContent = label; }, 1500);
    });
  }

  // -- search: all matches are marked, Enter goes to the next one

  const searchBox = find("search"), main = find("main");
  const canMark = typeof CSS !== "undefined" && "highlights" in CSS;
  let matches = [], current = -1;

  const listMatches = (word) => {
    const ranges = [];
    const walker = document.createTreeWalker(main, NodeFilter.SHOW_TEXT, (node) =>
      node.parentElement.closest("script, template, dialog, svg") ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_ACCEPT);
    while (walker.nextNode() && ranges.length < 5000) {
      const text = walker.currentNode.data.toLowerCase();
      for (let at = text.indexOf(word); at >= 0; at = text.indexOf(word, at + word.length)) {
        const range = new Range();
        range.setStart(walker.currentNode, at);
        range.setEnd(walker.currentNode, at + word.length);
        ranges.push(range);
      }
    }
    return ranges;
  };
  const goTo = (number) => {
    current = (number + matches.length) % matches.length;
    const range = matches[current];
    for (let at = range.startContainer.parentElement; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    range.startContainer.parentElement.scrollIntoView({block: "center"});
    if (canMark) CSS.highlights.set("found", new Highlight(range));
    find("search-count").textContent = `${count(current + 1)} of ${count(matches.length)}`;
  };
  const runSearch = () => {
    const word = searchBox.value.toLowerCase();
    matches = word.length > 1 ? listMatches(word) : [];
    if (canMark) {
      CSS.highlights.set("search", new Highlight(...matches));
      CSS.highlights.delete("found");
    }
    current = -1;
    find("search-count").textContent = word.length > 1 ? `${count(matches.length)} found` : "";
  };
  find("search-box").hidden = false;
  searchBox.addEventListener("input", runSearch);
  searchBox.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && matches.length) goTo(current + (event.shiftKey ? -1 : 1));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "/" || event.target.closest("input, select, textarea")) return;
    event.preventDefault();
    searchBox.focus();
  });

  for (const chart of document.querySelectorAll(".scroll > .chart")) chart.parentElement.scrollLeft = chart.clientWidth;
  addEventListener("beforeprint", () => { for (const part of document.querySelectorAll("details")) part.open = true; });

  // -- the grid: only visible rows are drawn

  if (!find("data")) return;
  const data = JSON.parse(find("data").textContent);
  const columns = data.rounds.length;
  const box = find("grid"), head = box.querySelector("thead"), body = box.querySelector("tbody");
  let shown = data.rules;
  let drawnRange = "";
  // A second line holds the description of a rule, or the file of a test.
  const splitName = (rule) => {
    const [file, ...names] = rule.id.split("::");
    return names.length ? [names.join("::"), rule.description || file] : [rule.id, rule.description || ""];
  };
  const ROW = data.rules.some((rule) => splitName(rule)[1]) ? 44 : 32;
  box.style.setProperty("--row", `${ROW}px`);
  const position = {row: 0, column: Math.max(0, columns - 1)};

  const drawHead = () => {
    const row = createElement("tr");
    const corner = createElement("th");
    corner.textContent = "rule";
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
    const name = createElement("th"), [title, second] = splitName(rule);
    name.append(createElement("b", title));
    if (second) name.append(createElement("small", second));
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
    const column = room < 540 ? 30 : 34;
    box.style.setProperty("--name-width", `${Math.max(Math.min(480, room * 0.5), room - columns * column - 2)}px`);
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
    draw(false);  // only now does the box have its height
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

  if (columns && data.rules.length) {
    box.hidden = false;
    find("tools").hidden = false;
    fitColumns();
    drawHead();
    applyFilter();
    box.scrollLeft = box.scrollWidth;
    box.addEventListener("scroll", () => draw(false), {passive: true});
    addEventListener("beforeprint", () => { body.replaceChildren(...shown.slice(0, 1000).map(drawRow)); });
    addEventListener("afterprint", () => draw(true));
    addEventListener("resize", () => { fitColumns(); draw(false); });
    find("filter").addEventListener("input", applyFilter);
    find("which").addEventListener("change", applyFilter);
  }
})();
